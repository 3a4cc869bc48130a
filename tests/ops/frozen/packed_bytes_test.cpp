// The bytes of packed weights and the names of their layouts, which files on users' disks hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "core/fingerprint.hpp"
#include "frozen_file.hpp"
#include "strategies/emulated_case.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/moe_layer/tensors.hpp"
#include "support/grouped_case.hpp"
#include "thresher/packed_block.hpp"

namespace thresher {
namespace {

using strategies::EmulatedCall;
using strategies::PlannedCall;
using strategies::gemm::Product;

// More than a tile of weights in both dimensions, and whole tiles in neither.
constexpr std::int64_t outputs = 136;
constexpr std::int64_t depth = 592;

std::string hash_of(std::span<const std::byte> bytes) {
  return Fingerprint().add({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).hex();
}

/// What the emulator leaves in each piece when it runs `call`'s packing alone.
void add_packed(test::FrozenLines& lines, const std::string& heading, PlannedCall call,
                const std::vector<strategies::NamedTensor>& tensors) {
  call.steps.clear();
  EmulatedCall packing(call, tensors, test::compiled_in_kernel);
  ASSERT_TRUE(packing.run({}).clean()) << heading;
  auto& entries = lines[fmt::format("{}: {}", call.packed_layout, heading)];
  for (const strategies::WorkspacePiece& piece : call.packed) {
    entries.insert(fmt::format("from {}: {} bytes, {}", piece.offset, piece.bytes,
                               hash_of({packing.packed() + piece.offset, piece.bytes})));
  }
}

/// The card that the strategy is made for, the knobs that choose a layout, and the format of the tokens.
struct Packer {
  const char* card;
  const char* strategy;
  const char* knobs;
  Format tokens;
};
constexpr Packer packers[] = {{"H200", "packed", "numerics=exact", Format::fp16},
                              {"H200", "packed", "numerics=exact", Format::bf16},
                              {"H200", "packed", "numerics=fast", Format::fp16},
                              {"B200", "tcgen05", "", Format::nvfp4}};

std::string heading(const Packer& packer, const std::string& product, ScaleLayout scales) {
  return fmt::format("{} of a {} for tokens in {}, scales {}", packer.strategy, product, name(packer.tokens),
                     name(scales));
}

/// What one of these strategies would launch for the problem.
template <class Strategies, class Problem>
PlannedCall planned(const Strategies& strategies, const Problem& problem, const Packer& packer) {
  for (const auto* const strategy : strategies) {
    if (strategy->name() == packer.strategy) {
      return strategy->plan(problem, Knobs::parse(packer.knobs), device_spec(packer.card));
    }
  }
  throw std::runtime_error(fmt::format("there is no strategy {}", packer.strategy));
}

void add_dual_gemm(test::FrozenLines& lines, const Packer& packer, ScaleLayout scales) {
  test::DualGemmCase host =
      test::DualGemmCase::random({.m = 5, .n = outputs, .k = depth, .a = packer.tokens, .b = Format::nvfp4},
                                 {.scales = scales, .global_scales = false});
  add_packed(
      lines, heading(packer, "dual GEMM", scales),
      planned(strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda), host.problem, packer),
      {{"a", host.a.view()}, {"b1 (gate)", host.b1_gate.view()}, {"b2 (up)", host.b2_up.view()}, {"c", host.c.view()}});
}

void add_grouped(test::FrozenLines& lines, const Packer& packer, ScaleLayout scales, bool has_activation) {
  GroupedProblem problem{.experts = 3, .rows = 11, .n = outputs, .k = depth, .a = packer.tokens, .b = Format::nvfp4};
  if (has_activation) {
    problem.activation = Activation{};
  }
  test::GroupedCase host(problem, {.groups = {0, 4, 4, 11}, .layout = {.scales = scales, .global_scales = false}});
  std::vector<strategies::NamedTensor> tensors;
  for (const Tensor& tensor : strategies::gemm::in_order(weight_views(host.weights()), host.tensors())) {
    tensors.push_back({fmt::format("tensor {}", tensors.size()), tensor});
  }
  add_packed(lines, heading(packer, has_activation ? "grouped dual GEMM" : "grouped GEMM", scales),
             planned(strategies::gemm::strategies_of(Product::grouped, DeviceKind::cuda), problem, packer), tensors);
}

TEST(FrozenPackedBytes, OfEveryLayoutForGpusAreAsTheyWere) {
  test::FrozenLines lines;
  for (const Packer& packer : packers) {
    for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
      ASSERT_NO_FATAL_FAILURE(add_dual_gemm(lines, packer, scales));
      ASSERT_NO_FATAL_FAILURE(add_grouped(lines, packer, scales, true));
      ASSERT_NO_FATAL_FAILURE(add_grouped(lines, packer, scales, false));
    }
  }
  test::expect_frozen("packed_bytes.txt", "A layout of packed weights, and below it its pieces with their hashes.",
                      lines);
}

template <class Weights>
std::string block_of(const Weights& weights) {
  struct alignas(block_alignment) Chunk {
    std::byte bytes[block_alignment];
  };
  const std::size_t size = block_bytes(weights);
  std::vector<Chunk> memory(size / sizeof(Chunk) + 1);
  const std::span<std::byte> block(memory.front().bytes, size);
  to_block(weights, block);
  return fmt::format("{} bytes, {}", size, hash_of(block));
}

TEST(FrozenPackedBytes, OfBlocksOfTheCpuAreAsTheyWere) {
  test::FrozenLines lines;
  for (const Format format : operand_formats) {
    test::DualGemmCase dual =
        test::DualGemmCase::random({.m = 3, .n = outputs, .k = depth, .a = Format::bf16, .b = format});
    lines["dual GEMM"].insert(
        fmt::format("{}: {}", name(format), block_of(pack(Device::cpu(), dual.b1_gate.view(), dual.b2_up.view()))));
    test::GroupedCase grouped({.experts = 3,
                               .rows = 11,
                               .n = outputs,
                               .k = depth,
                               .a = Format::bf16,
                               .b = format,
                               .activation = Activation{}},
                              {.groups = {0, 4, 4, 11}});
    lines["grouped dual GEMM"].insert(
        fmt::format("{}: {}", name(format), block_of(pack(Device::cpu(), grouped.weights()))));
  }
  test::expect_frozen("packed_blocks.txt", "Blocks and files of packed weights, by the format of the weights.", lines);
}

}  // namespace
}  // namespace thresher
