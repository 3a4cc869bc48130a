#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/integers.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/two_pass/params.hpp"
#include "strategies/gemm/work.hpp"
#include "strategies/kernel_strategy.hpp"
#include "strategies/launch_tools.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies::gemm {
namespace two_pass {
namespace {

constexpr std::size_t product_alignment_bytes = 16;
constexpr std::int64_t intermediate_padding = 32;  // elements: every float32 row starts at a multiple of 128 bytes
constexpr std::int64_t max_blocks_of_a_grid = (std::int64_t{1} << 31) - 1;

struct Config {
  /// Weights are written in the format and with the alignment that the library's product takes before each product;
  /// otherwise it reads them where they lie.
  bool widens_weights = false;
  bool operator==(const Config&) const = default;
};

/// The kernel `name` of the strategy's device code.
std::string kernel_of(std::string_view name, std::string_view arguments) {
  return fmt::format("thresher::strategies::gemm::two_pass::{}<{}>", name, arguments);
}

std::string copy_rows_kernel() { return kernel_of("copy_rows", "unsigned short"); }
std::string widen_nvfp4_kernel(Format to) { return kernel_of("widen_nvfp4", element_argument(to)); }
std::string widen_to_float_kernel(Format from) { return kernel_of("widen_to_float", element_argument(from)); }
std::string activate_kernel(ActivationKind kind, Format out) {
  return kernel_of("activate", fmt::format("thresher::strategies::gemm::ActivationCode::{}, {}", thresher::name(kind),
                                           element_argument(out)));
}

/// All kernels, for every format and activation.
DeviceProgram program() {
  DeviceProgram program{.title = "two_pass",
                        .text = "#include \"strategies/gemm/two_pass/device/kernels.hpp\"\n",
                        .kernels = {copy_rows_kernel()},
                        .options = {}};
  for (const Format format : {Format::fp16, Format::bf16}) {
    program.kernels.push_back(widen_nvfp4_kernel(format));
    program.kernels.push_back(widen_to_float_kernel(format));
  }
  for (const ActivationKind kind : gated_activation_kinds) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      program.kernels.push_back(activate_kernel(kind, out));
    }
  }
  return program;
}

std::int64_t intermediate_stride(std::int64_t n) { return round_up(n, intermediate_padding); }

std::int64_t elements_per_thread(Format from) {
  return from == Format::nvfp4 ? nvfp4_elements_per_thread : plain_elements_per_thread;
}

std::int64_t widening_blocks(Format from, std::int64_t rows, std::int64_t columns) {
  return ceil_div(rows * (columns / elements_per_thread(from)), threads);
}

std::int64_t activation_blocks(std::int64_t rows, std::int64_t columns) {
  return ceil_div(rows * ceil_div(columns, outputs_per_thread), threads);
}

std::string widening_kernel(Format from, Format to) {
  if (from == Format::nvfp4) {
    return widen_nvfp4_kernel(to);
  }
  return from == to ? copy_rows_kernel() : widen_to_float_kernel(from);
}

bool product_can_read(const Tensor& matrix, Format product) {
  const std::int64_t row_bytes = matrix.strides[0] * bits(matrix.format) / 8;
  return matrix.format == product && (matrix.shape[0] <= 1 || row_bytes % std::int64_t{product_alignment_bytes} == 0) &&
         device_address(matrix.data) % product_alignment_bytes == 0;
}

KernelLaunch conversion_launch(std::string title, std::string kernel) {
  return preparation_launch(std::move(title), program(), std::move(kernel), threads);
}

/// One operand in the product's format: where it lies, or a copy without gaps in the workspace.
struct Operand {
  std::size_t tensor;
  Format format;
  Format product;
  bool is_copied_always;
  std::size_t piece;
  std::size_t offset;

  [[nodiscard]] bool is_copied(const CallTensors& call) const {
    return is_copied_always || !product_can_read(call.tensors[tensor], product);
  }
  [[nodiscard]] const void* address(const CallTensors& call) const {
    return is_copied(call) ? static_cast<const std::byte*>(call.workspace) + offset : call.tensors[tensor].data;
  }
  [[nodiscard]] std::int64_t row_stride(const CallTensors& call) const {
    return is_copied(call) ? call.tensors[tensor].shape[1] : call.tensors[tensor].strides[0];
  }

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const Tensor& matrix = call.tensors[tensor];
    const bool is_nvfp4 = matrix.format == Format::nvfp4;
    WidenParameters params{};
    params.values = device_address(matrix.data);
    params.row_bytes = matrix.strides[0] * bits(matrix.format) / 8;
    params.out = device_address(call.workspace) + offset;
    params.rows = static_cast<std::uint32_t>(matrix.shape[0]);
    params.threads_per_row = static_cast<std::uint32_t>(matrix.shape[1] / elements_per_thread(matrix.format));
    if (is_nvfp4) {
      params.scales = device_address(matrix.scales.data);
      params.scales_per_row = params.threads_per_row;
      params.scales_blocked = matrix.scales.layout == ScaleLayout::blocked ? 1 : 0;
    }
    out.set(params);
    out.grid.x = is_copied(call)
                     ? static_cast<std::uint32_t>(widening_blocks(matrix.format, matrix.shape[0], matrix.shape[1]))
                     : 0;
  }
};

