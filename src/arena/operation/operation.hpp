#pragma once
/// An operation as the arena and the command line know it: its problems, its data, its judge, its cost, and how
/// Thresher's own strategies compute it. Everything else in the arena treats all operations alike and asks here.
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

namespace thresher::ops {
struct KernelVariant;
}

namespace thresher::arena {

class EmulatedOperation;

/// Knows the right outputs for one set of inputs, or for a random part of them that touches every tile.
class Judge {
 public:
  virtual ~Judge() = default;
  /// `outputs` in the order of Operation::outputs.
  virtual Finding judge(const std::vector<HostTensor>& outputs) const = 0;
  /// Whether nobody may write a row of an output, seen as a matrix of its last dimension; empty where everything is
  /// written.
  [[nodiscard]] virtual std::vector<bool> untouched_rows(std::size_t /*output*/) const { return {}; }
};

/// Who made the outputs that are judged.
struct Maker {
  DeviceKind device = DeviceKind::cpu;  ///< says how sums are rounded
  Numerics numerics = Numerics::exact;  ///< that it declares, of problems with NVFP4 weights
};

/// The least that any kernel has to do.
struct Cost {
  double operations = 0;        ///< multiplications and additions of the matrix products
  double compulsory_bytes = 0;  ///< every input read once and every output written once
};

/// What a contestant asks `plan` for, in the words of its planner; empty strings leave the choice to it.
struct PlanRequest {
  std::string strategy;
  std::string knobs;
};

/// What the planner says of a contestant on one problem.
struct PlannerResult {
  std::vector<std::string> infeasible_reasons{};  ///< why it cannot run; empty when it can
  bool is_for_other_formats = false;              ///< the obstacle is that it is not made for the problem's formats
  bool is_unknown = false;                        ///< the planner has no words for it, which says nothing against it
  strategies::WorkModel work{};                   ///< of what would be launched, without obstacles
  planner::Prediction prediction{};               ///< of that
};

/// One choice of a problem on a command line.
struct ProblemOption {
  std::string name;                                         ///< "--head-dim"
  std::string help;                                         ///< one line
  std::vector<std::string> allowed{};                       ///< empty: a whole number from 1 up, or nothing for a flag
  bool is_flag = false;                                     ///< without a value
  bool is_extent = false;                                   ///< a part of the problem's shape
  std::function<void(Problem&, const std::string&)> set{};  ///< of one of `allowed`; of a flag that is given, ""
};

/// One contestant on one problem, timed to fit the planner to a card.
struct CalibrationCase {
  Problem problem;
  ContestantSpec contestant;
};

/// A kernel made to be looked into, ready to run, and the strategy that it is of.
struct PreparedVariant {
  std::unique_ptr<Runner> runner;
  std::string strategy;
};

class Operation {
 public:
  virtual ~Operation() = default;

  // Its problems.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// "256x4096x7168 nvfp4*nvfp4->fp16": shape and formats, followed by what is not the default.
  [[nodiscard]] virtual std::string label(const Problem& problem) const = 0;
  /// Appends every problem that the lists of one [[problem]] table multiply to. Throws Error(invalid_argument) with
  /// file and line.
  virtual void add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const = 0;
  [[nodiscard]] virtual Cost cost(const Problem& problem) const = 0;
  /// A small problem, and what a command line may change of it, in the order in which it is to be changed.
  [[nodiscard]] virtual Problem example() const = 0;
  [[nodiscard]] virtual std::vector<ProblemOption> options() const = 0;

