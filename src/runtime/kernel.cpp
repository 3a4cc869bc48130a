#include "runtime/kernel.hpp"

#include <mutex>

#include "runtime/driver.hpp"
#include "runtime/driver_api.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {

struct LoadedModule {
  LoadedModule(int gpu, CUmodule loaded) : ordinal(gpu), handle(loaded) {}
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  ~LoadedModule() {
    const ContextGuard guard(ordinal);
    driver().module_unload(handle);
  }
  int ordinal;
  CUmodule handle;
};

namespace {

CUfunction function_handle(void* function) { return static_cast<CUfunction>(function); }

/// A launch in the driver's form; the attributes live as long as this object, which does not move.
struct DriverLaunch {
  explicit DriverLaunch(const LaunchConfig& config) {
    launch.gridDimX = config.grid.x;
    launch.gridDimY = config.grid.y;
    launch.gridDimZ = config.grid.z;
    launch.blockDimX = config.block.x;
    launch.blockDimY = config.block.y;
    launch.blockDimZ = config.block.z;
    launch.sharedMemBytes = config.dynamic_shared_bytes;
    launch.hStream = stream_handle(config.stream.handle);
    launch.attrs = attributes.data();
    if (config.cluster != Extent3{}) {
      CUlaunchAttribute& attribute = attributes[launch.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim.x = config.cluster.x;
      attribute.value.clusterDim.y = config.cluster.y;
      attribute.value.clusterDim.z = config.cluster.z;
    }
    if (config.dependent_launch) {
      CUlaunchAttribute& attribute = attributes[launch.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attribute.value.programmaticStreamSerializationAllowed = 1;
    }
  }
  DriverLaunch(const DriverLaunch&) = delete;
  DriverLaunch& operator=(const DriverLaunch&) = delete;

  std::array<CUlaunchAttribute, 2> attributes{};
  CUlaunchConfig launch{};
};

int function_attribute(void* function, CUfunction_attribute which) {
  int value = 0;
  check(driver().function_attribute(&value, which, function_handle(function)), "read an attribute of a kernel");
  return value;
}

std::string text(Extent3 extent) {
  return std::to_string(extent.x) + "x" + std::to_string(extent.y) + "x" + std::to_string(extent.z);
}

[[noreturn]] void report_launch(CUresult result, const std::string& kernel, const LaunchConfig& config) {
  throw Error(ErrorCode::device, "kernel " + kernel + " could not be launched with " + text(config.grid) +
                                     " blocks of " + text(config.block) + " threads, clusters of " +
                                     text(config.cluster) + " and " + std::to_string(config.dynamic_shared_bytes) +
                                     " bytes of shared memory (" + describe(result) + ")");
}

}  // namespace

Module::Module(int ordinal, std::span<const std::byte> cubin) {
  const ContextGuard guard(ordinal);
  CUmodule handle = nullptr;
  const CUresult result = driver().module_load(&handle, cubin.data());
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE ||
      result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    const DeviceProperties& properties = device_properties(ordinal);
    throw Error(ErrorCode::device, "the machine code does not fit GPU " + std::to_string(ordinal) + " (" +
                                       properties.name + ", " + properties.arch() +
                                       ") or its driver, which supports CUDA " + version_text(driver_status().version) +
                                       " (" + describe(result) +
                                       "): update the driver, or use an NVRTC of its CUDA version");
  }
  check(result, "load machine code");
  module_ = std::make_shared<const LoadedModule>(ordinal, handle);
}

Kernel Module::kernel(const std::string& lowered_name) const {
  const ContextGuard guard(module_->ordinal);
  CUfunction function = nullptr;
  const CUresult result = driver().module_function(&function, module_->handle, lowered_name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) {
    throw Error(ErrorCode::internal, "the loaded machine code has no kernel " + lowered_name);
  }
  check(result, "find a kernel");
  function_attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);  // makes a lazily loading driver load it now
  return {module_, function, lowered_name};
}

void Kernel::allow_dynamic_shared(std::size_t bytes) const {
  // The limit belongs to the function, which all plans with this kernel share: it is raised, never lowered.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const ContextGuard guard(owner_->ordinal);
  if (function_attribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) >= static_cast<int>(bytes)) {
    return;
  }
  const CUresult result = driver().function_set_attribute(
      function_handle(function_), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes));
  if (result == CUDA_ERROR_INVALID_VALUE) {
    throw Error(ErrorCode::invalid_argument,
                "kernel " + name_ + " wants " + std::to_string(bytes) + " bytes of shared memory, GPU " +
                    std::to_string(owner_->ordinal) + " allows a block " +
                    std::to_string(device_properties(owner_->ordinal).shared_bytes_per_block));
  }
  check(result, "set the shared memory of a kernel");
}

void Kernel::allow_large_clusters() const {
  const ContextGuard guard(owner_->ordinal);
  check(driver().function_set_attribute(function_handle(function_), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                        1),
        "allow large clusters");
}

void Kernel::launch(const LaunchConfig& config, std::span<void*> arguments) const {
  launch(config, arguments, ContextGuard(owner_->ordinal));
}

void Kernel::launch(const LaunchConfig& config, std::span<void*> arguments, const ContextGuard& /*current*/) const {
  const DriverLaunch prepared(config);
  const CUresult result = driver().launch(&prepared.launch, function_handle(function_), arguments.data(), nullptr);
  if (result != CUDA_SUCCESS) {
    report_launch(result, name_, config);
  }
}

int Kernel::blocks_per_multiprocessor(int threads, std::size_t dynamic_shared_bytes) const {
  const ContextGuard guard(owner_->ordinal);
  int blocks = 0;
  check(driver().active_blocks(&blocks, function_handle(function_), threads, dynamic_shared_bytes),
        "compute a kernel's occupancy");
  return blocks;
}

int Kernel::resident_clusters(const LaunchConfig& config) const {
  const ContextGuard guard(owner_->ordinal);
  const DriverLaunch prepared(config);
  int clusters = 0;
  check(driver().active_clusters(&clusters, function_handle(function_), &prepared.launch),
        "compute a kernel's cluster occupancy");
  return clusters;
}

int Kernel::registers() const { return function_attribute(function_, CU_FUNC_ATTRIBUTE_NUM_REGS); }

std::size_t Kernel::static_shared_bytes() const {
  return static_cast<std::size_t>(function_attribute(function_, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
}

std::size_t Kernel::local_bytes() const {
  return static_cast<std::size_t>(function_attribute(function_, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
}

int Kernel::ordinal() const noexcept { return owner_->ordinal; }

}  // namespace thresher::runtime
