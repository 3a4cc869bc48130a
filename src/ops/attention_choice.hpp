#pragma once
/// Which GPU strategy an attention gets, and with which knobs: a pure function, usable without a GPU.
#include <map>
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "thresher/attention.hpp"

namespace thresher::ops {

struct AttentionChoice {
  std::string strategy;  ///< pipelined, split, simple, rows, rows_shared or rows_coalesced
  pipeline::attention::StreamConfig stream{};
  pipeline::attention::SplitConfig split{};
  strategies::attention::Staging staging{};  ///< of the last three
  std::string why;
};

/// Whether a `split` of `cluster` blocks finds no row of a tile or chunk of keys missing or masked.
bool is_whole(const AttentionProblem& problem, int cluster);

/// The strategy asked for, or the one expected to be fastest on a GPU with that many multiprocessors; knobs override
/// its defaults. Throws Error(invalid_argument) that names a knob which the strategy lacks or a value that it cannot
/// take.
AttentionChoice choose_attention(const AttentionProblem& problem, const AttentionOptions& options, int multiprocessors);

}  // namespace thresher::ops
