// `thresher quantize`: quantizes the matrices of a safetensors file to NVFP4, MXFP4 or FP8, under the names of public
// checkpoints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/by_name.hpp"
#include "cli/cli.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "core/printable.hpp"
#include "core/remark.hpp"
#include "formats/quantize_file.hpp"

namespace thresher::cli {
namespace {

struct QuantizeOptions {
  std::string in;
  std::string out;
  formats::QuantizeSelection selection;
  formats::Quantization to = formats::Quantization::nvfp4;
};

/// Prints the converted tensors and bytes, and the unconverted ones by reason, the most bytes first.
void print_sums(const formats::QuantizeReport& report, const std::string& out) {
  struct Left {
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Left> by_reason;
  Left all;
  for (const formats::CopiedTensor& tensor : report.copied) {
    for (Left* const sum : {&by_reason[tensor.reason], &all}) {
      ++sum->tensors;
      sum->bytes += tensor.bytes;
    }
  }
  std::vector<std::pair<std::string, Left>> reasons(by_reason.begin(), by_reason.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  for (const auto& [reason, left] : reasons) {
    fmt::print("left alone, {}: {} bytes in {}\n", reason, left.bytes, left.tensors);
  }
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  for (const formats::QuantizedTensor& tensor : report.quantized) {
    before += tensor.bytes_before;
    after += tensor.bytes_after;
  }
  fmt::print("{} quantized, {} bytes to {}; {} left alone, {} bytes; written to {}\n", report.quantized.size(), before,
             after, all.tensors, all.bytes, printable(out));
}

void quantize(const QuantizeOptions& options) {
  leave_no_temporary_files();
  const formats::QuantizeReport report = formats::quantize_file(options.in, options.out, options.selection, options.to);
  for (const formats::QuantizedTensor& tensor : report.quantized) {
    fmt::print("{} -> {} [{}{}, {}]: {} bytes to {}\n", printable(tensor.name), printable(tensor.new_name),
               tensor.is_stack ? fmt::format("{}, ", tensor.matrices) : "", tensor.rows, tensor.k, tensor.bytes_before,
               tensor.bytes_after);
    if (tensor.lost > 0) {
      print_note(stderr, fmt::format("warning: {} values of {} that are not 0 become 0: {} has none as small\n",
                                     tensor.lost, printable(tensor.name), formats::name(options.to)));
    }
  }
  for (const formats::CopiedTensor& tensor : report.copied) {
    fmt::print("{} left alone: {}\n", printable(tensor.name), tensor.reason);
    if (tensor.is_missed) {
      print_note(stderr, fmt::format("warning: {}, {} bytes, is not quantized: it is {}\n", printable(tensor.name),
                                     tensor.bytes, tensor.reason));
    }
  }
  for (const std::string& pattern : report.idle_excludes) {
    fmt::print("no tensor is excluded by {}\n", quoted_name(pattern));
  }
  print_sums(report, options.out);
}

}  // namespace

void add_quantize(CLI::App& app, Context&) {
  const auto options = std::make_shared<QuantizeOptions>();
  CLI::App& command = *app.add_subcommand(
      "quantize", "Turns F16, BF16 and F32 matrices of a safetensors file into NVFP4, MXFP4 or FP8");
  add_in_and_out(command, options->in, "Safetensors file to read", options->out, "Safetensors file to write");
  command.footer(
      "A pattern is a name in which * stands for any characters and ? for one. Embeddings, heads, norms, biases, "
      "routers\n"
      "and gates, convolutions and what sees images or hears stay as they are unless --include says their word "
      "itself:\n"
      "'*embed*', '*lm_head*'. Stacks [E,rows,K] are quantized matrix by matrix where the tensors beside them say "
      "that\n"
      "they lie so, or where --include is the name.");
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