KernelLaunch widening(std::string title, const Operand& operand) {
  KernelLaunch launch = conversion_launch(std::move(title), widening_kernel(operand.format, operand.product));
  launch.accesses = {{Access::Memory::tensor, operand.tensor, Access::Use::reads},
                     {Access::Memory::workspace, operand.piece, Access::Use::writes}};
  if (operand.format == Format::nvfp4) {
    launch.accesses.push_back({Access::Memory::scales, operand.tensor, Access::Use::reads});
  }
  launch.bind = [operand](const CallTensors& call, LaunchArguments& out) {
    operand.bind(call, out);
    return true;
  };
  return launch;
}

LibraryProduct product_of(std::string title, const ProductProblem& problem, const Operand& tokens,
                          const Operand& weights, std::size_t result_offset, std::size_t scratch_piece) {
  LibraryProduct product;
  product.title = std::move(title);
  product.input = tokens.product;
  product.m = problem.rows;
  product.n = problem.n;
  product.k = problem.k;
  product.d_row_stride = intermediate_stride(problem.n);
  product.bind = [tokens, weights, result_offset](const CallTensors& call) {
    return LibraryProduct::Addresses{.a = tokens.address(call),
                                     .a_row_stride = tokens.row_stride(call),
                                     .b = weights.address(call),
                                     .b_row_stride = weights.row_stride(call),
                                     .d = static_cast<std::byte*>(call.workspace) + result_offset,
                                     .rows = tokens_of(call).shape[0]};
  };
  product.scratch_piece = scratch_piece;
  return product;
}

KernelLaunch activation_launch(const ProductProblem& problem, const PlannedCall& call, std::size_t gate_piece,
                               std::size_t up_piece) {
  KernelLaunch launch = conversion_launch("activate", activate_kernel(problem.activation->kind, problem.out));
  launch.accesses = {{Access::Memory::workspace, gate_piece, Access::Use::depends_on_previous},
                     {Access::Memory::workspace, up_piece, Access::Use::depends_on_previous},
                     {Access::Memory::global_scale, tokens_index, Access::Use::reads},
                     {Access::Memory::global_scale, gate_index, Access::Use::reads},
                     {Access::Memory::global_scale, up_index, Access::Use::reads},
                     {Access::Memory::tensor, output_index, Access::Use::writes}};
  launch.bind = [activation = problem.activation.value(), gate_at = call.workspace[gate_piece].offset,
                 up_at = call.workspace[up_piece].offset](const CallTensors& tensors, LaunchArguments& out) {
    const Tensor& c = output_of(tensors);
    ActivateParameters params{};
    params.gate = device_address(tensors.workspace) + gate_at;
    params.up = device_address(tensors.workspace) + up_at;
    params.intermediate_stride = intermediate_stride(c.shape[1]);
    params.out = device_address(c.data);
    params.out_stride = c.strides[0];
    params.rows = static_cast<std::uint32_t>(c.shape[0]);
    params.columns = static_cast<std::uint32_t>(c.shape[1]);
    params.vector_stores = c.strides[0] % outputs_per_thread == 0 ? 1 : 0;
    params.alpha = activation.alpha;
    params.limit = activation.limit;
    params.up_offset = activation.up_offset;
    params.a_scale = device_address(tokens_of(tensors).global_scale);
    params.gate_scale = device_address(gate_of(tensors).global_scale);
    params.up_scale = device_address(up_of(tensors).global_scale);
    out.set(params);
    out.grid.x = static_cast<std::uint32_t>(activation_blocks(c.shape[0], c.shape[1]));
    return true;
  };
  return launch;
}

Format product_format(Format a, Format b) {
  if (a == b) {
    return a == Format::nvfp4 ? Format::fp16 : a;
  }
  if (a == Format::nvfp4) {
    return b;
  }
  return b == Format::nvfp4 ? a : Format::fp32;
}

std::int64_t max_blocks(const ProductProblem& problem) {
  return std::max({widening_blocks(problem.a, problem.rows, problem.k),
                   widening_blocks(problem.b, problem.n, problem.k), activation_blocks(problem.rows, problem.n)});
}

