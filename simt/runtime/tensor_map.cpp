// Tensor maps, and the way to the one driver function that makes them.
#include "simt/tensor_map.h"

#include <cstring>
#include <iterator>

#include "cuda.h"
#include "cuda_runtime_api.h"
#include "state.h"

using namespace simt;

static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap));

CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                const cuuint32_t* boxDim, const cuuint32_t* elementStrides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  constexpr uint32_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (!tensorMap || !globalDim || !globalStrides || !boxDim || !elementStrides || tensorRank == 0 || tensorRank > 5 ||
      static_cast<unsigned>(tensorDataType) >= std::size(bytes) || static_cast<unsigned>(interleave) > 2 ||
      static_cast<unsigned>(swizzle) > 3 || static_cast<unsigned>(l2Promotion) > 3 ||
      static_cast<unsigned>(oobFill) > 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (tensorRank != 2 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || oobFill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
      elementStrides[0] != 1 || elementStrides[1] != 1)
    return CUDA_ERROR_NOT_SUPPORTED;
  const uint32_t element = bytes[tensorDataType];
  for (int i = 0; i < 2; ++i)
    if (globalDim[i] == 0 || globalDim[i] > uint64_t{1} << 32 || boxDim[i] == 0 || boxDim[i] > 256)
      return CUDA_ERROR_INVALID_VALUE;
  const uint64_t row = uint64_t{boxDim[0]} * element, span = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16u << swizzle;
  if (!globalAddress || reinterpret_cast<uintptr_t>(globalAddress) % 16 != 0 || globalStrides[0] % 16 != 0 ||
      globalStrides[0] >= uint64_t{1} << 40 || globalStrides[0] < globalDim[0] * element || row % 16 != 0 ||
      reinterpret_cast<uintptr_t>(tensorMap) % 64 != 0 || (span > 0 && row > span))
    return CUDA_ERROR_INVALID_VALUE;
  if (span > 0 && row < span) return CUDA_ERROR_NOT_SUPPORTED;

  const TensorMap map = {TensorMap::kKnown,
                         static_cast<char*>(globalAddress),
                         {globalDim[0], globalDim[1]},
                         globalStrides[0],
                         {boxDim[0], boxDim[1]},
                         element,
                         static_cast<uint32_t>(span > 0 ? span - 16 : 0)};
  std::memset(tensorMap, 0, sizeof *tensorMap);
  std::memcpy(tensorMap, &map, sizeof map);
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !function) return record(cudaErrorInvalidValue);
  const bool known = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0, enough = version >= 12000;
  *function = known && enough ? reinterpret_cast<void*>(cuTensorMapEncodeTiled) : nullptr;
  if (status)
    *status = !known   ? cudaDriverEntryPointSymbolNotFound
              : enough ? cudaDriverEntryPointSuccess
                       : cudaDriverEntryPointVersionNotSufficent;
  return cudaSuccess;
}
