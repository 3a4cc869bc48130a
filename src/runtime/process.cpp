#include "runtime/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "runtime/forked.hpp"
#include "thresher/error.hpp"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

/// Standard output and error of one program.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw Error(ErrorCode::io, "no pipe could be opened: close some files");
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends_[0]);
    close_writer();
  }
  [[nodiscard]] int reader() const { return ends_[0]; }
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) {
      ::close(ends_[1]);
      ends_[1] = -1;
    }
  }
  /// Appends the available output to `text`. False at the end.
  bool read_some(std::string& text) {
    std::array<char, 1 << 16> buffer{};
    const ssize_t got = ::read(ends_[0], buffer.data(), buffer.size());
    text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return got > 0 || (got < 0 && errno == EINTR);
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// In a child: waits for one byte, which cancels the removal, or for the line to close.
[[noreturn]] void keep(int line, const char* folder) noexcept {
  leave_session_and_block_signals();
  close_all_but(std::array{line});
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(line, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got == 0) {
    ::execl("/bin/rm", "rm", "-rf", "--", folder, nullptr);
  }
  ::_exit(0);
}

}  // namespace

std::string ProcessOutput::line_with(const std::string& word) const {
  const std::size_t found = text.find(word);
  const std::size_t before = found == std::string::npos || found == 0 ? std::string::npos : text.rfind('\n', found - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

ProcessOutput run_process(const fs::path& program, const std::vector<std::string>& arguments) {
  Pipe pipe;
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe.writer(), STDERR_FILENO);
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  pid_t child = -1;
  const int failed = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw Error(ErrorCode::io, program.string() + " could not be started: check that it may be executed");
  }
  ProcessOutput output;
  pipe.close_writer();
  while (pipe.read_some(output.text)) {
  }
  ::waitpid(child, &output.status, 0);
  return output;
}

ProcessOutput run_process(Command command, const ProcessLimits& limits) {
  using Clock = std::chrono::steady_clock;
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.time_s));
  Pipe pipe;
  command.output = pipe.writer();
  ProcessTree tree(command);
  pipe.close_writer();
  ProcessOutput output;
  output.confined = tree.confined();
  for (;;) {
    const double left_ms = std::chrono::duration<double, std::milli>(until - Clock::now()).count();
    pollfd waited{pipe.reader(), POLLIN, 0};
    const int ready = left_ms <= 0 ? 0 : ::poll(&waited, 1, static_cast<int>(std::min(std::ceil(left_ms), 1e9)));
    if (ready == 0) {
      output.stopped_because = "it took longer than " + std::to_string(std::lround(limits.time_s)) + " s";
      break;
    }
    if (ready > 0 && !pipe.read_some(output.text)) {
      break;  // all processes that could print have ended
    }
    if (output.text.size() > limits.output_bytes) {
      output.text.resize(limits.output_bytes);
      output.stopped_because = "it printed more than " + std::to_string(limits.output_bytes) + " bytes";
      break;
    }
  }
  const double left_s = std::chrono::duration<double>(until - Clock::now()).count();
  const std::optional<Ending> ending = output.stopped_because.empty() ? tree.wait(std::max(left_s, 0.0)) : std::nullopt;
  if (!ending && output.stopped_because.empty()) {
    output.stopped_because = "it took longer than " + std::to_string(std::lround(limits.time_s)) + " s";
  }
  output.status = tree.end().status;
  return output;
}

TemporaryFolder::TemporaryFolder() {
  std::error_code missing;
  const fs::path parent = fs::temp_directory_path(missing);
  std::string pattern = (parent / "thresher-XXXXXX").string();
  if (missing || ::mkdtemp(pattern.data()) == nullptr) {
    throw Error(ErrorCode::io, "no folder could be made in " +
                                   (missing ? std::string("the folder for temporary files") : parent.string()) +
                                   ": set TMPDIR to one that can be written");
  }
  path_ = pattern;
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
    keeper_ = ::fork();
    if (keeper_ == 0) {
      keep(ends[0], path_.c_str());
    }
    ::close(ends[0]);
    line_ = ends[1];
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (keeper_ > 0) {
    (void)!::write(line_, "", 1);
    while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (line_ >= 0) {
    ::close(line_);
  }
}

}  // namespace thresher::runtime
