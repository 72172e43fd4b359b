// Allocation, and what pointers are.
#include <string>

#include "memory.h"
#include "queues.h"
#include "state.h"

using namespace simt;

namespace {

constexpr size_t kPitch = 512;

cudaError_t allocate_for_api(void** pointer, size_t size, MemoryKind kind, const char* made_by, unsigned flags = 0) {
  if (!pointer) return cudaErrorInvalidValue;
  const cudaError_t error = check_unsafe_call();
  if (error != cudaSuccess) return error;
  *pointer = nullptr;
  const cudaError_t allocated = size ? allocate(pointer, size, kind, made_by, flags) : cudaSuccess;
  if (allocated != cudaSuccess)
    explain("it asks for " + std::to_string(size) + " bytes, and the device has " + std::to_string(free_memory()) +
            " left");
  return allocated;
}

cudaError_t refuse_to_free(const void* pointer, const char* with) {
  Allocation a;
  const bool is_known = find_allocation(pointer, a);
  const bool is_start = is_known && a.begin == reinterpret_cast<uintptr_t>(pointer);
  explain(is_start   ? std::string("its pointer is from ") + a.made_by + ", which " + with + " does not free"
          : is_known ? std::string("its pointer is not the start of the allocation (") + a.made_by + ")"
                     : "its pointer is " + describe_address(pointer) + ", and only a live allocation can be freed");
  return cudaErrorInvalidValue;
}

// The live allocation that begins at the pointer.
bool find_exactly(const void* pointer, Allocation& found) {
  return in_device_space(pointer) && find_allocation(pointer, found) &&
         found.begin == reinterpret_cast<uintptr_t>(pointer);
}

// The managed memory that contains the range; advice about other memory is an error.
cudaError_t check_managed(const void* pointer, size_t count) {
  Allocation a;
  if (!count || !stands_on(Side::device, pointer, count)) return cudaErrorInvalidValue;
  return find_allocation(pointer, a) && a.kind == MemoryKind::managed ? cudaSuccess : cudaErrorInvalidValue;
}

bool is_location(cudaMemLocation location) {
  if (location.type == cudaMemLocationTypeDevice) return is_device(location.id);
  return location.type >= cudaMemLocationTypeHost && location.type <= cudaMemLocationTypeHostNumaCurrent;
}

}  // namespace

