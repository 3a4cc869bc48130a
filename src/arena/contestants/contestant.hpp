#pragma once
/// Who competes: an operation with a strategy and knobs on a device, or a foreign kernel.
#include <memory>
#include <string>
#include <vector>

#include "arena/audit/machine_code.hpp"
#include "arena/data/device_set.hpp"
#include "arena/emulation/emulation.hpp"
#include "arena/match_time.hpp"
#include "arena/operation/contestant_spec.hpp"
#include "arena/operation/problem.hpp"
#include "arena/results/evidence.hpp"
#include "arena/rig/memory.hpp"
#include "arena/timing/runner.hpp"
#include "runtime/confinement.hpp"

namespace thresher::arena {

class Rig;

/// One gate's question answered by the contestant itself.
struct Answer {
  bool yes = true;
  std::string sentence;  ///< states the number and the limit
  Evidence evidence{};
  std::string not_judged{};  ///< why this machine cannot tell; empty when it can
};

/// Whether `needed_bytes` are available for the problem.
[[nodiscard]] Answer fits_in_memory(const Problem& problem, double needed_bytes, Memory& memory);
/// The compiler's report on the first kernel; `by_whom` where there is none.
[[nodiscard]] Answer compiled(const MachineCode& code, const std::string& by_whom);

class Contestant {
 public:
  explicit Contestant(ContestantSpec spec) : spec_(std::move(spec)) {}
  virtual ~Contestant() = default;

  [[nodiscard]] const ContestantSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] std::string name() const { return label(spec_); }

  /// Limits its matches to `time`; processes of its own do not outlast them.
  void keep_to(std::shared_ptr<MatchTime> time) { match_time_ = std::move(time); }

  /// The definition that judges its outputs: `fast` is judged on quantized operands (docs/reference/numerics.md).
  [[nodiscard]] virtual Numerics numerics() const { return Numerics::exact; }
  /// Why the contestant does not support the problem's formats, in one sentence; empty when it does.
  [[nodiscard]] virtual std::string unsupported_reason(const Problem&) const { return ""; }
  /// Why this machine cannot run it, which the gates before `audited` do not need; empty when it can.
  [[nodiscard]] virtual std::string cannot_run() const { return ""; }
  /// Whether the problem can be run on this machine at all; costs nothing.
  [[nodiscard]] virtual Answer feasible(const Problem& problem, Memory& memory) const = 0;
  /// Compiles the kernels that are compiled late, and keeps the compiler's report.
  [[nodiscard]] virtual Answer compile(const Problem& problem) const = 0;
  /// The machine code that it would run on the problem, for the gate `audited`.
  [[nodiscard]] virtual MachineCode machine_code(const Problem&) const {
    return {{}, "the audit reads GPU machine code, and this contestant has none of its own"};
  }
  /// The GPU kernel of its own that it launches for the problem, for the gate race-free; or why there is none.
  [[nodiscard]] virtual Emulation emulation(const Problem&) const {
    return {nullptr, "a foreign kernel: the emulator runs Thresher's own"};
  }
  /// The rig that it runs on: its memory holds the data, its stream takes the calls and its clock times them. A
  /// contestant in a process of its own has its own rig; the others use `own`, the tournament's. Every caller that runs
  /// or judges a contestant asks here.
  [[nodiscard]] virtual Rig& rig(Rig& own) const { return own; }
  /// Drops everything that outlives a call, such as its own process; objects on its rig must not be used any more.
  /// Later calls start anew. Called before and after each gate that runs it.
  virtual void start_anew() const {}
  /// Drops everything that is kept ready for start_anew, too. Called when its match is over; another may come.
  virtual void leave() const {}
  /// The confinement of its process on its rig; empty while it has none.
  [[nodiscard]] virtual runtime::Confined confined() const { return {}; }
  /// Whether `prepare` may pack weights, which then stay the same until it is called anew.
  [[nodiscard]] virtual bool packs_weights() const { return true; }
  /// Ready to run over `sets`, which outlive the runner. Throws Error. Weights are packed here, outside what is timed.
  [[nodiscard]] virtual std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                        const std::vector<DeviceSet>& sets) const = 0;

 protected:
  /// Null when its match has no time limit.
  [[nodiscard]] const std::shared_ptr<MatchTime>& match_time() const noexcept { return match_time_; }

 private:
  ContestantSpec spec_;
  std::shared_ptr<MatchTime> match_time_;
};

}  // namespace thresher::arena
