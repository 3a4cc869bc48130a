#pragma once
/// A user kernel that runs on the CPU, in a process of its own.
#include <memory>
#include <optional>
#include <string>

#include "arena/user_kernels/base_contestant.hpp"
#include "arena/user_kernels/compile/build_record.hpp"
#include "arena/user_kernels/process/process_rig.hpp"

namespace thresher::arena::user_kernels {

class HostContestant : public BaseContestant {
 public:
  HostContestant(ContestantSpec spec, Kernel kernel, Device device)
      : BaseContestant(std::move(spec), std::move(kernel)), device_(std::move(device)) {}

  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override;
  /// Starts a process that only loads it.
  [[nodiscard]] Answer compile(const Problem& problem) const override;
  [[nodiscard]] MachineCode machine_code(const Problem& problem) const override;
  [[nodiscard]] Rig& rig(Rig& own) const override;
  void start_anew() const override { rig_.reset(); }
  [[nodiscard]] runtime::Confined confined() const override { return rig_ ? rig_->confined() : runtime::Confined{}; }
  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override;

 protected:
  /// The name of the kernel's file.
  [[nodiscard]] std::string file() const;

 private:
  /// The sources and tools of its build. These three throw Error(compile) when the build fails.
  [[nodiscard]] virtual const BuildRecord& record() const = 0;
  [[nodiscard]] virtual ProcessOptions process() const = 0;
  /// The message that makes the process load it.
  [[nodiscard]] virtual Writer load() const = 0;

  Device device_;
  mutable std::optional<Answer> compiled_;
  mutable std::unique_ptr<ProcessRig> rig_;
};

}  // namespace thresher::arena::user_kernels
