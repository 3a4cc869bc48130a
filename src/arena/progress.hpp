#pragma once
/// Progress for people: a bar with the time left on a terminal, plain lines when piped.
#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace thresher::arena {

class Progress {
 public:
  /// `columns` returns the width of the terminal before every drawing; empty: no terminal. `now_s` is for tests. A null
  /// `out` prints nothing.
  Progress(std::FILE* out, std::function<std::size_t()> columns, std::function<double()> now_s);
  /// Standard error, with a bar if that is a terminal.
  static Progress on_standard_error();
  static Progress silent();

  /// Expects `count` more pieces of work of one kind, each estimated at `seconds` until some are done.
  void expect(const std::string& kind, std::size_t count, double seconds_each);
  /// Corrects the number of remaining pieces of this kind to `count`.
  void leave(const std::string& kind, std::size_t count);
  [[nodiscard]] std::size_t left(const std::string& kind) const;
  void begin(const std::string& kind, const std::string& what);
  void end();
  /// Also reports every `begin` and `end` to a listener.
  void tell(std::function<void(const std::string& kind, const std::string& what)> begun, std::function<void()> ended);
  /// Prints a line that stays.
  void say(const std::string& line);

  [[nodiscard]] double seconds_left() const;
  /// Share of the expected time that is done, 0 to 1.
  [[nodiscard]] double share_done() const;

 private:
  struct Kind {
    std::size_t left = 0;
    std::size_t done = 0;
    double done_s = 0;
    double guess_s = 0;
    [[nodiscard]] double each_s() const { return done > 0 ? done_s / static_cast<double>(done) : guess_s; }
  };
  void draw(const std::string& what, bool is_new);
  void wipe();

  std::FILE* out_;
  std::function<std::size_t()> columns_;
  std::function<double()> now_s_;
  std::function<void(const std::string&, const std::string&)> begun_;
  std::function<void()> ended_;
  std::map<std::string, Kind> kinds_;
  std::string kind_;  ///< under way; empty between pieces
  double start_s_ = 0;
  double piece_start_s_ = 0;
  double drawn_s_ = -1e9;
  bool bar_stands_ = false;
};

/// "45 s", "3 min 20 s".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace thresher::arena
