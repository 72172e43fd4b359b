// The devices: what each is, what it can do, and its settings.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device_limits.h"
#include "environment.h"
#include "memory.h"
#include "streams.h"

using namespace simt;

namespace {

constexpr char kBusId[] = "0000:00:00.0";  // of device 0; device 1 is at 0000:01:00.0

unsigned device_flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
cudaFuncCache cache_config = cudaFuncCachePreferNone;  // hints, the same for all devices, as the limits are
size_t printf_fifo_size = 1 << 20, malloc_heap_size = 8 << 20;

// Questions about the device are answered even after a kernel's fault.
template <class Body>
cudaError_t query(Body&& body) {
  const cudaError_t error = body();
  return error == cudaSuccess ? error : record(error);
}

template <class Value, class Source>
cudaError_t give(Value* value, Source source) {
  if (!value) return cudaErrorInvalidValue;
  *value = source;
  return cudaSuccess;
}

int last_level_cache() {
  const long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE), level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<int>(std::clamp(std::max(level3, level2), 0L, static_cast<long>(INT_MAX)));
}

// What the CPU device does not have (clocks, a memory bus, surfaces) is 0.
cudaDeviceProp make_properties() {
  cudaDeviceProp p = {};
  std::strcpy(p.name, "CPU device (simt)");
  std::memcpy(p.uuid.bytes, "simt CPU device", sizeof p.uuid.bytes);
  p.totalGlobalMem = total_memory();
  p.sharedMemPerBlock = kStaticSharedLimit;
  p.regsPerBlock = 65536;
  p.warpSize = 32;
  p.memPitch = INT_MAX;
  p.maxThreadsPerBlock = kMaxThreads;
  p.maxThreadsDim[0] = kMaxThreads;
  p.maxThreadsDim[1] = kMaxThreads;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = INT_MAX;
  p.maxGridSize[1] = 65535;
  p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.maxTexture1D = p.maxTexture2D[0] = 131072;
  p.maxTexture2D[1] = 65536;
  p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = 16384;
  p.maxTexture1DLayered[0] = p.maxTexture2DLayered[0] = p.maxTexture2DLayered[1] = 32768;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = 2048;
  p.major = 9;
  p.minor = 0;
  p.multiProcessorCount = static_cast<int>(multiprocessors());
  p.canMapHostMemory = 1;
  p.concurrentKernels = 1;
  p.asyncEngineCount = 1;
  p.deviceOverlap = 1;
  p.unifiedAddressing = 1;
  p.l2CacheSize = last_level_cache();
  p.maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = 1;
  p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = 228 * 1024;
  p.regsPerMultiprocessor = 65536;
  p.managedMemory = 1;
  p.hostNativeAtomicSupported = 1;
  p.concurrentManagedAccess = 1;
  p.canUseHostPointerForRegisteredMem = 1;
  p.cooperativeLaunch = 1;
  p.sharedMemPerBlockOptin = kSharedLimit;
  p.directManagedMemAccessFromHost = 1;
  p.maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
  p.reservedSharedMemPerBlock = 1024;
  p.hostRegisterSupported = 1;
  p.hostRegisterReadOnlySupported = 1;
  p.memoryPoolsSupported = 1;
  p.clusterLaunch = 1;
  p.unifiedFunctionPointers = 1;
  p.deviceNumaId = p.hostNumaId = -1;
  p.singleToDoublePrecisionPerfRatio = 2;
  return p;
}

const cudaDeviceProp& properties_of(int device) {
  static const std::vector<cudaDeviceProp> all = [] {
    std::vector<cudaDeviceProp> properties;
    for (int device = 0; device < device_count(); ++device) {
      properties.push_back(make_properties());
      properties.back().pciBusID = device;
      properties.back().uuid.bytes[sizeof properties.back().uuid.bytes - 1] = static_cast<char>(device);
    }
    return properties;
  }();
  return all[static_cast<size_t>(device)];
}

}  // namespace

