#include "arena/user_kernels/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "arena/user_kernels/wire.hpp"
#include "thresher/error.hpp"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace thresher::arena::user_kernels {
namespace {

using Moment = std::chrono::steady_clock::time_point;

double seconds_until(Moment moment) {
  return std::chrono::duration<double>(moment - std::chrono::steady_clock::now()).count();
}

/// The worker's standard output goes where its errors go: what a kernel prints is nobody's answer.
pid_t spawn(const std::vector<std::string>& command, int line) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, line, worker_descriptor);
  pid_t child = -1;
  const int failed = command.empty() ? ENOENT : ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? child : -1;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command, const nlohmann::json& request) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(ErrorCode::io, "no socket could be opened for a kernel's process: close some files");
  }
  line_ = ends[0];
  child_ = spawn(command, ends[1]);
  ::close(ends[1]);
  if (child_ < 0) {
    ::close(line_);
    throw Error(ErrorCode::io, "the process for a kernel from outside could not be started: use the command thresher");
  }
  const std::string text = line_of(request);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(line_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) {
      break;  // it has ended: `next` will say how
    }
    sent += static_cast<std::size_t>(count);
  }
}

WorkerProcess::~WorkerProcess() {
  if (child_ >= 0) {
    end(true, "");
  }
  ::close(line_);
}

std::optional<nlohmann::json> WorkerProcess::next(double limit_s) {
  const Moment until =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(limit_s));
  for (;;) {
    if (const std::size_t length = received_.find('\n'); length != std::string::npos) {
      nlohmann::json message = nlohmann::json::parse(received_.substr(0, length), nullptr, false);
      received_.erase(0, length + 1);
      if (message.is_object()) {
        return message;
      }
      continue;
    }
    if (child_ < 0) {
      return std::nullopt;
    }
    pollfd waited{line_, POLLIN, 0};
    const double left_s = seconds_until(until);
    const int ready = ::poll(&waited, 1, left_s <= 0 ? 0 : static_cast<int>(std::min(left_s * 1e3 + 1, 1e9)));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready == 0) {
      end(true, fmt::format("gave no sign of life for {:g} s and was killed", limit_s));
      return std::nullopt;
    }
    std::array<char, 1 << 14> buffer{};
    const ssize_t count = ::read(line_, buffer.data(), buffer.size());
    if (count > 0) {
      received_.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      end(false, "");
    }
  }
}

void WorkerProcess::end(bool kill_it, const std::string& why) {
  if (kill_it) {
    ::kill(child_, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  how_it_ended_ = !why.empty() ? why
                  : WIFSIGNALED(status)
                      ? fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                      : fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace thresher::arena::user_kernels
