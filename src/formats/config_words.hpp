#pragma once
/// Keys of config.json as words: of which part of a model they speak, and whether they speak of an activation.
#include <string>
#include <string_view>
#include <vector>

#include "formats/feed_forward.hpp"

namespace thresher::formats {

/// "hidden", "act" of "hidden_act", "hiddenAct" and "hidden.act".
[[nodiscard]] std::vector<std::string> words_of(std::string_view key);

/// Of what names the layer has, and of which keys therefore speak of it.
class LayerWords {
 public:
  explicit LayerWords(const FeedForwardNames& layer);

  /// Of a tower of images or sound, of which the model's own keys do not speak.
  [[nodiscard]] bool sees_or_hears() const noexcept { return sees_ || hears_; }
  /// Whether such a tower's part lies under this key.
  [[nodiscard]] bool is_of_tower(std::string_view key) const;
  /// Whether a part under this key is the layer's: "text_config", or "decoder" of "model.decoder.layers.0.".
  [[nodiscard]] bool is_own_part(std::string_view key) const;
  /// Whether a key, or a part under it, speaks of what is not this layer: "vision_config", "router_act".
  [[nodiscard]] bool is_of_another(std::string_view key) const;
  /// Whether a key speaks of experts and the layer has none.
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
