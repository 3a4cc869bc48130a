#include "cli/activation_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "formats/weight_parts.hpp"

namespace thresher::cli {
namespace {

constexpr const char* no_config = "no config.json";

struct LayerOfMatrix {
  formats::FeedForwardNames names;
  std::int64_t number = 0;
};

/// Of "model.layers.3.mlp.gate_proj".
std::optional<LayerOfMatrix> layer_of(std::string_view matrix) {
  constexpr std::string_view layers = "layers.";
  const std::size_t at = matrix.find(layers);
  if (at == std::string_view::npos || (at > 0 && matrix[at - 1] != '.')) {
    return std::nullopt;
  }
  LayerOfMatrix found;
  const std::string_view rest = matrix.substr(at + layers.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), found.number);
  if (error != std::errc{} || end == rest.data() + rest.size() || *end != '.') {
    return std::nullopt;
  }
  found.names.prefix = matrix.substr(0, at);
  found.names.has_experts = rest.find(".experts.") != std::string_view::npos;
  return found;
}

}  // namespace

void ActivationOptions::add_to(CLI::App& command) {
  constants_ = add_activation(command, activation_);
  kind_ = command.get_option("--activation");
}

Activation ActivationOptions::given() const {
  check_parameters(constants_, activation_);
  return activation_;
}

formats::SourcedActivation ActivationOptions::chosen(const formats::ModelConfig& config,
                                                     const formats::FeedForwardNames& layer,
                                                     std::int64_t number) const {
  if (kind_->count() > 0) {
    return {given(), config.is_there() ? "--activation, not config.json" : "--activation"};
  }
  formats::SourcedActivation chosen = config.activation(layer, number);
  check_parameters(constants_, chosen.activation);
  constexpr std::array members{&Activation::alpha, &Activation::limit, &Activation::up_offset};
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (constants_[i]->count() > 0) {
      chosen.activation.*members[i] = activation_.*members[i];
      chosen.source += ", " + constants_[i]->get_name();
    }
  }
  return chosen;
}

formats::SourcedActivation ActivationOptions::chosen(const formats::Checkpoint& checkpoint,
                                                     const std::string& matrix) const {
  const std::optional<LayerOfMatrix> layer = layer_of(matrix);
  if (!layer) {
    return {given(), no_config};
  }
  const std::filesystem::path file = formats::WeightParts(checkpoint, matrix).values().file->path();
  return chosen(formats::ModelConfig::beside(file), layer->names, layer->number);
}

void say_what_config_chose(const formats::SourcedActivation& chosen) {
  if (chosen.source.starts_with("config.json")) {
    fmt::print("activation: {}\n", described(chosen));
  }
}

std::string described(const formats::SourcedActivation& chosen) {
  const Activation& activation = chosen.activation;
  return fmt::format("{}{} ({})", name(activation.kind), constants_text(activation), chosen.source);
}

}  // namespace thresher::cli
