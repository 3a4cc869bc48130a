#include "strategies/moe_layer/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <span>

#include "core/integers.hpp"
#include "cpu/moe_rows.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/moe_layer/params.hpp"
#include "strategies/moe_layer/tensors.hpp"
#include "strategies/quantize/call.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies::moe_layer {
namespace {

/// Shared memory that every GPU has on which these kernels run.
constexpr std::uint32_t max_shared_bytes = 227 * 1024;
constexpr std::uint32_t word_bytes = 4;

constexpr std::int64_t max_experts =
    (max_shared_bytes / word_bytes - max_part_choices - block_choices) / (route_warps + 2) - 1;

DeviceProgram program(std::string title, std::string_view file, std::vector<std::string> kernels) {
  return {.title = std::move(title),
          .text = fmt::format("#include \"strategies/moe_layer/device/{}.hpp\"\n", file),
          .kernels = std::move(kernels),
          .options = {}};
}

/// Blocks that each permute different assignments.
std::uint32_t blocks_of(std::int64_t choices) { return narrow(ceil_div(choices, std::int64_t{block_choices})); }

/// The assignments that a block places: all that it permutes where it gathers no rows. Else as few as give a large GPU
/// a wave of blocks, but enough that each thread copies 16 bytes.
std::uint32_t part_choices(std::uint32_t choices, std::uint32_t row_bytes) {
  constexpr std::int64_t wave_blocks = 128;
  constexpr std::int64_t piece_bytes = route_threads * tma_alignment_bytes;
  if (row_bytes == 0) {
    return block_choices;
  }
  const std::int64_t wanted = std::max(ceil_div(choices, wave_blocks), ceil_div(piece_bytes, row_bytes));
  return std::min(std::bit_ceil(narrow(wanted)), max_part_choices);
}

RouteParams route_params(const CallTensors& call, std::size_t counts_offset) {
  RouteParams params{};
  params.ids = {device_address(call.tensors[ids_index].data)};
  params.counts = {device_address(call.workspace) + counts_offset};
  params.offsets = {device_address(call.tensors[gemm::groups_index].data)};
  params.row_ids = {device_address(call.tensors[gemm::row_ids_index].data)};
  params.inverse = {device_address(call.tensors[inverse_index].data)};
  params.choices = narrow(call.tensors[ids_index].elements());
  params.experts = narrow(call.tensors[gemm::groups_index].elements() - 1);
  params.key_bits = static_cast<std::uint32_t>(std::bit_width(params.experts));
  return params;
}

bool is_of_row_ids(const Access& access) {
  return access.memory == Access::Memory::tensor && access.index == gemm::row_ids_index;
}

KernelLaunch route_launch(const ProductProblem& problem, std::string title, std::string kernel) {
  KernelLaunch launch;
  launch.title = std::move(title);
  launch.program = program("moe_layer, routing", "route", {count_kernel_name(), place_kernel_name()});
  launch.expression = std::move(kernel);
  launch.block.x = route_threads;
  launch.shared_bytes = route_words(narrow(problem.experts), narrow(problem.rows)) * word_bytes;
  launch.dependent = true;
  launch.accesses = {{Access::Memory::tensor, ids_index, Access::Use::depends_on_previous}};
  return launch;
}

/// The counts that the counting launch writes and the permuting one reads.
struct Counts {
  std::size_t piece = 0;
  std::size_t offset = 0;
};

KernelLaunch counting(const ProductProblem& problem, const Counts& counts) {
  KernelLaunch launch = route_launch(problem, "count the assignments", count_kernel_name());
  launch.accesses.push_back({Access::Memory::workspace, counts.piece, Access::Use::writes});
  launch.bind = [offset = counts.offset](const CallTensors& of, LaunchArguments& out) {
    const RouteParams params = route_params(of, offset);
    out.set(params);
    out.grid.x = blocks_of(params.choices) > 1 ? blocks_of(params.choices) : 0;
    return true;
  };
  return launch;
}

/// The gathering launch reads x in place of the product's a, whose scales are written.
void quantize_in(KernelLaunch& launch, Format from) {
  launch.title += " in FP8";
  launch.expression = quantize_kernel_name(from);
  launch.program = program("moe_layer, routing and quantizing", "quantize", {launch.expression});
  std::erase_if(launch.accesses, [](const Access& access) {
    return access.memory == Access::Memory::tensor && access.index == gemm::tokens_index;
  });
  launch.accesses.push_back({Access::Memory::tensor, x_index, Access::Use::depends_on_previous});
  launch.accesses.push_back({Access::Memory::scales, gemm::tokens_index, Access::Use::writes});
}

void set_quantized(RouteParams& params, const CallTensors& of) {
  const Tensor& x = of.tensors[x_index];
  const std::int64_t bytes = bits(x.format) / 8;
  params.gather.from = {device_address(x.data)};
  params.gather.from_stride = static_cast<std::uint64_t>(x.strides[0] * bytes);
  params.gather.row_bytes = narrow(x.shape[1] * bytes);
  const gemm::OutputScaleParams scales = gemm::output_scales(gemm::tokens_of(of));
  params.scales = scales.scales;
  params.scales_row_stride = scales.row_stride;
  params.scales_block_stride = scales.block_stride;
}

/// `gathers` is the gathering launch that this one replaces; null where there is none. It quantizes tokens `from` 16
/// bits.
KernelLaunch sorting(const ProductProblem& problem, const Counts& counts, const KernelLaunch* gathers,
                     std::optional<Format> from) {
  KernelLaunch launch = route_launch(problem, "permute by expert", place_kernel_name());
  for (const std::size_t written :
       {std::size_t{gemm::groups_index}, std::size_t{gemm::row_ids_index}, std::size_t{inverse_index}}) {
    launch.accesses.push_back({Access::Memory::tensor, written, Access::Use::writes});
  }
  launch.accesses.push_back({Access::Memory::workspace, counts.piece, Access::Use::depends_on_previous});
  std::optional<KernelLaunch> gathering;
  if (gathers != nullptr) {
    launch.title += " and gather the rows";
    gathering = *gathers;
    std::copy_if(gathers->accesses.begin(), gathers->accesses.end(), std::back_inserter(launch.accesses),
                 [](const Access& access) { return !is_of_row_ids(access); });
  }
  if (from) {
    quantize_in(launch, *from);
  }
  launch.bind = [offset = counts.offset, gathering, quantizes = from.has_value()](const CallTensors& of,
                                                                                  LaunchArguments& out) {
    RouteParams params = route_params(of, offset);
    if (gathering) {
      params.gather = gemm::gather_params(*gathering, of);
    }
    if (quantizes) {
      set_quantized(params, of);
    }
    params.part_choices = part_choices(params.choices, params.gather.row_bytes);
    out.set(params);
    out.grid.x = blocks_of(params.choices);
    out.grid.y = narrow(ceil_div(std::min(params.choices, block_choices), params.part_choices));
    return true;
  };
  return launch;
}

/// Where one block cannot permute all assignments, a launch ahead counts those of every block.
void add_sorting(const ProductProblem& problem, PlannedCall& call, std::optional<Format> from) {
  const std::uint32_t max_blocks = blocks_of(problem.rows);
  Counts counts;
  counts.piece = add_piece(call, "assignments of an expert in a block",
                           static_cast<std::size_t>(max_blocks > 1 ? max_blocks * problem.experts * word_bytes : 0));
  counts.offset = call.workspace[counts.piece].offset;
  auto at = std::find_if(call.steps.begin(), call.steps.end(), gemm::is_gathering);
  if (at != call.steps.end()) {
    *at = sorting(problem, counts, &std::get<KernelLaunch>(*at), from);
  } else {
    at = call.steps.insert(call.steps.begin(), sorting(problem, counts, nullptr, std::nullopt));
  }
  if (max_blocks > 1) {
    call.steps.insert(at, counting(problem, counts));
  }
}

template <class T>
std::span<T> all_of(const Tensor& tensor) {
  return {static_cast<T*>(tensor.data), static_cast<std::size_t>(tensor.elements())};
}

/// Whether a call's launch waits for the launch ahead before it lets the next one start.
bool releases_after_wait(const Step& step) {
  const auto* const launch = std::get_if<KernelLaunch>(&step);
  return launch != nullptr && launch->releases_after_wait &&
         (launch->alternative == nullptr || launch->alternative->releases_after_wait);
}

KernelLaunch combine_launch(const MoeProblem& problem, bool is_settled) {
  KernelLaunch launch;
  launch.title = "add up the rows";
  launch.expression = combine_kernel_name(problem.rows, problem.out);
  launch.program = program("moe_layer, combining", "combine", {launch.expression});
  launch.block.x = combine_threads;
  launch.dependent = true;
  launch.expected.uses_shared_memory = false;
  const Access::Use of_choices = is_settled ? Access::Use::settled : Access::Use::depends_on_previous;
  launch.accesses = {{Access::Memory::tensor, rows_index, Access::Use::depends_on_previous},
                     {Access::Memory::tensor, combine_inverse_index, of_choices},
                     {Access::Memory::tensor, weights_index, of_choices},
                     {Access::Memory::tensor, out_index, Access::Use::writes}};
  launch.bind = [is_settled](const CallTensors& of, LaunchArguments& arguments) {
    const Tensor& out = of.tensors[out_index];
    const std::int64_t row_bytes = out.strides[0] * bits(out.format) / 8;
    CombineParams params{};
    params.rows = {device_address(of.tensors[rows_index].data)};
    params.inverse = {device_address(of.tensors[combine_inverse_index].data)};
    params.weights = {device_address(of.tensors[weights_index].data)};
    params.out = {device_address(out.data)};
    params.out_stride = static_cast<std::uint64_t>(out.strides[0]);
    params.columns = narrow(out.shape[1]);
    params.top_k = narrow(of.tensors[combine_inverse_index].shape[1]);
    params.wide = device_address(out.data) % tma_alignment_bytes == 0 && row_bytes % tma_alignment_bytes == 0 ? 1 : 0;
    params.settled = is_settled ? 1 : 0;
    arguments.set(params);
    arguments.grid.x = narrow(out.shape[0]);
    arguments.grid.y = narrow(ceil_div(out.shape[1], std::int64_t{combine_threads * thread_columns}));
    return true;
  };
  return launch;
}

}  // namespace

