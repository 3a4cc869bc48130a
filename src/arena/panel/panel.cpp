#include "arena/panel/panel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "arena/operation/operation.hpp"

namespace thresher::arena {
namespace {

/// The error of a ratio of two predictions for one problem, whose errors largely cancel.
constexpr double prediction_error = 0.10;
/// A pitch with this many days of work counts as twice the risk.
constexpr double long_days = 10;
/// This speed-up gives a full score.
constexpr double full_score_speedup = 2.0;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

double risk_score(const PitchCost& cost) {
  const std::string risk = lower(cost.risk);
  double score = risk.starts_with("low") ? 1.0 : risk.starts_with("high") ? 0.0 : 0.5;
  return cost.days && *cost.days >= long_days ? score / 2 : score;
}

/// The credibility of the number: a calibrated card, a named part, and a claim that agrees with the prediction.
double evidence_score(const PitchScore& opinion, bool calibrated) {
  double score = opinion.predicted_speedup ? (calibrated ? 0.6 : 0.3) : 0.0;
  score += opinion.touched_share ? 0.2 : 0.0;
  const bool agrees = opinion.predicted_speedup && opinion.claimed_low <= opinion.predicted_high &&
                      opinion.claimed_high >= opinion.predicted_low;
  return score + (agrees ? 0.2 : 0.0);
}

struct Gathered {
  std::vector<double> speedups;
  std::vector<double> touched;
  bool is_unknown = false;           ///< the planner cannot describe the kernel, which is no reason against the pitch
  std::size_t of_other_formats = 0;  ///< problems whose formats the contestant or its baseline does not support
};

Gathered gather(const Pitch& pitch, std::span<const Problem> problems, const DeviceSpec& device,
                const planner::Calibration& calibration, PitchScore& opinion) {
  Gathered evidence;
  evidence.is_unknown = pitch.kernel.has_value();
  for (const Problem& problem : problems) {
    if (problem.operation().name() != pitch.contestant.operation) {
      continue;
    }
    ++opinion.problems;
    if (pitch.kernel) {
      opinion.infeasible_reasons = {"the planner has no model of user kernels"};
      continue;
    }
    const Operation& operation = problem.operation();
    const PlannerResult after = operation.outlook(problem, pitch.contestant, device, calibration);
    const PlannerResult before = operation.outlook(problem, pitch.baseline, device, calibration);
    evidence.is_unknown = evidence.is_unknown || after.is_unknown || before.is_unknown;
    if (!after.infeasible_reasons.empty() || !before.infeasible_reasons.empty()) {
      evidence.of_other_formats += after.is_for_other_formats || before.is_for_other_formats ? 1 : 0;
      if (opinion.infeasible_reasons.empty()) {
        opinion.infeasible_reasons =
            after.infeasible_reasons.empty() ? before.infeasible_reasons : after.infeasible_reasons;
      }
      continue;
    }
    ++opinion.feasible_problems;
    evidence.speedups.push_back(before.prediction.us() / after.prediction.us());
    if (const auto share = touched_share(pitch.claim.touches, before.prediction.parts)) {
      evidence.touched.push_back(*share);
    }
  }
  return evidence;
}

/// Adds the planner's error on both sides, and clamps at the pitch's upper limit.
void predict_speedup(double speedup, PitchScore& out) {
  const double most = out.max_possible.value_or(std::numeric_limits<double>::max());
  const double spread = 1 + prediction_error;
  out.predicted_speedup = std::min(speedup, most);
  out.predicted_low = *out.predicted_speedup / spread;
  out.predicted_high = std::min(*out.predicted_speedup * spread, most);
}

std::string reason_of(const PitchScore& opinion, const Pitch& pitch, const Gathered& evidence) {
  if (evidence.of_other_formats > 0 && evidence.of_other_formats == opinion.problems) {
    return fmt::format("not for these formats: {}", opinion.infeasible_reasons.front());
  }
  if (opinion.feasible_problems == 0 && !opinion.withdrawn && !opinion.infeasible_reasons.empty()) {
    return fmt::format("nothing is predicted: {}", opinion.infeasible_reasons.front());
  }
  if (opinion.feasible_problems == 0) {
    return fmt::format(
        "feasible on none of {} problems: {}", opinion.problems,
        opinion.infeasible_reasons.empty() ? "none is of its operation" : opinion.infeasible_reasons.front());
  }
  std::string out = fmt::format("{:.3g}× predicted where {:.3g} to {:.3g}× is claimed", *opinion.predicted_speedup,
                                opinion.claimed_low, opinion.claimed_high);
  if (opinion.touched_share && *opinion.max_possible < full_score_speedup) {
    out += fmt::format("; {} is {:.1f} % of the baseline's time, so {:.2f}× is the most it could give",
                       pitch.claim.touches, 100 * *opinion.touched_share, *opinion.max_possible);
  }
  if (opinion.withdrawn) {
    out += fmt::format("; under its own abort threshold of {:.1f} %: withdrawn",
                       100 * pitch.abort_below_share.value_or(0));
  }
  if (opinion.feasible_problems < opinion.problems) {
    out += fmt::format("; feasible on {} of {} problems", opinion.feasible_problems, opinion.problems);
  }
  return out;
}

}  // namespace

std::optional<double> touched_share(const std::string& touches, const planner::TimeParts& parts) {
  const std::string words = lower(touches);
  const std::array<std::pair<const char*, double>, 6> known{{{"epilogue", parts.epilogue_us},
                                                             {"launch", parts.launch_us},
                                                             {"fill", parts.fill_us},
                                                             {"main loop", parts.main_us},
                                                             {"exchange", parts.exchange_us},
                                                             {"passes", parts.passes_us}}};
  if (words.find("everything") != std::string::npos) {
    return 1.0;
  }
  double us = 0;
  bool named = false;
  for (const auto& [part, part_us] : known) {
    if (words.find(part) != std::string::npos) {
      named = true;
      us += part_us;
    }
  }
  return named ? std::optional(us / parts.total_us()) : std::nullopt;
}

PitchScore consider(const Pitch& pitch, std::span<const Problem> problems, const DeviceSpec& device,
                    const planner::Calibration& calibration, const PanelWeights& weights) {
  PitchScore out;
  out.pitch = pitch.title;
  out.claimed_low = pitch.claim.speedup_low;
  out.claimed_high = pitch.claim.speedup_high;
  const Gathered evidence = gather(pitch, problems, device, calibration, out);
  if (!evidence.touched.empty()) {
    out.touched_share = *std::max_element(evidence.touched.begin(), evidence.touched.end());
    out.max_possible = *out.touched_share < 1 ? 1 / (1 - *out.touched_share) : full_score_speedup * full_score_speedup;
  }
  if (!evidence.speedups.empty()) {
    predict_speedup(geometric_mean(evidence.speedups), out);
  }
  out.withdrawn = (out.feasible_problems == 0 && !evidence.is_unknown) ||
                  (pitch.abort_below_share && out.touched_share && *out.touched_share < *pitch.abort_below_share);
  const double gain = std::log(out.predicted_speedup.value_or(1.0)) / std::log(full_score_speedup);
  out.speedup_score = std::clamp(gain, 0.0, 1.0);
  out.feasibility_score =
      out.problems == 0 ? 0 : static_cast<double>(out.feasible_problems) / static_cast<double>(out.problems);
  out.risk_score = risk_score(pitch.cost);
  out.evidence_score = evidence_score(out, device.calibrated);
  out.score = weights.speedup * out.speedup_score + weights.feasibility * out.feasibility_score +
              weights.risk * out.risk_score + weights.evidence * out.evidence_score;
  out.reason = reason_of(out, pitch, evidence);
  return out;
}

std::vector<PitchScore> rank_pitches(std::vector<PitchScore> opinions) {
  std::stable_sort(opinions.begin(), opinions.end(), [](const PitchScore& a, const PitchScore& b) {
    return a.withdrawn != b.withdrawn ? b.withdrawn : a.score > b.score;
  });
  return opinions;
}

ForecastQuality quality_of(std::span<const Forecast> forecasts) {
  ForecastQuality out;
  constexpr double same = 0.02;
  const auto sign = [](double ratio) { return std::abs(std::log(ratio)) < same ? 0 : ratio > 1 ? 1 : -1; };
  for (const Forecast& forecast : forecasts) {
    const double middle = std::sqrt(forecast.low * forecast.high);
    ++out.count;
    out.sign_right += sign(middle) == sign(forecast.measured) || sign(forecast.measured) == 0 ? 1 : 0;
    out.mean_log_error += std::abs(std::log(middle / forecast.measured));
    out.covered += forecast.measured >= forecast.low && forecast.measured <= forecast.high ? 1 : 0;
  }
  if (out.count > 0) {
    const auto count = static_cast<double>(out.count);
    out.sign_right /= count;
    out.mean_log_error /= count;
    out.covered /= count;
  }
  return out;
}

}  // namespace thresher::arena
