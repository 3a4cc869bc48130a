#include "arena/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/printable.hpp"
#include "core/remark.hpp"

namespace thresher::arena {
namespace {

constexpr int bar_width = 24;
constexpr double redraw_s = 0.1;
constexpr double line_s = 5;  // between plain lines

/// For a terminal that does not report its width.
constexpr std::size_t usual_columns = 80;

std::size_t standard_error_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_columns;
}

double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(std::FILE* out, std::function<std::size_t()> columns, std::function<double()> now_s)
    : out_(out), columns_(std::move(columns)), now_s_(std::move(now_s)), start_s_(now_s_()) {}

Progress Progress::on_standard_error() {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  return {stderr, is_terminal ? standard_error_columns : std::function<std::size_t()>(), steady_now_s};
}
Progress Progress::silent() { return {nullptr, nullptr, steady_now_s}; }

void Progress::expect(const std::string& kind, std::size_t count, double seconds_each) {
  kinds_[kind].left += count;
  kinds_[kind].guess_s = seconds_each;
}

void Progress::leave(const std::string& kind, std::size_t count) { kinds_[kind].left = count; }

std::size_t Progress::left(const std::string& kind) const {
  const auto known = kinds_.find(kind);
  return known == kinds_.end() ? 0 : known->second.left;
}

void Progress::begin(const std::string& kind, const std::string& what) {
  kind_ = kind;
  piece_start_s_ = now_s_();
  draw(printable(kind + " " + what), kinds_[kind].done == 0);
  if (begun_) {
    begun_(kind, what);
  }
}

void Progress::end() {
  Kind& known = kinds_[kind_];
  known.left -= std::min<std::size_t>(known.left, 1);
  ++known.done;
  known.done_s += now_s_() - piece_start_s_;
  kind_.clear();
  if (ended_) {
    ended_();
  }
}

void Progress::tell(std::function<void(const std::string&, const std::string&)> begun, std::function<void()> ended) {
  begun_ = std::move(begun);
  ended_ = std::move(ended);
}

double Progress::seconds_left() const {
  double left_s = 0;
  for (const auto& [name, kind] : kinds_) {
    left_s += static_cast<double>(kind.left) * kind.each_s();
  }
  if (!kind_.empty()) {
    left_s -= std::min(now_s_() - piece_start_s_, kinds_.at(kind_).each_s());
  }
  return std::max(left_s, 0.0);
}

double Progress::share_done() const {
  const double used_s = now_s_() - start_s_;
  const double total_s = used_s + seconds_left();
  return total_s > 0 ? used_s / total_s : 0;
}

void Progress::draw(const std::string& what, bool is_new) {
  const double since_s = now_s_() - drawn_s_;
  if (out_ == nullptr || (!is_new && since_s < (columns_ ? redraw_s : line_s))) {
    return;
  }
  drawn_s_ = now_s_();
  const double share = share_done();
  const std::string line = fmt::format("{:3.0f} %  {} left  {}", 100 * share, duration_text(seconds_left()), what);
  if (columns_) {
    const int filled = static_cast<int>(std::lround(share * bar_width));
    const std::string bar = fmt::format("[{:=<{}}{: <{}}] {}", "", filled, "", bar_width - filled, line);
    // A text that reaches the last column may wrap into a new line, which would stay behind.
    print_note(out_, fmt::format("\r\x1b[K{}", first_columns(bar, columns_() - 1)));
    bar_stands_ = true;
  } else {
    print_note(out_, line + "\n");
  }
}

void Progress::wipe() {
  if (bar_stands_) {
    print_note(out_, "\r\x1b[K");
    bar_stands_ = false;
  }
}

void Progress::say(const std::string& line) {
  if (out_ != nullptr) {
    wipe();
    print_note(out_, printable(line) + "\n");
  }
}

std::string duration_text(double seconds) {
  const auto whole = std::lround(std::ceil(seconds));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace thresher::arena
