#include "runtime/driver.hpp"

#include <array>
#include <mutex>

#include "runtime/driver_api.hpp"
#include "runtime/known_places.hpp"
#include "runtime/shared_library.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

constexpr int oldest_driver = 12000;  // the first with tensor maps and cuLaunchKernelEx
constexpr int oldest_capability = 80;
constexpr int max_devices = 64;

struct Driver {
  DriverStatus status;
  DriverApi api;
};

void find_functions(const SharedLibrary& library, Driver& driver) {
  const auto find = [&](auto& member, const char* symbol) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(library.symbol(symbol));
    if (member == nullptr && driver.status.problem.empty()) {
      driver.status.problem = std::string("the GPU driver (") + library.path() + ") has no function " + symbol +
                              ": update the NVIDIA driver to one that supports CUDA 12 or newer";
    }
  };
#define THRESHER_FIND(member, function, symbol) find(driver.api.member, symbol);
  THRESHER_DRIVER_FUNCTIONS(THRESHER_FIND)
#undef THRESHER_FIND
}

std::string describe_with(const DriverApi& api, CUresult result) {
  const char* error_name = nullptr;
  const char* text = nullptr;
  if (api.error_name == nullptr || api.error_name(result, &error_name) != CUDA_SUCCESS) {
    return "CUDA error " + std::to_string(static_cast<int>(result));
  }
  api.error_string(result, &text);
  return std::string(error_name) + (text == nullptr ? "" : std::string(": ") + text);
}

void initialise(Driver& driver) {
  DriverStatus& status = driver.status;
  status.built_with_cuda = true;
  const SharedLibrary library = SharedLibrary::open(
      {"the NVIDIA driver", {"libcuda.so.1"}, "install the NVIDIA driver to use a GPU, or use the CPU (--device cpu)"});
  status.library_path = library.path();
  if (!library.loaded()) {
    status.problem = library.problem();
    return;
  }
  find_functions(library, driver);
  if (driver.api.driver_version != nullptr) {
    driver.api.driver_version(&status.version);
  }
  if (status.version != 0 && status.version < oldest_driver) {  // clearer than a missing function
    status.problem = "the GPU driver supports CUDA " + version_text(status.version) +
                     ", Thresher needs 12.0 or newer: update the NVIDIA driver";
  }
  if (!status.problem.empty()) {
    return;
  }
  if (const CUresult result = driver.api.init(0); result != CUDA_SUCCESS) {
    status.problem = "the GPU driver could not start (" + describe_with(driver.api, result) +
                     "): check that a GPU is visible with nvidia-smi, or use the CPU (--device cpu)";
    return;
  }
  if (driver.api.device_count(&status.devices) != CUDA_SUCCESS || status.devices == 0) {
    status.problem =
        "the GPU driver sees no GPU: check CUDA_VISIBLE_DEVICES and nvidia-smi, or use the CPU (--device cpu)";
  }
}

const Driver& loaded_driver() {
  static const Driver* driver = [] {
    auto* fresh = new Driver;  // never destroyed: buffers of static lifetime are released through it
    initialise(*fresh);
    return fresh;
  }();
  return *driver;
}

std::size_t attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().device_attribute(&value, which, device), "read a device attribute");
  return static_cast<std::size_t>(value);
}

CUdevice device_handle(int ordinal) {
  const DriverApi& api = driver();
  const int devices = driver_status().devices;
  if (ordinal < 0 || ordinal >= devices) {
    throw Error(ErrorCode::device, "there is no GPU " + std::to_string(ordinal) + ", this machine shows " +
                                       std::to_string(devices) + ": choose one from 0 to " +
                                       std::to_string(devices - 1));
  }
  CUdevice device = 0;
  check(api.device_get(&device, ordinal), "open a GPU");
  return device;
}

