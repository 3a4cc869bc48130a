#pragma once
/// A way to compute an operation, as one object: the problems it supports, its knobs, and its launches.
///
/// Everything here is pure: no GPU is needed, and nothing is compiled. A new strategy is a folder
/// src/strategies/<operation>/<strategy>/ with its Config, its KnobTable, its device code and a family
/// (kernel_strategy.hpp). Its name goes into strategies/<operation>/registry.cpp. docs/design/architecture.md walks
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

/// A problem on which a strategy's own tests, the emulator's samples and the list of built-in programs run it.
template <class Problem>
struct Sample {
  Problem problem;
  Knobs knobs;
};

/// A kernel instrumented for profiling: with timestamps, or with a part left out or done twice.
struct ProfileRequest {
  bool timestamps = false;
  pipeline::Ablation ablation = pipeline::Ablation::none;
};
struct ProfiledCall {
  PlannedCall call;
  std::size_t step = 0;  ///< the profiled step
  pipeline::Shape
      shape;  ///< of its kernel; timestamps are in the tensor behind the operation's own (pipeline/timeline.hpp)
};

/// When `plan` considers a strategy by itself.
enum class Role : std::uint8_t {
  leads,     ///< before all others where it has candidates: measured as the best there, beyond what the prediction says
  competes,  ///< always: the predictor ranks it
  fallback,  ///< if no strategy that competes can run the problem
  by_name,   ///< never: it exists for comparison
};

template <class Problem>
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// "packed": its name for the folder, the command line, the docs and the report.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// One line for people.
  [[nodiscard]] virtual std::string_view summary() const = 0;
  [[nodiscard]] virtual DeviceKind device_kind() const = 0;
  [[nodiscard]] virtual Role role(const Problem& problem) const = 0;
  /// The strategy that it replaces in `plan`'s own choice wherever it has candidates; empty for none.
  [[nodiscard]] virtual std::string_view supersedes() const { return {}; }
  [[nodiscard]] virtual std::vector<KnobHelp> knobs() const = 0;
  /// Knobs with which the bits of a row do not depend on the other rows of a call or on their number; of attention, the
  /// bits of a sequence on the other sequences. Empty if there are none for this problem.
  [[nodiscard]] virtual std::optional<Knobs> steady_knobs(const Problem& /*problem*/) const { return std::nullopt; }
  /// Those knobs of a candidate that say how it sums. Candidates where these are equal give a row the same bits.
  /// Empty if bits depend on the batch with it all the same.
  [[nodiscard]] virtual std::optional<Knobs> sums(const Problem& /*problem*/, const Knobs& knobs,
                                                  const DeviceSpec& /*device*/) const {
    return knobs;
  }

  /// Why it does not support the problem's formats or such a device, in one sentence that names both; empty if it does.
  /// An unsupported problem is not a failure of the strategy.
  [[nodiscard]] virtual std::optional<std::string> unsupported_reason(const Problem& problem,
                                                                      const DeviceSpec& device) const = 0;
  /// Why it cannot run the problem with these knobs, whatever the tensors: one sentence with the number and the limit
  /// per reason. Throws Error(invalid_argument) for an unknown knob or value. `knobs` are those that differ from its
  /// own choice.
  [[nodiscard]] virtual std::vector<std::string> infeasible_reasons(const Problem& problem, const Knobs& knobs,
                                                                    const DeviceSpec& device) const = 0;
  /// The knob sets worth predicting, each with every knob and without an infeasible reason. Empty when it cannot run
  /// the problem, or should only on request by name. The one predictor ranks them. `knobs` are kept in every candidate.
  [[nodiscard]] virtual std::vector<Knobs> candidates(const Problem& problem, const Knobs& knobs,
                                                      const DeviceSpec& device) const = 0;
  /// Its launches with these knobs, which have no infeasible reason. `problem`'s rows are the maximum of a call: the
  /// launches' `bind` reads the actual number from the tensors. Throws Error(unsupported) with the first infeasible
  /// reason.
  [[nodiscard]] virtual PlannedCall plan(const Problem& problem, const Knobs& knobs,
                                         const DeviceSpec& device) const = 0;

  /// `plan(…).work` without the launches: the predictor's input for a candidate, of which there are many. Empty if the
  /// predictor cannot model it.
  [[nodiscard]] virtual WorkModel work(const Problem& problem, const Knobs& knobs, const DeviceSpec& device) const {
    return plan(problem, knobs, device).work;
  }

  /// `plan` with one kernel as `request` asks for; empty if none of its kernels can be profiled.
  [[nodiscard]] virtual std::optional<ProfiledCall> profiled(const Problem& /*problem*/, const Knobs& /*knobs*/,
                                                             const DeviceSpec& /*device*/,
                                                             const ProfileRequest& /*request*/) const {
    return std::nullopt;
  }

  /// Small problems for the emulator that run the same kernels as `problem` with these knobs, around their tile size.
  /// One exceeds a tile and the ring in every dimension, and one is far smaller than a tile.
  [[nodiscard]] virtual std::vector<Problem> edges(const Problem& problem, const Knobs& /*knobs*/,
                                                   const DeviceSpec& /*device*/) const {
    return {problem};
  }

  /// Problems whose kernels are compiled ahead of time: into the library, and by `thresher warm`.
  [[nodiscard]] virtual std::vector<Sample<Problem>> built_in() const { return {}; }
  /// Small problems for the emulator that together set every knob.
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
