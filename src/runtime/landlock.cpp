#include "runtime/landlock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace thresher::runtime {
namespace {

// As in linux/landlock.h. The numbers of the calls are the same on every architecture.
constexpr long create_ruleset = 444;
constexpr long add_rule = 445;
constexpr long restrict_self = 446;
constexpr unsigned ask_for_version = 1;
constexpr unsigned path_beneath = 1;

struct RulesetAttributes {
  std::uint64_t handled_files;
  std::uint64_t handled_network;  // from version 4 on
  std::uint64_t scoped;           // from version 6 on
};

struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};

constexpr std::uint64_t execute = 1U << 0;
constexpr std::uint64_t write_file = 1U << 1;
constexpr std::uint64_t read_file = 1U << 2;
constexpr std::uint64_t read_folder = 1U << 3;
constexpr std::uint64_t make_character_device = 1U << 6;
constexpr std::uint64_t make_socket = 1U << 9;
constexpr std::uint64_t make_block_device = 1U << 11;
constexpr std::uint64_t of_version_1 = (1U << 13) - 1;
constexpr std::uint64_t move_between_folders = 1U << 13;  // version 2
constexpr std::uint64_t truncate = 1U << 14;              // version 3
constexpr std::uint64_t control_device = 1U << 15;        // version 5
/// The rights that a rule about one file may give.
constexpr std::uint64_t of_one_file = execute | write_file | read_file | truncate | control_device;

constexpr std::uint64_t all_of_network = 3;  // TCP: bind, connect
constexpr std::uint64_t all_scopes = 3;      // abstract sockets, signals

std::uint64_t handled_by(int abi) {
  return of_version_1 | (abi >= 2 ? move_between_folders : 0) | (abi >= 3 ? truncate : 0) |
         (abi >= 5 ? control_device : 0);
}

std::uint64_t rights(Landlock::Reach reach) {
  constexpr std::uint64_t read = read_file | read_folder;
  switch (reach) {
    case Landlock::Reach::read: return read;
    case Landlock::Reach::run: return read | execute;
    case Landlock::Reach::change:
      return (of_version_1 | move_between_folders | truncate) &
             ~(execute | make_character_device | make_block_device | make_socket);
    case Landlock::Reach::control: return read | write_file | control_device;
  }
  return 0;
}

}  // namespace

Landlock::Landlock() {
  const long version = ::syscall(create_ruleset, nullptr, 0, ask_for_version);
  if (version < 1) {
    problem_ = errno == EOPNOTSUPP ? "Landlock is switched off at this machine's start (lsm=…,landlock)"
                                   : "this kernel has no Landlock (Linux 5.13 or newer has)";
    return;
  }
  abi_ = static_cast<int>(version);
  handled_ = handled_by(abi_);
  const RulesetAttributes attributes{handled_, abi_ >= 4 ? all_of_network : 0, abi_ >= 6 ? all_scopes : 0};
  ruleset_ = static_cast<int>(::syscall(create_ruleset, &attributes, sizeof attributes, 0));
  if (ruleset_ < 0) {
    problem_ = "Landlock takes no rules on this machine";
  }
}

Landlock::~Landlock() {
  if (ruleset_ >= 0) {
    ::close(ruleset_);
  }
}

bool Landlock::guards_truncation() const { return (handled_ & truncate) != 0; }

void Landlock::allow(const std::filesystem::path& path, Reach reach) noexcept {
  (void)allow_path(path.c_str(), rights(reach));
}

bool Landlock::allow_path(const char* path, std::uint64_t access) noexcept {
  const int opened = ruleset_ < 0 ? -1 : ::open(path, O_PATH | O_CLOEXEC);
  if (opened < 0) {
    return false;
  }
  struct stat status{};
  const bool is_folder = ::fstat(opened, &status) == 0 && S_ISDIR(status.st_mode);
  const PathBeneath rule{access & handled_ & (is_folder ? ~std::uint64_t{0} : of_one_file), opened};
  const bool is_added = ::syscall(add_rule, ruleset_, path_beneath, &rule, 0) == 0;
  ::close(opened);
  return is_added;
}

void Landlock::allow_folder_of_process(const char* folder, const char* threads) noexcept {
  (void)allow_path(folder, read_file | read_folder);
  if (names_threads_) {
    (void)allow_path(threads, write_file | truncate);
  }
}

void Landlock::allow_all_processes() noexcept { allow_folder_of_process("/proc", "/proc"); }

void Landlock::allow_process(pid_t process) noexcept {
  const std::string folder = "/proc/" + std::to_string(process);
  allow_folder_of_process(folder.c_str(), (folder + "/task").c_str());
}

int Landlock::apply() noexcept {
  if (ruleset_ < 0) {
    return ENOSYS;
  }
  allow_folder_of_process("/proc/self", "/proc/self/task");  // which each process resolves to its own folder
  return ::syscall(restrict_self, ruleset_, 0) == 0 ? 0 : errno;
}

}  // namespace thresher::runtime
