#pragma once
/// Tensors that a quantiser leaves alone, by their names.
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace thresher::formats {

/// Why a tensor of that name stays as it is unless somebody asks for it: what it is, and the pattern that says so.
struct Kept {
  std::string_view what;
  std::string_view pattern;
};

/// Embeddings, heads, norms, biases, routers and gates, and the small matrices beside them that checkpoints of public
/// quantisers keep in 16 bits. Nothing for a tensor that an include pattern asks for, by saying the words themselves:
/// "*embed*" does and "model.*" does not.
[[nodiscard]] std::optional<Kept> kept(std::string_view name, std::span<const std::string> include);

}  // namespace thresher::formats
