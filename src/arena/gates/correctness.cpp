#include "arena/gates/correctness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "arena/gates/verified_calls.hpp"
#include "arena/random.hpp"
#include "arena/rig/environment.hpp"
#include "arena/timing/statistics.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::int64_t tile_side = 64;

/// Outputs of one call, in the order of Operation::outputs.
using Outputs = std::vector<HostTensor>;

/// An output as a matrix of whole elements: its last dimension times the rest.
struct Grid {
  explicit Grid(const HostTensor& tensor)
      : columns(tensor.shape.back()),
        rows(columns == 0 ? 0 : tensor.elements() / columns),
        element_bytes(static_cast<std::size_t>(bits(tensor.format)) / 8) {}
  std::int64_t columns;
  std::int64_t rows;
  std::size_t element_bytes;
};

Finding fault(std::string name, std::string sentence) {
  Finding finding;
  finding.correct = false;
  finding.fault = std::move(name);
  finding.sentence = std::move(sentence);
  return finding;
}

bool is_poison(const std::uint8_t* bytes, std::size_t count, std::uint8_t poison) {
  return std::all_of(bytes, bytes + count, [poison](std::uint8_t byte) { return byte == poison; });
}

/// Finds a write to a padding row, which must keep the poison of both calls.
std::optional<Finding> find_written(const Judge& judge, const MadeCall& first_call, const MadeCall& last_call) {
  for (std::size_t i = 0; i < first_call.outputs.size(); ++i) {
    const Grid grid(first_call.outputs[i]);
    const std::vector<bool> untouched = judge.untouched_rows(i);
    const std::size_t row_bytes = static_cast<std::size_t>(grid.columns) * grid.element_bytes;
    for (std::size_t row = 0; row < untouched.size(); ++row) {
      const auto is_poisoned = [&](const MadeCall& call) {
        return is_poison(&call.outputs[i].values[row * row_bytes], row_bytes, call.poison);
      };
      if (untouched[row] && (!is_poisoned(first_call) || !is_poisoned(last_call))) {
        return fault("writes padding rows",
                     fmt::format("row {} of {} belongs to nobody and was written", row, first_call.outputs[i].name));
      }
    }
  }
  return std::nullopt;
}

/// Finds elements that neither call wrote: they hold the poison of both calls.
std::optional<Finding> find_unwritten(const Judge& judge, const MadeCall& first_call, const MadeCall& last_call) {
  const Outputs& first = first_call.outputs;
  const Outputs& last = last_call.outputs;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Grid grid(first[i]);
    const std::vector<bool> untouched = judge.untouched_rows(i);
    std::int64_t unwritten = 0;
    std::int64_t where = -1;
    for (std::int64_t element = 0; element < grid.rows * grid.columns; ++element) {
      if (!untouched.empty() && untouched[static_cast<std::size_t>(element / grid.columns)]) {
        continue;
      }
      const std::size_t offset = static_cast<std::size_t>(element) * grid.element_bytes;
      if (is_poison(&first[i].values[offset], grid.element_bytes, first_call.poison) &&
          is_poison(&last[i].values[offset], grid.element_bytes, last_call.poison)) {
        where = unwritten++ == 0 ? element : where;
      }
    }
    if (unwritten > 0) {
      return fault("unwritten outputs",
                   fmt::format("{} of {} elements of {} were never written, the first at [{}, {}]", unwritten,
                               grid.rows * grid.columns, first[i].name, where / grid.columns, where % grid.columns));
    }
  }
  return std::nullopt;
}

/// Finds equal inputs with different output bits; poison left in place was found before.
std::optional<Finding> find_difference(const Judge& judge, const Outputs& first, const Outputs& last) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Grid grid(first[i]);
    const std::vector<bool> untouched = judge.untouched_rows(i);
    const std::size_t row_bytes = static_cast<std::size_t>(grid.columns) * grid.element_bytes;
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      if (!untouched.empty() && untouched[static_cast<std::size_t>(row)]) {
        continue;
      }
      const std::uint8_t* const begin = first[i].values.data() + static_cast<std::size_t>(row) * row_bytes;
      const auto [one, other] =
          std::mismatch(begin, begin + row_bytes, last[i].values.data() + static_cast<std::size_t>(row) * row_bytes);
      if (one != begin + row_bytes) {
        return fault("differs from run to run",
                     fmt::format("{} differs between two runs on the same inputs, first at [{}, {}]", first[i].name,
                                 row, (one - begin) / static_cast<std::int64_t>(grid.element_bytes)));
      }
    }
  }
  return std::nullopt;
}

