#include <array>

#include "strategies/attention/pipelined/device/kernel.hpp"
#include "strategies/attention/pipelined/strategy.hpp"
#include "strategies/attention/simple/device/kernel.hpp"
#include "strategies/attention/split/device/kernel.hpp"
#include "strategies/attention/split/strategy.hpp"
#include "strategies/host/emulated_kernels.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::SplitConfig;
using pipeline::attention::StreamConfig;

constexpr StreamConfig with_shared_keys(StreamConfig config) {
  config.multicast = 2;
  return config;
}

/// The strategies' choices for direct logits: few queries and many, clusters of every size; and the samples.
constexpr std::array streams{stream_choice(64, 64, true, true),
                             stream_choice(64, 64, false, true),
                             stream_choice(128, 128, true, true),
                             stream_choice(128, 128, false, true),
                             stream_choice(192, 128, true, true),
                             stream_choice(192, 128, false, true),
                             stream_choice(256, 256, true, true),
                             stream_choice(256, 256, false, true),
                             with_shared_keys(stream_choice(64, 64, false, true)),
                             with_shared_keys(stream_choice(128, 128, false, true))};

constexpr std::array splits = [] {
  std::array<SplitConfig, 16> all{};
  std::size_t next = 0;
  for (const bool whole : {false, true}) {
    for (const int head_dim : {64, 128}) {
      for (const int cluster : {1, 2, 4, 8}) {
        all[next++] = split_choice(head_dim, cluster, whole);
      }
    }
  }
  return all;
}();

template <class Element, std::size_t... stream, std::size_t... split_index>
void add_format(std::vector<CompiledIn>& kernels, Format format, std::index_sequence<stream...>,
                std::index_sequence<split_index...>) {
  kernels.push_back({simple_expression({format}, 64, 64), &host_kernel<&simple<Element, 64, 64>>});
  kernels.push_back({simple_expression({format}, 128, 128), &host_kernel<&simple<Element, 128, 128>>});
  kernels.push_back({simple_expression({format}, 192, 128), &host_kernel<&simple<Element, 192, 128>>});
  kernels.push_back({simple_expression({format}, 256, 256), &host_kernel<&simple<Element, 256, 256>>});
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
