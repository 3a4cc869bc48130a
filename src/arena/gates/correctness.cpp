#include "arena/gates/correctness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "arena/random.hpp"
#include "arena/timing/statistics.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::int64_t tile_side = 64;

/// Outputs of one call, in the order of Operation::outputs.
using Outputs = std::vector<HostTensor>;

Outputs download(const DeviceSet& set, const Outputs& shapes) {
  Outputs outputs = shapes;
  for (HostTensor& output : outputs) {
    output.values = set.download(output.name);
  }
  return outputs;
}

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

/// Elements that hold the poison of both calls were not written by either.
std::optional<Finding> find_unwritten(const Outputs& first, const Outputs& last) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Grid grid(first[i]);
    std::int64_t unwritten = 0;
    std::int64_t where = -1;
    for (std::int64_t element = 0; element < grid.rows * grid.columns; ++element) {
      const std::size_t offset = static_cast<std::size_t>(element) * grid.element_bytes;
      if (is_poison(&first[i].values[offset], grid.element_bytes, first_poison) &&
          is_poison(&last[i].values[offset], grid.element_bytes, second_poison)) {
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

/// The same inputs gave other bits the second time; poison left in place was found before.
std::optional<Finding> find_difference(const Outputs& first, const Outputs& last) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Grid grid(first[i]);
    const auto [one, other] = std::mismatch(first[i].values.begin(), first[i].values.end(), last[i].values.begin());
    if (one != first[i].values.end()) {
      const std::int64_t element = (one - first[i].values.begin()) / static_cast<std::int64_t>(grid.element_bytes);
      return fault("differs from run to run",
                   fmt::format("{} differs between two runs on the same inputs, first at [{}, {}]", first[i].name,
                               element / grid.columns, element % grid.columns));
    }
  }
  return std::nullopt;
}

/// Whether one tile of `now` is, element for element, what the call before left in its place; a tile of one value
/// repeated says nothing.
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

/// A tile that still holds the outputs of the call before, which had other inputs.
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

std::optional<Finding> find_damage(const std::vector<DeviceSet>& sets, const Runner& runner) {
  std::vector<std::string> sentences = runner.guard_damage();
  for (const DeviceSet& set : sets) {
    const std::vector<std::string> more = set.guard_damage();
    sentences.insert(sentences.end(), more.begin(), more.end());
  }
  if (sentences.empty()) {
    return std::nullopt;
  }
  const bool past = sentences.front().find("past the end") != std::string::npos;
  return fault(past ? "write past the end" : "write before the beginning", sentences.front());
}

std::optional<Finding> find_changed_inputs(const Trial& trial, const std::vector<DeviceSet>& sets) {
  std::vector<std::string> changed = sets[0].changed_inputs(trial.inputs);
  const std::vector<std::string> more = sets[1].changed_inputs(trial.other_inputs);
  changed.insert(changed.end(), more.begin(), more.end());
  return changed.empty() ? std::nullopt
                         : std::optional(fault("input changed", "its input " + changed.front() + " was written to"));
}

/// The judge's finding on a call, and its name made more precise where the call before, on other inputs, explains it.
Finding judge_after(const Trial& trial, const Outputs& before, const Outputs& now) {
  Finding finding = trial.judge->judge(now);
  if (finding.fault == wrong_values || finding.fault == one_tile_wrong) {
    if (const auto stale = find_stale_tile(now, before)) {
      finding.fault = stale->fault;
      finding.sentence = stale->sentence + "; " + finding.sentence;
    }
  }
  return finding;
}

Finding judge_later(const Trial& trial, const Outputs& later) {
  Finding finding = trial.judge->judge(later);
  if (!finding.correct) {
    finding.fault = "right at first, wrong later";
    finding.sentence = "a second call on the same inputs was wrong; " + finding.sentence;
  }
  return finding;
}

Finding run_and_judge(const Trial& trial, const Contestant& contestant, Rig& own) {
  Rig& rig = contestant.rig(own);
  const Outputs shapes = trial.problem.operation().outputs(trial.problem);
  std::vector<DeviceSet> sets;
  sets.emplace_back(rig.memory(), trial.inputs, shapes);
  sets.emplace_back(rig.memory(), trial.other_inputs, shapes);
  const std::unique_ptr<Runner> runner = contestant.prepare(trial.problem, rig.memory(), sets);
  const auto call = [&](std::size_t set, std::uint8_t poison) {
    sets[set].poison_outputs(poison);
    runner->run(rig.stream(), set);
    rig.wait();
    return download(sets[set], shapes);
  };
  const Outputs other = call(1, first_poison);
  const Outputs first = call(0, first_poison);
  const Outputs later = call(0, second_poison);
  if (auto found = find_damage(sets, *runner)) {
    return *found;
  }
  if (auto found = find_changed_inputs(trial, sets)) {
    return *found;
  }
  if (auto found = find_unwritten(first, later)) {
    return *found;
  }
  if (Finding finding = judge_after(trial, other, first); !finding.correct) {
    return finding;
  }
  Finding finding = judge_later(trial, later);
  if (finding.correct) {
    if (auto found = find_difference(first, later)) {
      return *found;
    }
  }
  return finding;
}

}  // namespace

Trial make_trial(const Problem& problem, Distribution distribution, const Maker& maker, std::uint64_t seed) {
  const Operation& operation = problem.operation();
  auto inputs = operation.inputs(problem, distribution, seed);
  auto judge = operation.judge(problem, distribution, inputs, maker, derive_seed(seed, "judged elements"));
  return {problem, distribution, std::move(inputs),
          operation.inputs(problem, distribution, derive_seed(seed, "other inputs")), std::move(judge)};
}

TrialResult run_trial(const Trial& trial, const Contestant& contestant, Rig& rig) {
  TrialResult result{label(trial.problem), std::string(name(trial.distribution)), {}};
  try {
    result.finding = run_and_judge(trial, contestant, rig);
  } catch (const Error& error) {
    result.finding = fault("an error", error.what());
  }
  return result;
}

GateResult judge_correctness(const Suite& suite, const Contestant& contestant, Rig& rig, std::uint64_t seed,
                             const std::function<void(std::size_t, std::size_t)>& each) {
  GateResult gate{GateKind::correct, Outcome::passed, ""};
  CorrectEvidence evidence;
  double worst_ratio = 0;
  std::vector<double> folding_errors;
  const Maker maker{rig.device().kind(), contestant.numerics()};
  const std::size_t total = suite.problems.size() * suite.distributions.size();
  std::size_t number = 0;
  for (const Problem& problem : suite.problems) {
    for (const Distribution distribution : suite.distributions) {
      each(number++, total);
      if (gate.outcome == Outcome::failed || !problem.operation().offers(problem, distribution)) {
        continue;
      }
      evidence.trials.push_back(run_trial(make_trial(problem, distribution, maker, seed), contestant, rig));
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
          "; judged on the folded operands of numerics fast, in the median trial {:.1f} % of the norm from the exact",
          100 * median(folding_errors));
    }
  }
  evidence.seed = seed;
  evidence.numerics = maker.numerics;
  gate.evidence = std::move(evidence);
  return gate;
}

}  // namespace thresher::arena