DeviceProperties read_properties(int ordinal) {
  const CUdevice device = device_handle(ordinal);
  DeviceProperties properties;
  std::array<char, 256> name{};
  check(driver().device_name(name.data(), static_cast<int>(name.size()), device), "read a GPU's name");
  check(driver().device_total_memory(&properties.memory_bytes, device), "read a GPU's memory size");
  properties.name = name.data();
  check(driver().device_pci(name.data(), static_cast<int>(name.size()), device), "read a GPU's PCI address");
  properties.pci_address = name.data();
  const auto number = [&](CUdevice_attribute which) { return static_cast<int>(attribute(device, which)); };
  properties.capability_major = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  properties.capability_minor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  properties.multiprocessors = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  properties.clock_khz = number(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties.memory_clock_khz = number(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  properties.memory_bus_bits = number(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  properties.l2_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  properties.shared_bytes_per_block = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  properties.shared_bytes_per_multiprocessor =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  properties.registers_per_multiprocessor = number(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  properties.threads_per_multiprocessor = number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  if (properties.capability_major * 10 + properties.capability_minor < oldest_capability) {
    throw Error(ErrorCode::device, "GPU " + std::to_string(ordinal) + " (" + properties.name +
                                       ") has compute capability " + std::to_string(properties.capability_major) + "." +
                                       std::to_string(properties.capability_minor) +
                                       ", Thresher needs 8.0 or newer: plan on another GPU or on the CPU");
  }
  return properties;
}

CUcontext primary_context(int ordinal) {
  static std::array<std::once_flag, max_devices> once;
  static std::array<CUcontext, max_devices> contexts{};
  const auto slot = static_cast<std::size_t>(ordinal);
  if (slot >= contexts.size()) {
    throw Error(ErrorCode::unsupported, "GPU " + std::to_string(ordinal) + " is beyond the 64 that Thresher addresses");
  }
  std::call_once(once[slot], [&] {
    const CUresult result = driver().primary_retain(&contexts[slot], device_handle(ordinal));
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      throw Error(ErrorCode::out_of_memory,
                  "GPU " + std::to_string(ordinal) + " has no memory left for a context: end other programs on it");
    }
    check(result, "create a context on a GPU");
  });
  return contexts[slot];
}

}  // namespace

const DriverStatus& driver_status() noexcept { return loaded_driver().status; }

std::string DeviceProperties::arch() const {
  const std::string suffix = capability_major >= 9 ? "a" : "";
  return "sm_" + std::to_string(capability_major) + std::to_string(capability_minor) + suffix;
}

const DriverApi& driver() {
  const Driver& loaded = loaded_driver();
  if (!loaded.status.problem.empty()) {
    throw Error(ErrorCode::device, loaded.status.problem);
  }
  return loaded.api;
}

std::string describe(CUresult result) { return describe_with(loaded_driver().api, result); }

void check(CUresult result, const char* doing) {
  if (result == CUDA_SUCCESS) {
    return;
  }
  const std::string sentence = std::string("the GPU driver failed to ") + doing + " (" + describe(result) + ")";
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    throw Error(ErrorCode::out_of_memory, sentence + ": free GPU memory or use a smaller problem");
  }
  throw Error(ErrorCode::device, sentence);
}

const DeviceProperties& device_properties(int ordinal) {
  static std::mutex mutex;
  static std::array<DeviceProperties, max_devices> known;
  const std::lock_guard lock(mutex);
  device_handle(ordinal);
  DeviceProperties& properties = known.at(static_cast<std::size_t>(ordinal));
  if (properties.name.empty()) {
    properties = read_properties(ordinal);
  }
  return properties;
}

ContextGuard::ContextGuard(int ordinal) {
  const CUcontext wanted = primary_context(ordinal);
  CUcontext current = nullptr;
  if (driver().context_current(&current) == CUDA_SUCCESS && current == wanted) {
    return;
  }
  check(driver().context_push(wanted), "make a GPU's context current");
  is_pushed_ = true;
}

ContextGuard::~ContextGuard() {
  if (is_pushed_) {
    CUcontext popped = nullptr;
    driver().context_pop(&popped);
  }
}

MemoryInfo memory_info(int ordinal) {
  const ContextGuard guard(ordinal);
  MemoryInfo info;
  check(driver().memory_info(&info.free_bytes, &info.total_bytes), "read how much GPU memory is free");
  return info;
}

std::size_t persisting_cache_bytes(int ordinal) {
  const ContextGuard guard(ordinal);
  std::size_t bytes = 0;
  check(driver().context_limit(&bytes, CU_LIMIT_PERSISTING_L2_CACHE_SIZE),
        "tell how much of a GPU's cache is set aside");
  return bytes;
}

void set_persisting_cache_bytes(int ordinal, std::size_t bytes) {
  const ContextGuard guard(ordinal);
  check(driver().context_set_limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, bytes), "set a part of a GPU's cache aside");
}

void reset_persisting_cache(int ordinal) {
  const ContextGuard guard(ordinal);
  check(driver().context_reset_cache(), "reset the lines that persist in a GPU's cache");
}

void synchronize_device(int ordinal) {
  const ContextGuard guard(ordinal);
  check(driver().context_synchronize(), "finish the work on a GPU");
}

DeviceId pointer_device(const void* pointer) {
  CUmemorytype type{};  // stays 0 for memory that CUDA does not know
  int ordinal = 0;
  std::array attributes{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  std::array<void*, attributes.size()> values{&type, &ordinal};
  if (driver().pointer_attributes(attributes.size(), attributes.data(), values.data(), device_pointer(pointer)) !=
          CUDA_SUCCESS ||
      type != CU_MEMORYTYPE_DEVICE) {
    return {DeviceKind::cpu, 0};
  }
  return {DeviceKind::cuda, ordinal};
}

void require_on_gpu(const void* pointer, int ordinal, const char* argument) {
  if (places_are_known) {
    return;
  }
  const DeviceId found = pointer_device(pointer);
  if (found == DeviceId{DeviceKind::cuda, ordinal}) {
    return;
  }
  const std::string where =
      found.kind == DeviceKind::cpu ? "host memory" : "the memory of GPU " + std::to_string(found.ordinal);
  throw Error(ErrorCode::invalid_argument, std::string(argument) + " points to " + where + ", expected memory of GPU " +
                                               std::to_string(ordinal) + ": copy it there first");
}

}  // namespace thresher::runtime
