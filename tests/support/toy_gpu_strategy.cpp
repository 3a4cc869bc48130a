#include "strategies/gemm/tensors.hpp"
#include "strategies/kernel_strategy.hpp"
#include "support/toy_strategies.hpp"

namespace thresher::test {
namespace {

using namespace strategies;
using namespace strategies::gemm;

struct Config {
  int threads = 64;
};

/// The parameter of the kernel below.
struct Params {
  std::uint64_t a, b1_gate, b2_up, c;
  std::uint32_t m, n, k;
};

constexpr const char* code = R"(#include "machine/launch.hpp"
#include "strategies/gemm/device/definition.hpp"
namespace toy {
using namespace thresher::machine;
using namespace thresher::strategies::gemm;
struct Config { int threads = 64; };
struct Params { u64 a, b1_gate, b2_up, c; u32 m, n, k; };
template <Config config>
TH_KERNEL(config.threads, 1) dual_gemm(TH_GRID_CONSTANT const Params params) {
  const u32 index = launch::block_index().x * config.threads + launch::thread_index();
  const u32 row = index / params.n;
  const u32 column = index % params.n;
  if (row >= params.m) {
    return;
  }
  float gate = 0;
  float up = 0;
  for (u32 i = 0; i < params.k; ++i) {
    const float token = convert::to_float(Global<BFloat16>{params.a}.load(row * params.k + i));
    gate += token * convert::to_float(Global<BFloat16>{params.b1_gate}.load(column * params.k + i));
    up += token * convert::to_float(Global<BFloat16>{params.b2_up}.load(column * params.k + i));
  }
  const definition::ActivationConstants constants{1.0F, 1.0F, 0.0F};
  Global<BFloat16>{params.c}.store(
      index, convert::to_bfloat16(definition::activate(ActivationCode::silu, gate, up, constants)));
}
}
)";

struct Toy : FamilyDefaults<ProductProblem, Config> {
  static constexpr Overrides overrides{.role = true, .work = true, .samples = true};
  static constexpr std::string_view name = "toy";
  static constexpr std::string_view summary = "a thread for each output";
  static Role role(const ProductProblem&) { return Role::by_name; }

  static const KnobTable<Config>& knob_table() {
    static const KnobTable<Config> table{"toy::Config",
                                         {number("threads", &Config::threads, {32, 64}, "outputs of a block")}};
    return table;
  }
  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    const bool is_bf16 = problem.a == Format::bf16 && problem.b == Format::bf16 && problem.out == Format::bf16;
    if (!is_bf16 || !problem.activation || problem.activation->kind != ActivationKind::silu ||
        device.matrix_unit != MatrixUnit::wgmma) {
      return "strategy toy takes bf16 and silu on a Hopper GPU";
    }
    return std::nullopt;
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem&, const Config&, const DeviceSpec&) {
    return {};
  }
  static PlannedCall plan(const ProductProblem&, const Config& config, const DeviceSpec&) {
    PlannedCall call;
    call.steps.emplace_back(launch(config));
    return call;
  }

  static WorkModel work(const ProductProblem& problem, const Config&, const DeviceSpec&) {
    const auto elements = static_cast<double>(problem.n) * static_cast<double>(problem.k);
    return {{MemoryPass{"multiplying", static_cast<double>(problem.rows) * elements * 4}}};
  }
  static std::vector<Sample<ProductProblem>> samples() {
    return {{DualGemmProblem{.m = 3, .n = 40, .k = 16, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16},
             {{"threads", "32"}}}};
  }

  static KernelLaunch launch(const Config& config) {
    const std::string expression = "toy::dual_gemm<" + knob_table().spelling(config) + ">";
    KernelLaunch launch;
    launch.title = "multiply";
    launch.program = {.title = "toy", .text = code, .kernels = {expression}, .options = {}};
    launch.expression = expression;
    launch.block.x = static_cast<std::uint32_t>(config.threads);
    launch.accesses = {{Access::Memory::tensor, tokens_index, Access::Use::reads},
                       {Access::Memory::tensor, gate_index, Access::Use::reads},
                       {Access::Memory::tensor, up_index, Access::Use::reads},
                       {Access::Memory::tensor, output_index, Access::Use::writes}};
    launch.bind = [config](const CallTensors& tensors, LaunchArguments& out) {
      const Tensor& a = tokens_of(tensors);
      const auto rows = static_cast<std::uint32_t>(a.shape[0]);
      const auto columns = static_cast<std::uint32_t>(gate_of(tensors).shape[0]);
      out.set(Params{device_address(a.data), device_address(gate_of(tensors).data), device_address(up_of(tensors).data),
                     device_address(output_of(tensors).data), rows, columns, static_cast<std::uint32_t>(a.shape[1])});
      const auto threads = static_cast<std::uint32_t>(config.threads);
      out.grid.x = (rows * columns + threads - 1) / threads;
      return true;
    };
    launch.expected.uses_shared_memory = false;
    return launch;
  }
};

}  // namespace

const Strategy<ProductProblem>& toy_gpu_strategy() {
  static const KernelStrategy<Toy> strategy;
  return strategy;
}

}  // namespace thresher::test