  // Its data.
  /// Some distributions make no sense for some problems.
  [[nodiscard]] virtual bool offers(const Problem& problem, Distribution distribution) const = 0;
  [[nodiscard]] virtual std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                                       std::uint64_t seed) const = 0;
  /// Formats and shapes of the outputs.
  [[nodiscard]] virtual std::vector<HostTensor> outputs(const Problem& problem) const = 0;
  /// Input set `index` made cheaply from set 0: other data of the same distribution. Here every tensor's rows are
  /// turned, each by another number, so that no two sets hold the same pairs of rows.
  [[nodiscard]] virtual std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                          std::size_t index) const;
  /// Judges all outputs where the definition is cheap enough, else a random part of every tile, chosen by
  /// `seed`.
  [[nodiscard]] virtual std::unique_ptr<Judge> judge(const Problem& problem, Distribution distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker& maker,
                                                     std::uint64_t seed) const = 0;
  /// Looks at outputs of many calls on data of the distribution; `inputs` are some.
  [[nodiscard]] virtual std::unique_ptr<Inspector> inspector(const Problem& problem, Distribution distribution,
                                                             const std::vector<HostTensor>& inputs, const Maker& maker,
                                                             std::uint64_t seed) const = 0;
  /// Those of `inputs` that are no weights, without making the weights.
  [[nodiscard]] virtual std::vector<HostTensor> activations(const Problem& problem, Distribution distribution,
                                                            std::uint64_t seed) const {
    return inputs(problem, distribution, seed);
  }
  /// Activations with other counts of rows than `activations` gives: of a kind that `change` says, by `seed`. Nothing
  /// where there are no counts.
  [[nodiscard]] virtual std::optional<std::vector<HostTensor>> rearranged(const Problem&, Distribution,
                                                                          std::uint64_t /*change*/,
                                                                          std::uint64_t /*seed*/) const {
    return std::nullopt;
  }
  /// Whether the outputs depend on every element of every input; else some belong to nobody, or to what gets no rows.
  [[nodiscard]] virtual bool uses_every_element(const Problem&) const { return true; }
  /// The problem with a shape that no suite lists; nothing when the operation has none to offer.
  [[nodiscard]] virtual std::optional<Problem> neighbour(const Problem&) const { return std::nullopt; }
  /// The problem with its greatest extent halved; nothing when it is small.
  [[nodiscard]] virtual std::optional<Problem> smaller(const Problem&) const { return std::nullopt; }

  // How Thresher's own strategies compute it. `spec` is of this operation.
  /// Those that enter a tournament on a device of the kind, the baseline that the others are measured against first;
  /// empty when there are none.
  [[nodiscard]] virtual std::vector<std::string> contestants(DeviceKind kind) const = 0;
  /// Throws Error(invalid_argument) that names what there is for an unknown strategy, knob or value.
  virtual void check(const ContestantSpec& spec, const Device& device) const = 0;
  /// By which definition the outputs are judged.
  [[nodiscard]] virtual Numerics numerics(const ContestantSpec&) const { return Numerics::exact; }
  /// Why the contestant is not made for the problem's formats, in one sentence; empty when it is.
  [[nodiscard]] virtual std::string format_obstacle(const Problem&, const ContestantSpec&, const Device&) const {
    return "";
  }
  /// Why it cannot run the problem whatever its tensors, in one sentence; empty when it can.
  [[nodiscard]] virtual std::string obstacle(const Problem& problem, const ContestantSpec& spec,
                                             const Device& device) const = 0;
  /// Bytes that it may take beside inputs and outputs.
  [[nodiscard]] virtual double working_bytes(const Problem&) const { return 0; }
  [[nodiscard]] virtual PlanRequest plan_request(const ContestantSpec& spec) const = 0;
  /// What it launches on such a GPU, compiled for it; no GPU is needed.
  [[nodiscard]] virtual MachineCode machine_code(const Problem& problem, const ContestantSpec& spec,
                                                 const DeviceSpec& device) const = 0;
  /// Its kernels in the emulator (arena/emulation/emulation.hpp); null where it has none.
  [[nodiscard]] virtual const EmulatedOperation* emulated() const { return nullptr; }
  /// Ready to run over `sets`, which outlive the runner. Throws Error. Weights are packed here.
  [[nodiscard]] virtual std::unique_ptr<Runner> prepare(const Problem& problem, const ContestantSpec& spec,
                                                        const Device& device, Memory& memory,
                                                        const std::vector<DeviceSet>& sets) const = 0;
  [[nodiscard]] virtual PlannerResult outlook(const Problem& problem, const ContestantSpec& spec,
                                              const DeviceSpec& device,
                                              const planner::Calibration& calibration) const = 0;
  /// What `thresher calibrate` times, on problems that no built-in suite holds; empty: the planner is not fitted to it.
  [[nodiscard]] virtual std::vector<CalibrationCase> calibration_cases() const { return {}; }
  /// The choices of `plan` that `thresher tournament --tune` changes; null: it has none.
  [[nodiscard]] virtual const TunedChoices* tuned_choices() const { return nullptr; }
  /// As prepare, of the kernel that `request` asks for with a part left out, done twice or timed from inside. Throws
  /// Error(unsupported) where no kernel can be.
  [[nodiscard]] virtual PreparedVariant prepare_variant(const Problem& problem, const PlanRequest& request,
                                                        const Device& device, Memory& memory,
                                                        const std::vector<DeviceSet>& sets,
                                                        const ops::KernelVariant& variant) const;
  /// Whether its suites are timed with one set of inputs that stays in the cache; else with cold weights.
  [[nodiscard]] virtual bool is_timed_warm() const { return false; }
  /// Whether pitches may bring kernels of their own for it (docs/bring-your-own.md).
  [[nodiscard]] virtual bool takes_user_kernels() const { return false; }
};

}  // namespace thresher::arena
