// The dual GEMM of FP8 operands on tcgen05 run by the emulator: clean, and bit for bit what the instructions'
// arithmetic gives with the scales of the sums behind it.
#include <gtest/gtest.h>

#include <random>

#include "strategies/tcgen05_plain_case.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {
namespace {

/// Every finite code, a scale for each row and one for all.
class Codes {
 public:
  Codes(std::int64_t rows, std::int64_t k, Scaling scaling, std::mt19937& random)
      : rows_(rows), k_(k), scaling_(scaling), codes_(static_cast<std::size_t>(rows * stride())) {
    for (std::uint8_t& code : codes_) {
      code = static_cast<std::uint8_t>(random() % 0x7F | (random() & 0x80U));
    }
    std::uniform_real_distribution<float> scale(0.01F, 0.02F);
    for (std::int64_t row = 0; row < rows; ++row) {
      scales_.push_back(scale(random));
    }
  }
  [[nodiscard]] Tensor view() {
    Tensor tensor = Tensor::contiguous(codes_.data(), Format::fp8_e4m3, {rows_, k_});
    tensor.strides[0] = stride();
    tensor.scales.data = scaling_ == Scaling::row ? scales_.data() : nullptr;
    tensor.global_scale = scaling_ == Scaling::tensor ? scales_.data() : nullptr;
    return tensor;
  }

 private:
  [[nodiscard]] std::int64_t stride() const { return k_ + 16; }
  std::int64_t rows_;
  std::int64_t k_;
  Scaling scaling_;
  std::vector<std::uint8_t> codes_;
  std::vector<float> scales_;
};

template <Config config>
std::string run_and_compare(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed + 1));
  Codes tokens(m, k, config.token_scaling, random);
  Codes gate(n, k, config.weight_scaling, random);
  Codes up(n, k, config.weight_scaling, random);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(m * n * element_bytes(config.output)), 0xFF);
  const test::Operands call{tokens.view(), gate.view(), up.view(),
                            Tensor::contiguous(out.data(), format_of(config.output), {m, n})};
  if (const std::string found = test::run<config>(call, seed); !found.empty()) {
    return found;
  }
  return test::is_what_instructions_give<config>(call) ? "" : "not what the instructions give";
}

constexpr std::array fp8_configs{
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::tensor,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .output = Number::fp16,
           .blocks = 1,
           .block_tokens = 64,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::tensor,
           .output = Number::fp32,
           .blocks = 2,
           .block_tokens = 48,
           .stages = 2,
           .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::row,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2,
           .persistent = true},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .blocks = 1,
           .block_tokens = 128,
           .stages = 2,
           .split_k = 2},
};
template <std::size_t index>
struct ChosenFp8 {
  static constexpr Config config = fp8_configs[index];
};
template <std::size_t... index>
::testing::Types<ChosenFp8<index>...> chosen_fp8(std::index_sequence<index...>);
using AllChosenFp8 = decltype(chosen_fp8(std::make_index_sequence<fp8_configs.size()>()));

template <class Choice>
class EmulatedFp8 : public ::testing::Test {};
TYPED_TEST_SUITE(EmulatedFp8, AllChosenFp8);

TYPED_TEST(EmulatedFp8, IsWhatTheInstructionsGive) {
  constexpr Config config = TypeParam::config;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    ASSERT_EQ((run_and_compare<config>(1, 8, (config.split_k - 1) * slot_k(config) + 16, seed)), "");
    ASSERT_EQ((run_and_compare<config>(config.block_tokens + 5, tile_outputs(config) + 11, 656, seed)), "");
  }
}

}  // namespace
}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
