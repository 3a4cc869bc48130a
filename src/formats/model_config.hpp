#pragma once
/// config.json beside a model's weights: its description of a feed-forward layer.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/feed_forward.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::formats {

/// An activation and its source: "config.json: hidden_act, swiglu_limit".
struct SourcedActivation {
  Activation activation{};
  std::string source;
};

class ModelConfig {
 public:
  /// The config.json of the folder that holds `weights`, which are a folder, an index or a safetensors file. Without
  /// the file the configuration is empty. Throws Error(io) when it cannot be read, and Error(invalid_argument) when it
  /// is not a JSON object.
  [[nodiscard]] static ModelConfig beside(const std::filesystem::path& weights);
  /// Throws like `beside`, naming `file`.
  ModelConfig(std::string_view json, std::string file);
  ModelConfig();
  ~ModelConfig();
  ModelConfig(ModelConfig&&) noexcept;
  ModelConfig& operator=(ModelConfig&&) noexcept;

  [[nodiscard]] bool is_there() const noexcept;
  /// The activation of `layer`, which has that number: silu by default. Throws Error(invalid_argument), naming the key,
  /// for an unsupported activation and for invalid constants. Throws too for any other key that may describe this
  /// layer's activation and disagrees.
  [[nodiscard]] SourcedActivation activation(const FeedForwardNames& layer, std::int64_t number) const;
  /// Throws Error(invalid_argument), naming the key, for other changes of the layer that are not supported.
  void refuse_what_is_not_computed(const FeedForwardNames& layer) const;
  /// The same for changes of the products of single matrices: factors, rotations, and biases unless they are added.
  void refuse_changed_products(const FeedForwardNames& layer, bool adds_bias = false) const;
  /// A sentence if the configuration says that weights are quantized, makes no exceptions, and the layer's are not;
  /// otherwise empty. Throws Error(invalid_argument) for blocks of another size than those of fp8_block.
  [[nodiscard]] std::string doubt(const FeedForwardNames& layer, Format weights) const;
  /// Throws Error(invalid_argument) with both numbers when the layer's sizes differ from the configuration's.
  void check_sizes(const FeedForwardNames& layer, std::int64_t experts, std::int64_t hidden_size) const;

 private:
  struct Parsed;

  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace thresher::formats
