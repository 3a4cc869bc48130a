// thresher run attention: reads q, k, v from one safetensors file, writes o and lse to another.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.hpp"
#include "cli/options.hpp"
#include "cli/run_output.hpp"
#include "core/integers.hpp"
#include "core/printable.hpp"
#include "formats/checkpoint.hpp"
#include "formats/stacks.hpp"
#include "formats/weight_parts.hpp"
#include "ops/device_memory.hpp"
#include "ops/validate_attention.hpp"
#include "thresher/attention.hpp"
#include "thresher/error.hpp"
#include "thresher/workspace.hpp"

namespace thresher::cli {
namespace {

using Bytes = std::vector<std::byte>;

struct Arguments {
  std::string in;
  std::string out;
  bool causal = false;
  float scale = 0.0F;
  bool has_scale = false;
  std::vector<std::int64_t> window{-1, -1};
  float softcap = 0.0F;
  std::string device = "best";
  std::string strategy;
};

/// The types that a tensor may have.
struct Types {
  std::vector<std::pair<formats::Dtype, Format>> types;
  const char* names;
};
const Types values{{{formats::Dtype::f16, Format::fp16},
                    {formats::Dtype::bf16, Format::bf16},
                    {formats::Dtype::f8_e4m3, Format::fp8_e4m3}},
                   "F16, BF16 or F8_E4M3"};
const Types factor_types{{{formats::Dtype::f32, Format::fp32}}, "F32"};

Format format_of(const formats::StoredTensor& tensor, const Types& may_be) {
  for (const auto& [dtype, format] : may_be.types) {
    if (tensor.dtype == dtype) {
      return format;
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is {}, expected {}", tensor.name, formats::name(tensor.dtype), may_be.names));
}

/// A tensor of the input file and its bytes; empty where the file has none.
struct Loaded {
  Tensor view;
  Bytes bytes;
  [[nodiscard]] bool is_there() const { return view.rank > 0; }
};

Loaded load_if_there(const formats::Checkpoint& file, const std::string& name, const Types& types) {
  if (!file.has(name)) {
    return {};
  }
  const formats::StoredTensor& stored = *file.find(name).tensor;
  if (stored.shape.empty() || stored.shape.size() > static_cast<std::size_t>(max_rank)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} dimensions, expected 1 to {}", name, stored.shape.size(), max_rank));
  }
  refuse_parts_beside(file, name, std::array{name + "_descale"});
  Loaded loaded{Tensor::contiguous(nullptr, format_of(stored, types), stored.shape), file.find(name).read()};
  loaded.view.data = loaded.bytes.data();
  return loaded;
}

Loaded load_integers_if_there(const formats::Checkpoint& file, const std::string& name) {
  if (!file.has(name)) {
    return {};
  }
  const formats::Stack stack = formats::load_integers(file, name);
  Loaded loaded{stack.view(), {}};
  const auto* const bytes = static_cast<const std::byte*>(loaded.view.data);
  loaded.bytes.assign(bytes, bytes + 4 * loaded.view.elements());
  loaded.view.data = loaded.bytes.data();
  return loaded;
}

Loaded load(const formats::Checkpoint& file, const std::string& name) {
  Loaded loaded = load_if_there(file, name, values);
  if (!loaded.is_there()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no tensor {}", file.title(), name));
  }
  return loaded;
}

/// All tensors that the file may hold.
struct Inputs {
  explicit Inputs(const formats::Checkpoint& file)
      : q(load(file, "q")),
        k(load(file, "k")),
        v(load(file, "v")),
        cu_seqlens_q(load_integers_if_there(file, "cu_seqlens_q")),
        cu_seqlens_k(load_integers_if_there(file, "cu_seqlens_k")),
        block_table(load_integers_if_there(file, "block_table")),
        seqused_k(load_integers_if_there(file, "seqused_k")),
        sinks(load_if_there(file, "sinks", factor_types)),
        q_descale(load_if_there(file, "q_descale", factor_types)),
        k_descale(load_if_there(file, "k_descale", factor_types)),
        v_descale(load_if_there(file, "v_descale", factor_types)) {
    const bool offsets_of_keys = cu_seqlens_k.is_there();
    expect(file, cu_seqlens_q, "cu_seqlens_q", offsets_of_keys || is_paged());
    expect(file, cu_seqlens_k, "cu_seqlens_k", cu_seqlens_q.is_there() && !is_paged());
    expect(file, block_table, "block_table", is_paged());
    expect(file, seqused_k, "seqused_k", is_paged());
  }

  [[nodiscard]] bool is_paged() const { return block_table.is_there() || seqused_k.is_there(); }
  [[nodiscard]] bool is_variable() const { return cu_seqlens_q.is_there(); }

  Loaded q, k, v, cu_seqlens_q, cu_seqlens_k, block_table, seqused_k, sinks, q_descale, k_descale, v_descale;

 private:
  static void expect(const formats::Checkpoint& file, const Loaded& tensor, const char* name, bool is_needed) {
    if (is_needed && !tensor.is_there()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} has no tensor {}", file.title(), name));
    }
  }
};

void expect_rank(const char* name, const Loaded& tensor, int rank, const char* shape) {
  if (tensor.view.rank != rank) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} dimensions, expected {} ({})", name, tensor.view.rank, rank, shape));
  }
}

