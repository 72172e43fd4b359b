// NCCL 2.28 for ranks of one process, each on a device of its own (SIMT_DEVICES). Sums are in the order of the ranks:
// of the floats of 8 and 16 bits in float, rounded once at the end, of all others in their own type.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <climits>
#include <cstddef>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))

typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclNumResults = 8
};

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00

struct ncclConfig_t {
  size_t size;
  unsigned int magic, version;
  int blocking;  // all else has no effect here
  int cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare, trafficClass;
  const char* commName;
  int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
};
#define NCCL_CONFIG_INITIALIZER                                                                        \
  {                                                                                                    \
    sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,    \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT     \
  }

struct ncclSimInfo_t {
  size_t size;
  unsigned int magic, version;
  float estimatedTime;
};
#define NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT }

enum ncclRedOp_t {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,  // the smallest that ncclRedOpCreatePreMulSum() gives
  ncclMaxRedOp = 0x7fffffff
};

enum ncclDataType_t {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
};

enum ncclScalarResidence_t { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 };

// Each function has a second name, by which a profiler's own function of the first name calls it.
#define SIMT_NCCL(name, ...)      \
  ncclResult_t name(__VA_ARGS__); \
  ncclResult_t p##name(__VA_ARGS__);

extern "C" {
// --- Communicators ---------------------------------------------------------------------------------------------------
SIMT_NCCL(ncclGetVersion, int* version)
SIMT_NCCL(ncclGetUniqueId, ncclUniqueId* id)
SIMT_NCCL(ncclCommInitRank, ncclComm_t* comm, int ranks, ncclUniqueId id, int rank)
SIMT_NCCL(ncclCommInitRankConfig, ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config)
SIMT_NCCL(ncclCommInitRankScalable, ncclComm_t* comm, int ranks, int rank, int idCount, ncclUniqueId* ids,
          ncclConfig_t* config)
SIMT_NCCL(ncclCommInitAll, ncclComm_t* comms, int devices, const int* list)
SIMT_NCCL(ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config)
SIMT_NCCL(ncclCommShrink, ncclComm_t comm, int* excluded, int excludedCount, ncclComm_t* rest, ncclConfig_t* config,
          int flags)
SIMT_NCCL(ncclCommFinalize, ncclComm_t comm)
SIMT_NCCL(ncclCommDestroy, ncclComm_t comm)
SIMT_NCCL(ncclCommAbort, ncclComm_t comm)
SIMT_NCCL(ncclCommRevoke, ncclComm_t comm, int flags)
SIMT_NCCL(ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* error)
SIMT_NCCL(ncclCommCount, const ncclComm_t comm, int* count)
SIMT_NCCL(ncclCommCuDevice, const ncclComm_t comm, int* device)
SIMT_NCCL(ncclCommUserRank, const ncclComm_t comm, int* rank)
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);  // of the thread
const char* pncclGetLastError(ncclComm_t comm);

// --- Memory ----------------------------------------------------------------------------------------------------------
SIMT_NCCL(ncclMemAlloc, void** pointer, size_t size)
SIMT_NCCL(ncclMemFree, void* pointer)
SIMT_NCCL(ncclCommRegister, const ncclComm_t comm, void* buffer, size_t size, void** handle)
SIMT_NCCL(ncclCommDeregister, const ncclComm_t comm, void* handle)
SIMT_NCCL(ncclCommWindowRegister, ncclComm_t comm, void* buffer, size_t size, ncclWindow_t* window, int flags)
SIMT_NCCL(ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t window)

// --- Collectives -----------------------------------------------------------------------------------------------------
SIMT_NCCL(ncclRedOpCreatePreMulSum, ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence,
          ncclComm_t comm)
SIMT_NCCL(ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm)
SIMT_NCCL(ncclAllReduce, const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
          ncclComm_t comm, cudaStream_t stream)
SIMT_NCCL(ncclReduce, const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
          ncclComm_t comm, cudaStream_t stream)
SIMT_NCCL(ncclReduceScatter, const void* send, void* receive, size_t receiveCount, ncclDataType_t type, ncclRedOp_t op,
          ncclComm_t comm, cudaStream_t stream)
SIMT_NCCL(ncclBroadcast, const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
          cudaStream_t stream)
SIMT_NCCL(ncclBcast, void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
SIMT_NCCL(ncclAllGather, const void* send, void* receive, size_t sendCount, ncclDataType_t type, ncclComm_t comm,
          cudaStream_t stream)
SIMT_NCCL(ncclAlltoAll, const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
          cudaStream_t stream)
SIMT_NCCL(ncclGather, const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
          cudaStream_t stream)
SIMT_NCCL(ncclScatter, const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
          cudaStream_t stream)
SIMT_NCCL(ncclSend, const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
SIMT_NCCL(ncclRecv, void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
SIMT_NCCL(ncclGroupStart)
SIMT_NCCL(ncclGroupEnd)
SIMT_NCCL(ncclGroupSimulateEnd, ncclSimInfo_t* info)
}  // extern "C"
#undef SIMT_NCCL
