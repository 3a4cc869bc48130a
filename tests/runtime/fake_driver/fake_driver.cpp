// A libcuda.so.1 with one Hopper GPU that runs nothing, but holds launches to the driver's rule for shared memory: a
// launch may ask for as many bytes as the function's attribute says, which belongs to the function and not to a caller.
#include <cuda.h>

#include <map>
#include <mutex>
#include <string>

namespace {

constexpr int block_limit_bytes = 232448;
constexpr int bytes_without_asking = 49152;

struct Function {
  int max_dynamic_shared_bytes = bytes_without_asking;
};

std::mutex mutex;
std::map<std::string, Function> functions;
int context = 0;

Function& of(CUfunction handle) { return *reinterpret_cast<Function*>(handle); }

}  // namespace

extern "C" {

CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult /*error*/, const char** name) {
  *name = "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult /*error*/, const char** text) {
  *text = "invalid argument";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice /*device*/) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR                ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? block_limit_bytes
                                                                                : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* retained, CUdevice /*device*/) {
  *retained = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* current) {
  *current = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule /*module*/, const char* name) {
  const std::lock_guard lock(mutex);
  *function = reinterpret_cast<CUfunction>(&functions[name]);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const std::lock_guard lock(mutex);
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? of(function).max_dynamic_shared_bytes : 0;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  const std::lock_guard lock(mutex);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return CUDA_SUCCESS;
  }
  if (value > block_limit_bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  of(function).max_dynamic_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** /*arguments*/, void** /*extra*/) {
  const std::lock_guard lock(mutex);
  return static_cast<int>(config->sharedMemBytes) > of(function).max_dynamic_shared_bytes ? CUDA_ERROR_INVALID_VALUE
                                                                                          : CUDA_SUCCESS;
}

}  // extern "C"