std::string count_kernel_name() { return "thresher::strategies::moe_layer::count_choices_kernel"; }
std::string place_kernel_name() { return "thresher::strategies::moe_layer::place_choices_kernel"; }

std::string combine_kernel_name(Format rows, Format out) {
  return fmt::format(
      "thresher::strategies::moe_layer::combine_rows_kernel<thresher::strategies::gemm::Number::{}, "
      "thresher::strategies::gemm::Number::{}>",
      name(rows), name(out));
}

void require_sortable(std::int64_t experts, DeviceKind device) {
  if (device == DeviceKind::cuda && experts > max_experts) {
    throw Error(ErrorCode::unsupported, fmt::format("problem.experts is {}, expected 1 to {} on a GPU, whose shared "
                                                    "memory counts the assignments of each expert",
                                                    experts, max_experts));
  }
}

std::string quantize_kernel_name(Format from) {
  return fmt::format("thresher::strategies::moe_layer::quantize_choices_kernel<thresher::strategies::gemm::Number::{}>",
                     name(from));
}

PlannedCall with_routing(PlannedCall product, const ProductProblem& problem, DeviceKind device,
                         const std::optional<QuantizedTokens>& tokens) {
  const bool is_gathered = std::any_of(product.steps.begin(), product.steps.end(), gemm::is_gathering);
  const bool has_whole_blocks = problem.a == Format::fp8_block && problem.k % gemm::scale_block == 0;
  const bool quantizes_as_it_gathers = tokens && is_gathered && has_whole_blocks;
  if (tokens && !quantizes_as_it_gathers) {
    product.steps.insert(product.steps.begin(), quantize::quantize_step({.x = tokens->from, .out = problem.a}, device,
                                                                        x_index, gemm::tokens_index, tokens->threads));
  }
  if (device == DeviceKind::cpu) {
    product.steps.insert(product.steps.begin(), HostCall{"permute by expert", [](const CallTensors& of) {
                                                           cpu::sort_choices(
                                                               all_of<const std::int32_t>(of.tensors[ids_index]),
                                                               all_of<std::int32_t>(of.tensors[gemm::groups_index]),
                                                               all_of<std::int32_t>(of.tensors[gemm::row_ids_index]),
                                                               all_of<std::int32_t>(of.tensors[inverse_index]));
                                                         }});
    return product;
  }
  add_sorting(problem, product, quantizes_as_it_gathers ? std::optional(tokens->from) : std::nullopt);
  if (!product.work.parts.empty()) {
    product.work.parts.emplace_back(
        MemoryPass{.title = "permuting by expert", .bytes = 3.0 * static_cast<double>(problem.rows) * word_bytes});
  }
  return product;
}

