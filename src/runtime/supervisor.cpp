#include "runtime/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/forked.hpp"
#include "runtime/process_table.hpp"

namespace thresher::runtime {
namespace {

using Processes = std::array<pid_t, 1024>;

void doze() noexcept {
  constexpr timespec a_moment{0, 200'000};
  ::nanosleep(&a_moment, nullptr);
}

/// Moves descriptors to their numbers: first all out of the way, since one may have another's number.
bool place_descriptors(const SupervisedProgram& program) noexcept {
  constexpr int out_of_the_way = 200;
  std::array<std::pair<int, int>, 32> moved{};
  std::size_t count = 0;
  const auto move = [&](int from, int to) {
    const int away = count < moved.size() ? ::fcntl(from, F_DUPFD_CLOEXEC, out_of_the_way) : -1;
    if (away >= 0) {
      moved[count++] = {away, to};
    }
    return away >= 0;
  };
  const int output = program.output < 0 ? program.null : program.output;
  bool all = move(program.null, STDIN_FILENO) && move(output, STDOUT_FILENO) && move(output, STDERR_FILENO);
  for (const auto& [from, to] : program.descriptors) {
    all = all && move(from, to);
  }
  for (std::size_t i = 0; all && i < count; ++i) {
    all = ::dup2(moved[i].first, moved[i].second) >= 0;
  }
  return all;
}

/// The child's message before it execs; a successful exec closes the pipe.
struct Word {
  int failed = 0;
  PreparedConfinement::Outcome outcome{};
};

[[noreturn]] void become(const SupervisedProgram& program, int pipe, pid_t supervisor) noexcept {
  constexpr int above_all_places = 100;
  Word word;
  const int line = ::fcntl(pipe, F_DUPFD_CLOEXEC, above_all_places);
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) {
    ::_exit(127);
  }
  if (!place_descriptors(program) || (program.folder != nullptr && ::chdir(program.folder) != 0)) {
    word.failed = errno;
  } else {
    if (program.confinement != nullptr) {
      word.outcome = program.confinement->apply();
    }
    (void)!::write(line, &word, sizeof word);
    sigset_t none{};
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(program.path, program.arguments, program.environment);
    word.failed = errno;
  }
  (void)!::write(line, &word, sizeof word);
  ::_exit(127);
}

class Supervisor {
 public:
  explicit Supervisor(const SupervisedProgram& program) noexcept : program_(program) {}

  [[noreturn]] void live() noexcept {
    leave_session_and_block_signals();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    default_signals();
    close_all_but(program_.kept);
    start();
    sigset_t of_children{};
    ::sigemptyset(&of_children);
    ::sigaddset(&of_children, SIGCHLD);
    signals_ = ::signalfd(-1, &of_children, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
      wait_for_something();
    }
  }

 private:
  void start() noexcept {
    std::array<int, 2> pipe{-1, -1};
    const pid_t self = ::getpid();
    main_ = ::pipe2(pipe.data(), O_CLOEXEC) == 0 ? ::fork() : -1;
    if (main_ == 0) {
      become(program_, pipe[1], self);
    }
    SupervisorReport report{
        main_ < 0 ? SupervisorReport::Kind::failed : SupervisorReport::Kind::started, main_, errno, {}};
    ::close(pipe[1]);
    Word word;
    while (main_ > 0 && ::read(pipe[0], &word, sizeof word) == static_cast<ssize_t>(sizeof word)) {
      report.outcome = word.outcome;
      if (word.failed != 0) {
        report.kind = SupervisorReport::Kind::failed;
        report.value = word.failed;
      }
    }
    ::close(pipe[0]);
    // Only the program holds its descriptors now, so that their other ends notice when it ends.
    const std::array only_the_line{program_.line};
    close_all_but(only_the_line);
    say(report);
    if (report.kind == SupervisorReport::Kind::failed) {
      ::_exit(1);
    }
  }

  void say(const SupervisorReport& report) noexcept {
    (void)::send(program_.line, &report, sizeof report, MSG_NOSIGNAL);
  }

