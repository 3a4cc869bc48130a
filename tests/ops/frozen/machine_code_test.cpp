// The machine code of every kernel that the library launches at default settings. A line names a kernel by its call's
// strategy and knobs, as users write them, and by its place in the call. New names in the code therefore leave the line
// as it is. The hash is of the instructions, which decide what runs; PTX is not looked at.
//
// For Blackwell the code is not built in and has to be compiled here. Every sixth kernel is, which takes two seconds,
// or all with THRESHER_FROZEN=all. THRESHER_FROZEN=record compiles all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "frozen_file.hpp"
#include "machine_code.hpp"
#include "ops/built_in_cubins.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::ops {
namespace {

using test::FrozenLines;

/// A kernel, and the heading and the beginning of its line.
struct NamedKernel {
  std::string heading;
  std::string entry;
  const strategies::DeviceProgram* program;
  std::string expression;
};

std::string extents_of(const strategies::KernelLaunch& launch) {
  return fmt::format("{} threads, cluster {}, {} bytes of dynamic shared memory, ", launch.block.x, launch.cluster.x,
                     launch.shared_bytes);
}

void add_launches(std::vector<NamedKernel>& kernels, const strategies::PlannedCall& call, const std::string& heading,
                  const std::string& step_name) {
  for (std::size_t i = 0; i < call.steps.size(); ++i) {
    std::string name = fmt::format("{} {}", step_name, i);
    const auto* launch = std::get_if<strategies::KernelLaunch>(&call.steps[i]);
    for (; launch != nullptr; launch = launch->alternative.get()) {
      kernels.push_back(
          {heading, fmt::format("{}: {}", name, extents_of(*launch)), &launch->program, launch->expression});
      name += " otherwise";
    }
  }
  if (call.packing != nullptr) {
    add_launches(kernels, *call.packing, heading, "packing step");
  }
}

std::string heading(const strategies::PlannedCall& call) {
  return fmt::format("{}{}{}", call.strategy.empty() ? "without a strategy" : call.strategy,
                     call.knobs.empty() ? "" : " ", call.knobs.text());
}

class DefaultKernels {
 public:
  explicit DefaultKernels(const std::string& arch)
      : arch_(arch), calls_(default_calls(arch)), programs_(default_programs(arch)) {
    for (const strategies::PlannedCall& call : calls_) {
      add_launches(kernels_, call, heading(call), "step");
    }
    for (const strategies::DeviceProgram& program : programs_) {
      for (const std::string& expression : program.kernels) {
        if (!is_launched(program, expression)) {
          kernels_.push_back({"outside of calls", "kernel: ", &program, expression});
        }
      }
    }
    std::erase_if(kernels_, [&](const NamedKernel& kernel) { return !can_run_on(*kernel.program, arch); });
  }

  [[nodiscard]] const std::string& arch() const { return arch_; }
  [[nodiscard]] const std::vector<NamedKernel>& kernels() const { return kernels_; }
  /// Leaves those whose machine code is for one architecture or family alone, and of these every `step`th.
  void keep_own_of_arch(std::size_t step) {
    std::size_t index = 0;
    std::erase_if(kernels_,
                  [&](const NamedKernel& kernel) { return !kernel.program->only_arch || index++ % step != 0; });
  }

 private:
  [[nodiscard]] bool is_launched(const strategies::DeviceProgram& program, const std::string& expression) const {
    return std::any_of(kernels_.begin(), kernels_.end(), [&](const NamedKernel& kernel) {
      return kernel.expression == expression && kernel.program->text == program.text;
    });
  }

