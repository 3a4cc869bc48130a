// The arguments of user kernels for attention.
#include <fmt/format.h>

#include "arena/attention/inputs.hpp"
#include "arena/attention/parts.hpp"

namespace thresher::arena {
namespace {

void add_extents(const AttentionProblem& p, Arguments& all) {
  all.extent("batch", "sequences", p.batch);
  all.extent("heads", "query heads", p.heads);
  all.extent("kv_heads", "key heads: query head h reads h / (heads / kv_heads)", p.kv_heads);
  all.extent("queries", "of each sequence; of all together with cu_seqlens_q", p.queries);
  all.extent("keys", "of each sequence; of all with cu_seqlens_k; with pages the most of one", p.keys);
  all.extent("head_dim", "columns of q and k", p.head_dim);
  all.extent("value_dim", "columns of v and o", effective_value_dim(p));
  all.extent("pages", "of the cache; 0 without pages", p.pages);
  all.extent("page_size", "keys of a page; 0 without pages", p.page_size);
}

void add_sequences(const AttentionTensors& tensors, Arguments& all) {
  const auto add = [&](const char* name, const char* about, const Tensor& value) {
    Argument& argument = all.input(name, about);
    argument.value = value;
    make_optional(argument);
  };
  add("cu_seqlens_q", "int32 [batch + 1]: sequence b has the queries cu_seqlens_q[b] to cu_seqlens_q[b + 1]",
      tensors.cu_seqlens_q);
  add("cu_seqlens_k", "int32 [batch + 1]: the same of keys", tensors.cu_seqlens_k);
  add("block_table", "int32 [batch, blocks]: key j lies in row j % page_size of page block_table[b, j / page_size]",
      tensors.block_table);
  add("seqused_k", "int32 [batch]: keys of each sequence in pages", tensors.seqused_k);
  add("sinks", "float32 [heads]: a logit that joins the denominator", tensors.sinks);
  add("q_descale", "float32 [batch, kv_heads]: multiplies q in fp8_e4m3", tensors.q_descale);
  add("k_descale", "float32 [batch, kv_heads]: multiplies k in fp8_e4m3", tensors.k_descale);
  add("v_descale", "float32 [batch, kv_heads]: multiplies v in fp8_e4m3", tensors.v_descale);
}

}  // namespace

std::vector<Argument> attention_arguments(const AttentionTask& task, const FindTensor& find) {
  const AttentionProblem& p = task.problem;
  const AttentionTensors tensors = attention_tensors(task, find);
  Arguments all(find);
  add_extents(p, all);
  all.input("q", "[batch, heads, queries, head_dim]; with cu_seqlens_q [queries, heads, head_dim]").value = tensors.q;
  all.input("k", "like q, of keys and kv_heads; in pages [pages, page_size, kv_heads, head_dim]").value = tensors.k;
  all.input("v", "like k, of value_dim columns").value = tensors.v;
  add_sequences(tensors, all);
  all.output("o", "like q, of value_dim columns").value = tensors.o;
  Argument& lse = all.output("lse", "float32 [batch, heads, queries], or [heads, queries]: logarithms of the sums");
  lse.value = tensors.lse;
  make_optional(lse);
  all.flag("causal", "query i sees keys up to i + keys - queries", p.causal);
  all.integer("window_left", "so many keys to the left of that one are seen; -1 for all", p.window_left).usual = -1;
  all.integer("window_right", "the same to the right", p.window_right).usual = -1;
  all.number("scale", "multiplies the products of q and k", effective_scale(p));
  all.number("softcap", "logits become softcap tanh(logit / softcap); 0 for none", p.softcap).usual = 0;
  return std::move(all).all();
}

std::string attention_formats(const AttentionTask& task) {
  const AttentionProblem& p = task.problem;
  return fmt::format("{}*{}->{}", name(effective_q_format(p)), name(effective_kv_format(p)), name(p.format));
}

}  // namespace thresher::arena
