// The C interface of attention.
#include "ops/c_common.hpp"

struct thresher_attention {
  thresher::Attention attention;
  thresher::DeviceId device;
};

namespace {

using namespace thresher;
using namespace thresher::c;

thresher_attention_problem default_problem() {
  const AttentionProblem defaults;
  thresher_attention_problem problem{};
  problem.format = static_cast<thresher_format>(defaults.format);
  problem.batch = defaults.batch;
  problem.heads = defaults.heads;
  problem.kv_heads = defaults.kv_heads;
  problem.head_dim = defaults.head_dim;
  problem.window_left = defaults.window_left;
  problem.window_right = defaults.window_right;
  return problem;
}

bool truth(std::int32_t value, const char* argument) { return enumerator(value, 1, argument) == 1; }

AttentionProblem problem_of(const thresher_attention_problem* problem) {
  const thresher_attention_problem given =
      known(problem, "problem", offsetof(thresher_attention_problem, causal), default_problem());
  AttentionProblem made{.batch = given.batch,
                        .heads = given.heads,
                        .kv_heads = given.kv_heads,
                        .queries = given.queries,
                        .keys = given.keys,
                        .head_dim = given.head_dim,
                        .format = format_of(given.format, "problem.format"),
                        .causal = truth(given.causal, "problem.causal"),
                        .window_left = given.window_left,
                        .window_right = given.window_right,
                        .softcap = given.softcap,
                        .variable_length = truth(given.variable_length, "problem.variable_length")};
  if (truth(given.has_scale, "problem.has_scale")) {
    made.scale = given.scale;
  }
  return made;
}

AttentionOptions options_of(const thresher_attention_options* options) {
  if (options == nullptr) {
    return {};
  }
  const thresher_attention_options given = known(options, "options", offsetof(thresher_attention_options, threads), {});
  return {.strategy = text_or_empty(given.strategy),
          .knobs = Knobs::parse(text_or_empty(given.knobs)),
          .threads = given.threads,
          .dependent_launch = truth(given.dependent_launch, "options.dependent_launch")};
}

Tensor tensor_of(const thresher_tensor* tensor, const char* argument) {
  const thresher_tensor given = known(tensor, argument, offsetof(thresher_tensor, strides), thresher_tensor{});
  if (given.rank < 0 || given.rank > max_rank) {
    refuse(std::string(argument) + ".rank is " + std::to_string(given.rank) + ", expected 0 to " +
           std::to_string(max_rank));
  }
  const auto rank = static_cast<std::size_t>(given.rank);
  Tensor made = Tensor::contiguous(given.data, format_of(given.format, argument), std::span(given.shape, rank),
                                   id_of(given.device));
  if (std::any_of(given.strides, given.strides + rank, [](std::int64_t stride) { return stride != 0; })) {
    std::copy_n(given.strides, rank, made.strides.begin());
  }
  return made;
}

Tensor optional_tensor(const thresher_tensor* tensor, const char* argument) {
  return tensor == nullptr ? Tensor{} : tensor_of(tensor, argument);
}

AttentionTensors tensors_of(const thresher_attention_tensors* tensors) {
  const thresher_attention_tensors given =
      known(tensors, "tensors", offsetof(thresher_attention_tensors, lse), thresher_attention_tensors{});
  return {.q = tensor_of(given.q, "q"),
          .k = tensor_of(given.k, "k"),
          .v = tensor_of(given.v, "v"),
          .o = tensor_of(given.o, "o"),
          .lse = optional_tensor(given.lse, "lse"),
          .cu_seqlens_q = optional_tensor(given.cu_seqlens_q, "cu_seqlens_q"),
          .cu_seqlens_k = optional_tensor(given.cu_seqlens_k, "cu_seqlens_k")};
}

/// [batch, heads, rows, columns], or without the batch where lengths vary: then rows come before heads but for lse.
Tensor operand_of(const thresher_attention& plan, std::int64_t heads, std::int64_t rows, const void* data,
                  const std::int64_t* strides) {
  const AttentionProblem& problem = plan.attention.problem();
  void* const there = const_cast<void*>(data);
  Tensor made =
      problem.variable_length
          ? Tensor::contiguous(there, problem.format, {rows, heads, problem.head_dim}, plan.device)
          : Tensor::contiguous(there, problem.format, {problem.batch, heads, rows, problem.head_dim}, plan.device);
  if (strides != nullptr) {
    std::copy_n(strides, made.rank, made.strides.begin());
  }
  return made;
}

Tensor lse_of(const thresher_attention& plan, float* lse) {
  const AttentionProblem& problem = plan.attention.problem();
  return problem.variable_length
             ? Tensor::contiguous(lse, Format::fp32, {problem.heads, problem.queries}, plan.device)
             : Tensor::contiguous(lse, Format::fp32, {problem.batch, problem.heads, problem.queries}, plan.device);
}

Tensor offsets_of(const thresher_attention& plan, const std::int32_t* offsets) {
  return Tensor::contiguous(const_cast<std::int32_t*>(offsets), Format::int32, {plan.attention.problem().batch + 1},
                            plan.device);
}

}  // namespace

