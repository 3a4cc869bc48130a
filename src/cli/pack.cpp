// `thresher pack`: weights arranged once for a device, in a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "cli/cli.hpp"
#include "formats/operands.hpp"
#include "ops/device_memory.hpp"
#include "thresher/thresher.hpp"

namespace thresher::cli {
namespace {

struct PackFileOptions {
  std::string in;
  std::string out;
  std::string device;
  Numerics numerics = Numerics::exact;
  ScaleLayout scale_layout = ScaleLayout::row_major;
};

void pack_file(const PackFileOptions& options) {
  const formats::SafetensorsFile file(options.in);
  const formats::Operand gate = formats::load_operand(file, "b1", options.scale_layout);
  const formats::Operand up = formats::load_operand(file, "b2", options.scale_layout);
  const Device device = options.device == "cpu"   ? Device::cpu()
                        : options.device == "gpu" ? Device::cuda(0)
                                                  : Device::best();
  const ops::DeviceTensor gate_there(gate.view(), device);
  const ops::DeviceTensor up_there(up.view(), device);
  save_packed(pack(device, gate_there.tensor(), up_there.tensor(), {.numerics = options.numerics}), options.out);
  fmt::print("b1 (gate) and b2 (up) [{}, {}] {} packed for {}, written to {}\n", gate.rows(), gate.k(),
             name(gate.format()), device.name(), options.out);
}

}  // namespace

void add_pack(CLI::App& app, Context&) {
  const auto options = std::make_shared<PackFileOptions>();
  CLI::App& command =
      *app.add_subcommand("pack", "Arranges the weights b1 and b2 once for a device, for run --weights");
  command.add_option("--in", options->in, "Safetensors file with b1 (gate) and b2 (up)")->required();
  command.add_option("--out", options->out, "File to write the packed weights to")->required();
  command.add_option("--device", options->device, "cpu or gpu; default: a GPU if there is one")
      ->check(CLI::IsMember({"cpu", "gpu"}));
  command.add_option("--numerics", options->numerics, "How NVFP4 enters a GPU's matrix unit")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Numerics>{{"exact", Numerics::exact}, {"fast", Numerics::fast}}))
      ->option_text("exact|fast");
  command.add_option("--scale-layout", options->scale_layout, "How NVFP4 scales lie in the file")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, ScaleLayout>{{"row-major", ScaleLayout::row_major}, {"blocked", ScaleLayout::blocked}}))
      ->option_text("row-major|blocked");
  command.callback([options] { pack_file(*options); });
}

}  // namespace thresher::cli