/// Whether one tile of `now` equals, element for element, the previous call's outputs. A tile with a single repeated
/// value proves nothing.
bool same_tile(const Outputs& now, const Outputs& before, std::size_t output, std::int64_t row, std::int64_t column) {
  const Grid grid(now[output]);
  const std::int64_t last_row = std::min(row + tile_side, grid.rows);
  const std::int64_t last_column = std::min(column + tile_side, grid.columns);
  const auto element = [&](const Outputs& outputs, std::int64_t r, std::int64_t c) {
    return &outputs[output].values[static_cast<std::size_t>(r * grid.columns + c) * grid.element_bytes];
  };
  bool is_constant = true;
  for (std::int64_t r = row; r < last_row; ++r) {
    for (std::int64_t c = column; c < last_column; ++c) {
      if (std::memcmp(element(now, r, c), element(before, r, c), grid.element_bytes) != 0) {
        return false;
      }
      is_constant = is_constant && std::memcmp(element(now, r, c), element(now, row, column), grid.element_bytes) == 0;
    }
  }
  return !is_constant;
}

/// Finds a tile that still holds the outputs of the previous call, which had other inputs.
std::optional<Finding> find_stale_tile(const Outputs& now, const Outputs& before) {
  for (std::size_t output = 0; output < now.size(); ++output) {
    const Grid grid(now[output]);
    for (std::int64_t row = 0; row < grid.rows; row += tile_side) {
      for (std::int64_t column = 0; column < grid.columns; column += tile_side) {
        if (same_tile(now, before, output, row, column)) {
          return fault(
              "stale tile",
              fmt::format("the tile of {} at [{}, {}] holds the outputs of the call before, which had other inputs",
                          now[output].name, row, column));
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<Finding> find_damage(const std::string& sentence) {
  if (sentence.empty()) {
    return std::nullopt;
  }
  const bool past = sentence.find("past the end") != std::string::npos;
  return fault(past ? "write past the end" : "write before the beginning", sentence);
}

/// The samples of one trial. Samples before and between the judged ones are made alike.
class JudgedStream {
 public:
  JudgedStream(const Trial& trial, const Contestant& contestant, Rig& own, const CallPattern& pattern)
      : trial_(trial),
        pattern_(pattern),
        is_baseline_(pattern.baseline == nullptr || pattern.baseline == &contestant),
        random_(derive_seed(trial.seed, "what is judged")),
        calls_(trial.problem, trial.distribution, is_baseline_ ? nullptr : &contestant,
               is_baseline_ ? contestant : *pattern.baseline, own, environment_, pattern.calls_per_sample,
               !pattern.is_timed || pattern.timing.warm, derive_seed(trial.seed, "trial")) {
    calls_.look_back_in_one_of(0);
    first_judged_ = 1 + random_.below(samples - 2);
    last_judged_ = first_judged_ + 1 + random_.below(samples - 1 - first_judged_);
  }

  Finding run() {
    while (sample_ < samples) {
      std::vector<Role> order{Role::baseline, Role::contestant};
      if (pattern_.is_timed) {
        order.push_back(Role::baseline_again);
        random_.shuffle(order);
      }
      for (const Role role : order) {
        if (role != judged_role()) {
          if (!is_baseline_ && pattern_.is_timed) {
            take(role, next_batch(calls_in_sample()), std::nullopt);
          }
        } else if (sample_ < samples) {
          take_judged();
        }
      }
    }
    return conclude();
  }

 private:
  static constexpr std::size_t samples = 5;
  static constexpr std::size_t samples_of_one_call = 2;
  static constexpr std::size_t sets_whose_zones_are_looked_at = 32;  // beside those of the judged calls

  /// One call that is judged.
  struct Judged {
    MadeCall made;
    std::size_t set = 0;
    Outputs before;  ///< of the call before
  };

  [[nodiscard]] Role judged_role() const { return is_baseline_ ? Role::baseline : Role::contestant; }
  [[nodiscard]] Clocked clocked(Role role) {
    return role == Role::contestant && calls_.contestant() ? *calls_.contestant() : calls_.baseline();
  }
  [[nodiscard]] SetRange sets() const {
    return pattern_.timing.warm || !pattern_.is_timed ? calls_.plan().ranges().warm : calls_.plan().ranges().cold;
  }
  /// Follows the first samples, which tell how long a call takes.
  [[nodiscard]] std::size_t calls_in_sample() const {
    return sample_ < samples_of_one_call ? 1 : std::min(pattern_.calls_per_sample, sets().count);
  }
  Batch next_batch(std::size_t calls) {
    const SetRange range = sets();
    if (range.base != 0) {
      return range.batch(calls);
    }
    const Batch batch{calls, next_set_, range.count};
    next_set_ = (next_set_ + calls) % range.count;
    return batch;
  }

  /// A batch that contains a set with the weights of `set`; sets in between are skipped.
  Batch batch_with_weights_of(std::size_t set, std::size_t calls, std::size_t& found) {
    for (;;) {
      const Batch batch = next_batch(calls);
      std::vector<std::size_t> same;
      for (std::size_t call = 0; call < batch.calls; ++call) {
        if (calls_.plan().group_of(batch.set_of(call)) == calls_.plan().group_of(set)) {
          same.push_back(batch.set_of(call));
        }
      }
      if (!same.empty()) {
        found = same[random_.below(same.size())];
        return batch;
      }
    }
  }

  void take_judged() {
    const std::size_t calls = calls_in_sample();
    if (sample_ == last_judged_) {
      std::size_t set = 0;
      const Batch batch = batch_with_weights_of(first_->set, calls, set);
      calls_.repeat_next(set, first_->made);
      take(judged_role(), batch, set);
    } else {
      const Batch batch = next_batch(calls);
      take(judged_role(), batch, batch.set_of(random_.below(batch.calls)));
    }
    ++sample_;
  }

  /// `judged`: the set whose call is judged, if this sample is judged.
  void take(Role role, const Batch& batch, std::optional<std::size_t> judged) {
    // A baseline's samples between two of the contestant's need no cold caches: only judged ones do.
    calls_.prepare(role, batch, judged && pattern_.is_timed && !pattern_.timing.warm);
    Clocked own = clocked(role);
    if (pattern_.is_timed) {
      own.clock.rest(pattern_.timing.rest_s);
    }
    (void)own.clock.measure(own.runner, batch);
    if (!judged) {
      calls_.wait(role);
      return;  // a wrong baseline is reported where it is judged itself
    }
    const std::string found = calls_.inspect(role, batch, true);
    complaint_ = complaint_.empty() && !calls_.baseline_is_wrong() ? found : complaint_;
    damage_ = damage_.empty() ? calls_.damage_of(role, *judged) : damage_;
    changed_ = changed_.empty() ? calls_.change_of(role, *judged) : changed_;
    MadeCall made = calls_.made(role, *judged);
    Outputs outputs = made.outputs;
    if (sample_ == first_judged_ || sample_ == last_judged_) {
      (sample_ == first_judged_ ? first_ : last_) = Judged{std::move(made), *judged, std::move(before_)};
    }
    oldest_ = oldest_.empty() ? outputs : oldest_;
    before_ = std::move(outputs);
  }

  [[nodiscard]] Finding conclude() {
    damage_ = damage_.empty() ? calls_.damage(sets_whose_zones_are_looked_at) : damage_;
    if (auto found = find_damage(damage_)) {
      return *found;
    }
    if (!changed_.empty()) {
      return fault("input changed", changed_);
    }
    const std::unique_ptr<Judge> judge =
        trial_.problem.operation().judge(trial_.problem, trial_.distribution, first_->made.inputs, trial_.maker,
                                         derive_seed(trial_.seed, "judged elements"));
    if (auto found = find_unwritten(*judge, first_->made, last_->made)) {
      return *found;
    }
    if (auto found = find_written(*judge, first_->made, last_->made)) {
      return *found;
    }
    if (Finding finding = judge_first(*judge); !finding.correct) {
      return finding;
    }
    Finding finding = judge->judge(last_->made.outputs);
    if (!finding.correct) {
      finding.fault = "right at first, wrong later";
      finding.sentence = "a second call on the same inputs was wrong; " + finding.sentence;
      return finding;
    }
    if (auto found = find_difference(*judge, first_->made.outputs, last_->made.outputs)) {
      return *found;
    }
    return complaint_.empty() ? finding : fault("wrong in some calls", complaint_);
  }

  /// Names the finding more precisely where an earlier call, on other inputs, explains it.
  [[nodiscard]] Finding judge_first(const Judge& judge) const {
    Finding finding = judge.judge(first_->made.outputs);
    if (finding.fault == wrong_values || finding.fault == one_tile_wrong) {
      for (const Outputs* const earlier : {&first_->before, &oldest_}) {
        if (const auto stale = find_stale_tile(first_->made.outputs, *earlier)) {
          finding.fault = stale->fault;
          finding.sentence = stale->sentence + "; " + finding.sentence;
          break;
        }
      }
    }
    return finding;
  }

  const Trial& trial_;
  const CallPattern& pattern_;
  bool is_baseline_;
  Random random_;
  Environment environment_;
  VerifiedCalls calls_;
  std::size_t first_judged_ = 0;
  std::size_t last_judged_ = 0;
  std::size_t sample_ = 0;
  std::size_t next_set_ = 0;
  std::optional<Judged> first_;
  std::optional<Judged> last_;
  Outputs before_;
  Outputs oldest_;
  std::string complaint_;
  std::string damage_;
  std::string changed_;
};

}  // namespace

Trial make_trial(const Problem& problem, Distribution distribution, const Maker& maker, std::uint64_t seed) {
  return {problem, distribution, maker, seed};
}

TrialResult run_trial(const Trial& trial, const Contestant& contestant, Rig& rig, const CallPattern& pattern) {
  TrialResult result{label(trial.problem), std::string(name(trial.distribution)), {}};
  try {
    result.finding = JudgedStream(trial, contestant, rig, pattern).run();
  } catch (const Error& error) {
    result.finding = fault("an error", error.what());
  }
  return result;
}

namespace {

/// The distribution whose calls are made as timed ones are, beside the timed one.
Distribution drawn_distribution(const Suite& suite, const Problem& problem, std::uint64_t seed) {
  std::vector<Distribution> others = suite.distributions;
  std::erase_if(others, [&](Distribution other) {
    return other == suite.distributions.front() || !problem.operation().offers(problem, other);
  });
  return others.empty() ? suite.distributions.front()
                        : others[Random(derive_seed(seed, "drawn " + label(problem))).below(others.size())];
}

/// Drops a baseline that does not support the problem's formats. In a correctness suite it need not support all.
CallPattern beside(CallPattern pattern, const Problem& problem) {
  if (pattern.baseline != nullptr && !pattern.baseline->unsupported_reason(problem).empty()) {
    pattern.baseline = nullptr;
  }
  return pattern;
}

/// Makes calls as the problem will be timed. A problem without possible calls fails in its trials.
CallPattern pattern_of(const CallPattern& wanted, const Suite& suite, const Problem& problem,
                       const Contestant& contestant, Rig& rig, std::uint64_t seed) {
  CallPattern pattern = wanted;
  if (!pattern.is_timed) {
    return pattern;
  }
  const bool is_baseline = pattern.baseline == nullptr || pattern.baseline == &contestant;
  try {
    pattern.calls_per_sample =
        wanted.calls_of ? wanted.calls_of(problem)
                        : estimated_calls(problem, suite.distributions.front(), is_baseline ? nullptr : &contestant,
                                          is_baseline ? contestant : *pattern.baseline, rig, Environment(),
                                          derive_seed(seed, "estimate"));
  } catch (const Error&) {
    pattern.calls_per_sample = 1;
  }
  return pattern;
}

}  // namespace

GateResult judge_correctness(const Suite& suite, const Contestant& contestant, Rig& rig, std::uint64_t seed,
                             const std::function<void(std::size_t, std::size_t)>& each, const CallPattern& wanted) {
  GateResult gate{GateKind::correct, Outcome::passed, ""};
  CorrectEvidence evidence;
  double worst_ratio = 0;
  std::vector<double> folding_errors;
  const Maker maker{rig.device().kind(), contestant.numerics()};
  const std::size_t total = suite.problems.size() * suite.distributions.size();
  std::size_t number = 0;
  for (const Problem& problem : suite.problems) {
    const CallPattern asked = beside(wanted, problem);
    const CallPattern as_timed = pattern_of(asked, suite, problem, contestant, rig, seed);
    const Distribution drawn = drawn_distribution(suite, problem, seed);
    for (const Distribution distribution : suite.distributions) {
      each(number++, total);
      if (gate.outcome == Outcome::failed || !problem.operation().offers(problem, distribution)) {
        continue;
      }
      const bool is_as_timed = distribution == suite.distributions.front() || distribution == drawn;
      evidence.trials.push_back(run_trial(make_trial(problem, distribution, maker, seed), contestant, rig,
                                          is_as_timed ? as_timed : CallPattern{.baseline = asked.baseline}));
      const TrialResult& result = evidence.trials.back();
      if (const auto& error = result.finding.error_against_exact) {
        folding_errors.push_back(*error);
      }
      worst_ratio = std::max(worst_ratio, result.finding.worst_ratio);
      if (!result.finding.correct) {
        gate.outcome = Outcome::failed;
        gate.sentence = fmt::format("{}: {} on {} with {} inputs (seed {})", result.finding.fault,
                                    result.finding.sentence, result.problem, result.distribution, seed);
      }
    }
  }
  if (gate.outcome == Outcome::passed) {
    gate.sentence = fmt::format("{} trials; the worst error is {:.0f} % of what is allowed (seed {})",
                                evidence.trials.size(), 100 * worst_ratio, seed);
    if (!folding_errors.empty()) {
      gate.sentence += fmt::format(
          "; judged on the quantized operands of numerics fast, in the median trial {:.1f} % of the norm from the "
          "exact",
          100 * median(folding_errors));
    }
  }
  evidence.confined = contestant.confined();
  if (const std::string missing = evidence.confined.missing(); !missing.empty()) {
    gate.sentence += fmt::format("; its process was not wholly confined ({})", missing);
  }
  evidence.seed = seed;
  evidence.numerics = maker.numerics;
  gate.evidence = std::move(evidence);
  return gate;
}

}  // namespace thresher::arena
