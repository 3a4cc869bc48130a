#pragma once
/// The process between this one and a program (process_tree.hpp): forked and never replaced by another program, so that
/// it does only what is safe between fork and exec.
#include <sys/types.h>

#include <span>
#include <utility>

#include "runtime/confinement.hpp"

namespace thresher::runtime {

/// What is asked of it, one byte each; when the line ends it ends the program.
enum class Request : char { end = 'e', freeze = 'f', thaw = 't' };

/// What it says.
struct Report {
  enum class Kind : int { started, failed, frozen, ended };
  Kind kind = Kind::failed;
  pid_t program = -1;                      ///< of started
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
