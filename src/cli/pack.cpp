// `thresher pack`: prepacks weights for a device into a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/activation_options.hpp"
#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/operand_options.hpp"
#include "cli/weight_options.hpp"
#include "core/printable.hpp"
#include "formats/operands.hpp"
#include "ops/device_memory.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

struct PackFileOptions {
  std::vector<std::string> in;
  std::string out;
  OperandOptions operands;
  WeightNames names;
};

void pack_file(const PackFileOptions& options) {
  leave_no_temporary_files();
  const formats::Checkpoint checkpoint = open_checkpoint(options.in, options.out);
  const auto [gate, up] = options.names.load(checkpoint, options.operands.scale_layout);
  refuse_changed_products(checkpoint, options.names.first_name());
  options.operands.check_scale_layout(std::nullopt, {gate.format(), up.format()});
  const Device device = Device::named(options.operands.device);
  const ops::DeviceTensor gate_there(gate.view(), device);
  const ops::DeviceTensor up_there(up.view(), device);
  save_packed(pack(device, gate_there.tensor(), up_there.tensor(), {.numerics = options.operands.numerics}),
              options.out);
  const std::string stored = gate.stored_as() == up.stored_as()
                                 ? gate.stored_as() + (gate.is_mxfp4() ? "," : "")
                                 : fmt::format("{} and {},", gate.stored_as(), up.stored_as());
  fmt::print("{} (gate) and {} (up) [{}, {}] {} packed for {}, written to {}\n", options.names.gate(),
             options.names.up(), gate.rows(), gate.k(), stored, device.name(), printable(options.out));
}

}  // namespace

void add_pack(CLI::App& app, Context&) {
  const auto options = std::make_shared<PackFileOptions>();
  CLI::App& command =
      *app.add_subcommand("pack", "Arranges the weights of gate and up once for a device, for run --weights");
  command.footer(checkpoint_help);
  add_checkpoint(command, options->in, "Where gate and up are");
  command.add_option("--out", options->out, "File to write the packed weights to")->required();
  options->names.add_to(command);
  options->operands.add_to(command);
  command.callback([options] { pack_file(*options); });
}

}  // namespace thresher::cli
