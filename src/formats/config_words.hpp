#pragma once
/// Keys of config.json as words: which part of a model they describe, and whether they describe an activation.
#include <string>
#include <string_view>
#include <vector>

#include "formats/feed_forward.hpp"

namespace thresher::formats {

/// "hidden", "act" of "hidden_act", "hiddenAct" and "hidden.act".
[[nodiscard]] std::vector<std::string> words_of(std::string_view key);

/// The words in the layer's tensor names, which decide the keys that describe the layer.
class LayerWords {
 public:
  explicit LayerWords(const FeedForwardNames& layer);

  /// A layer of a vision or audio tower, which the model's own keys do not describe.
  [[nodiscard]] bool sees_or_hears() const noexcept { return sees_ || hears_; }
  /// Whether this key holds the part of such a tower.
  [[nodiscard]] bool is_of_tower(std::string_view key) const;
  /// Whether the part under this key is the layer's: "text_config", or "decoder" of "model.decoder.layers.0.".
  [[nodiscard]] bool is_own_part(std::string_view key) const;
  /// Whether a key, or a part under it, describes something other than this layer: "vision_config", "router_act".
  [[nodiscard]] bool is_of_another(std::string_view key) const;
  /// Whether a key describes experts while the layer has none.
  [[nodiscard]] bool is_of_absent_experts(std::string_view key) const;

 private:
  std::vector<std::string> prefix_;
  bool has_experts_;
  bool sees_;
  bool hears_;
};

/// "hidden_act", "ffn_act_fn", "glu_type", "feed_forward_proj"; not "num_activated_experts".
[[nodiscard]] bool speaks_of_activation(std::string_view key);
/// "transform_config", "online_rotation", "hadamard_dim"; not "rotary_dim".
[[nodiscard]] bool speaks_of_rotation(std::string_view key);

}  // namespace thresher::formats
