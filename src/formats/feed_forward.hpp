#pragma once
/// The feed-forward layer of a model's checkpoint: which of its tensors are gate, up and down.
#include <cstdint>
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

struct FeedForwardNames {
  std::string block;  ///< "model.layers.3.mlp"
  bool has_experts = false;
  std::vector<FeedForwardMatrices> matrices{};  ///< of each expert, or of the dense layer; none where `has_blocks`
  /// All experts in tensors of MXFP4 blocks, as gpt-oss has them: `gate_up`_blocks, `gate_up`_scales and
  /// `gate_up`_bias, with rows of gate and up in turn, and the same of `down`.
  bool has_blocks = false;
  std::string gate_up{};
  std::string down{};
  std::string left_out{};  ///< what else there is beside the experts and adds to the layer: "shared_experts"
};

/// The layer whose names have "layers.N." in them, in one of these families, X being what is in front of them:
///   X.mlp.{gate,up,down}_proj            dense;
///   X.mlp.experts.E.{gate,up,down}_proj  Qwen, DeepSeek, GLM;
///   X.block_sparse_moe.experts.E.{w1,w3,w2}  Mixtral;
///   X.mlp.experts.{gate_up,down}_proj_blocks  gpt-oss.
/// Throws Error(invalid_argument) with a sentence that says what there is, for a layer that is not there, is in none of
/// them, is in several places, or lacks an expert.
[[nodiscard]] FeedForwardNames feed_forward_names(const Checkpoint& checkpoint, std::int64_t layer);

}  // namespace thresher::formats
