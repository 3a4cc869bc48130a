#include <fmt/format.h>

#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"

namespace thresher::strategies::gemm::wgmma {
namespace {

std::string_view side(const Config& config) { return config.tokens_are_rows ? "rows" : "columns"; }

KnobTable<Config> make_table(bool tokens_are_rows) {
  const auto of_columns = [&](Knob<Config> knob) { return tokens_are_rows ? from_problem(std::move(knob)) : knob; };
  const auto of_rows = [&](Knob<Config> knob) { return tokens_are_rows ? knob : from_problem(std::move(knob)); };
  return {
      "thresher::strategies::gemm::wgmma::Config",
      {from_problem(flag("tokens_are_rows", &Config::tokens_are_rows, "")),
       numerics_knob("numerics", &Config::numerics,
                     "sums of FP8 are accumulated in float32, or left to the tensor cores, which keep 14 bits"),
       number_knob("operand", &Config::operand),
       scaling_knob("token_scaling", &Config::token_scaling),
       scaling_knob("weight_scaling", &Config::weight_scaling),
       number_knob("output", &Config::output),
       scaling_knob("output_scaling", &Config::output_scaling),
       from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
       activation_knob("activation", &Config::activation),
       from_problem(flag("bias", &Config::bias, "")),
       from_problem(flag("row_weights", &Config::row_weights, "")),
       from_problem(flag("gathered", &Config::gathered, "")),
       tokens_are_rows ? range("math_warpgroups", &Config::math_warpgroups, 2, 3, 1, "warpgroups that multiply")
                       : range("math_warpgroups", &Config::math_warpgroups, 1, 4, 1,
                               "warpgroups that multiply, 128 rows of weights each"),
       tokens_are_rows
           ? flag("by_turns", &Config::by_turns, "each consumer warpgroup takes tiles of its own; else all share each")
           : flag("by_turns", &Config::by_turns, "each takes tiles of its own: one finishes while another multiplies"),
       of_columns(number("least_tokens", &Config::least_tokens, {8, 16, 32, 64, 128}, "columns of a tile at least")),
       tokens_are_rows ? range("block_tokens", &Config::block_tokens, 64, 256, 64, "the most tokens of a tile")
                       : number("block_tokens", &Config::block_tokens, {8, 16, 32, 64, 96, 128, 160, 192},
                                "the most tokens of a tile"),
       of_columns(number("token_step", &Config::token_step, {0, 16, 32},
                         "between widths of more than 64 columns; 0: each is twice the one below")),
       of_rows(
           range("block_outputs", &Config::block_outputs, 8, 128, 8, "outputs of a tile; of one matrix half of them")),
       number("block_k", &Config::block_k, {32, 64, 128, 192, 256}, "elements along K of a stage"),
       range("stages", &Config::stages, tokens_are_rows ? 2 : 1, 16, 1, "stage buffers"),
       of_columns(
           range("blocks_resident", &Config::blocks_resident, 1, 4, 1, "blocks meant to share a multiprocessor")),
       of_columns(flag("static_tiles", &Config::static_tiles,
                       "of one group: a block has one tile, and loads weights before the launch ahead has ended")),
       of_columns(number("split_k", &Config::split_k, {1, 2, 3, 4, 5, 6, 7, 8},
                         "blocks of a cluster that share the K of its one tile and add up")),
       registers_knob("loader_registers", &Config::loader_registers, "of a producer thread; 0: as launched"),
       registers_knob("math_registers", &Config::math_registers, "of a consumer thread; 0: as launched"),
       from_problem(flag("profiled", &Config::profiled, "")),
       of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))}};
}

}  // namespace

const KnobTable<Config>& knob_table(bool tokens_are_rows) {
  static const KnobTable<Config> columns = make_table(false);
  static const KnobTable<Config> rows = make_table(true);
  return tokens_are_rows ? rows : columns;
}

std::string kernel_expression(const Config& config) {
  return fmt::format("thresher::strategies::gemm::wgmma::{}_kernel<{}>", side(config),
                     knob_table(config.tokens_are_rows).spelling(config));
}

DeviceProgram program(const Config& config) {
  const std::string tile = config.tokens_are_rows
                               ? fmt::format("{} tokens x {} outputs", config.block_tokens, tile_outputs(config))
                               : fmt::format("{} outputs x {} tokens", tile_outputs(config), config.block_tokens);
  return {.title = fmt::format("grouped_gemm {}{}, {} x {} of k, {} stages{}", side(config),
                               number_words(config.operand, config.numerics), tile, config.block_k, config.stages,
                               config.by_turns && !config.tokens_are_rows ? ", ping-pong" : ""),
          .text = fmt::format("#include \"strategies/gemm/wgmma/device/{}.hpp\"\n", side(config)),
          .kernels = {kernel_expression(config)},
          .options = {},
          .only_arch = Arch::sm_90a};
}

}  // namespace thresher::strategies::gemm::wgmma