/// The number of keys that a row of the block table can address.
std::int64_t max_keys(const Inputs& in) {
  expect_rank("block_table", in.block_table, 2, "[B,pages of a sequence]");
  return size_product(in.block_table.view.shape[1], in.k.view.shape[1]);
}

/// The tensors of the file define the problem; plan and run check the rest.
AttentionProblem problem_of(const Arguments& arguments, const Inputs& in) {
  const bool variable = in.is_variable();
  const bool paged = in.is_paged();
  const char* const packed = "[T,H,D], since there is cu_seqlens_q";
  expect_rank("q", in.q, variable ? 3 : 4, variable ? packed : "[B,H,S,D]");
  for (const auto& [name, tensor] : {std::pair{"k", &in.k}, std::pair{"v", &in.v}}) {
    expect_rank(name, *tensor, variable && !paged ? 3 : 4,
                paged      ? "[pages,page,Hk,D], since there is block_table"
                : variable ? packed
                           : "[B,H,S,D]");
  }
  const auto& q = in.q.view.shape;
  const auto& k = in.k.view.shape;
  const std::size_t rows = variable ? 0 : 2;
  AttentionProblem problem{.batch = variable ? std::max<std::int64_t>(in.cu_seqlens_q.view.elements() - 1, 1) : q[0],
                           .heads = q[1],
                           .kv_heads = paged ? k[2] : k[1],
                           .queries = q[rows],
                           .keys = paged ? max_keys(in) : k[rows],
                           .head_dim = q[variable ? 2 : 3],
                           .value_dim = in.v.view.shape[static_cast<std::size_t>(in.v.view.rank - 1)],
                           .format = in.q.view.format == Format::fp8_e4m3 ? Format::bf16 : in.q.view.format,
                           .causal = arguments.causal,
                           .window_left = arguments.window[0],
                           .window_right = arguments.window[1],
                           .softcap = arguments.softcap,
                           .variable_length = variable,
                           .page_size = paged ? k[1] : 0,
                           .pages = paged ? k[0] : 0,
                           .sinks = in.sinks.is_there()};
  if (in.k.view.format == Format::fp8_e4m3) {
    problem.kv_format = Format::fp8_e4m3;
  }
  if (in.q.view.format == Format::fp8_e4m3) {
    problem.q_format = Format::fp8_e4m3;
  }
  if (arguments.has_scale) {
    problem.scale = arguments.scale;
  }
  return problem;
}

void check_offsets(const char* name, const Loaded& offsets, std::int64_t rows) {
  validate_cu_seqlens(name, {reinterpret_cast<const std::int32_t*>(offsets.bytes.data()), offsets.bytes.size() / 4},
                      rows);
}

/// Checks the contents here, before a GPU reads them.
void check_contents(const AttentionProblem& problem, const Inputs& in) {
  if (in.is_variable()) {
    check_offsets("cu_seqlens_q", in.cu_seqlens_q, problem.queries);
  }
  if (in.is_variable() && !in.is_paged()) {
    check_offsets("cu_seqlens_k", in.cu_seqlens_k, problem.keys);
  }
}

/// Padding rows, which belong to no sequence, stay zero.
ops::DeviceTensor zeros(Format format, const std::vector<std::int64_t>& shape, const Device& device) {
  Tensor host = Tensor::contiguous(nullptr, format, shape);
  Bytes bytes(static_cast<std::size_t>(host.elements()) * static_cast<std::size_t>(bits(format)) / 8);
  host.data = bytes.data();
  return {host, device};
}

