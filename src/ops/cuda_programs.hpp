#pragma once
/// Device programs compiled, loaded and kept: a program is compiled once for an architecture and loaded once for a GPU.
#include <optional>
#include <string>
#include <vector>

#include "planner/choose.hpp"
#include "runtime/kernel.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/device_program.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/device.hpp"

namespace thresher::ops {

/// Where a program's machine code came from.
enum class CodeOrigin : std::uint8_t { built_in, disk_cache, compiled };

struct LoadedProgram {
  runtime::Cubin cubin;  ///< with the compiler's resource report of every kernel
  CodeOrigin origin = CodeOrigin::compiled;
  runtime::Module module;

  /// Throws Error(internal) when the program has no such kernel.
  [[nodiscard]] runtime::Kernel kernel(const std::string& expression) const;
};

/// The program on GPU `ordinal`, from the cubins built into the library, else the disk cache, else NVRTC. Kept for the
/// life of the process; several threads may compile different programs at a time. Throws Error(unsupported) when it has
/// to be compiled and NVRTC is missing.
const LoadedProgram& load_program(int ordinal, const strategies::DeviceProgram& program);
/// Loads the missing programs in parallel, since compiling one takes seconds of one processor. Throws nothing: the next
/// load of a failed program throws its error.
void load_programs(int ordinal, std::vector<const strategies::DeviceProgram*> programs);

/// Whether cards of `arch` ("sm_103a", or a family's "sm_100f") have the instructions that the program needs.
bool can_run_on(const strategies::DeviceProgram& program, const std::string& arch);

/// The input of NVRTC for cards of `arch`. A program that needs the instructions of an architecture or of a family is
/// compiled for that, so that one machine code serves a whole family. Throws Error(unsupported) when it does not run
/// on `arch`.
runtime::Program compiler_input(const strategies::DeviceProgram& program, const std::string& arch);

struct CompiledProgram {
  runtime::Cubin cubin;  ///< with the compiler's resource report of every kernel
  CodeOrigin origin = CodeOrigin::compiled;
};

/// The machine code that load_program would load on a GPU of `arch`. Needs no GPU. Throws as load_program.
CompiledProgram compile_program(const strategies::DeviceProgram& program, const std::string& arch);

struct WarmedProgram {
  CodeOrigin origin = CodeOrigin::compiled;
  std::string not_kept;  ///< why the disk cache does not hold it now, one sentence; empty when it does, or need not
};

/// Compiles the program into the disk cache unless the library or the cache has it. Needs no GPU.
WarmedProgram warm_program(const strategies::DeviceProgram& program, const std::string& arch);
/// Where its machine code is, without compiling; nothing when it is nowhere.
std::optional<CodeOrigin> find_program(const strategies::DeviceProgram& program, const std::string& arch);

/// Every program that the call launches or may launch instead, the packing of its weights included; each once.
std::vector<strategies::DeviceProgram> programs_of(const strategies::PlannedCall& call);

using planner::CallObstacle;

/// Why a GPU of `arch` cannot run the call where nothing can be compiled for `compiler_problem`: its first program that
/// is neither built in nor in the disk cache, in one sentence; empty when there is none.
std::string missing_program(const strategies::PlannedCall& call, const std::string& arch,
                            const std::string& compiler_problem);
/// The same on `device`, a GPU where nothing can be compiled; without a function on every other device.
CallObstacle program_obstacle(const Device& device);

/// Every call whose programs are built into the library at default settings, on the table's device of `arch`. Without
/// one it is any device.
std::vector<strategies::PlannedCall> default_calls(const std::string& arch);

/// Their programs: what is built in and what `thresher warm` warms. Only those that `arch` can run.
std::vector<strategies::DeviceProgram> default_programs(const std::string& arch);

}  // namespace thresher::ops
