// `thresher quantize`: the matrices of a safetensors file to NVFP4, under the names that ModelOpt's checkpoints use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/options.hpp"
#include "formats/quantize_file.hpp"

namespace thresher::cli {
namespace {

struct QuantizeOptions {
  std::string in;
  std::string out;
  std::vector<std::string> tensors;
};

void quantize(const QuantizeOptions& options) {
  for (const formats::QuantizedTensor& tensor : formats::quantize_file(options.in, options.out, options.tensors)) {
    fmt::print("{} -> {} [{}, {}]: {} bytes to {}\n", tensor.name, tensor.new_name, tensor.rows, tensor.k,
               tensor.bytes_before, tensor.bytes_after);
  }
}

}  // namespace

void add_quantize(CLI::App& app, Context&) {
  const auto options = std::make_shared<QuantizeOptions>();
  CLI::App& command =
      *app.add_subcommand("quantize", "Turns F16, BF16 and F32 matrices of a safetensors file into NVFP4");
  add_in_and_out(command, options->in, "Safetensors file to read", options->out, "Safetensors file to write");
  command.add_option("--tensor", options->tensors, "Only these; default: every matrix whose K is a multiple of 16");
  command.callback([options] { quantize(*options); });
}

}  // namespace thresher::cli
