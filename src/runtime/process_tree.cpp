#include "runtime/process_tree.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "runtime/supervisor.hpp"
#include "thresher/error.hpp"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Of this process, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  [[nodiscard]] int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) {
    list.push_back(text.data());
  }
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment_of(const Command& command) {
  if (command.environment) {
    return *command.environment;
  }
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

[[noreturn]] void fail_to_start(const std::string& program, const std::string& why) {
  throw Error(ErrorCode::io, program + " could not be started: " + why);
}

}  // namespace

std::filesystem::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? fs::path(name) : fs::path();
  }
  const char* const variable = std::getenv("PATH");
  for (std::string_view rest = variable == nullptr ? "" : variable; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, colon)) / name;
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return {};
}

std::string Ending::sentence() const {
  if (!WIFSIGNALED(status)) {
    return "ended with status " + std::to_string(WEXITSTATUS(status));
  }
  return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
}

ProcessTree::ProcessTree(const Command& command) {
  const std::string name = command.words.empty() ? "a program" : command.words.front();
  if (command.confinement && !command.confinement->may_exec) {
    throw Error(ErrorCode::internal, name + " cannot be started in a confinement that starts no programs");
  }
  const fs::path program = command.words.empty() ? fs::path() : find_program(command.words.front());
  if (program.empty()) {
    fail_to_start(name, "there is no such program that may be executed");
  }
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail_to_start(name, "no socket could be opened, close some files");
  }
  Descriptor here(ends[0]);
  const Descriptor there(ends[1]);
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<std::string> words = command.words;
  std::vector<std::string> environment = environment_of(command);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> variables = pointers(environment);
  const std::unique_ptr<PreparedConfinement> confinement =
      command.confinement ? std::make_unique<PreparedConfinement>(*command.confinement) : nullptr;

  SupervisedProgram supervised;
  supervised.path = program.c_str();
  supervised.arguments = arguments.data();
  supervised.environment = variables.data();
  supervised.folder = command.folder.empty() ? nullptr : command.folder.c_str();
  supervised.line = there.number();
  supervised.null = null.number();
  supervised.output = command.output;
  supervised.descriptors = command.descriptors;
  supervised.confinement = confinement.get();
  std::vector<int> kept{there.number(), null.number(), command.output, confinement ? confinement->descriptor() : -1};
  for (const auto& entry : command.descriptors) {
    kept.push_back(entry.first);
  }
  kept.erase(std::remove_if(kept.begin(), kept.end(), [](int number) { return number < 0; }), kept.end());
  std::sort(kept.begin(), kept.end());
  supervised.kept = kept;

  supervisor_ = ::fork();
  if (supervisor_ == 0) {
    supervise(supervised);
  }
  if (supervisor_ < 0) {
    fail_to_start(name, "no process could be forked, end some");
  }
  line_ = here.release();
  Report report;
  while (::recv(line_, &report, sizeof report, 0) < 0 && errno == EINTR) {
  }
  if (report.kind != Report::Kind::started) {
    reap();
    ::close(line_);
    fail_to_start(name, report.value == 0 ? "its supervisor ended" : std::strerror(report.value));
  }
  program_ = report.program;
  if (confinement) {
    confined_ = confinement->report(report.outcome);
  }
}

ProcessTree::~ProcessTree() {
  (void)end();
  ::close(line_);
}

void ProcessTree::reap() {
  while (::waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ProcessTree::listen() {
  Report report;
  ssize_t got = 0;
  do {
    got = ::recv(line_, &report, sizeof report, 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof report) && report.kind == Report::Kind::frozen) {
    return true;
  }
  // A supervisor that somebody killed takes the program with it.
  ending_ = Ending{got == static_cast<ssize_t>(sizeof report) ? report.value : SIGKILL};
  reap();
  return false;
}

bool ProcessTree::ask(char request) const { return !ending_ && ::send(line_, &request, 1, MSG_NOSIGNAL) == 1; }

std::optional<Ending> ProcessTree::wait(double limit_s) {
  const Clock::time_point until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(limit_s, 1e9)));
  while (!ending_) {
    pollfd waited{line_, POLLIN, 0};
    const double left_ms = std::chrono::duration<double, std::milli>(until - Clock::now()).count();
    const int ready = ::poll(&waited, 1, static_cast<int>(std::clamp(std::ceil(left_ms), 0.0, 1e9)));
    if (ready == 0) {
      break;
    }
    if (ready > 0) {
      (void)listen();
    }
  }
  return ending_;
}

Ending ProcessTree::end() {
  (void)ask(static_cast<char>(Request::end));
  while (!ending_) {
    (void)listen();
  }
  return *ending_;
}

bool ProcessTree::freeze() { return ask(static_cast<char>(Request::freeze)) && listen(); }

void ProcessTree::thaw() { (void)ask(static_cast<char>(Request::thaw)); }

}  // namespace thresher::runtime
