// Stream-ordered allocation. A pool keeps no memory: what is freed goes back at once, so that its use faults.
#include <algorithm>

#include "memory.h"
#include "streams.h"

namespace simt {

namespace {

struct Pool {
  unsigned number;  // in Allocation::flags
  size_t max_size;
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};
  uint64_t highest = 0;
};

struct Pools {
  HandleTable<cudaMemPool_t, Pool> table{static_cast<uintptr_t>(0xC0DA06) << 40};
  unsigned count = 0;
  cudaMemPool_t standard = create(0);
  cudaMemPool_t current = standard;

  cudaMemPool_t create(size_t max_size) { return table.insert({++count, max_size}); }
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
  error = allocate(pointer, size, MemoryKind::device, "cudaMallocAsync", pool->number);
  pool->highest = std::max<uint64_t>(pool->highest, allocated_with(pool->number));
  return error;
}

const bool are_forgotten = at_device_reset([] {
  Pools& p = pools();
  p.table.clear();
  p.current = p.standard = p.create(0);
});

}  // namespace

}  // namespace simt

using namespace simt;

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return api([&] { return allocate_from(pools().current, pointer, size, stream); });
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
    return found && release(a.begin) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return api([&] {
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned) return cudaErrorInvalidValue;
    if (properties->location.type != cudaMemLocationTypeDevice || properties->location.id)
      return cudaErrorInvalidDevice;
    if (properties->handleTypes != cudaMemHandleTypeNone)
      return not_supported("cudaMemPoolCreate: the CPU device does not share memory between processes");
    *pool = pools().create(properties->maxSize);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return api([&] {
    Pools& p = pools();
    if (pool == p.standard || !p.table.erase(pool)) return cudaErrorInvalidValue;
    if (p.current == pool) p.current = p.standard;
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
      if (list[i].location.type != cudaMemLocationTypeDevice || list[i].location.id) return cudaErrorInvalidDevice;
      if (list[i].flags != cudaMemAccessFlagsProtReadWrite) return cudaErrorInvalidValue;  // the owner keeps its access
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return api([&] {
    if (!flags || !location || !pools().table.find(pool)) return cudaErrorInvalidValue;
    if (location->type != cudaMemLocationTypeDevice || location->id) return cudaErrorInvalidDevice;
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
  });
}

static cudaError_t give_pool(cudaMemPool_t* pool, cudaMemPool_t which, int device) {
  if (device) return cudaErrorInvalidDevice;
  if (!pool) return cudaErrorInvalidValue;
  *pool = which;
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
    if (device) return cudaErrorInvalidDevice;
    if (!pools().table.find(pool)) return cudaErrorInvalidValue;
    pools().current = pool;
    return cudaSuccess;
  });
}
