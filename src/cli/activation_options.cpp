#include "cli/activation_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
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

/// A number between dots, and the start of the name before it: 6 for "model.layers.3.mlp".
struct Numbered {
  std::size_t begin = 0;
  std::size_t number_at = 0;
};

/// The first "layers.3." in a name, or else the first similar word with a number: "h.3.", "blocks.3.".
std::optional<Numbered> numbered_part(std::string_view matrix) {
  std::optional<Numbered> first;
  std::size_t before = 0;
  for (std::size_t at = 0; at < matrix.size();) {
    const std::size_t end = std::min(matrix.find('.', at), matrix.size());
    const std::string_view part = matrix.substr(at, end - at);
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number && at > 0 && end < matrix.size()) {
      const Numbered found{before, at};
      if (matrix.substr(before, at - before) == "layers.") {
        return found;
      }
      first = first ? first : found;
    }
    before = at;
    at = end + 1;
  }
  return first;
}

/// The layer in a name such as "model.layers.3.mlp.gate_proj".
std::optional<LayerOfMatrix> layer_of(std::string_view matrix) {
  const std::optional<Numbered> part = numbered_part(matrix);
  LayerOfMatrix found;
  const std::string_view rest = part ? matrix.substr(part->number_at) : "";
  if (!part || std::from_chars(rest.data(), rest.data() + rest.size(), found.number).ec != std::errc{}) {
    return std::nullopt;
  }
  found.names.prefix = matrix.substr(0, part->begin);
  found.names.has_experts = rest.find(".experts.") != std::string_view::npos;
  return found;
}

/// Reads the configuration beside the file with the matrix.
formats::ModelConfig config_of(const formats::Checkpoint& checkpoint, const std::string& matrix) {
  return formats::ModelConfig::beside(formats::WeightParts(checkpoint, matrix).values().file->path());
}

}  // namespace

void ActivationOptions::add_to(CLI::App& command) {
  constants_ = add_activation(command, activation_);
  kind_ = command.get_option("--activation");
}

Activation ActivationOptions::given() const {
  check_parameters(constants_, activation_);
  return with_parameters(constants_, activation_);
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

formats::SourcedActivation ActivationOptions::chosen(const formats::Checkpoint& checkpoint, const std::string& matrix,
                                                     bool adds_bias) const {
  const std::optional<LayerOfMatrix> layer = layer_of(matrix);
  if (!layer) {
    return {given(), no_config};
  }
  const formats::ModelConfig config = config_of(checkpoint, matrix);
  config.refuse_changed_products(layer->names, adds_bias);
  return chosen(config, layer->names, layer->number);
}

void refuse_changed_products(const formats::Checkpoint& checkpoint, const std::string& matrix) {
  if (const std::optional<LayerOfMatrix> layer = layer_of(matrix)) {
    config_of(checkpoint, matrix).refuse_changed_products(layer->names);
  }
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
