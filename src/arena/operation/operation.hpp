#pragma once
/// An operation for the arena and the command line: its problems, data, judge, cost, and Thresher's own strategies. The
/// rest of the arena treats all operations alike and uses this interface.
///
/// To add an operation, write a folder arena/<operation>/ with its task (what a problem is) and its Operation, and name
/// it in arena/operations.cpp.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arena/audit/machine_code.hpp"
#include "arena/data/device_set.hpp"
#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/operation/argument.hpp"
#include "arena/operation/contestant_spec.hpp"
#include "arena/operation/inspector.hpp"
#include "arena/operation/problem.hpp"
#include "arena/operation/problem_table.hpp"
#include "arena/operation/tuned_choices.hpp"
#include "arena/results/finding.hpp"
#include "arena/timing/runner.hpp"
#include "core/device_spec.hpp"
#include "planner/predict.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

struct KernelVariant;

class EmulatedOperation;

/// Knows the right outputs for one set of inputs, or for a random part of them that touches every tile.
class Judge {
 public:
  virtual ~Judge() = default;
  /// `outputs` in the order of Operation::outputs.
  virtual Finding judge(const std::vector<HostTensor>& outputs) const = 0;
  /// Whether a row of an output, seen as a matrix of its last dimension, is a padding row that must stay unwritten.
  /// Empty where everything is written.
  [[nodiscard]] virtual std::vector<bool> untouched_rows(std::size_t /*output*/) const { return {}; }
};

/// Who made the outputs that are judged.
struct Maker {
  DeviceKind device = DeviceKind::cpu;  ///< determines the rounding of sums
  Numerics numerics = Numerics::exact;  ///< declared by the maker, for problems with NVFP4 weights
};

/// The minimum work of any kernel.
struct Cost {
  double operations = 0;        ///< multiplications and additions of the matrix products
  double compulsory_bytes = 0;  ///< every input read once and every output written once
};

/// A contestant's request to `plan`, in the planner's terms; the planner chooses where a string is empty.
struct PlanRequest {
  std::string strategy;
  std::string knobs;
};

/// The planner's answer about a contestant on one problem.
struct PlannerResult {
  std::vector<std::string> infeasible_reasons{};  ///< why it cannot run; empty when it can
  bool is_for_other_formats = false;              ///< the reason is that it does not support the problem's formats
  bool is_unknown = false;                        ///< the planner cannot describe it, which is no reason against it
  strategies::WorkModel work{};                   ///< of the launch, without infeasible reasons
  planner::Prediction prediction{};               ///< for `work`
};

/// One option of a problem on a command line.
struct ProblemOption {
  std::string name;                                         ///< "--head-dim"
  std::string help;                                         ///< one line
  std::vector<std::string> allowed{};                       ///< empty: a whole number from 1 up, or nothing for a flag
  bool is_flag = false;                                     ///< without a value
  bool is_extent = false;                                   ///< a part of the problem's shape
  std::function<void(Problem&, const std::string&)> set{};  ///< takes one of `allowed`, or "" for a flag
};

/// One contestant on one problem, timed to fit the planner to a card.
struct CalibrationCase {
  Problem problem;
  ContestantSpec contestant;
};

/// A kernel prepared for profiling, ready to run, and its strategy.
struct PreparedVariant {
  std::unique_ptr<Runner> runner;
  std::string strategy;
};

/// Throws Error(invalid_argument) that names the `known` strategies where the contestant's is none of them.
void require_known(const ContestantSpec& spec, const Device& device, const std::vector<std::string>& known);

[[nodiscard]] std::vector<std::string> strategy_names(const auto& strategies) {
  std::vector<std::string> names;
  for (const auto* strategy : strategies) {
    names.emplace_back(strategy->name());
  }
  return names;
}

class Operation {
 public:
  virtual ~Operation() = default;

  // Its problems.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// "256x4096x7168 nvfp4*nvfp4->fp16": shape and formats, then the options that differ from their defaults.
  [[nodiscard]] virtual std::string label(const Problem& problem) const = 0;
  /// Appends the product of the lists in one [[problem]] table. Throws Error(invalid_argument) with file and line.
  virtual void add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const = 0;
  [[nodiscard]] virtual Cost cost(const Problem& problem) const = 0;
  /// A small problem, and the options that a command line may set, in the order in which they apply.
  [[nodiscard]] virtual Problem example() const = 0;
  [[nodiscard]] virtual std::vector<ProblemOption> options() const { return {}; }

