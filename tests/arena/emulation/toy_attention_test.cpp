// A strategy of attention for each kind of device, in this one file: everything that asks for strategies finds it.
#include <gtest/gtest.h>

#include <algorithm>

#include "arena/attention/task.hpp"
#include "arena/emulation/examine.hpp"
#include "arena/operation/planned_code.hpp"
#include "ops/attention_call.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/attention/one_kernel.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tensors.hpp"

namespace thresher {
namespace {

using namespace strategies;
using namespace strategies::attention;

/// A warp a query, as `simple` has it.
struct Toy : OneKernel<Toy, NoKnobs> {
  static constexpr Overrides overrides{.role = true, .edges = true, .samples = true};
  static constexpr std::string_view name = "toy";
  static constexpr std::string_view summary = "a toy";
  static Role role(const AttentionProblem&) { return Role::by_name; }
  static const KnobTable<Config>& knob_table() { return launch_knobs(); }

  static Abilities abilities() { return {}; }
  static std::vector<std::string> limits(const AttentionProblem&, const Config&) { return {}; }
  static std::vector<Knobs> sample_knobs() { return {}; }
  static AttentionKernel kernel(const AttentionProblem& problem, const Config&) {
    return {.geometry = {.tile_rows = simple_warps, .threads = simple_warps * 32},
            .header = "simple/device/kernel.hpp",
            .expression = simple_expression({problem.format}, problem.head_dim, problem.head_dim),
            .expected = {.uses_shared_memory = false}};
  }
};

/// The mean of the values: what attention gives where all queries are 0.
struct NoConfig {};
struct Mean : FamilyDefaults<AttentionProblem, NoConfig> {
  static constexpr Overrides overrides{.device_kind = true, .role = true};
  static constexpr DeviceKind device_kind = DeviceKind::cpu;
  static constexpr std::string_view name = "mean";
  static constexpr std::string_view summary = "a toy";
  static Role role(const AttentionProblem&) { return Role::by_name; }
  static const KnobTable<NoConfig>& knob_table() {
    static const KnobTable<NoConfig> table{"", {}};
    return table;
  }
  static std::optional<std::string> unsupported_reason(const AttentionProblem&, const DeviceSpec&) { return {}; }
  static std::vector<std::string> infeasible_reasons(const AttentionProblem&, const NoConfig&, const DeviceSpec&) {
    return {};
  }
  static PlannedCall plan(const AttentionProblem&, const NoConfig&, const DeviceSpec&) {
    PlannedCall call;
    call.steps.emplace_back(HostCall{"average", [](const CallTensors& tensors) {
                                       const Tensor& o = tensors.tensors[output_index];
                                       std::fill_n(static_cast<std::uint16_t*>(o.data), o.elements(), 0x3C00);
                                     }});
    return call;
  }
};

const KernelStrategy<Toy> toy;
const KernelStrategy<Mean> mean;
const bool registered = [] {
  attention::registry().add(toy);
  attention::registry().add(mean);
  return true;
}();

const AttentionProblem small{.queries = 4, .keys = 8, .head_dim = 64};

TEST(ToyAttention, PlanFindsTheOneOfTheCpuAndRunsIt) {
  const std::vector<std::string> names = attention_strategies(Device::cpu());
  EXPECT_NE(std::find(names.begin(), names.end(), "mean"), names.end());
  const Attention planned = plan(Device::cpu(), small, {.strategy = "mean"});
  EXPECT_EQ(planned.strategy(), "mean");
  std::vector<std::uint16_t> q(4 * 64);
  std::vector<std::uint16_t> kv(8 * 64, 0x3C00);  // ones
  std::vector<std::uint16_t> o(4 * 64);
  const auto rows = [](std::vector<std::uint16_t>& data, std::int64_t count) {
    return Tensor::contiguous(data.data(), Format::fp16, {1, 1, count, 64});
  };
  planned.run({}, {.q = rows(q, 4), .k = rows(kv, 8), .v = rows(kv, 8), .o = rows(o, 4)});
  EXPECT_EQ(o, std::vector<std::uint16_t>(4 * 64, 0x3C00));
}

TEST(ToyAttention, TheEmulatorRunsTheOneOfTheGpu) {
  const std::vector<std::string> names = arena::attention_operation().emulated()->strategies();
  ASSERT_NE(std::find(names.begin(), names.end(), "toy"), names.end());
  const std::vector<std::uint64_t> seeds{0, 1};
  for (const auto& kernel : arena::attention_operation().emulated()->samples("toy", nullptr)) {
    for (const arena::Problem& problem : kernel->edges()) {
      const arena::Examination examined = arena::examine(*kernel, problem, seeds);
      EXPECT_TRUE(examined.clean()) << kernel->title() << ": " << examined.finding;
    }
  }
}

TEST(ToyAttention, ItsMachineCodeIsReadFromThePlannedCall) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const PlannedCall call = ops::attention_call(small, {.strategy = "toy"}, device_spec("H200"));
  const arena::MachineCode code = arena::machine_code_of(call, "sm_90a");
  ASSERT_EQ(code.kernels.size(), 1U);
  EXPECT_EQ(code.kernels.front().title, "attention toy");
  EXPECT_FALSE(code.kernels.front().expected.uses_shared_memory);
}

TEST(ToyAttention, ANameThatThereIsIsRefused) {
  EXPECT_THROW(attention::registry().add(toy), Error);
  EXPECT_NE(ops::attention_call(small, {}, device_spec("H200")).strategy, "toy");  // it is there by name
}

}  // namespace
}  // namespace thresher
