#pragma once
/// The feed-forward layer of a model's checkpoint: which of its tensors are gate, up and down.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/checkpoint.hpp"

namespace thresher::formats {

/// Names without ".weight", as load_operand takes them; a layer that is not gated has no gate.
struct FeedForwardMatrices {
  std::string gate;
  std::string up;
  std::string down;
};

enum class FeedForwardKind : std::uint8_t {
  matrices,  ///< gate, up and down, of the dense layer or of each expert
  fused,     ///< a dense layer with gate and up in one matrix, gate first
  stacks,    ///< all experts in tensors of three dimensions: gate and up in one, and down
  blocks,    ///< all experts in tensors of MXFP4 blocks, as gpt-oss has them
};

struct FeedForwardNames {
  std::string prefix;  ///< "model.", the prefix before "layers.3."
  std::string block;   ///< "model.layers.3.mlp"
  bool has_experts = false;
  FeedForwardKind kind = FeedForwardKind::matrices;
  std::vector<FeedForwardMatrices> matrices{};  ///< of each expert, or of the dense layer; otherwise empty
  /// For the other kinds, without endings. Blocks are `gate_up`_blocks and `gate_up`_scales, or with a dot, with
  /// interleaved rows of gate and up, and the same for `down`.
  std::string gate_up{};
  std::string down{};
  std::string gate_up_bias{};  ///< of blocks, with its ending
  std::string down_bias{};
  bool is_gpt_oss = false;  ///< blocks, or stacks with biases, which no other family has
  std::string left_out{};   ///< another part beside the experts that adds to the layer: "shared_experts"

  [[nodiscard]] bool is_gated() const noexcept { return matrices.empty() || !matrices.front().gate.empty(); }
};

/// The layer whose names have "layers.N." in them, in one of these families. X is the prefix before them:
///   X.mlp.{gate,up,down}_proj  and X.feed_forward.{gate,up,down}_proj   dense;
///   X.mlp.{gate_up,down}_proj            Phi-3, GLM-4;
///   X.feed_forward.{w1,w3,w2}            Mistral's own names;
///   X.mlp.experts.E.{gate,up,down}_proj  Qwen, DeepSeek, GLM;
///   X.block_sparse_moe.experts.E.{w1,w3,w2}  Mixtral, and behind feed_forward and ffn too (DeepSeek-V4);
///   X.mlp.experts.{gate_up,down}_proj    all experts in one tensor, as Transformers 5 saves them;
///   X.mlp.experts.{gate_up,down}_proj_blocks  gpt-oss, and block.N.mlp.{mlp1,mlp2}_weight.blocks under its own names;
///   X.mlp.{up,down}_proj, X.mixer.{up,down}_proj and X.mixer.experts.E.{up,down}_proj  Nemotron, without a gate.
/// Several layers may have one number: `prefix` then selects one, with or without a final dot. Throws
/// Error(invalid_argument) with a sentence that says what there is. It rejects a layer that is missing, lacks an
/// expert, is in no family or in several places. Other tensors that change the layer in an unknown way are rejected
/// too.
[[nodiscard]] FeedForwardNames feed_forward_names(const Checkpoint& checkpoint, std::int64_t layer,
                                                  const std::optional<std::string>& prefix = std::nullopt);

}  // namespace thresher::formats