  std::string arch_;
  std::vector<strategies::PlannedCall> calls_;
  std::vector<strategies::DeviceProgram> programs_;
  std::vector<NamedKernel> kernels_;
};

/// The lines of kernels; the compiler has a heading of its own.
class CodeLines {
 public:
  void add(const NamedKernel& kernel, const runtime::Cubin& cubin) {
    const test::CubinSections sections(cubin.image);
    lines_["compiler"].insert(sections.compiler());
    for (const runtime::CompiledKernel& compiled : cubin.kernels) {
      if (compiled.expression == kernel.expression) {
        lines_[kernel.heading].insert(fmt::format("{}{} bytes of static shared memory, {} registers, code {}",
                                                  kernel.entry, compiled.resources.static_shared_bytes,
                                                  compiled.resources.registers,
                                                  test::code_hash(sections, compiled.lowered_name)));
      }
    }
  }
  [[nodiscard]] FrozenLines& lines() { return lines_; }

 private:
  FrozenLines lines_;
};

/// Compiles what is not built in, each program once.
class Cubins {
 public:
  explicit Cubins(std::string arch) : arch_(std::move(arch)) {}
  const runtime::Cubin& of_program(const strategies::DeviceProgram& program) {
    const runtime::Program input = compiler_input(program, arch_);
    const auto [place, is_new] = cubins_.try_emplace(built_in_key(input));
    if (is_new) {
      std::optional<runtime::Cubin> built_in = find_built_in(input);
      place->second = built_in ? *std::move(built_in) : runtime::compile(input);
    }
    return place->second;
  }

 private:
  std::string arch_;
  std::map<std::string, runtime::Cubin> cubins_;
};

FrozenLines code_of(const DefaultKernels& of) {
  Cubins cubins(of.arch());
  CodeLines code;
  for (const NamedKernel& kernel : of.kernels()) {
    code.add(kernel, cubins.of_program(*kernel.program));
  }
  return std::move(code.lines());
}

std::string file_of(const std::string& arch) { return "machine_code_" + arch + ".txt"; }

/// Whether the file's hashes are of this compiler, "release 13.0" or all of its version, or are to be rewritten.
bool is_of(const FrozenLines& known, const std::string& compiler) {
  const auto found = known.find("compiler");
  return test::frozen_mode_is("record") ||
         (found != known.end() && found->second.begin()->find(compiler) != std::string::npos);
}

std::string compiler_of(const FrozenLines& lines) { return *lines.at("compiler").begin(); }

constexpr const char* about =
    "A strategy with its knobs, and below it its launches. Made by THRESHER_FROZEN=record (frozen_file.hpp).";

TEST(FrozenMachineCode, OfTheKernelsThatAreBuiltInIsAsItWas) {
  if (built_in_cubins().empty()) {
    GTEST_SKIP() << "no machine code is built in: " << runtime::nvrtc_status().problem;
  }
  DefaultKernels kernels("sm_90a");
  const FrozenLines lines = code_of(kernels);
  if (!is_of(test::read_frozen(file_of("sm_90a")), compiler_of(lines))) {
    GTEST_SKIP() << "the hashes are of another compiler than " << compiler_of(lines);
  }
  test::expect_frozen(file_of("sm_90a"), about, lines);
}

TEST(FrozenMachineCode, OfTheKernelsForBlackwellIsAsItWas) {
  if (const std::string& problem = runtime::nvrtc_status().problem; !problem.empty()) {
    GTEST_SKIP() << problem;
  }
  const FrozenLines known = test::read_frozen(file_of("sm_100f"));
  const std::string release = "release " + runtime::nvrtc_toolchain().substr(std::string("NVRTC ").size());
  if (!is_of(known, release)) {
    GTEST_SKIP() << "the hashes are of another compiler than that of " << release;
  }
  const bool is_all = test::frozen_mode_is("all") || test::frozen_mode_is("record");
  DefaultKernels kernels("sm_100f");
  kernels.keep_own_of_arch(is_all ? 1 : 6);
  const FrozenLines lines = code_of(kernels);
  if (!is_of(known, compiler_of(lines))) {
    GTEST_SKIP() << "the hashes are of another compiler than " << compiler_of(lines);
  }
  if (is_all) {
    test::expect_frozen(file_of("sm_100f"), about, lines);
  } else {
    const std::string changes = test::lines_missing(lines, known, "+ ");
    EXPECT_TRUE(changes.empty()) << changes;
  }
}

}  // namespace
}  // namespace thresher::ops
