#pragma once
/// --activation and its constants, and what a model's config.json says where they are left out.
#include <cstdint>
#include <string>

#include "cli/operand_options.hpp"
#include "formats/model_config.hpp"

namespace thresher::cli {

class ActivationOptions {
 public:
  /// --activation, --alpha, --limit and --up-offset. This object must outlive the parsing.
  void add_to(CLI::App& command);

  /// What the options say, or what the configuration says of that layer, whose constants single options may replace.
  /// Throws Error(invalid_argument) as ModelConfig::activation does, and for a constant of another activation.
  [[nodiscard]] formats::SourcedActivation chosen(const formats::ModelConfig& config,
                                                  const formats::FeedForwardNames& layer, std::int64_t number) const;
  /// The same for a matrix that is named as a layer's, "model.layers.3.mlp.gate_proj", by the config.json beside its
  /// file; silu for one that is not, or without such a file. What else changes its products is refused.
  [[nodiscard]] formats::SourcedActivation chosen(const formats::Checkpoint& checkpoint, const std::string& matrix,
                                                  bool adds_bias = false) const;
  /// Where nothing but the options may say so.
  [[nodiscard]] Activation given() const;

 private:
  Activation activation_;
  const CLI::Option* kind_ = nullptr;
  ActivationParameters constants_{};
};

/// Throws Error(invalid_argument) where the config.json of the layer that the matrix is named after changes what its
/// products mean, as ModelConfig::refuse_changed_products does.
void refuse_changed_products(const formats::Checkpoint& checkpoint, const std::string& matrix);

/// A line that says which activation a config.json chose, where one did.
void say_what_config_chose(const formats::SourcedActivation& chosen);

/// "swiglu_clamped, alpha 1, limit 7, up offset 0 (config.json: hidden_act, swiglu_limit)".
[[nodiscard]] std::string described(const formats::SourcedActivation& chosen);

}  // namespace thresher::cli