PlannedCall planned_call(const ProductProblem& problem, const Config& config) {
  PlannedCall call;
  const Format product = product_format(problem.a, problem.b);
  const auto add = [&](const char* title, std::int64_t elements, std::int64_t element_bytes) {
    return add_piece(call, title, static_cast<std::size_t>(elements * element_bytes));
  };
  const std::int64_t intermediate = problem.rows * intermediate_stride(problem.n);
  const std::size_t wide_a = add("wide tokens", problem.rows * problem.k, bits(product) / 8);
  const std::size_t wide_b = add("wide weights", config.widens_weights ? problem.n * problem.k : 0, bits(product) / 8);
  const std::size_t gate = add("gate", intermediate, 4);
  const std::size_t up = add("up", intermediate, 4);
  const std::size_t scratch = add("the library's scratch", 0, 1);
  const auto operand = [&](std::size_t tensor, Format format, bool is_copied_always, std::size_t piece) {
    return Operand{tensor, format, product, is_copied_always, piece, call.workspace[piece].offset};
  };
  const Operand tokens = operand(tokens_index, problem.a, problem.a != product, wide_a);
  call.steps.emplace_back(widening("widen the tokens", tokens));
  const auto add_product = [&](const char* name, std::size_t tensor, std::size_t result) {
    const Operand weights = operand(tensor, problem.b, config.widens_weights, wide_b);
    if (config.widens_weights) {
      call.steps.emplace_back(widening(std::string("widen the ") + name + " weights", weights));
    }
    call.steps.emplace_back(
        product_of(std::string(name) + " product", problem, tokens, weights, call.workspace[result].offset, scratch));
  };
  add_product("gate", gate_index, gate);
  add_product("up", up_index, up);
  call.steps.emplace_back(activation_launch(problem, call, gate, up));
  call.data_alignment = product_alignment_bytes;
  if (!config.widens_weights) {
    call.alignments = {{gate_index, product_alignment_bytes}, {up_index, product_alignment_bytes}};
  }
  return call;
}

/// A conversion reads values as they are stored and writes 16 bits.
void add_conversion(WorkModel& work, const char* title, Format format, double elements) {
  if (format_traits(format).has_scales()) {
    work.parts.emplace_back(MemoryPass{title, elements * (stored_bits(format) + 16) / 8});
  }
}

bool must_widen(const ProductProblem& problem) { return problem.b != product_format(problem.a, problem.b); }

struct TwoPass : FamilyDefaults<ProductProblem, Config> {
  static constexpr Overrides overrides{
      .role = true, .steady_knobs = true, .own_choice = true, .candidates = true, .work = true, .built_in = true};
  static constexpr std::string_view name = "two_pass";
  static constexpr std::string_view summary = "two products of the vendor's library into float32, then the activation";
  static Role role(const ProductProblem&) { return Role::fallback; }
  /// A library chooses how it sums by the number of rows.
  static std::optional<Knobs> steady_knobs(const ProductProblem&) { return std::nullopt; }

  static const KnobTable<Config>& knob_table() {
    static const KnobTable<Config> table{
        "thresher::strategies::gemm::two_pass::Config",
        {flag("widens_weights", &Config::widens_weights, "weights are copied for the library before each product")}};
    return table;
  }

  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec&) {
    const auto takes = [](Format format) { return is_16_bit(format) || format == Format::nvfp4; };
    if (!takes(problem.a) || !takes(problem.b)) {
      return fmt::format("strategy two_pass takes fp16, bf16 and nvfp4, not {} with {}", thresher::name(problem.a),
                         thresher::name(problem.b));
    }
    return cannot_quantize_output(name, problem.out);
  }

  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec&) {
    std::vector<std::string> found;
    if (must_widen(problem) && !config.widens_weights) {
      found.push_back(fmt::format("weights of {} with tokens of {} must be widened: leave widens_weights = false out",
                                  thresher::name(problem.b), thresher::name(problem.a)));
    }
    if (const std::int64_t blocks = max_blocks(problem); blocks > max_blocks_of_a_grid) {
      found.push_back(fmt::format("a matrix needs {} blocks of two_pass, a GPU takes {} at once: split the problem",
                                  blocks, max_blocks_of_a_grid));
    }
    return found;
  }

  static Config own_choice(const ProductProblem& problem, const Knobs&, const DeviceSpec&) {
    return {.widens_weights = must_widen(problem)};
  }
  /// Weights as they lie first: those that the library cannot read take the second.
  static std::vector<Config> candidates(const ProductProblem&, const Config&, const Knobs&, const DeviceSpec&) {
    return {{.widens_weights = false}, {.widens_weights = true}};
  }

  static WorkModel work(const ProductProblem& problem, const Config&, const DeviceSpec&) {
    WorkModel work;
    add_conversion(work, "converting the weights", problem.b, 2.0 * static_cast<double>(problem.n * problem.k));
    add_conversion(work, "converting the tokens", problem.a, static_cast<double>(problem.rows * problem.k));
    work.parts.emplace_back(LibraryProducts{.count = 2, .m = problem.rows, .n = problem.n, .k = problem.k});
    const double outputs = static_cast<double>(problem.rows * problem.n);
    work.parts.emplace_back(MemoryPass{"the activation", outputs * (2 * 4 + bits(problem.out) / 8.0)});
    return work;
  }

  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    return planned_call(problem, config);
  }

  /// One program holds every kernel of it.
  static std::vector<Sample<ProductProblem>> built_in() {
    return {{DualGemmProblem{.m = 8, .n = 8, .k = 16, .a = Format::nvfp4, .b = Format::nvfp4}, {}}};
  }
};

}  // namespace
}  // namespace two_pass

const Strategy<ProductProblem>& two_pass_strategy() { return strategy_of<two_pass::TwoPass>(); }

}  // namespace thresher::strategies::gemm
