#pragma once
/// The CUDA driver, loaded on first use: its status, contexts, and the device of pointers.
///
/// Every function that needs a GPU throws Error(device) with what is missing when there is none.
#include <cstddef>
#include <optional>
#include <string>

#include "core/arch.hpp"
#include "thresher/device.hpp"

namespace thresher::runtime {

/// The driver's status on this machine. `problem` is empty when at least one GPU can be used.
struct DriverStatus {
  bool built_with_cuda = false;  ///< the build had the CUDA headers
  std::string library_path;      ///< empty when libcuda could not be loaded
  int version = 0;               ///< the CUDA version the driver supports, e.g. 13000; 0 unknown
  int devices = 0;
  std::string problem;  ///< one sentence that says what to do
};

/// Loads and initialises the driver on the first call. Never throws.
const DriverStatus& driver_status() noexcept;

/// "13.0" from 13000.
std::string version_text(int cuda_version);

struct DeviceProperties {
  std::string name;
  std::string pci_address;  ///< "0000:1B:00.0"
  int capability_major = 0;
  int capability_minor = 0;
  int multiprocessors = 0;
  int clock_khz = 0;  ///< maximum clock of the multiprocessors
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  std::size_t l2_bytes = 0;
  std::size_t memory_bytes = 0;
  std::size_t shared_bytes_per_block = 0;  ///< the maximum per block (opt-in limit)
  std::size_t shared_bytes_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int threads_per_multiprocessor = 0;

  /// The architecture whose machine code runs here with every feature, e.g. "sm_90a".
  [[nodiscard]] std::string arch() const;
  /// Whether machine code for `wanted` runs here.
  [[nodiscard]] bool is(Arch wanted) const {
    const std::optional<Arch> own = parse_arch(arch());
    return own && runs_on(wanted, *own);
  }
};

/// Throws Error(device) when GPU `ordinal` does not exist or is too old for Thresher (compute capability under 8.0).
const DeviceProperties& device_properties(int ordinal);

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};
MemoryInfo memory_info(int ordinal);

/// Makes the primary context of a GPU current on this thread while it lives; inside another guard this costs almost
/// nothing. The context is shared with the CUDA runtime API (so with PyTorch) and is kept until the process ends.
class ContextGuard {
 public:
  explicit ContextGuard(int ordinal);
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
  ~ContextGuard();

 private:
  bool is_pushed_ = false;
};

/// The size of a GPU's L2 set aside for persisting lines, in this process's context.
std::size_t persisting_cache_bytes(int ordinal);
void set_persisting_cache_bytes(int ordinal, std::size_t bytes);
/// Makes all persisting lines ordinary ones, including those of other users.
void reset_persisting_cache(int ordinal);

/// Waits for all work on a GPU.
void synchronize_device(int ordinal);

/// The device of a pointer's memory; host memory that CUDA does not know counts as the CPU's.
DeviceId pointer_device(const void* pointer);

/// Throws Error(invalid_argument) that names `argument` unless `pointer` is memory of GPU `ordinal`.
void require_on_gpu(const void* pointer, int ordinal, const char* argument);

}  // namespace thresher::runtime
