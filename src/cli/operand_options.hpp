#pragma once
/// Options shared by the commands that read operands from a file: the device, NVFP4's numerics and scale layout.
#include <array>
#include <initializer_list>
#include <optional>
#include <string>

#include "thresher/dual_gemm.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace thresher::cli {

/// --alpha, --limit and --up-offset.
using ActivationParameters = std::array<const CLI::Option*, 3>;

/// --activation and its parameters. The variables that they set must outlive the parsing.
ActivationParameters add_activation(CLI::App& command, Activation& activation);
/// --activation of one matrix: relu2, or none where it is left out.
void add_activation_of_one(CLI::App& command, std::optional<Activation>& activation);
/// Throws Error(invalid_argument) for a parameter of another activation.
void check_parameters(const ActivationParameters& parameters, const Activation& activation);
/// The activation with the usual constants of its kind where none is given.
[[nodiscard]] Activation with_parameters(const ActivationParameters& parameters, Activation given);

/// ", alpha 1.702, limit 7, up offset 1" for an activation with constants.
[[nodiscard]] std::string constants_text(const Activation& activation);

struct OperandOptions {
  std::string device = "best";
  Numerics numerics = Numerics::exact;
  ScaleLayout scale_layout = ScaleLayout::row_major;

  CLI::Option* scale_layout_option = nullptr;

  /// Adds --device, --numerics and --scale-layout. This object must outlive the parsing.
  void add_to(CLI::App& command);
  /// Throws Error(invalid_argument) for a --scale-layout that applies to none of these operands.
  void check_scale_layout(std::optional<Format> tokens, std::initializer_list<Format> weights) const;
};

}  // namespace thresher::cli
