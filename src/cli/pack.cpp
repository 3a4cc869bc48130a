// `thresher pack`: weights arranged once for a device, in a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/cli.hpp"
#include "cli/operand_options.hpp"
#include "cli/options.hpp"
#include "formats/operands.hpp"
#include "ops/device_memory.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

struct PackFileOptions {
  std::string in;
  std::string out;
  OperandOptions operands;
};

void pack_file(const PackFileOptions& options) {
  const formats::SafetensorsFile file(options.in);
  const formats::Operand gate = formats::load_operand(file, "b1", options.operands.scale_layout);
  const formats::Operand up = formats::load_operand(file, "b2", options.operands.scale_layout);
  const Device device = Device::named(options.operands.device);
  const ops::DeviceTensor gate_there(gate.view(), device);
  const ops::DeviceTensor up_there(up.view(), device);
  save_packed(pack(device, gate_there.tensor(), up_there.tensor(), {.numerics = options.operands.numerics}),
              options.out);
  fmt::print("b1 (gate) and b2 (up) [{}, {}] {} packed for {}, written to {}\n", gate.rows(), gate.k(),
             name(gate.format()), device.name(), options.out);
}

}  // namespace

void add_pack(CLI::App& app, Context&) {
  const auto options = std::make_shared<PackFileOptions>();
  CLI::App& command =
      *app.add_subcommand("pack", "Arranges the weights b1 and b2 once for a device, for run --weights");
  add_in_and_out(command, options->in, "Safetensors file with b1 (gate) and b2 (up)", options->out,
                 "File to write the packed weights to");
  options->operands.add_to(command);
  command.callback([options] { pack_file(*options); });
}

}  // namespace thresher::cli