void run_attention(const Arguments& arguments) {
  const formats::Checkpoint file{std::filesystem::path(arguments.in)};
  const Inputs in(file);
  const AttentionProblem problem = problem_of(arguments, in);
  check_contents(problem, in);
  const Device device = Device::named(arguments.device);
  const Attention attention = plan(device, problem, {.strategy = arguments.strategy});
  if (in.is_paged()) {
    validate_pages(problem, in.block_table.view, in.seqused_k.view);
  }

  const std::vector<std::int64_t> rows(in.q.view.shape.begin(), in.q.view.shape.begin() + in.q.view.rank - 1);
  std::vector<std::int64_t> o_shape = rows;
  o_shape.push_back(problem.value_dim);
  const std::vector<std::int64_t> lse_shape = in.is_variable() ? std::vector{problem.heads, problem.queries} : rows;
  const ops::DeviceTensor q(in.q.view, device);
  const ops::DeviceTensor k(in.k.view, device);
  const ops::DeviceTensor v(in.v.view, device);
  const ops::DeviceTensor cu_seqlens_q(in.cu_seqlens_q.view, device);
  const ops::DeviceTensor cu_seqlens_k(in.cu_seqlens_k.view, device);
  const ops::DeviceTensor block_table(in.block_table.view, device);
  const ops::DeviceTensor seqused_k(in.seqused_k.view, device);
  const ops::DeviceTensor sinks(in.sinks.view, device);
  const ops::DeviceTensor q_descale(in.q_descale.view, device);
  const ops::DeviceTensor k_descale(in.k_descale.view, device);
  const ops::DeviceTensor v_descale(in.v_descale.view, device);
  const ops::DeviceTensor o = zeros(problem.format, o_shape, device);
  const ops::DeviceTensor lse = zeros(Format::fp32, lse_shape, device);
  const Workspace workspace(device, attention.workspace_bytes());
  attention.run({},
                {.q = q.tensor(),
                 .k = k.tensor(),
                 .v = v.tensor(),
                 .o = o.tensor(),
                 .lse = lse.tensor(),
                 .cu_seqlens_q = cu_seqlens_q.tensor(),
                 .cu_seqlens_k = cu_seqlens_k.tensor(),
                 .block_table = block_table.tensor(),
                 .seqused_k = seqused_k.tensor(),
                 .sinks = sinks.tensor(),
                 .q_descale = ops::expanded_descale(q_descale.tensor(), problem),
                 .k_descale = ops::expanded_descale(k_descale.tensor(), problem),
                 .v_descale = ops::expanded_descale(v_descale.tensor(), problem)},
                workspace.data());

  const Bytes o_bytes = o.to_host();
  const Bytes lse_bytes = lse.to_host();
  const formats::TensorToWrite outputs[] = {
      {"o", problem.format == Format::fp16 ? formats::Dtype::f16 : formats::Dtype::bf16, o_shape, o_bytes},
      {"lse", formats::Dtype::f32, lse_shape, lse_bytes}};
  formats::write_safetensors(arguments.out, outputs, {});
  warn_of_overflow("o", problem.format, o_bytes);
  fmt::print("attention {} on {}, scale {}: o [{}] {} and lse are in {}\n", attention.strategy(), device.name(),
             effective_scale(problem), fmt::join(o_shape, ", "), name(problem.format), printable(arguments.out));
}

}  // namespace

void add_run_attention(CLI::App& run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = run.add_subcommand(
      "attention",
      "O = softmax(Q·Kᵀ·scale + mask)·V: q [B,H,Sq,D] and k, v [B,Hk,Sk,D], packed with cu_seqlens, or in pages");
  add_in_and_out(*command, arguments->in,
                 "safetensors file with q, k, v (and cu_seqlens_q, cu_seqlens_k, block_table, seqused_k, sinks, "
                 "q_descale, k_descale, v_descale)",
                 arguments->out, "safetensors file to write, with lse and o, which is bf16 where q is FP8");
  command->add_flag("--causal", arguments->causal, "a query sees no key to the right of the bottom-right diagonal");
  CLI::Option* scale = command->add_option("--scale", arguments->scale, "of the logits; default 1/sqrt(D)");
  command->add_option("--window", arguments->window, "L,R: visible keys left and right of the diagonal, -1 unbounded")
      ->delimiter(',')
      ->expected(2);
  command->add_option("--softcap", arguments->softcap, "c in c·tanh(logit/c); 0 for none");
  add_device(*command, arguments->device);
  command->add_option("--strategy", arguments->strategy, "instead of the one that is chosen");
  command->callback([arguments, scale] {
    arguments->has_scale = scale->count() > 0;
    run_attention(*arguments);
  });
}

}  // namespace thresher::cli
