#include "formats/config_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace thresher::formats {
namespace {

using Words = std::vector<std::string>;
using Listed = std::span<const std::string_view>;

bool has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_one_of(const Words& words, Listed listed) {
  return std::any_of(listed.begin(), listed.end(), [&](std::string_view one) { return has(words, one); });
}

constexpr std::array<std::string_view, 6> of_images{"vision", "visual", "vit", "image", "images", "siglip"};
constexpr std::array<std::string_view, 4> of_sound{"audio", "speech", "sound", "whisper"};
constexpr std::array<std::string_view, 3> of_text{"text", "language", "llm"};
/// Prefixes of tensor names that say which part of a model they belong to.
constexpr std::array<std::string_view, 4> roles{"decoder", "encoder", "talker", "thinker"};

/// Words for other layers than a gated feed-forward one, and words about an activation that do not say which.
constexpr std::array<std::string_view, 46> others{
    "video",     "mm",          "projector",  "pooler",  "pooling",    "qformer",   "perceiver",      "adapter",
    "token2wav", "code2wav",    "vocoder",    "tts",     "classifier", "cls",       "classification", "summary",
    "head",      "router",      "routing",    "scoring", "score",      "scores",    "attention",      "attn",
    "mamba",     "ssm",         "conv",       "lora",    "dropout",    "drop",      "checkpoint",     "checkpointing",
    "recompute", "offload",     "offloading", "scheme",  "dtype",      "precision", "bits",           "quantization",
    "quantize",  "compression", "fused",      "kernel",  "dim",        "init"};

constexpr std::array<std::string_view, 10> of_activations{"act", "acts", "activation", "activations", "actfn",
                                                          "glu", "silu", "swish",      "xielu",       "nonlinearity"};
/// The beginnings of such words: "relu2".
constexpr std::array<std::string_view, 5> of_kinds{"geglu", "reglu", "swiglu", "gelu", "relu"};

bool sees(std::string_view key) {
  return key.find("vision") != std::string_view::npos || key.find("visual") != std::string_view::npos ||
         has_one_of(words_of(key), of_images);
}

bool hears(std::string_view key) {
  return key.find("audio") != std::string_view::npos || has_one_of(words_of(key), of_sound);
}

}  // namespace

std::vector<std::string> words_of(std::string_view key) {
  Words words(1);
  bool was_lower = false;
  for (const char letter : key) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) == 0 || (was_lower && std::isupper(code) != 0)) {
      words.emplace_back();
    }
    if (std::isalnum(code) != 0) {
      words.back() += static_cast<char>(std::tolower(code));
    }
    was_lower = std::islower(code) != 0;
  }
  words.erase(std::remove(words.begin(), words.end(), ""), words.end());
  return words;
}

LayerWords::LayerWords(const FeedForwardNames& layer)
    : prefix_(words_of(layer.prefix)),
      has_experts_(layer.has_experts),
      sees_(sees(layer.prefix)),
      hears_(hears(layer.prefix)) {}

bool LayerWords::is_of_tower(std::string_view key) const { return (sees_ && sees(key)) || (hears_ && hears(key)); }

bool LayerWords::is_own_part(std::string_view key) const {
  const Words words = words_of(key);
  const bool has_role = std::any_of(roles.begin(), roles.end(),
                                    [&](std::string_view role) { return has(words, role) && has(prefix_, role); });
  if (sees_or_hears()) {
    return has_role || is_of_tower(key);
  }
  return has_role || (has_one_of(words, of_text) && !is_of_another(key));
}

bool LayerWords::is_of_another(std::string_view key) const {
  const Words words = words_of(key);
  if ((sees(key) && !sees_) || (hears(key) && !hears_) || has_one_of(words, others)) {
    return true;
  }
  if (sees_or_hears() && has_one_of(words, of_text)) {
    return true;
  }
  if (has_experts_ && (has(words, "shared") || has(words, "gate"))) {
    return true;
  }
  const bool has_own_role =
      std::any_of(roles.begin(), roles.end(), [&](std::string_view role) { return has(prefix_, role); });
  return has_own_role && std::any_of(roles.begin(), roles.end(),
                                     [&](std::string_view role) { return has(words, role) && !has(prefix_, role); });
}

bool LayerWords::is_of_absent_experts(std::string_view key) const {
  const Words words = words_of(key);
  return !has_experts_ && std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "moe" || word.starts_with("expert");
  });
}

bool speaks_of_activation(std::string_view key) {
  const Words words = words_of(key);
  const bool names_kind = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return std::any_of(of_kinds.begin(), of_kinds.end(), [&](std::string_view kind) { return word.starts_with(kind); });
  });
  return names_kind || has_one_of(words, of_activations) || key == "feed_forward_proj" ||
         (has(words, "non") && has(words, "linearity"));
}

bool speaks_of_rotation(std::string_view key) {
  const Words words = words_of(key);
  return key == "transform_config" || std::any_of(words.begin(), words.end(), [](const std::string& word) {
           return word == "rotation" || word == "rotate" || word == "rotated" || word == "hadamard";
         });
}

}  // namespace thresher::formats
