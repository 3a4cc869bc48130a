#pragma once
/// The time limit of a match, and the share of its contestant's process, by a clock that the caller passes.
#include <functional>
#include <stdexcept>
#include <string>

namespace thresher::arena {

/// Ends a match. It is no Error, which would count against the contestant under test.
class MatchOver : public std::runtime_error {
 public:
  MatchOver(const std::string& sentence, bool is_contestants)
      : std::runtime_error(sentence), is_contestants_(is_contestants) {}
  /// Whether the contestant caused it: its process took more than half of the time.
  [[nodiscard]] bool is_contestants() const { return is_contestants_; }

 private:
  bool is_contestants_;
};

class MatchTime {
 public:
  /// `now_s`: seconds since some moment, never decreasing.
  explicit MatchTime(std::function<double()> now_s) : now_s_(std::move(now_s)) {}

  /// Begins a match with that limit; 0: none.
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

/// The default limit of a match with a user kernel. It is several times the time of a match with so many seconds of
/// timing per problem and so many trials of correctness.
[[nodiscard]] double usual_match_s(double seconds, std::size_t timed_problems, std::size_t trials);

}  // namespace thresher::arena