// --- Allocation ----------------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** pointer, size_t size) {
  return api([&] { return allocate_for_api(pointer, size, MemoryKind::device, "cudaMalloc"); });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  return api([&] {
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return cudaErrorInvalidValue;
    return allocate_for_api(pointer, size, MemoryKind::managed, "cudaMallocManaged");
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  return api([&] {
    constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (flags & ~kKnown) return cudaErrorInvalidValue;
    return allocate_for_api(pointer, size, MemoryKind::pinned, "cudaHostAlloc", flags | cudaHostAllocMapped);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t size) { return cudaHostAlloc(pointer, size, cudaHostAllocDefault); }

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return api([&] {
    size_t size = 0;
    if (!pitch || width > ~static_cast<size_t>(0) - kPitch) return cudaErrorInvalidValue;
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    if (__builtin_mul_overflow(*pitch, height, &size)) return cudaErrorMemoryAllocation;
    return allocate_for_api(pointer, size, MemoryKind::device, "cudaMallocPitch");
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return api([&] {
    size_t rows = 0;
    if (!pointer || __builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorInvalidValue;
    *pointer = {nullptr, 0, extent.width, extent.height};
    return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, rows);
  });
}

// Freeing waits: for the device whose memory it is, and host memory may be in use by all of them.
static void wait_for_users(const void* pointer) {
  Allocation a;
  if (!several_devices() || in_host_function || in_kernel() || !pointer || !find_allocation(pointer, a)) return;
  wait_for_devices(a.kind == MemoryKind::device ? 1u << a.device : kAllDevices);
}

cudaError_t cudaFree(void* pointer) {
  wait_for_users(pointer);
  return api([&] {
    Allocation a;
    cudaError_t error = check_unsafe_call();
    if (error != cudaSuccess || !pointer) return error;
    if (!find_exactly(pointer, a) || a.kind == MemoryKind::pinned) return refuse_to_free(pointer, "cudaFree");
    note_host_wait();
    release(a.begin);
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  wait_for_users(pointer);
  return api([&] {
    Allocation a;
    cudaError_t error = check_unsafe_call();
    if (error != cudaSuccess || !pointer) return error;
    if (!find_exactly(pointer, a) || a.kind != MemoryKind::pinned) return refuse_to_free(pointer, "cudaFreeHost");
    release(a.begin);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  return api([&] {
    Allocation a;
    if (!pointer || !size || size > ~reinterpret_cast<uintptr_t>(pointer) || flags > 0x0f) return cudaErrorInvalidValue;
    if (find_allocation(pointer, a) && reinterpret_cast<uintptr_t>(pointer) < a.begin + a.size)
      return cudaErrorHostMemoryAlreadyRegistered;
    if (!is_host_memory(pointer) || !is_host_memory(static_cast<char*>(pointer) + size - 1))
      return cudaErrorInvalidValue;
    const bool added = add_foreign({reinterpret_cast<uintptr_t>(pointer), size, MemoryKind::pinned, "cudaHostRegister",
                                    flags | cudaHostRegisterMapped, current_device()});
    return added ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return api([&] {
    Allocation a;
    if (!pointer) return cudaErrorInvalidValue;
    const bool registered = !in_device_space(pointer) && find_allocation(pointer, a) && a.kind == MemoryKind::pinned &&
                            a.begin == reinterpret_cast<uintptr_t>(pointer);
    if (!registered) return cudaErrorHostMemoryNotRegistered;
    remove_foreign(a.begin);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** devicePointer, void* hostPointer, unsigned int flags) {
  return api([&] {
    Allocation a;
    if (!devicePointer || flags || !find_allocation(hostPointer, a) || a.kind != MemoryKind::pinned)
      return cudaErrorInvalidValue;
    *devicePointer = hostPointer;
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* hostPointer) {
  return api([&] {
    Allocation a;
    if (!flags || !find_allocation(hostPointer, a) || a.kind != MemoryKind::pinned) return cudaErrorInvalidValue;
    *flags = a.flags;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api([&] {
    if (!attributes) return cudaErrorInvalidValue;
    Allocation a;
    void* address = const_cast<void*>(pointer);
    if (!find_allocation(pointer, a) || reinterpret_cast<uintptr_t>(pointer) >= a.begin + a.size) {
      *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr,
                     in_device_space(pointer) ? nullptr : address};
      return cudaSuccess;
    }
    switch (a.kind) {
      case MemoryKind::managed:
        *attributes = {cudaMemoryTypeManaged, a.device, address, address};
        break;
      case MemoryKind::pinned:
        *attributes = {cudaMemoryTypeHost, a.device, address, address};
        break;
      default:
        *attributes = {cudaMemoryTypeDevice, a.device, address, nullptr};
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return api([&] {
    if (free) *free = free_memory();
    if (total) *total = total_memory();
    return cudaSuccess;
  });
}

// --- Managed memory: checked, and without effect where host and device share their memory
// ------------------------------

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  return api([&] {
    if (flags) return cudaErrorInvalidValue;
    if (!is_location(location)) return cudaErrorInvalidDevice;
    const cudaError_t error = check_managed(pointer, count);
    return error == cudaSuccess ? enqueue(
                                      stream, [] { return cudaSuccess; }, cudaGraphNodeTypeEmpty)
                                : error;
  });
}

cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, cudaMemLocation location) {
  return api([&] {
    if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy) return cudaErrorInvalidValue;
    const bool uses_location = advice >= cudaMemAdviseSetPreferredLocation;
    if (uses_location && advice != cudaMemAdviseUnsetPreferredLocation && !is_location(location))
      return cudaErrorInvalidDevice;
    return check_managed(pointer, count);
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length, unsigned int flags) {
  return api([&] {
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
      return cudaErrorInvalidValue;
    const cudaError_t error = check_managed(pointer, length ? length : 1);
    return error == cudaSuccess ? enqueue(
                                      stream, [] { return cudaSuccess; }, cudaGraphNodeTypeEmpty)
                                : error;
  });
}
