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
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/supervisor.hpp"
#include "thresher/error.hpp"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A descriptor of this process, closed with the object.
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
  SupervisorReport report;
  while (::recv(line_, &report, sizeof report, 0) < 0 && errno == EINTR) {
  }
  if (report.kind != SupervisorReport::Kind::started) {
    reap();
    ::close(line_);
    fail_to_start(name, report.value == 0 ? "its supervisor ended" : std::strerror(report.value));
  }
  program_ = report.program;
  if (confinement) {
    confined_ = confinement->report(report.outcome);
    outcome_ = report.outcome;
  }
}

ProcessTree::ProcessTree(std::shared_ptr<ProcessTemplate> original, std::span<const std::pair<int, int>> descriptors)
    : original_(std::move(original)) {
  ProcessTree& tree = *original_->tree_;
  if (tree.ending_) {
    fail_to_start(original_->name_, "what it is copied from has ended");
  }
  ProcessTemplate::Copy copy = original_->copy(descriptors);
  line_ = tree.line_;
  program_ = copy.process;
  confined_ = std::move(copy.confined);
  if (!ask(static_cast<int>(SupervisorRequest::Kind::watch)) || !listen()) {
    fail_to_start(original_->name_, "its copy ended");
  }
}

ProcessTree::~ProcessTree() {
  (void)end();
  if (!original_) {
    ::close(line_);
  }
}

void ProcessTree::reap() {
  while (::waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ProcessTree::listen() {
  SupervisorReport report;
  ssize_t got = 0;
  do {
    got = ::recv(line_, &report, sizeof report, 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof report) && report.kind != SupervisorReport::Kind::ended) {
    return true;
  }
  // If the supervisor is killed, the program is killed too.
  const bool is_told = got == static_cast<ssize_t>(sizeof report);
  ending_ = Ending{is_told ? report.value : SIGKILL};
  if (!original_) {
    reap();
  } else if (!is_told) {
    original_->tree_->ending_ = ending_;
    original_->tree_->reap();
  }
  return false;
}

bool ProcessTree::ask(int request) const {
  const SupervisorRequest asked{static_cast<SupervisorRequest::Kind>(request), program_};
  return !ending_ && ::send(line_, &asked, sizeof asked, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof asked);
}

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
  (void)ask(static_cast<int>(SupervisorRequest::Kind::end));
  while (!ending_) {
    (void)listen();
  }
  return *ending_;
}

bool ProcessTree::freeze() { return ask(static_cast<int>(SupervisorRequest::Kind::freeze)) && listen(); }

void ProcessTree::thaw() { (void)ask(static_cast<int>(SupervisorRequest::Kind::thaw)); }

namespace {

constexpr std::size_t max_descriptors = 8;

/// One datagram with descriptors. False when it cannot be sent.
bool send_with(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg only reads it
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// One datagram of that length. False when none, or one of another length, arrives by the deadline.
template <class T>
bool receive(int socket, T& value, Clock::time_point until) {
  ssize_t got = 0;
  do {
    const double left_ms = std::chrono::duration<double, std::milli>(until - Clock::now()).count();
    pollfd waited{socket, POLLIN, 0};
    got = ::poll(&waited, 1, static_cast<int>(std::clamp(std::ceil(left_ms), 0.0, 1e9)));
    if (got > 0) {
      got = ::recv(socket, &value, sizeof value, 0);
    }
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof value);
}

}  // namespace

ProcessTemplate::ProcessTemplate(Command command, Confinement confinement, double ready_limit_s)
    : name_(command.words.empty() ? "a program" : command.words.front()),
      confinement_(std::move(confinement)),
      ready_limit_s_(ready_limit_s) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail_to_start(name_, "no socket could be opened, close some files");
  }
  Descriptor here(ends[0]);
  const Descriptor there(ends[1]);
  Confinement own = confinement_;
  own.is_template = own.may_fork = own.may_exec = true;
  command.confinement = std::move(own);
  command.descriptors = {{there.number(), line}};
  tree_ = std::make_unique<ProcessTree>(command);
  asked_ = here.release();
}

ProcessTemplate::~ProcessTemplate() { ::close(asked_); }

ProcessTemplate::Copy ProcessTemplate::copy(std::span<const std::pair<int, int>> descriptors) const {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail_to_start(name_, "no socket could be opened, close some files");
  }
  const Descriptor here(ends[0]);
  auto there = std::make_optional<Descriptor>(ends[1]);
  std::vector<int> handed{there->number()};
  std::vector<std::int32_t> places{static_cast<std::int32_t>(descriptors.size())};
  for (const auto& [from, to] : descriptors) {
    handed.push_back(from);
    places.push_back(to);
  }
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(ready_limit_s_));
  const bool is_asked = send_with(asked_, std::as_bytes(std::span(places)), handed);
  there.reset();  // so that the end of the copy is noticed
  std::int32_t process = -1;
  if (!is_asked || !receive(here.number(), process, until)) {
    fail_to_start(name_, "no copy of it came to be");
  }
  PreparedConfinement confinement(confinement_);
  const std::vector<sock_filter> filter = confinement.hand_to(process);
  const auto instructions = static_cast<std::uint32_t>(filter.size());
  std::vector<std::byte> bytes(sizeof instructions + filter.size() * sizeof(sock_filter));
  std::memcpy(bytes.data(), &instructions, sizeof instructions);
  std::memcpy(bytes.data() + sizeof instructions, filter.data(), filter.size() * sizeof(sock_filter));
  const std::array rules{confinement.descriptor()};
  std::array<std::int32_t, 3> failed{};
  if (!send_with(here.number(), bytes, rules.front() < 0 ? std::span<const int>() : rules) ||
      !receive(here.number(), failed, until)) {
    fail_to_start(name_, "its copy ended before it was confined");
  }
  const auto& [session, files, system_calls] = failed;
  return {process,
          confinement.report(PreparedConfinement::outcome_of_copy(tree_->outcome_, session, files, system_calls))};
}

}  // namespace thresher::runtime
