// The C interface of attention.
#include "core/integers.hpp"
#include "ops/c_common.hpp"
#include "ops/validate_attention.hpp"

struct thresher_attention : thresher::c::PlanHandle<thresher::Attention> {};

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

AttentionProblem problem_of(const thresher_attention_problem* problem) {
  const thresher_attention_problem given =
      known(problem, "problem", offsetof(thresher_attention_problem, causal), default_problem());
  AttentionProblem made{.batch = given.batch,
                        .heads = given.heads,
                        .kv_heads = given.kv_heads,
                        .queries = given.queries,
                        .keys = given.keys,
                        .head_dim = given.head_dim,
                        .value_dim = given.value_dim,
                        .format = format_of(given.format, "problem.format"),
                        .causal = truth(given.causal, "problem.causal"),
                        .window_left = given.window_left,
                        .window_right = given.window_right,
                        .softcap = given.softcap,
                        .variable_length = truth(given.variable_length, "problem.variable_length"),
                        .page_size = given.page_size,
                        .pages = given.pages,
                        .sinks = truth(given.sinks, "problem.sinks")};
  made.kv_format = optional_format(given.kv_format, "problem.kv_format", given.has_kv_format, "problem.has_kv_format");
  made.q_format = optional_format(given.q_format, "problem.q_format", given.has_q_format, "problem.has_q_format");
  if (truth(given.has_scale, "problem.has_scale")) {
    made.scale = given.scale;
  }
  require_used(given.scale, 0.0F, "problem.scale", made.scale.has_value(), "problem.has_scale");
  return made;
}

AttentionOptions options_of(const thresher_attention_options* options) {
  if (options == nullptr) {
    return {};
  }
  const thresher_attention_options given = known(options, "options", offsetof(thresher_attention_options, threads), {});
  require_unset(given.reserved, "options.reserved");
  return {.strategy = text_or_empty(given.strategy),
          .knobs = Knobs::parse(text_or_empty(given.knobs)),
          .threads = given.threads,
          .dependent_launch = truth(given.dependent_launch, "options.dependent_launch"),
          .deterministic = text_or_empty(given.deterministic)};
}

AttentionTensors tensors_of(const AttentionProblem& problem, const thresher_attention_tensors* tensors) {
  const thresher_attention_tensors given =
      known(tensors, "tensors", offsetof(thresher_attention_tensors, lse), thresher_attention_tensors{});
  require_unset(given.reserved, "tensors.reserved");
  return {.q = tensor_of(given.q, "q"),
          .k = tensor_of(given.k, "k"),
          .v = tensor_of(given.v, "v"),
          .o = tensor_of(given.o, "o"),
          .lse = optional_tensor(given.lse, "lse"),
          .cu_seqlens_q = optional_tensor(given.cu_seqlens_q, "cu_seqlens_q"),
          .cu_seqlens_k = optional_tensor(given.cu_seqlens_k, "cu_seqlens_k"),
          .block_table = optional_tensor(given.block_table, "block_table"),
          .seqused_k = optional_tensor(given.seqused_k, "seqused_k"),
          .sinks = optional_tensor(given.sinks, "sinks"),
          .q_descale = ops::expanded_descale(optional_tensor(given.q_descale, "q_descale"), problem),
          .k_descale = ops::expanded_descale(optional_tensor(given.k_descale, "k_descale"), problem),
          .v_descale = ops::expanded_descale(optional_tensor(given.v_descale, "v_descale"), problem)};
}

Tensor with_strides(Tensor tensor, const std::int64_t* strides) {
  if (strides != nullptr) {
    std::copy_n(strides, tensor.rank, tensor.strides.begin());
  }
  return tensor;
}

/// q or o: [batch, heads, rows, columns], or without the batch where lengths vary: then rows come before heads.
Tensor rows_of(const thresher_attention& plan, Format format, std::int64_t heads, std::int64_t rows,
               std::int64_t columns, const void* data, const std::int64_t* strides) {
  const AttentionProblem& problem = plan.planned.problem();
  void* const there = const_cast<void*>(data);
  return with_strides(problem.variable_length
                          ? Tensor::contiguous(there, format, {rows, heads, columns}, plan.device)
                          : Tensor::contiguous(there, format, {problem.batch, heads, rows, columns}, plan.device),
                      strides);
}

