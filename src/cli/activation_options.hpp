#pragma once
/// --activation and its constants, with defaults from a model's config.json.
#include <cstdint>
#include <string>

#include "cli/operand_options.hpp"
#include "formats/model_config.hpp"

namespace thresher::cli {

class ActivationOptions {
 public:
  /// --activation, --alpha, --limit and --up-offset. This object must outlive the parsing.
  void add_to(CLI::App& command);

  /// The activation of the options, else of the configuration for that layer; single options may replace its constants.
  /// Throws Error(invalid_argument) as ModelConfig::activation does, and for a constant of another activation.
  [[nodiscard]] formats::SourcedActivation chosen(const formats::ModelConfig& config,
                                                  const formats::FeedForwardNames& layer, std::int64_t number) const;
  /// The same for a matrix with a layer's name, "model.layers.3.mlp.gate_proj", by the config.json beside its file. It
  /// is silu for a matrix without such a name or file. A configuration that changes its products otherwise is rejected.
  [[nodiscard]] formats::SourcedActivation chosen(const formats::Checkpoint& checkpoint, const std::string& matrix,
                                                  bool adds_bias = false) const;
  /// The activation where only the options decide.
  [[nodiscard]] Activation given() const;

 private:
  Activation activation_;
  const CLI::Option* kind_ = nullptr;
  ActivationParameters constants_{};
};

/// Throws Error(invalid_argument) where the layer's config.json changes the meaning of its products. The matrix's name
/// gives the layer; see ModelConfig::refuse_changed_products.
void refuse_changed_products(const formats::Checkpoint& checkpoint, const std::string& matrix);

/// Prints which activation a config.json chose, if it did.
void say_what_config_chose(const formats::SourcedActivation& chosen);

/// "swiglu_clamped, alpha 1, limit 7, up offset 0 (config.json: hidden_act, swiglu_limit)".
[[nodiscard]] std::string described(const formats::SourcedActivation& chosen);

}  // namespace thresher::cli