// --- Choice --------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  return query([&] {
    if (const std::string refused = devices_refused(); !refused.empty()) {
      explain(refused);
      return cudaErrorInitializationError;
    }
    return give(count, device_count());
  });
}
cudaError_t cudaGetDevice(int* device) {
  return query([&] { return give(device, current_device()); });
}
cudaError_t cudaSetDevice(int device) {
  return query([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    set_current_device(device);
    return cudaSuccess;
  });
}
cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  return query([&] { return is_device(device) ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  return query([&] {
    if (count < 0 || (count && !devices)) return cudaErrorInvalidValue;
    return std::all_of(devices, devices + count, is_device) ? cudaSuccess : cudaErrorInvalidDevice;
  });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return query([&] { return wanted ? give(device, 0) : cudaErrorInvalidValue; });
}

// --- Properties ----------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return query([&] { return is_device(device) ? give(properties, properties_of(device)) : cudaErrorInvalidDevice; });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return query([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    const cudaDeviceProp& p = properties_of(device);
    switch (attribute) {
#define SIMT_ATTRIBUTE(name, number, source) \
  case name:                                 \
    return give(value, static_cast<int>(source));
#include "simt/attributes.def"
#undef SIMT_ATTRIBUTE
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int length, int device) {
  return query([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    if (!pciBusId || length < int(sizeof kBusId)) return cudaErrorInvalidValue;
    std::strcpy(pciBusId, kBusId);
    pciBusId[6] = static_cast<char>('0' + device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* pciBusId) {
  return query([&] {
    unsigned domain = 0, bus, slot, function = 0;
    if (!device || !pciBusId) return cudaErrorInvalidValue;
    if (std::sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
      domain = 0;
      if (std::sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) < 2) return cudaErrorInvalidValue;
    }
    return domain || !is_device(static_cast<int>(bus)) || slot || function ? cudaErrorInvalidDevice
                                                                           : give(device, static_cast<int>(bus));
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccess, int device, int peer) {
  return query(
      [&] { return is_device(device) && is_device(peer) ? give(canAccess, device != peer) : cudaErrorInvalidDevice; });
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return api([&] {
    if (flags) return cudaErrorInvalidValue;
    if (!is_device(peer) || peer == current_device()) return cudaErrorInvalidDevice;
    return enable_peer(current_device(), peer);
  });
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return api([&] { return is_device(peer) ? disable_peer(current_device(), peer) : cudaErrorInvalidDevice; });
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  return query([&] {
    if (!value) return cudaErrorInvalidValue;
    if (!is_device(device) || !is_device(peer) || device == peer) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevP2PAttrPerformanceRank:
        return give(value, 0);
      case cudaDevP2PAttrAccessSupported:
      case cudaDevP2PAttrNativeAtomicSupported:
        return give(value, 1);
      case cudaDevP2PAttrCudaArrayAccessSupported:
        return give(value, 0);
    }
    return cudaErrorInvalidValue;
  });
}

// --- Waiting and settings ------------------------------------------------------------------------------------------

cudaError_t cudaDeviceSynchronize() {
  if (several_devices() && !in_host_function) wait_for_devices(1u << current_device());
  return api([] {
    note_host_wait();
    return check_device_wait();
  });
}

cudaError_t cudaDeviceReset() {
  refuse_in_kernel();
  if (several_devices() && !in_host_function) wait_for_devices(1u << current_device());
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (in_host_function) return record(cudaErrorNotPermitted);
  reset_streams(current_device());
  reset_extras();
  release_all(current_device());
  forget_peers(current_device());
  clear_errors();
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  return api([&] {
    const unsigned schedule = flags & cudaDeviceScheduleMask;
    if ((flags & ~cudaDeviceMask) || (schedule & (schedule - 1))) return cudaErrorInvalidValue;
    device_flags = flags | cudaDeviceMapHost;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  return api([&] { return give(flags, device_flags); });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return api([&] {
    switch (limit) {
      case cudaLimitStackSize:
        if (value <= kStackSize) return cudaSuccess;
        return not_supported("cudaLimitStackSize: a thread has 256 KB of stack on the CPU device, and no more");
      case cudaLimitPrintfFifoSize:
        printf_fifo_size = value;
        return cudaSuccess;
      case cudaLimitMallocHeapSize:
        malloc_heap_size = value;
        return cudaSuccess;
      case cudaLimitMaxL2FetchGranularity:
      case cudaLimitPersistingL2CacheSize:
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;  // as an H200's driver answers
    }
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return api([&] {
    switch (limit) {
      case cudaLimitStackSize:
        return give(value, kStackSize);
      case cudaLimitPrintfFifoSize:
        return give(value, printf_fifo_size);
      case cudaLimitMallocHeapSize:
        return give(value, malloc_heap_size);
      case cudaLimitMaxL2FetchGranularity:
      case cudaLimitPersistingL2CacheSize:
        return give(value, static_cast<size_t>(0));
      default:
        return cudaErrorUnsupportedLimit;
    }
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return api([&] {
    if (config < cudaFuncCachePreferNone || config > cudaFuncCachePreferEqual) return cudaErrorInvalidValue;
    cache_config = config;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return api([&] { return give(config, cache_config); });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return api([&] {
    const bool known = config >= cudaSharedMemBankSizeDefault && config <= cudaSharedMemBankSizeEightByte;
    return known ? cudaSuccess : cudaErrorInvalidValue;  // a hint: banks are 4 bytes wide, as on every recent GPU
  });
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return api([&] { return give(config, cudaSharedMemBankSizeFourByte); });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return api([] { return cudaSuccess; });
}
cudaError_t cudaProfilerStart() {
  return api([] {
    is_profiling = true;
    return cudaSuccess;
  });
}
cudaError_t cudaProfilerStop() {
  return api([] {
    is_profiling = false;
    return cudaSuccess;
  });
}
