#include "strategies/attention/program.hpp"

namespace thresher::strategies::attention {
namespace {

std::string element(Format format) {
  return format == Format::fp16 ? "thresher::machine::Half" : "thresher::machine::BFloat16";
}

std::string name(Logits logits) {
  return std::string("thresher::strategies::attention::Logits::") + (logits == Logits::direct ? "direct" : "general");
}

/// A program that consists of one kernel of a strategy's header.
DeviceProgram of(const std::string& strategy, const std::string& arguments) {
  return {.title = "attention " + strategy,
          .text = "#include \"strategies/attention/" + strategy + ".hpp\"\n",
          .kernels = {"thresher::strategies::attention::" + strategy + "<" + arguments + ">"},
          .options = {},
          .only_arch = Arch::sm_90a};
}

}  // namespace

DeviceProgram simple_program(Format format, int head_dim) {
  return of("simple", element(format) + ", " + std::to_string(head_dim));
}

DeviceProgram rows_program(Format format, Staging staging) {
  const char* const how = staging == Staging::none ? "none" : staging == Staging::by_row ? "by_row" : "coalesced";
  return of("rows", element(format) + ", " + std::to_string(row_head_dim) +
                        ", thresher::strategies::attention::Staging::" + how);
}

DeviceProgram pipelined_program(Format format, const pipeline::attention::StreamConfig& config, Logits logits) {
  return of("pipelined", "thresher::pipeline::attention::StreamConfig{" + std::to_string(config.head_dim) + ", " +
                             std::to_string(config.keys) + ", " + std::to_string(config.stages) + ", " +
                             std::to_string(config.math_warpgroups) + ", " + std::to_string(config.cluster) + ", " +
                             (config.queries_in_registers ? "true" : "false") + ", " +
                             (config.take_turns ? "true" : "false") + ", " + (config.hold_softmax ? "true" : "false") +
                             ", " + (config.base_descriptors ? "true" : "false") + "}, " + element(format) + ", " +
                             name(logits));
}

DeviceProgram split_program(Format format, const pipeline::attention::SplitConfig& config, Logits logits) {
  std::string knobs = std::to_string(config.head_dim) + ", " + std::to_string(config.cluster) + ", " +
                      (config.whole ? "true, " : "false, ") + std::to_string(config.parts);
  for (const bool knob : {config.inspect_early, config.narrow_exchange, config.meet_early, config.alone}) {
    knobs += knob ? ", true" : ", false";
  }
  return of("split",
            "thresher::pipeline::attention::SplitConfig{" + knobs + "}, " + element(format) + ", " + name(logits));
}

}  // namespace thresher::strategies::attention
