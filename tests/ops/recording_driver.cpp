#include "ops/recording_driver.hpp"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace {

thresher::testing::DriverRecord record;

/// A kernel of a name, with the dynamic shared memory that it may be launched with: the kernel's, not a caller's.
struct Function {
  int allowed_shared_bytes = 48 * 1024;
};

Function& function_of(CUfunction handle) { return *reinterpret_cast<Function*>(handle); }

thresher::testing::RecordedLaunch recorded(const CUlaunchConfig& config) {
  thresher::testing::RecordedLaunch launch{.grid = {config.gridDimX, config.gridDimY, config.gridDimZ},
                                           .block = {config.blockDimX, config.blockDimY, config.blockDimZ},
                                           .shared_bytes = config.sharedMemBytes};
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      launch.cluster = attribute.value.clusterDim.x;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      launch.dependent = true;
    }
  }
  return launch;
}

int device_attribute(CUdevice_attribute which) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return 0;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return thresher::testing::recorded_multiprocessors;
    default: return 1;
  }
}

}  // namespace

thresher::testing::DriverRecord& thresher::testing::driver_record() { return record; }

extern "C" {
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
/// NVRTC asks the driver of its process for tables.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "NVIDIA H200", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* name, int length, CUdevice) {
  std::strncpy(name, "0000:00:00.0", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{141} << 30;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = device_attribute(which);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&record);
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext*) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = nullptr;
  return CUDA_SUCCESS;
}
/// One page is the GPU's; of any other address the driver knows nothing, which is no failure.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer) {
  ++record.asked_places;
  const bool is_known = pointer / thresher::testing::recorded_page_bytes == 1;
  for (unsigned i = 0; i < count; ++i) {
    const int known = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? CU_MEMORYTYPE_DEVICE : 0;
    const int value = is_known ? known : 0;
    std::memcpy(values[i], &value, sizeof value);
  }
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule* module, const void*) {
  *module = reinterpret_cast<CUmodule>(&record);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  static std::map<std::string, Function>& functions = *new std::map<std::string, Function>;
  *function = reinterpret_cast<CUfunction>(&functions[name]);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
  *value = which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? function_of(function).allowed_shared_bytes : 32;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    record.max_dynamic_shared_bytes = function_of(function).allowed_shared_bytes = value;
  }
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, std::size_t) {
  *blocks = thresher::testing::recorded_blocks_per_multiprocessor;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig* config) {
  *clusters = thresher::testing::recorded_resident_clusters;
  return config->gridDimX % recorded(*config).cluster == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  if (static_cast<int>(config->sharedMemBytes) > function_of(function).allowed_shared_bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  thresher::testing::RecordedLaunch launch = recorded(*config);
  std::memcpy(launch.parameter.data(), parameters[0], launch.parameter.size());
  record.launches.push_back(launch);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void* address, const cuuint64_t*,
                                const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  std::memcpy(map, &address, sizeof address);
  ++record.encoded_maps;
  return CUDA_SUCCESS;
}
}
