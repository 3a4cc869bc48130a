// thresher run attention: reads q, k, v from one safetensors file, writes o and lse to another.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.hpp"
#include "cli/options.hpp"
#include "core/printable.hpp"
#include "formats/safetensors.hpp"
#include "ops/device_memory.hpp"
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

Format format_of(const formats::StoredTensor& tensor) {
  switch (tensor.dtype) {
    case formats::Dtype::f16: return Format::fp16;
    case formats::Dtype::bf16: return Format::bf16;
    case formats::Dtype::i32: return Format::int32;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}, expected F16 or BF16 (I32 for cu_seqlens)",
                                                           tensor.name, formats::name(tensor.dtype)));
  }
}

/// A tensor of the input file and its bytes.
struct Loaded {
  Tensor view;
  Bytes bytes;
};

Loaded load(const formats::SafetensorsFile& file, const std::string& name) {
  const formats::StoredTensor* stored = file.find(name);
  if (stored == nullptr) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no tensor {}", file.path(), name));
  }
  if (stored->shape.empty() || stored->shape.size() > static_cast<std::size_t>(max_rank)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} dimensions, expected 1 to {}", name, stored->shape.size(), max_rank));
  }
  Loaded loaded{Tensor::contiguous(nullptr, format_of(*stored), stored->shape), file.read(*stored)};
  loaded.view.data = loaded.bytes.data();
  return loaded;
}

/// What the file holds says which problem it is; plan and run check the rest.
AttentionProblem problem_of(const Arguments& arguments, const Loaded& q, const Loaded& k, std::int64_t sequences) {
  const bool variable = sequences > 0;
  const int rank = variable ? 3 : 4;
  for (const auto& [name, tensor] : {std::pair{"q", &q}, std::pair{"k", &k}}) {
    if (tensor->view.rank != rank) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} has {} dimensions, expected {}", name, tensor->view.rank,
                              variable ? "3 ([T,H,D], since there is cu_seqlens_q)" : "4 ([B,H,S,D])"));
    }
  }
  const std::size_t rows = variable ? 0 : 2;
  AttentionProblem problem{.batch = variable ? sequences : q.view.shape[0],
                           .heads = q.view.shape[1],
                           .kv_heads = k.view.shape[1],
                           .queries = q.view.shape[rows],
                           .keys = k.view.shape[rows],
                           .head_dim = q.view.shape[variable ? 2 : 3],
                           .format = q.view.format,
                           .causal = arguments.causal,
                           .window_left = arguments.window[0],
                           .window_right = arguments.window[1],
                           .softcap = arguments.softcap,
                           .variable_length = variable};
  if (arguments.has_scale) {
    problem.scale = arguments.scale;
  }
  return problem;
}

void check_offsets(const char* name, const Loaded& offsets, std::int64_t rows) {
  if (offsets.view.format != Format::int32) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is {}, expected I32", name, thresher::name(offsets.view.format)));
  }
  validate_cu_seqlens(name, {reinterpret_cast<const std::int32_t*>(offsets.bytes.data()), offsets.bytes.size() / 4},
                      rows);
}

void run_attention(const Arguments& arguments) {
  const formats::SafetensorsFile file(arguments.in);
  const Loaded q = load(file, "q");
  const Loaded k = load(file, "k");
  const Loaded v = load(file, "v");
  const bool variable = file.find("cu_seqlens_q") != nullptr || file.find("cu_seqlens_k") != nullptr;
  const Loaded cu_q = variable ? load(file, "cu_seqlens_q") : Loaded{};
  const Loaded cu_k = variable ? load(file, "cu_seqlens_k") : Loaded{};
  const std::int64_t sequences = variable ? std::max<std::int64_t>(cu_q.view.elements() - 1, 1) : 0;
  const AttentionProblem problem = problem_of(arguments, q, k, sequences);
  if (variable) {
    check_offsets("cu_seqlens_q", cu_q, problem.queries);
    check_offsets("cu_seqlens_k", cu_k, problem.keys);
  }
  const Device device = Device::named(arguments.device);
  const Attention attention = plan(device, problem, {.strategy = arguments.strategy});

  const std::vector<std::int64_t> o_shape(q.view.shape.begin(), q.view.shape.begin() + q.view.rank);
  std::vector<std::int64_t> lse_shape{problem.heads, problem.queries};
  if (!variable) {
    lse_shape.insert(lse_shape.begin(), problem.batch);
  }
  const ops::DeviceTensor q_there(q.view, device);
  const ops::DeviceTensor k_there(k.view, device);
  const ops::DeviceTensor v_there(v.view, device);
  const ops::DeviceTensor cu_q_there(cu_q.view, device);
  const ops::DeviceTensor cu_k_there(cu_k.view, device);
  const ops::DeviceTensor o_there(problem.format, o_shape, device);
  const ops::DeviceTensor lse_there(Format::fp32, lse_shape, device);
  const Workspace workspace(device, attention.workspace_bytes());
  attention.run({},
                {.q = q_there.tensor(),
                 .k = k_there.tensor(),
                 .v = v_there.tensor(),
                 .o = o_there.tensor(),
                 .lse = lse_there.tensor(),
                 .cu_seqlens_q = cu_q_there.tensor(),
                 .cu_seqlens_k = cu_k_there.tensor()},
                workspace.data());

  const Bytes o = o_there.to_host();
  const Bytes lse = lse_there.to_host();
  const formats::TensorToWrite outputs[] = {
      {"o", problem.format == Format::fp16 ? formats::Dtype::f16 : formats::Dtype::bf16, o_shape, o},
      {"lse", formats::Dtype::f32, lse_shape, lse}};
  formats::write_safetensors(arguments.out, outputs, {});
  fmt::print("attention {} on {}: o and lse are in {}\n", attention.strategy(), device.name(),
             printable(arguments.out));
}

}  // namespace

void add_run_attention(CLI::App& run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = run.add_subcommand(
      "attention", "O = softmax(Q·Kᵀ·scale + mask)·V: q [B,H,Sq,D] and k, v [B,Hk,Sk,D], or packed with cu_seqlens");
  add_in_and_out(*command, arguments->in, "safetensors file with q, k, v (and cu_seqlens_q, cu_seqlens_k)",
                 arguments->out, "safetensors file to write, with o and lse");
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
