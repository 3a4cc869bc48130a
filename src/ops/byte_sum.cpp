#include "ops/byte_sum.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/cuda_programs.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "strategies/launch_tools.hpp"
#include "strategies/word_sum/program.hpp"

namespace thresher::ops {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

void add_last(WordSums& sums, std::span<const std::byte> rest, std::size_t index) {
  if (!rest.empty()) {
    std::uint64_t word = 0;
    std::memcpy(&word, rest.data(), rest.size());
    sums.add(word, index);
  }
}

}  // namespace

WordSums byte_sums(std::span<const std::byte> bytes) {
  const std::size_t words = bytes.size() / word_bytes;
  WordSums sums;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * word_bytes, word_bytes);
    sums.add(word, i);
  }
  add_last(sums, bytes.subspan(words * word_bytes), words);
  return sums;
}

WordSums byte_sums_on_gpu(std::span<const std::byte> bytes, int ordinal) {
  namespace word_sum = strategies::word_sum;
  if (strategies::device_address(bytes.data()) % word_bytes != 0) {
    std::vector<std::byte> host(bytes.size());
    runtime::copy(host.data(), bytes.data(), bytes.size(), ordinal);
    return byte_sums(host);
  }
  const std::size_t words = bytes.size() / word_bytes;
  std::array<std::uint64_t, 2> sums{};
  if (words > 0) {
    const runtime::DeviceBuffer on_gpu(ordinal, sizeof sums, "sums over weights");
    runtime::copy(on_gpu.data(), sums.data(), sizeof sums, ordinal);
    const word_sum::WordSumParams params{
        {strategies::device_address(bytes.data())}, words, {strategies::device_address(on_gpu.data())}};
    runtime::LaunchConfig config;
    config.grid = {word_sum::blocks, 1, 1};
    config.block = {word_sum::threads, 1, 1};
    load_program(ordinal, word_sum::program()).kernel(word_sum::kernel()).launch_with(config, params);
    runtime::synchronize({}, ordinal);
    runtime::copy(sums.data(), on_gpu.data(), sizeof sums, ordinal);
  }
  WordSums all{sums[0], sums[1]};
  std::array<std::byte, word_bytes> rest{};
  const auto last = bytes.subspan(words * word_bytes);
  if (!last.empty()) {
    runtime::copy(rest.data(), last.data(), last.size(), ordinal);
  }
  add_last(all, std::span(rest).first(last.size()), words);
  return all;
}

}  // namespace thresher::ops