/// k or v, in pages or not.
Tensor keys_of(const thresher_attention& plan, std::int64_t columns, const void* data, const std::int64_t* strides) {
  const AttentionProblem& problem = plan.planned.problem();
  const Format format = effective_kv_format(problem);
  if (problem.page_size == 0) {
    return rows_of(plan, format, problem.kv_heads, problem.keys, columns, data, strides);
  }
  return with_strides(Tensor::contiguous(const_cast<void*>(data), format,
                                         {problem.pages, problem.page_size, problem.kv_heads, columns}, plan.device),
                      strides);
}

Tensor lse_of(const thresher_attention& plan, float* lse) {
  const AttentionProblem& problem = plan.planned.problem();
  return problem.variable_length
             ? Tensor::contiguous(lse, Format::fp32, {problem.heads, problem.queries}, plan.device)
             : Tensor::contiguous(lse, Format::fp32, {problem.batch, problem.heads, problem.queries}, plan.device);
}

/// int32 or float32 of the plan's device.
template <class Value>
Tensor table_of(const thresher_attention& plan, const Value* data, std::initializer_list<std::int64_t> shape) {
  constexpr Format format = std::is_same_v<Value, float> ? Format::fp32 : Format::int32;
  return Tensor::contiguous(const_cast<Value*>(data), format, shape, plan.device);
}

}  // namespace

void thresher_tensor_init(thresher_tensor* tensor, uint32_t struct_size) { fill(tensor, struct_size); }

void thresher_attention_problem_init(thresher_attention_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, default_problem());
}

void thresher_attention_options_init(thresher_attention_options* options, uint32_t struct_size) {
  fill(options, struct_size);
}

void thresher_attention_tensors_init(thresher_attention_tensors* tensors, uint32_t struct_size) {
  fill(tensors, struct_size);
}

thresher_status thresher_attention_strategies(thresher_device device, char* names, size_t capacity) {
  return guarded([&] { copy_names(attention_strategies(device_of(device)), names, capacity); });
}

thresher_status thresher_attention_plan(thresher_device device, const thresher_attention_problem* problem,
                                        const thresher_attention_options* options, thresher_attention** plan_out) {
  return create_plan(device, plan_out,
                     [&](const Device& on) { return plan(on, problem_of(problem), options_of(options)); });
}

void thresher_attention_destroy(thresher_attention* plan_handle) { delete plan_handle; }
size_t thresher_attention_workspace_bytes(const thresher_attention* plan_handle) {
  return workspace_bytes_of(plan_handle);
}
const char* thresher_attention_strategy(const thresher_attention* plan_handle) { return strategy_of(plan_handle); }

thresher_status thresher_attention_run(const thresher_attention* plan_handle, void* stream,
                                       const thresher_attention_tensors* tensors, void* workspace) {
  return act_on(plan_handle, [&](const thresher_attention& plan) {
    plan.planned.run(Stream{stream}, tensors_of(plan.planned.problem(), tensors), workspace);
  });
}

thresher_status thresher_attention_run_status(const thresher_attention* plan_handle, void* stream,
                                              const void* workspace, uint32_t* flags) {
  return give_status(plan_handle, stream, workspace, flags);
}

thresher_status thresher_attention_plan_flat(int32_t device_kind, int32_t device_ordinal, int32_t format, int64_t batch,
                                             int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys,
                                             int64_t head_dim, int32_t causal, const float* scale, int64_t window_left,
                                             int64_t window_right, const float* softcap, int32_t variable_length,
                                             const char* strategy, const char* knobs, int32_t dependent_launch,
                                             int32_t threads, thresher_attention** plan_out) {
  return thresher_attention_plan_serving_flat(device_kind, device_ordinal, format, format, format, batch, heads,
                                              kv_heads, queries, keys, head_dim, 0, causal, scale, window_left,
                                              window_right, softcap, variable_length, 0, 0, 0, strategy, knobs,
                                              dependent_launch, threads, plan_out);
}

