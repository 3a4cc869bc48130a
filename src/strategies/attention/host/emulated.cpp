#include "strategies/attention/host/emulated.hpp"

#include <array>

#include "strategies/attention/pipelined/device/kernel.hpp"
#include "strategies/attention/pipelined/strategy.hpp"
#include "strategies/attention/simple/device/kernel.hpp"
#include "strategies/attention/simple/strategy.hpp"
#include "strategies/attention/split/device/kernel.hpp"
#include "strategies/attention/split/strategy.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::SplitConfig;
using pipeline::attention::StreamConfig;

constexpr std::array streams{
    StreamConfig{64, 128, 2, 1, 1, true, false, false}, StreamConfig{64, 128, 2, 3, 1, false, true, false},
    StreamConfig{128, 128, 2, 1, 1, true, false, true, true}, StreamConfig{128, 128, 2, 2, 1, true, true, true, true}};

constexpr SplitConfig split_of(int head_dim, int cluster, bool whole) {
  return {
      .head_dim = head_dim, .cluster = cluster, .whole = whole, .parts = 4, .inspect_early = whole, .meet_early = true};
}

constexpr std::array splits{
    split_of(64, 1, false),  split_of(64, 2, false),  split_of(64, 4, false),  split_of(64, 8, false),
    split_of(128, 1, false), split_of(128, 2, false), split_of(128, 4, false), split_of(128, 8, false),
    split_of(64, 1, true),   split_of(64, 2, true),   split_of(64, 4, true),   split_of(64, 8, true),
    split_of(128, 1, true),  split_of(128, 2, true),  split_of(128, 4, true),  split_of(128, 8, true)};

template <class Element, std::size_t... stream, std::size_t... split_index>
void add_format(std::vector<CompiledIn>& kernels, Format format, std::index_sequence<stream...>,
                std::index_sequence<split_index...>) {
  kernels.push_back({simple_expression(format, 64), &host_kernel<&simple<Element, 64>>});
  kernels.push_back({simple_expression(format, 128), &host_kernel<&simple<Element, 128>>});
  (kernels.push_back({pipelined_expression(streams[stream], format, Logits::direct),
                      &host_kernel<&pipelined<streams[stream], Element, Logits::direct>>}),
   ...);
  (kernels.push_back({split_expression(splits[split_index], format, Logits::direct),
                      &host_kernel<&split<splits[split_index], Element, Logits::direct>>}),
   ...);
}

}  // namespace

std::vector<CompiledIn> compiled_in() {
  std::vector<CompiledIn> kernels;
  const auto stream_indices = std::make_index_sequence<streams.size()>();
  const auto split_indices = std::make_index_sequence<splits.size()>();
  add_format<Half>(kernels, Format::fp16, stream_indices, split_indices);
  add_format<BFloat16>(kernels, Format::bf16, stream_indices, split_indices);
  return kernels;
}

}  // namespace thresher::strategies::attention
