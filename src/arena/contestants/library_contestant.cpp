#include <fmt/format.h>

#include "arena/contestants/registry.hpp"
#include "arena/contestants/toolchain.hpp"
#include "arena/operations.hpp"
#include "ops/cuda_device_spec.hpp"

namespace thresher::arena {
namespace {

/// A strategy of Thresher's own, for any operation.
class LibraryContestant final : public Contestant {
 public:
  LibraryContestant(const Operation& operation, ContestantSpec spec, Device device)
      : Contestant(std::move(spec)), operation_(operation), device_(std::move(device)) {}

  [[nodiscard]] Numerics numerics() const override { return operation_.numerics(spec()); }

  [[nodiscard]] std::string unsupported_reason(const Problem& problem) const override {
    return operation_.unsupported_reason(problem, spec(), device_);
  }

  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override {
    if (std::string obstacle = operation_.obstacle(problem, spec(), device_); !obstacle.empty()) {
      return {false, std::move(obstacle)};
    }
    constexpr int sets = 2;  // of the gate `correct`
    return fits_in_memory(problem, sets * operation_.cost(problem).compulsory_bytes + operation_.working_bytes(problem),
                          memory);
  }

  [[nodiscard]] Answer compile(const Problem& problem) const override {
    const std::string host = fmt::format("compiled with Thresher itself by {}", compiler());
    return device_.kind() == DeviceKind::cpu ? Answer{true, host} : compiled(machine_code(problem), host);
  }

  [[nodiscard]] MachineCode machine_code(const Problem& problem) const override {
    const std::optional<DeviceSpec> card = this->card();
    return card ? operation_.machine_code(problem, spec(), *card) : Contestant::machine_code(problem);
  }

  [[nodiscard]] Emulation emulation(const Problem& problem) const override {
    if (device_.kind() == DeviceKind::cpu) {
      return {nullptr, "a program of the CPU: there is no GPU kernel to emulate"};
    }
    const EmulatedOperation* const emulated = operation_.emulated();
    const std::optional<DeviceSpec> card = this->card();
    if (emulated == nullptr || !card) {
      return {nullptr, fmt::format("the emulator has no kernels of {} for {}", operation_.name(), device_.name())};
    }
    return emulated->planned(problem, operation_.plan_request(spec()), *card);
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    return operation_.prepare(problem, spec(), device_, memory, sets);
  }

 private:
  /// Empty for a CPU, and for a GPU without kernels.
  [[nodiscard]] std::optional<DeviceSpec> card() const {
    const DeviceSpec spec = ops::spec_of(device_);
    return spec.matrix_unit == MatrixUnit::none ? std::nullopt : std::optional(spec);
  }

  const Operation& operation_;
  Device device_;
};

class LibraryRegistry final : public Registry {
 public:
  explicit LibraryRegistry(const Device& device) : device_(device) {}

  [[nodiscard]] std::vector<std::string> strategies(const std::string& operation) const override {
    return find_operation(operation).contestants(device_.kind());
  }

  [[nodiscard]] std::unique_ptr<Contestant> create(const ContestantSpec& spec) const override {
    const Operation& operation = find_operation(spec.operation);
    operation.check(spec, device_);
    return std::make_unique<LibraryContestant>(operation, spec, device_);
  }

 private:
  Device device_;
};

}  // namespace

std::unique_ptr<Registry> library_registry(const Device& device) { return std::make_unique<LibraryRegistry>(device); }

}  // namespace thresher::arena