bool settles(const PlannedCall& call) { return !call.steps.empty() && releases_after_wait(call.steps.back()); }

PlannedCall with_settled_groups(PlannedCall product) {
  bool is_settled = true;
  for (Step& step : product.steps) {
    auto* const launch = std::get_if<KernelLaunch>(&step);
    const auto is_of_groups = [](const Access& access) {
      return access.memory == Access::Memory::tensor && access.index == gemm::groups_index;
    };
    if (is_settled && launch != nullptr && launch->releases_after_wait) {
      for (Access& access : launch->accesses) {
        access.use = is_of_groups(access) ? Access::Use::settled : access.use;
      }
      launch->bind = [bind = launch->bind](CallTensors of, LaunchArguments& out) {
        of.settled_groups = true;
        return bind(of, out);
      };
    }
    is_settled = is_settled && releases_after_wait(step);
  }
  return product;
}

PlannedCall combine_call(const MoeProblem& problem, DeviceKind device, bool is_settled, int threads) {
  PlannedCall call;
  call.strategy = "combine";
  if (device == DeviceKind::cpu) {
    call.steps.emplace_back(HostCall{"add up the rows", [threads](const CallTensors& of) {
                                       cpu::combine_rows(of.tensors[rows_index], of.tensors[combine_inverse_index],
                                                         of.tensors[weights_index], of.tensors[out_index], threads);
                                     }});
    return call;
  }
  call.steps.emplace_back(combine_launch(problem, is_settled));
  const double row_bytes = static_cast<double>(problem.hidden_size * bits(problem.rows)) / 8;
  const double out_bytes = static_cast<double>(problem.hidden_size * bits(problem.out)) / 8;
  const auto tokens = static_cast<double>(problem.tokens);
  call.work.parts = {MemoryPass{.title = "adding up the rows",
                                .bytes = tokens * (static_cast<double>(problem.top_k) * row_bytes + out_bytes),
                                .is_hidden_launch = true}};
  return call;
}

std::vector<PlannedCall> built_in() {
  // More assignments than one block permutes, so that both kernels are among them.
  MoeProblem problem{.experts = 1, .tokens = 2 * block_choices, .top_k = 1, .hidden_size = 8, .intermediate_size = 8};
  std::vector<PlannedCall> calls{with_routing({}, gate_up_problem(problem), DeviceKind::cuda)};
  for (const Format format : {Format::bf16, Format::fp16}) {
    problem.rows = format;
    problem.out = format;
    calls.push_back(combine_call(problem, DeviceKind::cuda));
  }
  problem.quantized_x = Format::fp8_block;
  problem.hidden_size = gemm::scale_block;
  for (const Format from : {Format::bf16, Format::fp16}) {
    PlannedCall gathering;
    (void)gemm::add_gathering(gate_up_problem(problem), std::nullopt, true, gathering);
    calls.push_back(
        with_routing(std::move(gathering), gate_up_problem(problem), DeviceKind::cuda, QuantizedTokens{.from = from}));
  }
  return calls;
}

}  // namespace thresher::strategies::moe_layer
