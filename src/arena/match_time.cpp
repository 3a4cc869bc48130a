#include "arena/match_time.hpp"

#include <fmt/format.h>

#include <limits>

namespace thresher::arena {

void MatchTime::begin(double limit_s) {
  begun_s_ = now_s_();
  limit_s_ = limit_s;
  contestants_s_ = 0;
}

double MatchTime::left_s() const {
  return limit_s_ > 0 ? begun_s_ + limit_s_ - now_s_() : std::numeric_limits<double>::infinity();
}

bool MatchTime::is_over() const { return left_s() <= 0; }

void MatchTime::check() const {
  if (!is_over()) {
    return;
  }
  const bool is_contestants = contestants_s_ > limit_s_ / 2;
  throw MatchOver(
      fmt::format("the match took longer than the {:g} s that it may (--match-seconds), {:.3g} s of them in the "
                  "contestant's process",
                  limit_s_, contestants_s_),
      is_contestants);
}

double usual_match_s(double seconds, std::size_t timed_problems, std::size_t trials) {
  constexpr double before_any_trial_s = 600;
  constexpr double each_trial_s = 60;
  constexpr double each_second_s = 20;
  return before_any_trial_s + each_trial_s * static_cast<double>(trials) +
         each_second_s * seconds * static_cast<double>(timed_problems);
}

}  // namespace thresher::arena
