#pragma once
/// The tensors of an attention's call, in the order in which CallTensors has them.
#include <array>
#include <cstddef>

#include "strategies/planned_call.hpp"
#include "strategies/status_words.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// Optional tensors, those behind the output, have null data where a call has none.
enum TensorIndex : std::size_t {
  query_index,
  key_index,
  value_index,
  output_index,
  lse_index,
  query_offsets_index,  ///< cu_seqlens_q
  key_offsets_index,    ///< cu_seqlens_k
  block_table_index,
  used_keys_index,  ///< seqused_k
  sinks_index,
  query_descale_index,
  key_descale_index,
  value_descale_index,
  tensor_count,
};

inline constexpr std::array<const char*, tensor_count> tensor_names{
    "q",           "k",         "v",     "o",         "lse",       "cu_seqlens_q", "cu_seqlens_k",
    "block_table", "seqused_k", "sinks", "q_descale", "k_descale", "v_descale"};

/// Adds the piece of the workspace in which a kernel reports invalid lengths and pages.
inline constexpr const char* status_name = "status";
inline std::size_t add_status(PlannedCall& call, std::size_t words) {
  return add_piece(call, status_name, status_bytes(words));
}
[[nodiscard]] inline bool is_status(const WorkspacePiece& piece) { return piece.name == status_name; }

inline std::array<Tensor, tensor_count> in_order(const AttentionTensors& of) {
  return {of.q,           of.k,         of.v,     of.o,         of.lse,       of.cu_seqlens_q, of.cu_seqlens_k,
          of.block_table, of.seqused_k, of.sinks, of.q_descale, of.k_descale, of.v_descale};
}

/// The tensors by their names.
inline AttentionTensors named(const CallTensors& call) {
  const auto& all = call.tensors;
  return {.q = all[query_index],
          .k = all[key_index],
          .v = all[value_index],
          .o = all[output_index],
          .lse = all[lse_index],
          .cu_seqlens_q = all[query_offsets_index],
          .cu_seqlens_k = all[key_offsets_index],
          .block_table = all[block_table_index],
          .seqused_k = all[used_keys_index],
          .sinks = all[sinks_index],
          .q_descale = all[query_descale_index],
          .k_descale = all[key_descale_index],
          .v_descale = all[value_descale_index]};
}

}  // namespace thresher::strategies::attention
