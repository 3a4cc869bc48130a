// The C interface of append.
#include "ops/c_common.hpp"

struct thresher_append {
  thresher::Append append;
};

namespace {

using namespace thresher;
using namespace thresher::c;

thresher_append_problem default_append_problem() {
  const AppendProblem defaults;
  thresher_append_problem problem{};
  problem.format = static_cast<thresher_format>(defaults.format);
  problem.heads = defaults.heads;
  problem.kv_heads = defaults.kv_heads;
  problem.head_dim = defaults.head_dim;
  problem.page_size = defaults.page_size;
  problem.pages = defaults.pages;
  problem.pairs = static_cast<thresher_rotary_pairs>(defaults.pairs);
  problem.theta = defaults.theta;
  return problem;
}

AppendProblem append_problem_of(const thresher_append_problem* problem) {
  const thresher_append_problem given =
      known(problem, "problem", offsetof(thresher_append_problem, kv_format), default_append_problem());
  AppendProblem made{.tokens = given.tokens,
                     .heads = given.heads,
                     .kv_heads = given.kv_heads,
                     .head_dim = given.head_dim,
                     .value_dim = given.value_dim,
                     .format = format_of(given.format, "problem.format"),
                     .pairs = enumerator(given.pairs, RotaryPairs::interleaved, "problem.pairs"),
                     .rotary_dim = given.rotary_dim,
                     .theta = given.theta,
                     .max_position = given.max_position,
                     .page_size = given.page_size,
                     .pages = given.pages};
  made.kv_format = optional_format(given.kv_format, "problem.kv_format", given.has_kv_format, "problem.has_kv_format");
  return made;
}

thresher_append_tensors default_append_tensors() {
  thresher_append_tensors tensors{};
  tensors.number_bits = TokenNumbers{}.bits;
  return tensors;
}

/// A descale of one element that all heads share.
Tensor descale_of(const thresher_tensor* descale, const char* argument, std::int64_t kv_heads) {
  Tensor made = optional_tensor(descale, argument);
  if (made.rank == 1 && made.shape[0] == 1) {
    made.shape[0] = kv_heads;
    made.strides[0] = 0;
  }
  return made;
}

AppendTensors append_tensors_of(const AppendProblem& problem, const thresher_append_tensors* tensors) {
  const thresher_append_tensors given =
      known(tensors, "tensors", offsetof(thresher_append_tensors, v_descale), default_append_tensors());
  return {.q = optional_tensor(given.q, "q"),
          .q_out = optional_tensor(given.q_out, "q_out"),
          .k = tensor_of(given.k, "k"),
          .v = tensor_of(given.v, "v"),
          .k_out = optional_tensor(given.k_out, "k_out"),
          .positions = {given.positions, given.number_bits},
          .slots = {given.slots, given.number_bits},
          .cos_sin = optional_tensor(given.cos_sin, "cos_sin"),
          .k_cache = tensor_of(given.k_cache, "k_cache"),
          .v_cache = tensor_of(given.v_cache, "v_cache"),
          .k_descale = descale_of(given.k_descale, "k_descale", problem.kv_heads),
          .v_descale = descale_of(given.v_descale, "v_descale", problem.kv_heads)};
}

}  // namespace

void thresher_append_problem_init(thresher_append_problem* problem, uint32_t struct_size) {
  fill(problem, struct_size, default_append_problem());
}

void thresher_append_tensors_init(thresher_append_tensors* tensors, uint32_t struct_size) {
  fill(tensors, struct_size, default_append_tensors());
}

thresher_status thresher_append_plan(thresher_device device, const thresher_append_problem* problem, int32_t threads,
                                     thresher_append** plan_out) {
  return create(plan_out, "plan",
                [&] { return plan(device_of(device), append_problem_of(problem), {.threads = threads}); });
}

void thresher_append_destroy(thresher_append* plan_handle) { delete plan_handle; }

thresher_status thresher_append_run(const thresher_append* plan_handle, void* stream,
                                    const thresher_append_tensors* tensors) {
  return guarded([&] {
    const Append& append = required(plan_handle, "plan").append;
    append.run(Stream{stream}, append_tensors_of(append.problem(), tensors));
  });
}
