#pragma once
/// A program with all that it starts: in a session and a process group of its own, ended together, never left behind.
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
  std::vector<std::string> words{};  ///< the program, looked for on PATH when it has no slash, and its arguments
  std::vector<std::pair<int, int>>
      descriptors{};  ///< a descriptor here and its number there, below 100; no others are open
  int output = -1;    ///< a descriptor that becomes its standard output and error; -1: what it prints is thrown away
  std::filesystem::path folder{};                         ///< where it starts; empty: here
  std::optional<std::vector<std::string>> environment{};  ///< "NAME=value"; this process's when not given
  std::optional<Confinement> confinement{};               ///< in force before the program begins; needs may_exec
};

/// How the program itself ended, whatever it started.
struct Ending {
  int status = 0;  ///< as waitpid has it
  [[nodiscard]] bool succeeded() const noexcept { return status == 0; }
  /// "was killed by signal 11 (Segmentation fault)", "ended with status 1".
  [[nodiscard]] std::string sentence() const;
};

/// The program of that name: as it is when it has a slash, else looked for on PATH; empty when there is none.
[[nodiscard]] std::filesystem::path find_program(const std::string& name);

class ProcessTemplate;

/// A small process between this one and the program adopts whatever loses its parent, so that everything ends when the
/// program does, when this object is destroyed, and when this process is gone, however it went.
class ProcessTree {
 public:
  /// Throws Error(io) when the program cannot be started.
  explicit ProcessTree(const Command& command);
  /// A copy of a program that is ready, with those descriptors beside (see Command). It ends with all that it started,
  /// but for the template. Throws Error(io) when there is none within the template's limit.
  ProcessTree(std::shared_ptr<ProcessTemplate> original, std::span<const std::pair<int, int>> descriptors);
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;
  /// Ends it.
  ~ProcessTree();

  [[nodiscard]] pid_t pid() const { return program_; }
  /// What is in force of the command's confinement; nothing without one.
  [[nodiscard]] const Confined& confined() const { return confined_; }

  /// A descriptor that is readable once the program has ended; for poll.
  [[nodiscard]] int ended_descriptor() const { return line_; }
  /// How it ended, and nothing when it has not within `limit_s`. All that it started is gone then.
  [[nodiscard]] std::optional<Ending> wait(double limit_s);
  /// Kills it and all that it started, and comes back when none is left. How it ended, which is by itself if it had
  /// ended before.
  Ending end();

  /// Stops the program and all that it started, and comes back when none of their threads runs. False when the program
  /// has ended.
  bool freeze();
  void thaw();

 private:
  /// The supervisor's next report: whether it did as it was asked, else the program has ended.
  bool listen();
  bool ask(int request) const;
  void reap();

  std::shared_ptr<ProcessTemplate> original_;  ///< whose supervisor and line a copy has

  pid_t supervisor_ = -1;
  pid_t program_ = -1;
  int line_ = -1;
  std::optional<Ending> ending_;
  Confined confined_;
  PreparedConfinement::Outcome outcome_{};

  friend class ProcessTemplate;
};

/// A program that makes itself ready, runs nothing from outside, and from then on does nothing but fork copies of
/// itself, one at a time: each is a process as if it had been started and made ready by itself, knows nothing of those
/// before it, and is confined before it is told anything.
///
/// The program finds a socket at `line`. A message there asks for a copy: how many descriptors it brings and the
/// numbers that they are to have, as int32, and before them a socket of the copy's own. The copy, whose parent is the
/// supervisor and which leads a session, sends its number there, takes on what it is sent (the number of a filter's
/// instructions, these, and Landlock's rules as a descriptor) and answers with an errno for its session, its files and
/// its system calls. The socket's end ends the program.
class ProcessTemplate {
 public:
  static constexpr int line = 3;

  /// `confinement` is the copies', the template's own follows from it. Throws Error(io) when the program cannot be
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
