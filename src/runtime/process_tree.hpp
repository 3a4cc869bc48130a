#pragma once
/// A program with all its descendants, in its own session and process group: they end together, and none is left
/// behind.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/confinement.hpp"

namespace thresher::runtime {

struct Command {
  std::vector<std::string> words{};  ///< the program, searched on PATH if it has no slash, and its arguments
  std::vector<std::pair<int, int>>
      descriptors{};               ///< pairs of a descriptor here and its number there, below 100; no others are open
  int output = -1;                 ///< a descriptor that becomes its standard output and error; -1: output is discarded
  std::filesystem::path folder{};  ///< its working folder; empty: the current one
  std::optional<std::vector<std::string>> environment{};  ///< "NAME=value"; empty: this process's
  std::optional<Confinement> confinement{};               ///< applied before the program begins; needs may_exec
};

/// The exit of the program itself, regardless of its descendants.
struct Ending {
  int status = 0;  ///< as from waitpid
  [[nodiscard]] bool succeeded() const noexcept { return status == 0; }
  /// "was killed by signal 11 (Segmentation fault)", "ended with status 1".
  [[nodiscard]] std::string sentence() const;
};

/// The path of a program: the name itself if it has a slash, otherwise searched on PATH; empty if not found.
[[nodiscard]] std::filesystem::path find_program(const std::string& name);

class ProcessTemplate;

/// A small process between this one and the program adopts orphaned descendants. So everything ends when the program
/// ends, when this object is destroyed, and when this process ends for any reason.
class ProcessTree {
 public:
  /// Throws Error(io) when the program cannot be started.
  explicit ProcessTree(const Command& command);
  /// A copy of a ready program, with those extra descriptors (see Command). It ends with all its descendants; the
  /// template continues. Throws Error(io) when none is ready within the template's limit.
  ProcessTree(std::shared_ptr<ProcessTemplate> original, std::span<const std::pair<int, int>> descriptors);
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;
  /// Ends it.
  ~ProcessTree();

  [[nodiscard]] pid_t pid() const { return program_; }
  /// The protections in force from the command's confinement; empty without one.
  [[nodiscard]] const Confined& confined() const { return confined_; }

  /// A descriptor that is readable once the program has ended; for poll.
  [[nodiscard]] int ended_descriptor() const { return line_; }
  /// Its exit; empty if it has not ended within `limit_s`. After the exit no descendant is left.
  [[nodiscard]] std::optional<Ending> wait(double limit_s);
  /// Kills it and all its descendants, and returns when none is left. Returns its exit, which may have happened before.
  Ending end();

  /// Stops the program and all its descendants, and returns when none of their threads runs. False when the program has
  /// ended.
  bool freeze();
  void thaw();

 private:
  /// Reads the supervisor's next report: true if it did the requested step, false if the program has ended.
  bool listen();
  bool ask(int request) const;
  void reap();

  std::shared_ptr<ProcessTemplate> original_;  ///< the owner of the supervisor and line that a copy uses

  pid_t supervisor_ = -1;
  pid_t program_ = -1;
  int line_ = -1;
  std::optional<Ending> ending_;
  Confined confined_;
  PreparedConfinement::Outcome outcome_{};

  friend class ProcessTemplate;
};

/// A program that becomes ready, runs no user code, and then only forks copies of itself, one at a time. Each copy
/// behaves as if it had been started by itself. It knows nothing of earlier copies, and is confined before it receives
/// any message.
///
/// The program has a socket at `line`. A message there requests a copy. Its int32 data are the number of the copy's
/// descriptors and their target numbers; it carries the copy's own socket and then those descriptors. The copy's parent
/// is the supervisor, and it leads a session. It sends its number on its socket and receives its restrictions: the
/// number of a filter's instructions, the instructions, and Landlock's rules as a descriptor. It applies them and
/// answers with an errno for its session, its files and its system calls. When the socket closes, the program ends.
class ProcessTemplate {
 public:
  static constexpr int line = 3;

  /// `confinement` is for the copies; the template's own follows from it. Throws Error(io) when the program cannot be
  /// started.
  ProcessTemplate(Command command, Confinement confinement, double ready_limit_s);
  ProcessTemplate(const ProcessTemplate&) = delete;
  ProcessTemplate& operator=(const ProcessTemplate&) = delete;
  ~ProcessTemplate();

 private:
  friend class ProcessTree;
  struct Copy {
    pid_t process = -1;
    Confined confined;
  };
  [[nodiscard]] Copy copy(std::span<const std::pair<int, int>> descriptors) const;

  std::string name_;
  Confinement confinement_;
  double ready_limit_s_;
  int asked_ = -1;
  std::unique_ptr<ProcessTree> tree_;
};

}  // namespace thresher::runtime