  void wait_for_something() noexcept {
    std::array<pollfd, 2> waited{pollfd{program_.line, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
    if (::poll(waited.data(), waited.size(), -1) < 0) {
      return;
    }
    if (waited[1].revents != 0) {
      signalfd_siginfo unread{};
      while (::read(signals_, &unread, sizeof unread) > 0) {
      }
      finish_what_has_ended();
      reap_adopted();
    }
    if (waited[0].revents != 0) {
      SupervisorRequest asked;
      const ssize_t got = ::recv(program_.line, &asked, sizeof asked, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
      }
      obey(got == static_cast<ssize_t>(sizeof asked) ? asked : SupervisorRequest{SupervisorRequest::Kind::end, main_});
    }
  }

  void obey(const SupervisorRequest& request) noexcept {
    if (request.kind == SupervisorRequest::Kind::watch) {
      watch(request.program);
    } else if (request.program == main_) {
      switch (request.kind) {
        case SupervisorRequest::Kind::freeze: freeze(); break;
        case SupervisorRequest::Kind::thaw: to_all(SIGCONT); break;
        default: finish(); break;
      }
    }
  }

  void watch(pid_t copy) noexcept {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(copy), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      say({SupervisorReport::Kind::ended, copy, SIGKILL, {}});  // it was reaped before it was watched
      return;
    }
    template_ = std::exchange(main_, copy);
    say({SupervisorReport::Kind::started, copy, 0, {}});
    finish_what_has_ended();
  }

  void finish_what_has_ended() noexcept {
    while (has_ended()) {
      finish();
    }
  }

  /// Checks without reaping: as long as it is a zombie, no other process or group gets its number.
  [[nodiscard]] bool has_ended() const noexcept {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(main_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == main_;
  }

  void reap_adopted() noexcept {
    Processes children{};
    const std::size_t count = children_of_caller(children);
    for (const pid_t child : std::span(children).first(count)) {
      if (child != main_ && child != template_) {
        ::waitpid(child, nullptr, WNOHANG);
      }
    }
  }

  /// The group first, and then the processes that have left it.
  void to_all(int signal) noexcept {
    ::kill(-main_, signal);
    Processes others{};
    const std::size_t count = descendants_of(::getpid(), others);
    for (const pid_t other : std::span(others).first(count)) {
      if (other != main_ && other != template_ && ::getpgid(other) != main_) {
        ::kill(other, signal);
      }
    }
  }

  void freeze() noexcept {
    to_all(SIGSTOP);
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(main_), &info, WSTOPPED | WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    if (info.si_code != CLD_STOPPED) {
      finish_what_has_ended();
      return;
    }
    while (!others_are_stopped()) {
      to_all(SIGSTOP);  // again, for a process that was just being forked
      doze();
    }
    say({SupervisorReport::Kind::frozen, main_, 0, {}});
  }

  [[nodiscard]] bool others_are_stopped() const noexcept {
    Processes others{};
    const std::size_t count = descendants_of(::getpid(), others);
    const auto list = std::span(others).first(count);
    return std::all_of(list.begin(), list.end(), [&](pid_t other) { return other == template_ || is_stopped(other); });
  }

  /// Kills until only a template is left, and reports how the program ended. Without a template the supervisor ends.
  void finish() noexcept {
    ::kill(-main_, SIGKILL);
    int status = 0;
    while (::waitpid(main_, &status, 0) < 0 && errno == EINTR) {
    }
    for (Killed killed = kill_others(); killed.all > 0; killed = kill_others()) {
      if (killed.reaped == 0) {
        doze();
      }
    }
    say({SupervisorReport::Kind::ended, main_, status, {}});
    if (template_ < 0) {
      ::_exit(0);
    }
    main_ = std::exchange(template_, -1);
  }

  /// The children without the template.
  struct Killed {
    std::size_t all = 0;
    std::size_t reaped = 0;
  };
  [[nodiscard]] Killed kill_others() const noexcept {
    Processes children{};
    const std::size_t count = children_of_caller(children);
    Killed killed;
    for (const pid_t child : std::span(children).first(count)) {
      if (child != template_) {
        ++killed.all;
        ::kill(child, SIGKILL);  // an unreaped child keeps its number
        killed.reaped += ::waitpid(child, nullptr, WNOHANG) > 0 ? 1 : 0;
      }
    }
    return killed;
  }

  SupervisedProgram program_;
  pid_t main_ = -1;
  pid_t template_ = -1;  ///< it forked `main_`
  int signals_ = -1;
};

}  // namespace

void supervise(const SupervisedProgram& program) noexcept { Supervisor(program).live(); }

}  // namespace thresher::runtime