thresher_status thresher_attention_plan_serving_flat(
    int32_t device_kind, int32_t device_ordinal, int32_t format, int32_t q_format, int32_t kv_format, int64_t batch,
    int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys, int64_t head_dim, int64_t value_dim, int32_t causal,
    const float* scale, int64_t window_left, int64_t window_right, const float* softcap, int32_t variable_length,
    int64_t page_size, int64_t pages, int32_t sinks, const char* strategy, const char* knobs, int32_t dependent_launch,
    int32_t threads, thresher_attention** plan_out) {
  thresher_attention_problem problem = default_problem();
  problem.struct_size = sizeof problem;
  problem.format = format;
  problem.has_kv_format = kv_format != format ? 1 : 0;
  problem.kv_format = kv_format != format ? kv_format : 0;
  problem.has_q_format = q_format != format ? 1 : 0;
  problem.q_format = q_format != format ? q_format : 0;
  problem.value_dim = value_dim;
  problem.page_size = page_size;
  problem.pages = pages;
  problem.sinks = sinks;
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
  return thresher_attention_run_serving_flat(plan_handle, stream, q, q_strides, k, k_strides, v, v_strides, o,
                                             o_strides, lse, cu_seqlens_q, cu_seqlens_k, nullptr, 0, nullptr, nullptr,
                                             nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, workspace);
}

thresher_status thresher_attention_run_serving_flat(
    const thresher_attention* plan_handle, void* stream, const void* q, const int64_t* q_strides, const void* k,
    const int64_t* k_strides, const void* v, const int64_t* v_strides, void* o, const int64_t* o_strides, float* lse,
    const int32_t* cu_seqlens_q, const int32_t* cu_seqlens_k, const int32_t* block_table, int64_t block_table_stride,
    const int32_t* seqused_k, const float* sinks, const float* q_descale, const int64_t* q_descale_strides,
    const float* k_descale, const int64_t* k_descale_strides, const float* v_descale, const int64_t* v_descale_strides,
    void* workspace) {
  return act_on(plan_handle, [&](const thresher_attention& plan) {
    const AttentionProblem& problem = plan.planned.problem();
    const std::int64_t width = problem.head_dim;
    const std::int64_t value_width = effective_value_dim(problem);
    const std::int64_t pages = problem.page_size > 0 ? ceil_div(problem.keys, problem.page_size) : 0;
    const auto descale = [&](const float* data, const std::int64_t* strides) {
      return with_strides(table_of(plan, data, {problem.batch, problem.kv_heads}), strides);
    };
    AttentionTensors tensors{
        .q = rows_of(plan, effective_q_format(problem), problem.heads, problem.queries, width, q, q_strides),
        .k = keys_of(plan, width, k, k_strides),
        .v = keys_of(plan, value_width, v, v_strides),
        .o = rows_of(plan, problem.format, problem.heads, problem.queries, value_width, o, o_strides),
        .lse = lse_of(plan, lse),
        .cu_seqlens_q = table_of(plan, cu_seqlens_q, {problem.batch + 1}),
        .cu_seqlens_k = table_of(plan, cu_seqlens_k, {problem.batch + 1}),
        .block_table = table_of(plan, block_table, {problem.batch, pages}),
        .seqused_k = table_of(plan, seqused_k, {problem.batch}),
        .sinks = table_of(plan, sinks, {problem.heads}),
        .q_descale = descale(q_descale, q_descale_strides),
        .k_descale = descale(k_descale, k_descale_strides),
        .v_descale = descale(v_descale, v_descale_strides)};
    if (block_table_stride != 0) {
      tensors.block_table.strides[0] = block_table_stride;
    }
    plan.planned.run(Stream{stream}, tensors, workspace);
  });
}
