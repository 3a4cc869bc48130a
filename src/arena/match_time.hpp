#pragma once
/// How long a match may take, and how much of that its contestant's own process took, by a clock that is handed in.
#include <functional>
#include <stdexcept>
#include <string>

namespace thresher::arena {

/// Ends a match, whoever is at work. It is no Error, which would be held against whoever is asked just then.
class MatchOver : public std::runtime_error {
 public:
  MatchOver(const std::string& sentence, bool is_contestants)
      : std::runtime_error(sentence), is_contestants_(is_contestants) {}
  /// Whether it is the contestant's doing, whose process took more than half of the time.
  [[nodiscard]] bool is_contestants() const { return is_contestants_; }

 private:
  bool is_contestants_;
};

class MatchTime {
 public:
  /// `now_s`: seconds since some moment, never decreasing.
  explicit MatchTime(std::function<double()> now_s) : now_s_(std::move(now_s)) {}

  /// A match begins, which may take so long; 0: as long as it likes.
  void begin(double limit_s);
  [[nodiscard]] double now_s() const { return now_s_(); }
  [[nodiscard]] bool is_over() const;
  /// Infinite without a limit.
  [[nodiscard]] double left_s() const;
  /// Throws MatchOver when the time is over.
  void check() const;
  void add_contestants(double seconds) { contestants_s_ += seconds; }

 private:
  std::function<double()> now_s_;
  double begun_s_ = 0;
  double limit_s_ = 0;
  double contestants_s_ = 0;
};

/// What a match with a kernel from outside may take where the host names no limit: several times what one takes that is
/// timed for so many seconds on each problem, and judged in so many trials of correctness.
[[nodiscard]] double usual_match_s(double seconds, std::size_t timed_problems, std::size_t trials);

}  // namespace thresher::arena
