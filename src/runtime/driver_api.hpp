#pragma once
/// The driver's functions, found by name in libcuda. Private to runtime: the only header here that needs cuda.h.
#include <cuda.h>

#include <string>

namespace thresher::runtime {

// member, type as cuda.h declares it, name in the library
#define THRESHER_DRIVER_FUNCTIONS(X)                                                                           \
  X(init, cuInit, "cuInit")                                                                                    \
  X(driver_version, cuDriverGetVersion, "cuDriverGetVersion")                                                  \
  X(error_name, cuGetErrorName, "cuGetErrorName")                                                              \
  X(error_string, cuGetErrorString, "cuGetErrorString")                                                        \
  X(device_count, cuDeviceGetCount, "cuDeviceGetCount")                                                        \
  X(device_get, cuDeviceGet, "cuDeviceGet")                                                                    \
  X(device_name, cuDeviceGetName, "cuDeviceGetName")                                                           \
  X(device_pci, cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId")                                                    \
  X(device_attribute, cuDeviceGetAttribute, "cuDeviceGetAttribute")                                            \
  X(device_total_memory, cuDeviceTotalMem, "cuDeviceTotalMem_v2")                                              \
  X(primary_retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                                      \
  X(context_current, cuCtxGetCurrent, "cuCtxGetCurrent")                                                       \
  X(context_push, cuCtxPushCurrent, "cuCtxPushCurrent_v2")                                                     \
  X(context_pop, cuCtxPopCurrent, "cuCtxPopCurrent_v2")                                                        \
  X(context_synchronize, cuCtxSynchronize, "cuCtxSynchronize")                                                 \
  X(context_limit, cuCtxGetLimit, "cuCtxGetLimit")                                                             \
  X(context_set_limit, cuCtxSetLimit, "cuCtxSetLimit")                                                         \
  X(context_reset_cache, cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache")                           \
  X(memory_info, cuMemGetInfo, "cuMemGetInfo_v2")                                                              \
  X(memory_allocate, cuMemAlloc, "cuMemAlloc_v2")                                                              \
  X(memory_free, cuMemFree, "cuMemFree_v2")                                                                    \
  X(host_allocate, cuMemHostAlloc, "cuMemHostAlloc")                                                           \
  X(host_free, cuMemFreeHost, "cuMemFreeHost")                                                                 \
  X(allocation_granularity, cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity")                    \
  X(allocation_create, cuMemCreate, "cuMemCreate")                                                             \
  X(allocation_release, cuMemRelease, "cuMemRelease")                                                          \
  X(allocation_export, cuMemExportToShareableHandle, "cuMemExportToShareableHandle")                           \
  X(address_reserve, cuMemAddressReserve, "cuMemAddressReserve")                                               \
  X(address_free, cuMemAddressFree, "cuMemAddressFree")                                                        \
  X(address_map, cuMemMap, "cuMemMap")                                                                         \
  X(address_unmap, cuMemUnmap, "cuMemUnmap")                                                                   \
  X(address_set_access, cuMemSetAccess, "cuMemSetAccess")                                                      \
  X(copy_async, cuMemcpyAsync, "cuMemcpyAsync")                                                                \
  X(set8_async, cuMemsetD8Async, "cuMemsetD8Async")                                                            \
  X(pointer_attributes, cuPointerGetAttributes, "cuPointerGetAttributes")                                      \
  X(stream_create, cuStreamCreate, "cuStreamCreate")                                                           \
  X(stream_destroy, cuStreamDestroy, "cuStreamDestroy_v2")                                                     \
  X(stream_synchronize, cuStreamSynchronize, "cuStreamSynchronize")                                            \
  X(stream_wait_event, cuStreamWaitEvent, "cuStreamWaitEvent")                                                 \
  X(stream_begin_capture, cuStreamBeginCapture, "cuStreamBeginCapture_v2")                                     \
  X(stream_end_capture, cuStreamEndCapture, "cuStreamEndCapture")                                              \
  X(event_create, cuEventCreate, "cuEventCreate")                                                              \
  X(event_destroy, cuEventDestroy, "cuEventDestroy_v2")                                                        \
  X(event_record, cuEventRecord, "cuEventRecord")                                                              \
  X(event_synchronize, cuEventSynchronize, "cuEventSynchronize")                                               \
  X(event_elapsed, cuEventElapsedTime, "cuEventElapsedTime")                                                   \
  X(graph_instantiate, cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags")                             \
  X(graph_nodes, cuGraphGetNodes, "cuGraphGetNodes")                                                           \
  X(graph_destroy, cuGraphDestroy, "cuGraphDestroy")                                                           \
  X(graph_exec_destroy, cuGraphExecDestroy, "cuGraphExecDestroy")                                              \
  X(graph_launch, cuGraphLaunch, "cuGraphLaunch")                                                              \
  X(graph_upload, cuGraphUpload, "cuGraphUpload")                                                              \
  X(module_load, cuModuleLoadData, "cuModuleLoadData")                                                         \
  X(module_unload, cuModuleUnload, "cuModuleUnload")                                                           \
  X(module_function, cuModuleGetFunction, "cuModuleGetFunction")                                               \
  X(function_attribute, cuFuncGetAttribute, "cuFuncGetAttribute")                                              \
  X(function_set_attribute, cuFuncSetAttribute, "cuFuncSetAttribute")                                          \
  X(active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor") \
  X(active_clusters, cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters")                             \
  X(launch, cuLaunchKernelEx, "cuLaunchKernelEx")                                                              \
  X(tensor_map_encode_tiled, cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled")

struct DriverApi {
#define THRESHER_DECLARE(member, function, symbol) decltype(&::function) member = nullptr;
  THRESHER_DRIVER_FUNCTIONS(THRESHER_DECLARE)
#undef THRESHER_DECLARE
};

/// The table; throws Error(device) with driver_status().problem when no GPU can be used.
const DriverApi& driver();

/// Throws Error unless the call succeeded; `doing` completes "the GPU driver failed to ...".
void check(CUresult result, const char* doing);
/// The error's name and description, "CUDA_ERROR_INVALID_VALUE: invalid argument".
std::string describe(CUresult result);

inline CUdeviceptr device_pointer(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline CUstream stream_handle(void* handle) { return static_cast<CUstream>(handle); }

}  // namespace thresher::runtime
