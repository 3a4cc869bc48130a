#pragma once
/// A way to compute an operation, as one object: what it takes, which choices it has, and what it would launch.
///
/// Everything here is pure: no GPU is needed, and nothing is compiled. To add a strategy, write a folder
/// src/strategies/<operation>/<strategy>/ with its Config, its KnobTable, its device code and a family
/// (kernel_strategy.hpp), and name its strategy in strategies/<operation>/registry.cpp. docs/architecture.md walks
/// through it.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_spec.hpp"
#include "pipeline/shape.hpp"
#include "strategies/knob_table.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies {

/// One problem that a strategy's own tests, the emulator's samples and the list of built-in programs run it on.
template <class Problem>
struct Sample {
  Problem problem;
  Knobs knobs;
};

/// A kernel made to be looked into: with timestamps, or with a part left out or done twice.
struct ProfileRequest {
  bool timestamps = false;
  pipeline::Ablation ablation = pipeline::Ablation::none;
};
struct ProfiledCall {
  PlannedCall call;
  std::size_t step = 0;  ///< the one that is looked into
  pipeline::Shape
      shape;  ///< its kernel's; timestamps lie in the tensor behind the operation's own (pipeline/timeline.hpp)
};

/// When a strategy is entered into the choice that `plan` makes by itself.
enum class Role : std::uint8_t {
  leads,  ///< before all others where it names candidates: it was measured best there, by more than a prediction says
  competes,  ///< always: the predictor ranks it
  fallback,  ///< when none that competes can run the problem
  by_name,   ///< never: it is there to be compared with
};

template <class Problem>
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// "packed": the folder, the command line, the docs and the report call it so.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// One line for people.
  [[nodiscard]] virtual std::string_view summary() const = 0;
  [[nodiscard]] virtual DeviceKind device_kind() const = 0;
  [[nodiscard]] virtual Role role(const Problem& problem) const = 0;
  /// The strategy whose place it takes in `plan`'s own choice wherever it has candidates; empty where there is none.
  [[nodiscard]] virtual std::string_view supersedes() const { return {}; }
  [[nodiscard]] virtual std::vector<KnobHelp> knobs() const = 0;

  /// Why it is not made for the problem's formats or for such a device, in one sentence that names both; empty when it
  /// is. What does not pass here is not a failure of the strategy.
  [[nodiscard]] virtual std::optional<std::string> unsupported_reason(const Problem& problem,
                                                                      const DeviceSpec& device) const = 0;
  /// Why it cannot run the problem with these knobs whatever the tensors: a sentence with the number and the limit for
  /// each thing in the way. Throws Error(invalid_argument) for a knob that it does not have or a value that it does not
  /// take. `knobs` name those that differ from its own choice.
  [[nodiscard]] virtual std::vector<std::string> infeasible_reasons(const Problem& problem, const Knobs& knobs,
                                                                    const DeviceSpec& device) const = 0;
  /// The knob sets worth predicting, each with every knob, none with an obstacle; empty when it cannot run the problem,
  /// or should only where it is asked for by name. The one predictor ranks them. `knobs` are kept in every candidate.
  [[nodiscard]] virtual std::vector<Knobs> candidates(const Problem& problem, const Knobs& knobs,
                                                      const DeviceSpec& device) const = 0;
  /// What it launches with these knobs, which have no obstacle. `problem`'s rows are the most that a call may have:
  /// the launches' `bind` reads how many there are from the tensors. Throws Error(unsupported) with the first obstacle.
  [[nodiscard]] virtual PlannedCall plan(const Problem& problem, const Knobs& knobs,
                                         const DeviceSpec& device) const = 0;

  /// `plan(…).work` without the launches: what the predictor reads of a candidate, of which there are many. Empty where
  /// the predictor has no words for it.
  [[nodiscard]] virtual WorkModel work(const Problem& problem, const Knobs& knobs, const DeviceSpec& device) const {
    return plan(problem, knobs, device).work;
  }

  /// `plan` with one kernel as `request` asks for; empty where none of its kernels can be looked into.
  [[nodiscard]] virtual std::optional<ProfiledCall> profiled(const Problem& /*problem*/, const Knobs& /*knobs*/,
                                                             const DeviceSpec& /*device*/,
                                                             const ProfileRequest& /*request*/) const {
    return std::nullopt;
  }

  /// Small problems that the kernels of `problem` with these knobs run too, around their tile: one beyond a tile and
  /// beyond the ring in every dimension, and far less than one tile. For the emulator.
  [[nodiscard]] virtual std::vector<Problem> edges(const Problem& problem, const Knobs& /*knobs*/,
                                                   const DeviceSpec& /*device*/) const {
    return {problem};
  }

  /// What is compiled ahead of time: into the library, and by `thresher warm`.
  [[nodiscard]] virtual std::vector<Sample<Problem>> built_in() const { return {}; }
  /// Small problems that between them set every knob, for the emulator.
  [[nodiscard]] virtual std::vector<Sample<Problem>> samples() const { return {}; }
};

template <class Problem>
using Strategies = std::span<const Strategy<Problem>* const>;

/// Null when there is none of that name.
template <class Problem>
const Strategy<Problem>* find_strategy(Strategies<Problem> strategies, std::string_view name) {
  for (const Strategy<Problem>* strategy : strategies) {
    if (strategy->name() == name) {
      return strategy;
    }
  }
  return nullptr;
}

}  // namespace thresher::strategies
