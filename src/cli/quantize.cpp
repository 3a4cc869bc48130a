// `thresher quantize`: the matrices of a safetensors file to NVFP4, MXFP4 or FP8, under the names that public
// checkpoints use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/by_name.hpp"
#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "core/printable.hpp"
#include "formats/quantize_file.hpp"

namespace thresher::cli {
namespace {

struct QuantizeOptions {
  std::string in;
  std::string out;
  formats::QuantizeSelection selection;
  formats::Quantization to = formats::Quantization::nvfp4;
};

void quantize(const QuantizeOptions& options) {
  leave_no_temporary_files();
  const formats::QuantizeReport report = formats::quantize_file(options.in, options.out, options.selection, options.to);
  for (const formats::QuantizedTensor& tensor : report.quantized) {
    fmt::print("{} -> {} [{}, {}]: {} bytes to {}\n", printable(tensor.name), printable(tensor.new_name), tensor.rows,
               tensor.k, tensor.bytes_before, tensor.bytes_after);
  }
  for (const formats::CopiedTensor& tensor : report.copied) {
    fmt::print("{} left alone: {}\n", printable(tensor.name), tensor.reason);
  }
  for (const std::string& pattern : report.idle_excludes) {
    fmt::print("no tensor is excluded by {}\n", quoted_name(pattern));
  }
  fmt::print("{} quantised, {} left alone, written to {}\n", report.quantized.size(), report.copied.size(),
             printable(options.out));
}

}  // namespace

void add_quantize(CLI::App& app, Context&) {
  const auto options = std::make_shared<QuantizeOptions>();
  CLI::App& command = *app.add_subcommand(
      "quantize", "Turns F16, BF16 and F32 matrices of a safetensors file into NVFP4, MXFP4 or FP8");
  add_in_and_out(command, options->in, "Safetensors file to read", options->out, "Safetensors file to write");
  command.footer(
      "A pattern is a name in which * stands for any characters and ? for one. Embeddings, heads, norms, biases and\n"
      "routers stay as they are unless --include says their word itself: '*embed*', '*lm_head*'.");
  command.add_option("--include", options->selection.include, "Only tensors of these names; default: every matrix")
      ->option_text("PATTERN ...");
  command.add_option("--exclude", options->selection.exclude, "But not those of these names")
      ->option_text("PATTERN ...");
  command.add_option("--format", options->to, "What they become: FP8 with a scale a matrix, a row or 128 x 128")
      ->transform(by_name(formats::all_quantizations))
      ->option_text("nvfp4|mxfp4|fp8_tensor|fp8_row|fp8_block [nvfp4]");
  command.callback([options] { quantize(*options); });
}

}  // namespace thresher::cli
