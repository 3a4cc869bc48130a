#pragma once
/// The process between this one and a program (process_tree.hpp): forked and never replaced by another program, so that
/// it does only what is safe between fork and exec.
#include <sys/types.h>

#include <span>
#include <utility>

#include "runtime/confinement.hpp"

namespace thresher::runtime {

/// What is asked of it; when the line ends it ends the program.
struct Request {
  /// `watch`: the program is a template that has forked `program`, which takes its place until it ends. The template
  /// itself is neither frozen nor thawed meanwhile. The copy is told nothing before the answer is there: how one ends
  /// that nobody watches yet is lost.
  enum class Kind : int { end, freeze, thaw, watch };
  Kind kind = Kind::end;
  pid_t program = -1;  ///< nothing is done to another: this one has ended, as it was told
};

/// What it says.
struct Report {
  enum class Kind : int { started, failed, frozen, ended };
  Kind kind = Kind::failed;
  pid_t program = -1;                      ///< of started, frozen and ended
  int value = 0;                           ///< of failed: errno; of ended: as waitpid has it
  PreparedConfinement::Outcome outcome{};  ///< of started, with a confinement
};

/// Everything that memory would be needed for.
struct SupervisedProgram {
  const char* path = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* folder = nullptr;  ///< null: where this process is
  int line = -1;                 ///< a socket that keeps messages apart
  int null = -1;                 ///< /dev/null
  int output = -1;
  std::span<const std::pair<int, int>> descriptors;
  std::span<const int> kept;  ///< all descriptors that stay open, in rising order
  PreparedConfinement* confinement = nullptr;
};

/// The life of a supervisor, in the child of a fork.
[[noreturn]] void supervise(const SupervisedProgram& program) noexcept;

}  // namespace thresher::runtime
