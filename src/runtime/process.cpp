#include "runtime/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

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
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) {
      ::close(ends_[1]);
      ends_[1] = -1;
    }
  }
  std::string read_all() {
    close_writer();
    std::string text;
    std::array<char, 1 << 16> buffer{};
    for (ssize_t got = 0; (got = ::read(ends_[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

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
  output.text = pipe.read_all();
  ::waitpid(child, &output.status, 0);
  return output;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "thresher-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Error(ErrorCode::io, "no folder could be made in " + fs::temp_directory_path().string() + ": set TMPDIR");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace thresher::runtime
