#pragma once
/// config.json, which lies beside a model's weights: what it says of a feed-forward layer.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/feed_forward.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::formats {

/// An activation, and what says so: "config.json: hidden_act, swiglu_limit".
struct SourcedActivation {
  Activation activation{};
  std::string source;
};

class ModelConfig {
 public:
  /// The config.json of the folder that holds `weights`, which are a folder, an index or a safetensors file. Without
  /// one this says nothing. Throws Error(io) when it cannot be read, and Error(invalid_argument) when it is not an
  /// object in JSON.
  [[nodiscard]] static ModelConfig beside(const std::filesystem::path& weights);
  /// Throws like beside, naming `file`.
  ModelConfig(std::string_view json, std::string file);
  ModelConfig();
  ~ModelConfig();
  ModelConfig(ModelConfig&&) noexcept;
  ModelConfig& operator=(ModelConfig&&) noexcept;

  [[nodiscard]] bool is_there() const noexcept;
  /// What `layer`, the one of that number, applies to its gate: silu where nothing says otherwise. Throws
  /// Error(invalid_argument), naming the key, for an activation that is not computed, for constants that are none, and
  /// for whatever else in the file speaks of an activation that may be this layer's and says another.
  [[nodiscard]] SourcedActivation activation(const FeedForwardNames& layer, std::int64_t number) const;
  /// Throws Error(invalid_argument), naming the key, for what changes the layer in another way and is not computed.
  void refuse_what_is_not_computed(const FeedForwardNames& layer) const;
  /// The same of what changes the products of single matrices: factors, rotations, and biases but where they are added.
  void refuse_changed_products(const FeedForwardNames& layer, bool adds_bias = false) const;
  /// A sentence where the configuration speaks of quantised weights and the layer's, without an exception for some, are
  /// not; else empty. Throws Error(invalid_argument) for blocks of another size than fp8_block has.
  [[nodiscard]] std::string doubt(const FeedForwardNames& layer, Format weights) const;
  /// Throws Error(invalid_argument) with both numbers where the layer is not as large as this says.
  void check_sizes(const FeedForwardNames& layer, std::int64_t experts, std::int64_t hidden_size) const;

 private:
  struct Parsed;

  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace thresher::formats