  // Its data.
  /// Some distributions do not apply to some problems.
  [[nodiscard]] virtual bool offers(const Problem& problem, Distribution distribution) const = 0;
  [[nodiscard]] virtual std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                                       std::uint64_t seed) const = 0;
  /// Formats and shapes of the outputs.
  [[nodiscard]] virtual std::vector<HostTensor> outputs(const Problem& problem) const = 0;
  /// Makes input set `index` cheaply from set 0: other data of the same distribution. This default rotates every
  /// tensor's rows, each by another number, so that no two sets hold the same pairs of rows.
  [[nodiscard]] virtual std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                          std::size_t index) const;
  /// Judges all outputs where the definition is cheap enough, else a part of every tile, drawn by `seed`.
  [[nodiscard]] virtual std::unique_ptr<Judge> judge(const Problem& problem, Distribution distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker& maker,
                                                     std::uint64_t seed) const = 0;
  /// Checks outputs of many calls on data of the distribution; `inputs` are a sample.
  [[nodiscard]] virtual std::unique_ptr<Inspector> inspector(const Problem& problem, Distribution distribution,
                                                             const std::vector<HostTensor>& inputs, const Maker& maker,
                                                             std::uint64_t seed) const = 0;
  /// The tensors of `inputs` that are no weights, without making the weights.
  [[nodiscard]] virtual std::vector<HostTensor> activations(const Problem& problem, Distribution distribution,
                                                            std::uint64_t seed) const {
    return inputs(problem, distribution, seed);
  }
  /// Activations with other row counts than `activations` has: `change` chooses the kind, `seed` the data. Empty where
  /// the operation has no counts.
  [[nodiscard]] virtual std::optional<std::vector<HostTensor>> rearranged(const Problem&, Distribution,
                                                                          std::uint64_t /*change*/,
                                                                          std::uint64_t /*seed*/) const {
    return std::nullopt;
  }
  /// Whether the outputs depend on every element of every input; otherwise some elements belong to padding rows or to
  /// groups without rows.
  [[nodiscard]] virtual bool uses_every_element(const Problem&) const { return true; }
  /// The problem with a shape that no suite lists; empty when the operation offers none.
  [[nodiscard]] virtual std::optional<Problem> neighbour(const Problem&) const { return std::nullopt; }
  /// The problem with its greatest extent halved; empty when it is small.
  [[nodiscard]] virtual std::optional<Problem> smaller(const Problem&) const { return std::nullopt; }

  // Thresher's own strategies for it. `spec` belongs to this operation.
  /// Those that compete in a tournament on that kind of device, the baseline first; empty when there are none.
  [[nodiscard]] virtual std::vector<std::string> contestants(DeviceKind kind) const = 0;
  /// Throws Error(invalid_argument) for an unknown strategy, knob or value, and names the valid ones.
  virtual void check(const ContestantSpec& spec, const Device& device) const = 0;
  /// The definition that judges the outputs.
  [[nodiscard]] virtual Numerics numerics(const ContestantSpec&) const { return Numerics::exact; }
  /// Why the contestant does not support the problem's formats, in one sentence; empty when it does.
  [[nodiscard]] virtual std::string unsupported_reason(const Problem&, const ContestantSpec&, const Device&) const {
    return "";
  }
  /// Why it cannot run the problem with any tensors, in one sentence; empty when it can.
  [[nodiscard]] virtual std::string obstacle(const Problem& problem, const ContestantSpec& spec,
                                             const Device& device) const = 0;
  /// Memory in bytes beside inputs and outputs.
  [[nodiscard]] virtual double working_bytes(const Problem&) const { return 0; }
  /// By default the strategy and the knobs of `spec`.
  [[nodiscard]] virtual PlanRequest plan_request(const ContestantSpec& spec) const;
  /// Its launches on such a GPU, compiled for it; needs no GPU. By default it throws Error(unsupported).
  [[nodiscard]] virtual MachineCode machine_code(const Problem& problem, const ContestantSpec& spec,
                                                 const DeviceSpec& device) const;
  /// Its kernels in the emulator (arena/emulation/emulation.hpp); null where it has none.
  [[nodiscard]] virtual const EmulatedOperation* emulated() const { return nullptr; }
  /// Ready to run over `sets`, which outlive the runner. Throws Error. Weights are packed here.
  [[nodiscard]] virtual std::unique_ptr<Runner> prepare(const Problem& problem, const ContestantSpec& spec,
                                                        const Device& device, Memory& memory,
                                                        const std::vector<DeviceSet>& sets) const = 0;
  /// The planner's view of it on such a GPU. By default there is no strategy for GPUs.
  [[nodiscard]] virtual PlannerResult outlook(const Problem& problem, const ContestantSpec& spec,
                                              const DeviceSpec& device, const planner::Calibration& calibration) const;
  /// The cases that `thresher calibrate` times, on problems that no built-in suite holds; empty: the planner is not
  /// fitted to it.
  [[nodiscard]] virtual std::vector<CalibrationCase> calibration_cases() const { return {}; }
  /// The choices of `plan` that `thresher tournament --tune` changes; null when there are none.
  [[nodiscard]] virtual const TunedChoices* tuned_choices() const { return nullptr; }
  /// Like prepare, for the kernel of `request` with a part left out, a part done twice, or timestamps inside. Throws
  /// Error(unsupported) where no such kernel exists.
  [[nodiscard]] virtual PreparedVariant prepare_variant(const Problem& problem, const PlanRequest& request,
                                                        const Device& device, Memory& memory,
                                                        const std::vector<DeviceSet>& sets,
                                                        const KernelVariant& variant) const;
  /// Whether its suites use one set of inputs that stays in the cache; else they use cold weights.
  [[nodiscard]] virtual bool is_timed_warm() const { return false; }

  // For user kernels (docs/harness/bring-your-own.md).
  /// The arguments of a kernel for a call whose tensors `find` knows.
  [[nodiscard]] virtual std::vector<Argument> arguments(const Problem& problem, const FindTensor& find) const = 0;
  /// The problem's formats as pitches name them: "fp16*fp16->fp16".
  [[nodiscard]] virtual std::string formats_text(const Problem& problem) const = 0;
  /// A problem as bytes, for another process of this very program, and back.
  [[nodiscard]] virtual std::string bytes(const Problem& problem) const = 0;
  [[nodiscard]] virtual Problem from_bytes(std::string_view bytes) const = 0;
};

}  // namespace thresher::arena
