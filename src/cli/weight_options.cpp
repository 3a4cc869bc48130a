#include "cli/weight_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/by_name.hpp"
#include "cli/options.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {

const char* const checkpoint_help =
    "A tensor is named with or without .weight. It is F16 or BF16 [rows,K], or NVFP4: U8 [rows,K/2] with NAME_scale\n"
    "(F8_E4M3 [rows,K/16]) and a global scale, NAME_scale_2 that multiplies (ModelOpt) or, beside NAME_packed,\n"
    "NAME_global_scale that divides (compressed-tensors), or MXFP4: NAME_packed or NAME with NAME_scale (U8 "
    "[rows,K/32]).\n"
    "docs/guides/checkpoints.md has examples.";

void add_checkpoint(CLI::App& command, std::vector<std::string>& in, const std::string& what) {
  command
      .add_option("--in", in,
                  what + ": one or several safetensors files, model.safetensors.index.json, or the folder of a model")
      ->required()
      ->option_text("PATH ... REQUIRED");
}

formats::Checkpoint open_checkpoint(const std::vector<std::string>& in, const std::string& out) {
  formats::Checkpoint checkpoint(std::vector<std::filesystem::path>(in.begin(), in.end()));
  for (const std::filesystem::path& path : checkpoint.paths()) {
    refuse_overwriting_model("--out", out, path.string());
  }
  return checkpoint;
}

void WeightNames::add_to(CLI::App& command, CLI::Option* other) {
  CLI::Option* gate =
      command.add_option("--gate", gate_, "Tensor that the activation is applied to [N,K]")->option_text("NAME [b1]");
  CLI::Option* up = command.add_option("--up", up_, "The other tensor [N,K]")->option_text("NAME [b2]");
  CLI::Option* fused =
      command.add_option("--gate-up", fused_, "One tensor with the rows of both [2N,K]")->option_text("NAME");
  CLI::Option* order =
      command.add_option("--gate-up-order", order_, "How they lie in it; a wrong order gives wrong numbers, no error")
          ->transform(by_name(all_gate_up_orders))
          ->option_text("gate-first|up-first|interleaved");
  gate->needs(up);
  up->needs(gate);
  fused->needs(order)->excludes(gate)->excludes(up);
  order->needs(fused);
  if (other != nullptr) {
    other->excludes(gate)->excludes(up)->excludes(fused);
  }
}

void WeightNames::check_are_two() const {
  if (gate_ == up_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--gate and --up both name {}: if it holds the rows of both, name it with --gate-up and "
                            "--gate-up-order",
                            quoted_name(gate_)));
  }
}

formats::GateUp WeightNames::load(const formats::Checkpoint& checkpoint, ScaleLayout layout) const {
  if (!fused_.empty()) {
    return formats::load_gate_up(checkpoint, fused_, order_, layout);
  }
  check_are_two();
  formats::GateUp both{formats::load_operand(checkpoint, gate_, layout),
                       formats::load_operand(checkpoint, up_, layout)};
  formats::hold_alike(both.gate, both.up);
  return both;
}

std::string WeightNames::gate() const { return fused_.empty() ? printable(gate_) : "gate of " + printable(fused_); }
std::string WeightNames::up() const { return fused_.empty() ? printable(up_) : "up of " + printable(fused_); }

}  // namespace thresher::cli
