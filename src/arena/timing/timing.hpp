#pragma once
/// Times a contestant against its baseline, interleaved in random order, in each mode that the budget allows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arena/random.hpp"
#include "arena/timing/clock.hpp"
#include "arena/timing/mode.hpp"
#include "arena/timing/rotation.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

/// The roles of samples. The baseline is timed twice in every round, against itself.
enum class Role : std::uint8_t { baseline, baseline_again, contestant };

/// The purpose of a sample. The contestant cannot tell it.
enum class SampleKind : std::uint8_t {
  counted,  ///< on unseen data: its time is one of the round's
  seen,     ///< on data that its runner has seen: another sample replaces it, and the times are compared
  changed,  ///< on data that its runner has almost seen: only its outputs are checked, and another replaces it
};

/// Work around samples, outside their time, equal for every role.
class Attendant {
 public:
  Attendant() = default;
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;
  virtual ~Attendant() = default;
  /// Before a sample: unseen inputs and poisoned outputs for every call of `batch`; cold caches for `cold`.
  virtual void prepare(Role role, const Batch& batch, bool cold) = 0;
  /// The same without cold caches, in two steps with an untimed call between them. This step does the slow work; that
  /// call must not find the results of the second step.
  virtual void make(Role role, const Batch& batch) = 0;
  virtual void put_in_inputs(Role role, const Batch& batch) = 0;
  /// After it: one sentence about the first call with wrong outputs, empty when all hold. `closely`: whole outputs too.
  [[nodiscard]] virtual std::string inspect(Role role, const Batch& batch, bool closely) = 0;
  /// The kind of the sample that was inspected last.
  [[nodiscard]] virtual SampleKind kind() const { return SampleKind::counted; }
};

/// `count` input sets from `base` on.
struct SetRange {
  std::size_t base = 0;
  std::size_t count = 1;

  /// Calls on the first of them, limited by their number.
  [[nodiscard]] Batch batch(std::size_t calls) const { return {std::min(calls, count), base, base + count}; }
};

/// The use of a runner's sets.
struct SetRanges {
  SetRange cold;
  SetRange warm;     ///< sets of the same weights; the last of them warms up
  SetRange heating;  ///< the baseline's, which keep the machine busy between samples of a sustained mode
};

struct TimingOptions {
  double budget_s = 8;  ///< for one contestant on one problem, over all modes
  /// A deciding mode that is still too noisy continues until this multiple of the budget has passed.
  double patience = 1;
  int max_rounds = 60;   ///< of a mode; times `patience` in total
  double heat_s = 0.25;  ///< back-to-back calls before a sustained mode
  double rest_s = 0.02;  ///< idle time before each sample of a burst mode
  bool warm = false;     ///< the warm modes alone, with the whole budget
  bool shortly = false;  ///< the first deciding mode alone
  /// False where samples only serve their outputs: then a fault of the clock stops nothing.
  bool clock_matters = true;
  /// Called before every sample; throws when no time is left.
  std::function<void()> check_time{};
};

/// A sample whose threads waited longer than this share for processors that others used is dropped, and another
/// replaces it.
inline constexpr double max_waited_share = 0.05;

/// One mode's samples: microseconds per call, one of each role in every round.
struct ModeTimes {
  TimingMode mode = TimingMode::cold_burst;
  std::string not_measured;  ///< why there are no samples; empty when there are
  std::size_t calls_per_sample = 0;
  std::vector<double> baseline_us;
  std::vector<double> baseline_again_us;  ///< the baseline against itself: the machine's own noise
  std::vector<double> contestant_us;      ///< empty when the contestant is the baseline
  std::vector<double> seen_us;            ///< the contestant's, on inputs that it had seen; in no round
  std::vector<Telemetry> telemetry;       ///< after each sample, in the order they were taken
  bool went_on = false;                   ///< beyond its share of the budget, because it was too noisy
  std::size_t waited = 0;                 ///< samples that were dropped because their threads waited for processors

  [[nodiscard]] int rounds() const noexcept { return static_cast<int>(baseline_us.size()); }
  /// Baseline time (the geometric mean of the round's two) over contestant time, round by round: drift cancels.
  [[nodiscard]] std::vector<double> speedups() const;
  /// Baseline over baseline again, round by round.
  [[nodiscard]] std::vector<double> self_ratios() const;
};

struct Times {
  std::vector<ModeTimes> modes;  ///< one for each of `all_modes`, in that order
  Rotation rotation;
  /// Why no time here is reliable; empty when the clock is sound. The modes then stop early.
  std::string clock_fault;
  /// Why a sample does not count: outputs of its calls are wrong. Empty when all held; the modes then stop early.
  std::string output_fault;
  Role faulty = Role::contestant;  ///< whose outputs they are
  /// Why a deciding mode has too few samples: too many were dropped. Empty when none has.
  std::string busy;
  double sampled_s = 0;  ///< samples, pauses, and the work that prepares caches and clocks
  double aside_s = 0;    ///< making inputs and checking outputs, outside all samples

  [[nodiscard]] const ModeTimes& mode(TimingMode which) const { return modes.at(static_cast<std::size_t>(which)); }
};

/// A runner, and the clock of its rig.
struct Clocked {
  Runner& runner;
  Clock& clock;
};

/// Times `contestant` against `baseline`; without a contestant the baseline alone, against itself. Budgets and pauses
/// use the baseline's clock. The attendant works before and after every sample; no two calls of a sample use one set.
[[nodiscard]] Times time_against(std::optional<Clocked> contestant, Clocked baseline, Attendant& attendant,
                                 const Rotation& rotation, const SetRanges& sets, const TimingOptions& options,
                                 Random& random);

/// The same over `rotation` alone without an attendant, for trusted runners: the inputs stay unchanged. `contestant`
/// may be null.
[[nodiscard]] Times time_against(Runner* contestant, Runner& baseline, Clock& clock, const Rotation& rotation,
                                 const TimingOptions& options, Random& random);

}  // namespace thresher::arena
