#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "arena/attention/contestant.hpp"
#include "arena/contestants/registry.hpp"
#include "arena/contestants/toolchain.hpp"
#include "arena/dual_gemm/machine_code.hpp"
#include "arena/operation.hpp"
#include "arena/panel/panel.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "ops/cuda_dual_gemm.hpp"
#include "ops/device_operations.hpp"
#include "ops/knob_words.hpp"
#include "ops/nvfp4_choice.hpp"
#include "runtime/driver.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {

namespace {

/// A plan for each input set, and one watched workspace that they share, since they run one after another.
class DualGemmRunner final : public Runner {
 public:
  DualGemmRunner(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options, Memory& memory,
                 const std::vector<DeviceSet>& sets)
      : sets_(sets) {
    for (const DeviceSet& set : sets) {
      plans_.push_back(plan(device, problem, set.tensor("b1"), set.tensor("b2"), options));
    }
    std::size_t bytes = 0;
    for (const DualGemm& gemm : plans_) {
      bytes = std::max(bytes, gemm.workspace_bytes());
    }
    if (bytes > 0) {
      workspace_ = std::make_unique<GuardedBuffer>(memory, bytes);
    }
  }

  void run(Stream stream, std::size_t set) override {
    plans_[set].run(stream, sets_[set].tensor("a"), sets_[set].tensor("c"), workspace_ ? workspace_->data() : nullptr);
  }

  [[nodiscard]] std::vector<std::string> guard_damage() const override {
    const auto damage = workspace_ ? workspace_->damage() : std::nullopt;
    return damage ? std::vector{describe(*damage, "its workspace")} : std::vector<std::string>{};
  }

 private:
  const std::vector<DeviceSet>& sets_;
  std::vector<DualGemm> plans_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

class LibraryContestant final : public Contestant {
 public:
  LibraryContestant(ContestantSpec spec, Device device, DualGemmOptions options)
      : Contestant(std::move(spec)), device_(std::move(device)), options_(std::move(options)) {}

  [[nodiscard]] Numerics numerics() const override { return ops::packing_numerics(options_); }

  [[nodiscard]] std::string format_obstacle(const Problem& problem) const override {
    return ops::operations_for(device_.kind()).dual_gemm_format_obstacle(device_, problem.dual_gemm, options_);
  }

  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override {
    const std::string obstacle =
        ops::operations_for(device_.kind()).dual_gemm_obstacle(device_, problem.dual_gemm, options_);
    if (!obstacle.empty()) {
      return {false, obstacle, "{}"};
    }
    // Two input sets for the correctness gate, and as much again as float32 weights for a strategy that expands them.
    const Cost cost = find_operation(problem.operation).cost(problem);
    const DualGemmProblem& gemm = problem.dual_gemm;
    const double needed = 2 * cost.compulsory_bytes + 8.0 * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
    return fits_in_memory(problem, needed, memory);
  }

  [[nodiscard]] Answer compile(const Problem& problem) const override {
    const std::string host = fmt::format("compiled with Thresher itself by {}", compiler());
    return device_.kind() == DeviceKind::cpu ? Answer{true, host, "{}"} : compiled(machine_code(problem), host);
  }

  [[nodiscard]] MachineCode machine_code(const Problem& problem) const override {
    const std::optional<DeviceSpec> spec =
        device_.kind() == DeviceKind::cpu ? std::nullopt : ops::fused_device_spec(device_.id().ordinal);
    if (!spec) {
      return Contestant::machine_code(problem);
    }
    const std::string arch = runtime::device_properties(device_.id().ordinal).arch();
    return dual_gemm_machine_code(*spec, arch, problem.dual_gemm, options_);
  }

  [[nodiscard]] Emulation emulation(const Problem& problem) const override {
    if (device_.kind() == DeviceKind::cpu) {
      return {nullptr, "a program of the CPU: there is no GPU kernel to emulate"};
    }
    const EmulatedOperation* const emulated = find_emulated_operation(problem.operation);
    const std::optional<DeviceSpec> spec = ops::fused_device_spec(device_.id().ordinal);
    if (emulated == nullptr || !spec) {
      return {nullptr, fmt::format("the emulator has no kernels of {} for {}", problem.operation, device_.name())};
    }
    return emulated->planned(problem, {options_.strategy, ops::planner_words(options_.knobs), options_.numerics},
                             *spec);
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    return std::make_unique<DualGemmRunner>(device_, problem.dual_gemm, options_, memory, sets);
  }

 private:
  Device device_;
  DualGemmOptions options_;
};

int parse_threads(const std::string& text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("knob threads is {}, but must be a whole number from 1 up", text));
  }
  return threads;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class LibraryRegistry final : public Registry {
 public:
  explicit LibraryRegistry(const Device& device) : device_(device) {}

  [[nodiscard]] std::vector<std::string> strategies(const std::string& operation) const override {
    if (operation == "attention") {
      return attention_contestants(device_);
    }
    if (operation != "dual_gemm") {
      return {};
    }
    std::vector<std::string> known = dual_gemm_strategies(device_);
    const auto naive = std::find(known.begin(), known.end(), "two_pass");  // what a user without Thresher does
    if (naive != known.end()) {
      std::rotate(known.begin(), naive, naive + 1);
    }
    return known;
  }

  [[nodiscard]] std::unique_ptr<Contestant> bring(const ContestantSpec& spec,
                                                  const user_kernels::Kernel& kernel) const override {
    if (holds(strategies(spec.operation), spec.strategy)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("contestant {}: {} is a strategy of Thresher's own: give the kernel {} another name",
                              label(spec), spec.strategy, kernel.source));
    }
    return user_kernels::make_contestant(spec, kernel, device_);
  }

  [[nodiscard]] std::unique_ptr<Contestant> create(const ContestantSpec& spec) const override {
    if (spec.operation == "attention") {
      return make_attention_contestant(spec, device_);
    }
    const std::vector<std::string> known = strategies(spec.operation);
    if (!holds(known, spec.strategy)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", label(spec),
                              device_.name(), fmt::join(known, ", ")));
    }
    if (device_.kind() != DeviceKind::cpu) {
      return std::make_unique<LibraryContestant>(spec, device_, plan_options(spec));
    }
    DualGemmOptions options{.strategy = spec.strategy};
    for (const auto& [knob, value] : spec.knobs) {
      if (knob != "threads") {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("contestant {}: there is no knob {} on {}, expected threads", label(spec), knob,
                                device_.name()));
      }
      options.threads = parse_threads(value);
    }
    return std::make_unique<LibraryContestant>(spec, device_, options);
  }

 private:
  Device device_;
};

}  // namespace

std::unique_ptr<Contestant> Registry::bring(const ContestantSpec& spec, const user_kernels::Kernel&) const {
  throw Error(ErrorCode::unsupported,
              fmt::format("contestant {}: kernels from outside are not taken here", label(spec)));
}

std::unique_ptr<Registry> library_registry(const Device& device) { return std::make_unique<LibraryRegistry>(device); }

}  // namespace thresher::arena
