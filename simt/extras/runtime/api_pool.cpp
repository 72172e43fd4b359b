// Stream-ordered allocation. A pool keeps no memory: what is freed goes back at once, so that its use faults.
#include <algorithm>

#include "memory.h"
#include "streams.h"

namespace simt {

namespace {

struct Pool {
  unsigned number;  // in Allocation::flags
  size_t max_size;
  int device;
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};
  uint64_t highest = 0;
};

struct Pools {
  HandleTable<cudaMemPool_t, Pool> table{static_cast<uintptr_t>(0xC0DA06) << 40};
  unsigned count = 0;
  cudaMemPool_t standard[kMostDevices], current[kMostDevices];

  Pools() {
    for (int device = 0; device < device_count(); ++device) restart(device);
  }
  cudaMemPool_t create(size_t max_size, int device) { return table.insert({++count, max_size, device}); }
  void restart(int device) { current[device] = standard[device] = create(0, device); }
};

Pools& pools() {
  static auto* pools = new Pools;
  return *pools;
}

cudaError_t allocate_from(cudaMemPool_t handle, void** pointer, size_t size, cudaStream_t stream) {
  Pool* pool = pools().table.find(handle);
  if (!pointer || !pool) return cudaErrorInvalidValue;
  if (!find_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (is_capturing(stream)) return not_supported("cudaMallocAsync: the CPU device does not capture allocations");
  cudaError_t error = is_legacy(stream) ? check_legacy_stream() : cudaSuccess;
  *pointer = nullptr;
  if (error != cudaSuccess || !size) return error;
  if (pool->max_size && allocated_with(pool->number) + size > pool->max_size) return cudaErrorMemoryAllocation;
  const int device = current_device();
  set_current_device(pool->device);  // whose memory it is
  error = allocate(pointer, size, MemoryKind::device, "cudaMallocAsync", pool->number);
  set_current_device(device);
  pool->highest = std::max<uint64_t>(pool->highest, allocated_with(pool->number));
  return error;
}

const bool are_forgotten = at_device_reset([] {
  Pools& p = pools();
  p.table.erase_if([](const Pool& pool) { return pool.device == current_device(); });
  p.restart(current_device());
});

}  // namespace

}  // namespace simt

using namespace simt;

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return api([&] { return allocate_from(pools().current[std::max(device_of(stream), 0)], pointer, size, stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return api([&] { return allocate_from(pool, pointer, size, stream); });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return api([&] {
    Allocation a;
    if (!find_stream(stream)) return cudaErrorInvalidResourceHandle;
    if (is_capturing(stream)) return not_supported("cudaFreeAsync: the CPU device does not capture deallocations");
    const cudaError_t error = is_legacy(stream) ? check_legacy_stream() : cudaSuccess;
    if (error != cudaSuccess || !pointer) return error;
    const bool found = in_device_space(pointer) && find_allocation(pointer, a) &&
                       a.begin == reinterpret_cast<uintptr_t>(pointer) && a.kind == MemoryKind::device;
    if (!found) return cudaErrorInvalidValue;
    if (several_devices())
      return enqueue(
          stream,
          [begin = a.begin] {
            std::lock_guard<std::recursive_mutex> lock(api_mutex());
            release(begin);
            return cudaSuccess;
          },
          cudaGraphNodeTypeMemFree);
    release(a.begin);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return api([&] {
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned) return cudaErrorInvalidValue;
    if (properties->location.type != cudaMemLocationTypeDevice || !is_device(properties->location.id))
      return cudaErrorInvalidDevice;
    if (properties->handleTypes != cudaMemHandleTypeNone)
      return not_supported("cudaMemPoolCreate: the CPU device does not share memory between processes");
    *pool = pools().create(properties->maxSize, properties->location.id);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return api([&] {
    Pools& p = pools();
    const Pool* found = p.table.find(pool);
    if (!found || pool == p.standard[found->device]) return cudaErrorInvalidValue;
    const int device = found->device;
    p.table.erase(pool);
    if (p.current[device] == pool) p.current[device] = p.standard[device];
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return api([&] { return pools().table.find(pool) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return api([&] {
    Pool* pool = pools().table.find(handle);
    if (!pool || !value) return cudaErrorInvalidValue;
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        pool->reuse[attribute - 1] = *static_cast<int*>(value);
        return cudaSuccess;
      case cudaMemPoolAttrReleaseThreshold:
        pool->release_threshold = *static_cast<uint64_t*>(value);
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        if (*static_cast<uint64_t*>(value)) return cudaErrorInvalidValue;  // it can only be reset
        pool->highest = allocated_with(pool->number);
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return api([&] {
    const Pool* pool = pools().table.find(handle);
    if (!pool || !value) return cudaErrorInvalidValue;
    uint64_t& number = *static_cast<uint64_t*>(value);
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        *static_cast<int*>(value) = pool->reuse[attribute - 1];
        return cudaSuccess;
      case cudaMemPoolAttrReleaseThreshold:
        number = pool->release_threshold;
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemCurrent:
      case cudaMemPoolAttrUsedMemCurrent:
        number = allocated_with(pool->number);
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        number = pool->highest;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count) {
  return api([&] {
    if (!pools().table.find(pool) || (count && !list)) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      if (list[i].location.type != cudaMemLocationTypeDevice || !is_device(list[i].location.id))
        return cudaErrorInvalidDevice;
      if (list[i].location.id != pools().table.find(pool)->device)
        return not_supported(
            "cudaMemPoolSetAccess: the CPU device gives no other device access to a single pool; call "
            "cudaDeviceEnablePeerAccess, which covers the pools of a device here");
      if (list[i].flags != cudaMemAccessFlagsProtReadWrite) return cudaErrorInvalidValue;  // the owner keeps its access
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return api([&] {
    if (!flags || !location || !pools().table.find(pool)) return cudaErrorInvalidValue;
    if (location->type != cudaMemLocationTypeDevice || !is_device(location->id)) return cudaErrorInvalidDevice;
    const bool reaches = reach_of(location->id) >> pools().table.find(pool)->device & 1;
    *flags = reaches ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
  });
}

static cudaError_t give_pool(cudaMemPool_t* pool, const cudaMemPool_t (&which)[kMostDevices], int device) {
  if (!is_device(device)) return cudaErrorInvalidDevice;
  if (!pool) return cudaErrorInvalidValue;
  *pool = which[device];
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return api([&] { return give_pool(pool, pools().standard, device); });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return api([&] { return give_pool(pool, pools().current, device); });
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return api([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    const Pool* found = pools().table.find(pool);
    if (!found || found->device != device) return cudaErrorInvalidValue;
    pools().current[device] = pool;
    return cudaSuccess;
  });
}
