#pragma once
/// The feed-forward layer of a model's checkpoint: which of its tensors are gate, up and down.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/checkpoint.hpp"

namespace thresher::formats {

/// Names without ".weight", as load_operand takes them.
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
  std::string prefix;  ///< "model.", what is in front of "layers.3."
  std::string block;   ///< "model.layers.3.mlp"
  bool has_experts = false;
  FeedForwardKind kind = FeedForwardKind::matrices;
  std::vector<FeedForwardMatrices> matrices{};  ///< of each expert, or of the dense layer; none of the other kinds
  /// Both of the other kinds, without their endings. Of blocks there are `gate_up`_blocks, `gate_up`_scales and
  /// `gate_up`_bias, with rows of gate and up in turn, and the same of `down`.
  std::string gate_up{};
  std::string down{};
  bool is_gpt_oss = false;  ///< blocks, or stacks with biases: all other families have none
  std::string left_out{};   ///< what else there is beside the experts and adds to the layer: "shared_experts"
};

/// The layer whose names have "layers.N." in them, in one of these families, X being what is in front of them:
///   X.mlp.{gate,up,down}_proj  and X.feed_forward.{gate,up,down}_proj   dense;
///   X.mlp.{gate_up,down}_proj            Phi-3, GLM-4;
///   X.feed_forward.{w1,w3,w2}            Mistral's own names;
///   X.mlp.experts.E.{gate,up,down}_proj  Qwen, DeepSeek, GLM;
///   X.block_sparse_moe.experts.E.{w1,w3,w2}  Mixtral, and behind feed_forward and ffn too (DeepSeek-V4);
///   X.mlp.experts.{gate_up,down}_proj    all experts in one tensor, as Transformers 5 saves them;
///   X.mlp.experts.{gate_up,down}_proj_blocks  gpt-oss.
/// Several may be there under one number: `prefix` then says which, with or without a dot behind it. Throws
/// Error(invalid_argument) with a sentence that says what there is, for a layer that is not there, is in none of them,
/// is in several places, lacks an expert, or has tensors beside its matrices that change it in an unknown way.
[[nodiscard]] FeedForwardNames feed_forward_names(const Checkpoint& checkpoint, std::int64_t layer,
                                                  const std::optional<std::string>& prefix = std::nullopt);

}  // namespace thresher::formats
