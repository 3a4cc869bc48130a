#include "cli/operand_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "cli/by_name.hpp"
#include "cli/options.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {

ActivationParameters add_activation(CLI::App& command, Activation& activation) {
  command.add_option("--activation", activation.kind, "Applied to the gate")
      ->transform(by_name(all_activation_kinds))
      ->option_text("silu|gelu_tanh|swiglu_clamped|situ|relu2");
  return {command.add_option("--alpha", activation.alpha, "Of swiglu_clamped, and of situ, where it is 4 by default")
              ->capture_default_str(),
          command.add_option("--limit", activation.limit, "Of swiglu_clamped, and of situ, where it is 25 by default")
              ->capture_default_str(),
          command.add_option("--up-offset", activation.up_offset, "swiglu_clamped only")->capture_default_str()};
}

void add_activation_of_one(CLI::App& command, std::optional<Activation>& activation) {
  command
      .add_option_function<ActivationKind>(
          "--activation", [&activation](ActivationKind kind) { activation = Activation{.kind = kind}; },
          "Applied to the product; none where it is left out")
      ->transform(by_name(std::array{ActivationKind::relu2}))
      ->option_text("relu2");
}

Activation with_parameters(const ActivationParameters& parameters, Activation given) {
  const Activation usual = usual_activation(given.kind);
  constexpr std::array members{&Activation::alpha, &Activation::limit, &Activation::up_offset};
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (parameters[i]->count() == 0) {
      given.*members[i] = usual.*members[i];
    }
  }
  return given;
}

void check_parameters(const ActivationParameters& parameters, const Activation& activation) {
  const bool is_clamped = activation.kind == ActivationKind::swiglu_clamped;
  for (const CLI::Option* const parameter : parameters) {
    const bool is_of_situ = parameter != parameters.back();
    if (parameter->count() > 0 && !is_clamped && !(is_of_situ && activation.kind == ActivationKind::situ)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is of --activation swiglu_clamped{}, not of {}", parameter->get_name(),
                              is_of_situ ? " or situ" : "", name(activation.kind)));
    }
  }
}

std::string constants_text(const Activation& activation) {
  if (activation.kind == ActivationKind::situ) {
    return fmt::format(", alpha {}, limit {}", activation.alpha, activation.limit);
  }
  return activation.kind == ActivationKind::swiglu_clamped
             ? fmt::format(", alpha {}, limit {}, up offset {}", activation.alpha, activation.limit,
                           activation.up_offset)
             : "";
}

void OperandOptions::add_to(CLI::App& command) {
  add_device(command, device);
  command.add_option("--numerics", numerics, "fast, on a Hopper GPU: NVFP4 rounded to e4m3, sums of FP8 not promoted")
      ->transform(by_name(all_numerics))
      ->option_text("exact|fast");
  scale_layout_option = command.add_option("--scale-layout", scale_layout, "How scales lie in the file")
                            ->transform(by_name(all_scale_layouts))
                            ->option_text("row-major|blocked|column-major");
}

void OperandOptions::check_scale_layout(std::optional<Format> tokens, std::initializer_list<Format> weights) const {
  if (scale_layout_option->count() == 0) {
    return;
  }
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::invalid_argument, why + ": leave it out"); };
  const auto has_scales = [](Format format) { return format_traits(format).has_scales(); };
  if (!(tokens && has_scales(*tokens)) && std::none_of(weights.begin(), weights.end(), has_scales)) {
    refuse("--scale-layout: no tensor that is read has scales");
  }
  const auto lie_so = [this](Format format, OperandRole role) {
    return format_traits(format).has_scales() && may_lie(scale_layout, format, role);
  };
  if (!(tokens && lie_so(*tokens, OperandRole::tokens)) &&
      std::none_of(weights.begin(), weights.end(), [&](Format one) { return lie_so(one, OperandRole::weights); })) {
    refuse(fmt::format("--scale-layout {}: no scales that are read may lie so", name(scale_layout)));
  }
}

}  // namespace thresher::cli
