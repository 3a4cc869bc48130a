#pragma once
/// Tensors that quantization leaves as they are, by their names.
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace thresher::formats {

/// Why a tensor with that name stays as it is unless it is requested: its kind, and the pattern that says so.
struct Kept {
  std::string_view what;
  std::string_view pattern;
};

/// Embeddings, heads, norms, biases, routers and gates, and the small matrices beside them that public quantizers keep
/// in 16 bits. Empty for a tensor that an include pattern requests by the same word: "*embed*" does and "model.*" does
/// not.
[[nodiscard]] std::optional<Kept> kept(std::string_view name, std::span<const std::string> include);

}  // namespace thresher::formats
