#include "strategies/append/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/integers.hpp"
#include "reference/append_view.hpp"
#include "strategies/append/tensors.hpp"
#include "strategies/launch_tools.hpp"

namespace thresher::strategies::append {
namespace {

/// A small call has at least as many blocks, which share tokens' rows, so that every multiprocessor has some.
constexpr std::int64_t wanted_blocks = 264;

Turn turn_of(const AppendProblem& problem) {
  const std::int64_t half = reference::rotary_dim(problem) / 2;
  switch (problem.pairs) {
    case RotaryPairs::none: return Turn::none;
    case RotaryPairs::halves: return half % piece_columns == 0 ? Turn::halves : Turn::single_halves;
    case RotaryPairs::interleaved: break;
  }
  return Turn::interleaved;
}

Rows rows(const Tensor& tensor) {
  return tensor.data == nullptr ? Rows{} : Rows{device_address(tensor.data), tensor.strides[0], tensor.strides[1]};
}

Pool pool(const Tensor& tensor, const Tensor& descale) {
  return {device_address(tensor.data),
          tensor.strides[0],
          tensor.strides[1],
          tensor.strides[2],
          device_address(descale.data),
          descale.data == nullptr ? 0 : descale.strides[0]};
}

Numbers numbers(const Tensor& tensor) { return {device_address(tensor.data), narrow(tensor.shape[1])}; }

/// The members that the problem alone determines.
AppendParams known_params(const AppendProblem& problem) {
  constexpr std::int64_t largest_position = (std::int64_t{1} << 31) - 1;
  AppendParams params{};
  params.last_position = problem.max_position > 0 ? problem.max_position - 1 : largest_position;
  params.slots_end = problem.pages * problem.page_size;
  params.page_size = problem.page_size;
  params.heads = narrow(problem.heads);
  params.kv_heads = narrow(problem.kv_heads);
  params.head_dim = narrow(problem.head_dim);
  params.value_dim = narrow(reference::value_dim(problem));
  params.rotary_dim = narrow(reference::rotary_dim(problem));
  params.log_step =
      params.rotary_dim == 0 ? 0.0 : -2.0 / params.rotary_dim * std::log(static_cast<double>(problem.theta));
  return params;
}

void add_tensors(AppendParams& params, const CallTensors& call) {
  const auto& all = call.tensors;
  params.q = rows(all[query_index]);
  params.q_out = rows(all[query_out_index]);
  params.k = rows(all[key_index]);
  params.k_out = rows(all[key_out_index]);
  params.v = rows(all[value_index]);
  params.k_cache = pool(all[key_cache_index], all[key_descale_index]);
  params.v_cache = pool(all[value_cache_index], all[value_descale_index]);
  params.positions = numbers(all[positions_index]);
  params.slots = numbers(all[slots_index]);
  params.table = device_address(all[table_index].data);
  params.table_stride = params.table == 0 ? 0 : all[table_index].strides[0];
}

/// Blocks that share one token's rows.
std::int64_t sharing_blocks(const AppendParams& params, Turn turn, std::int64_t tokens) {
  const std::int64_t of_row = items_of_row(turn, params.head_dim, params.rotary_dim);
  const std::int64_t items = (std::int64_t{params.q.data == 0 ? 0U : params.heads} + params.kv_heads) * of_row +
                             std::int64_t{params.kv_heads} * params.value_dim / piece_columns;
  return std::clamp<std::int64_t>(wanted_blocks / tokens, 1, ceil_div(items, std::int64_t{threads}));
}

std::string_view spelling(Turn turn) {
  switch (turn) {
    case Turn::none: return "none";
    case Turn::halves: return "halves";
    case Turn::single_halves: return "single_halves";
    case Turn::interleaved: break;
  }
  return "interleaved";
}

}  // namespace

std::string append_kernel_name(Format format, Format cache, Turn turn) {
  return fmt::format("thresher::strategies::append::append<{}, {}, thresher::strategies::append::Turn::{}>",
                     element_argument(format), element_argument(cache), spelling(turn));
}

std::optional<std::string> obstacle(const AppendProblem& problem, const DeviceSpec& device) {
  if (device.matrix_unit != MatrixUnit::wgmma) {
    return fmt::format("appending runs on the CPU and on GPUs of compute capability 9.0 (Hopper), not on {}",
                       device.name);
  }
  if (problem.theta < 1.0F) {
    return fmt::format("problem.theta is {}, a GPU takes 1 and more", problem.theta);
  }
  constexpr std::int64_t max_columns = std::int64_t{1} << 31;  // of all rows of a token, which 32 bits count
  if (const std::int64_t heads = problem.heads + 2 * problem.kv_heads;
      heads >= max_columns / std::max(problem.head_dim, reference::value_dim(problem))) {
    return fmt::format("problem.heads is {} and problem.kv_heads {}: a GPU takes less than {} columns of a token",
                       problem.heads, problem.kv_heads, max_columns);
  }
  return std::nullopt;
}

PlannedCall append_call(const AppendProblem& problem, const DeviceSpec& device) {
  const Turn turn = turn_of(problem);
  KernelLaunch launch;
  launch.title = "rotate and append";
  launch.expression = append_kernel_name(problem.format, reference::kv_format(problem), turn);
  launch.program = {.title = "append",
                    .text = "#include \"strategies/append/device/kernel.hpp\"\n",
                    .kernels = {launch.expression},
                    .options = {},
                    .only_arch = Arch::sm_90a};
  launch.block.x = threads;
  launch.shared_bytes = shared_bytes(narrow(reference::rotary_dim(problem)));
  launch.dependent = true;
  launch.expected.uses_shared_memory = launch.shared_bytes > 0;
  for (std::size_t index = 0; index < tensor_count; ++index) {
    const bool writes =
        index == query_out_index || index == key_out_index || index == key_cache_index || index == value_cache_index;
    launch.accesses.push_back(
        {Access::Memory::tensor, index, writes ? Access::Use::writes : Access::Use::depends_on_previous});
  }
  launch.bind = [known = known_params(problem), turn](const CallTensors& call, LaunchArguments& out) {
    AppendParams params = known;
    add_tensors(params, call);
    out.set(params);
    const std::int64_t tokens = call.tensors[key_index].shape[0];
    out.grid.x = narrow(tokens);
    out.grid.y = tokens == 0 ? 1 : narrow(sharing_blocks(params, turn, tokens));
    return true;
  };
  const double columns = static_cast<double>((problem.heads + problem.kv_heads) * problem.head_dim +
                                             problem.kv_heads * reference::value_dim(problem));
  PlannedCall call;
  call.strategy = "append";
  call.steps.emplace_back(std::move(launch));
  call.work = {{MemoryPass{"rotating and appending", static_cast<double>(problem.tokens) * columns * 4, false}}};
  call.why = fmt::format("a block a token on {}, more of them where tokens are few", device.name);
  return call;
}

std::vector<PlannedCall> built_in(const DeviceSpec& device) {
  std::vector<PlannedCall> all;
  for (const Format format : {Format::fp16, Format::bf16}) {
    for (const RotaryPairs pairs : {RotaryPairs::halves, RotaryPairs::interleaved}) {
      for (const Format cache : {format, Format::fp8_e4m3}) {
        AppendProblem problem{
            .tokens = 256, .heads = 32, .kv_heads = 8, .head_dim = 128, .format = format, .pairs = pairs};
        problem.kv_format = cache;
        if (!obstacle(problem, device)) {
          all.push_back(append_call(problem, device));
        }
      }
    }
  }
  return all;
}

}  // namespace thresher::strategies::append