void thresher_tensor_init(thresher_tensor* tensor, uint32_t struct_size) {
  fill(tensor, struct_size, thresher_tensor{});
}

void thresher_attention_problem_init(thresher_attention_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, default_problem());
}

void thresher_attention_options_init(thresher_attention_options* options, uint32_t struct_size) {
  fill(options, struct_size, thresher_attention_options{});
}

void thresher_attention_tensors_init(thresher_attention_tensors* tensors, uint32_t struct_size) {
  fill(tensors, struct_size, thresher_attention_tensors{});
}

thresher_status thresher_attention_strategies(thresher_device device, char* names, size_t capacity) {
  return guarded([&] { copy_names(attention_strategies(device_of(device)), names, capacity); });
}

thresher_status thresher_attention_plan(thresher_device device, const thresher_attention_problem* problem,
                                        const thresher_attention_options* options, thresher_attention** plan_out) {
  return guarded([&] {
    required(plan_out, "plan");
    const Device on = device_of(device);
    *plan_out = new thresher_attention{plan(on, problem_of(problem), options_of(options)), on.id()};
  });
}

void thresher_attention_destroy(thresher_attention* plan_handle) { delete plan_handle; }

size_t thresher_attention_workspace_bytes(const thresher_attention* plan_handle) {
  return plan_handle == nullptr ? 0 : plan_handle->attention.workspace_bytes();
}

const char* thresher_attention_strategy(const thresher_attention* plan_handle) {
  return plan_handle == nullptr ? "" : plan_handle->attention.strategy().c_str();
}

thresher_status thresher_attention_run(const thresher_attention* plan_handle, void* stream,
                                       const thresher_attention_tensors* tensors, void* workspace) {
  return guarded([&] { required(plan_handle, "plan").attention.run(Stream{stream}, tensors_of(tensors), workspace); });
}

thresher_status thresher_attention_plan_flat(int32_t device_kind, int32_t device_ordinal, int32_t format, int64_t batch,
                                             int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys,
                                             int64_t head_dim, int32_t causal, const float* scale, int64_t window_left,
                                             int64_t window_right, const float* softcap, int32_t variable_length,
                                             const char* strategy, const char* knobs, int32_t dependent_launch,
                                             int32_t threads, thresher_attention** plan_out) {
  thresher_attention_problem problem = default_problem();
  problem.struct_size = sizeof problem;
  problem.format = format;
  problem.batch = batch;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.queries = queries;
  problem.keys = keys;
  problem.head_dim = head_dim;
  problem.causal = causal;
  problem.has_scale = scale != nullptr ? 1 : 0;
  problem.scale = scale != nullptr ? *scale : 0.0F;
  problem.softcap = softcap != nullptr ? *softcap : 0.0F;
  problem.window_left = window_left;
  problem.window_right = window_right;
  problem.variable_length = variable_length;
  thresher_attention_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  options.strategy = strategy;
  options.knobs = knobs;
  options.dependent_launch = dependent_launch;
  return thresher_attention_plan({device_kind, device_ordinal}, &problem, &options, plan_out);
}

thresher_status thresher_attention_run_flat(const thresher_attention* plan_handle, void* stream, const void* q,
                                            const int64_t* q_strides, const void* k, const int64_t* k_strides,
                                            const void* v, const int64_t* v_strides, void* o, const int64_t* o_strides,
                                            float* lse, const int32_t* cu_seqlens_q, const int32_t* cu_seqlens_k,
                                            void* workspace) {
  return guarded([&] {
    const thresher_attention& plan = required(plan_handle, "plan");
    const AttentionProblem& problem = plan.attention.problem();
    plan.attention.run(Stream{stream},
                       {.q = operand_of(plan, problem.heads, problem.queries, q, q_strides),
                        .k = operand_of(plan, problem.kv_heads, problem.keys, k, k_strides),
                        .v = operand_of(plan, problem.kv_heads, problem.keys, v, v_strides),
                        .o = operand_of(plan, problem.heads, problem.queries, o, o_strides),
                        .lse = lse_of(plan, lse),
                        .cu_seqlens_q = offsets_of(plan, cu_seqlens_q),
                        .cu_seqlens_k = offsets_of(plan, cu_seqlens_k)},
                       workspace);
  });
}
