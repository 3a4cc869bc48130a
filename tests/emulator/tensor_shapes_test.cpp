// Products of every shape and kind into tensor memory, the places of scales, and how sums are rounded.
#include <gtest/gtest.h>

#include "emulator/kernels/tensor_shapes.hpp"
#include "emulator/nvfp4_operand.hpp"
#include "emulator/support.hpp"
#include "formats/numbers.hpp"

namespace thresher::emulator {
namespace {

using machine::Group;
using machine::tcgen05::Kind;
using planted::ShapeDefect;
using planted::ShapesParams;
using planted::TensorShapes;
using planted::TensorTile;
using test::Nvfp4Operand;

constexpr std::uint32_t row_bytes = 128;

template <typename Element>
struct Code;
template <>
struct Code<machine::Half> {
  using Bits = std::uint16_t;
  static Bits of(float value) { return formats::float_to_fp16(value); }
  static float value(Bits bits) { return formats::fp16_to_float(bits); }
};
template <>
struct Code<machine::BFloat16> {
  using Bits = std::uint16_t;
  static Bits of(float value) { return formats::float_to_bf16(value); }
  static float value(Bits bits) { return formats::bf16_to_float(bits); }
};
template <>
struct Code<machine::E4M3> {
  using Bits = std::uint8_t;
  static Bits of(float value) { return formats::float_to_e4m3(value); }
  static float value(Bits bits) { return formats::e4m3_to_float(bits); }
};

machine::TensorMap bytes_of(const void* data, std::uint32_t rows, std::uint32_t bytes, std::uint32_t box_rows) {
  return test::map_2d(data, machine::ElementType::uint8, rows, bytes, box_rows, row_bytes, machine::Swizzle::b128);
}

/// A launch of one tile, and where it leaves C.
template <TensorTile tile, typename Element = void>
class Launch {
 public:
  using Kernel = TensorShapes<tile, Element>;

  explicit Launch(ShapeDefect defect) { params_.defect = defect; }

  template <typename A, typename B>
  test::Subject of(const A& a, const B& b) {
    params_.a = bytes_of(a.data(), tile.rows, row_bytes, Kernel::block_rows);
    params_.b = bytes_of(b.data(), tile.columns, row_bytes, Kernel::block_columns);
    params_.c = {test::address_of(c_)};
    test::Subject subject;
    subject.shape.grid.x = Kernel::blocks;
    subject.shape.cluster.x = Kernel::blocks;
    subject.shape.block = 192;
    subject.shape.dynamic_shared_bytes = Kernel::shared_bytes;
    test::add(subject.memory, "a", a, Use::input);
    test::add(subject.memory, "b", b, Use::input);
    test::add(subject.memory, "c", c_, Use::output);
    subject.kernel = [this] { planted::tensor_shapes<tile, Element>(params_); };
    return subject;
  }
  test::Subject of_nvfp4(const Nvfp4Operand& a, const Nvfp4Operand& b) {
    params_.a_scales = {test::address_of(a.scales)};
    params_.b_scales = {test::address_of(b.scales)};
    test::Subject subject = of(a.codes, b.codes);
    test::add(subject.memory, "a scales", a.scales, Use::input);
    test::add(subject.memory, "b scales", b.scales, Use::input);
    return subject;
  }
  [[nodiscard]] const std::vector<float>& c() const { return c_; }

 private:
  ShapesParams params_{};
  std::vector<float> c_ = std::vector<float>(std::size_t{tile.rows} * tile.columns);
};

/// Operands of one of the kinds without scales, and their product in float32, in ascending k.
template <TensorTile tile, typename Element>
struct Plain {
  using Bits = typename Code<Element>::Bits;
  static constexpr std::uint32_t k = row_bytes / sizeof(Bits);

  /// `unit` 1: small integers, whose sums are exact in every order.
  explicit Plain(float unit) : a(values(tile.rows, unit, 1)), b(values(tile.columns, unit, 2)) {
    for (std::uint32_t i = 0; i < tile.rows; ++i) {
      for (std::uint32_t j = 0; j < tile.columns; ++j) {
        float sum = 0;
        for (std::uint32_t x = 0; x < k; ++x) {
          sum += Code<Element>::value(a[i * k + x]) * Code<Element>::value(b[j * k + x]);
        }
        product.push_back(sum);
      }
    }
  }

  std::vector<Bits> a;
  std::vector<Bits> b;
  std::vector<float> product;

 private:
  static std::vector<Bits> values(std::uint32_t rows, float unit, std::uint64_t seed) {
    Random random(seed);
    std::vector<Bits> bits(std::size_t{rows} * k);
    for (Bits& value : bits) {
      value = Code<Element>::of((static_cast<float>(random.below(17)) - 8.0F) * unit);
    }
    return bits;
  }
};

template <TensorTile tile, typename Element>
void is_clean(std::uint64_t schedules = 8) {
  const Plain<tile, Element> operands(1);
  Launch<tile, Element> launch(ShapeDefect::none);
  test::Subject subject = launch.of(operands.a, operands.b);
  subject.correct = [&] { return launch.c() == operands.product; };
  test::expect_clean(subject, schedules);
}

TEST(TensorShapes, OneBlock) {
  is_clean<TensorTile{Group::block, Kind::f16, 128, 64}, machine::Half>();
  is_clean<TensorTile{Group::block, Kind::f16, 128, 128}, machine::BFloat16>();
  is_clean<TensorTile{Group::block, Kind::f8f6f4, 128, 32}, machine::E4M3>();
}
TEST(TensorShapes, OneBlockOf64Rows) {
  is_clean<TensorTile{Group::block, Kind::f16, 64, 64}, machine::Half>();
  is_clean<TensorTile{Group::block, Kind::f16, 64, 16}, machine::BFloat16>();
  is_clean<TensorTile{Group::block, Kind::f8f6f4, 64, 128}, machine::E4M3>();
}
TEST(TensorShapes, Pair) {
  is_clean<TensorTile{Group::pair, Kind::f16, 256, 64}, machine::Half>();
  is_clean<TensorTile{Group::pair, Kind::f8f6f4, 256, 32}, machine::E4M3>();
}
TEST(TensorShapes, PairOf64RowsABlock) {
  is_clean<TensorTile{Group::pair, Kind::f16, 128, 64}, machine::Half>();
  is_clean<TensorTile{Group::pair, Kind::f16, 128, 128}, machine::BFloat16>();
  is_clean<TensorTile{Group::pair, Kind::f8f6f4, 128, 32}, machine::E4M3>();
}

// Half of the lanes hold nothing, and loading them says so.
TEST(TensorShapes, LanesThat64RowsDoNotHave) {
  constexpr TensorTile tile{Group::block, Kind::f16, 64, 64};
  const Plain<tile, machine::Half> operands(1);
  Launch<tile, machine::Half> launch(ShapeDefect::loads_lanes_without_rows);
  test::expect_found(launch.of(operands.a, operands.b), FindingKind::uninitialised,
                     {"a load of tensor memory", "those lanes", "nothing was written"});
}

// Strangers may hold the first columns.
TEST(TensorShapes, PlaceTakenForGranted) {
  constexpr TensorTile tile{Group::block, Kind::f16, 128, 64};
  const Plain<tile, machine::Half> operands(1);
  Launch<tile, machine::Half> launch(ShapeDefect::takes_the_first_column);
  test::expect_found(launch.of(operands.a, operands.b), FindingKind::out_of_bounds, {"column 0", "not allocated"});
}

// --- more than 128 rows of B, and so two blocks of scales ------------------------------------------------------------

constexpr std::uint32_t nvfp4_row_values = 256;

template <std::uint32_t columns>
struct Wide {
  Nvfp4Operand a{128, nvfp4_row_values, 1};
  Nvfp4Operand b{columns, nvfp4_row_values, 2};
  Launch<TensorTile{Group::block, Kind::nvfp4, 128, columns}> launch;
  test::Subject subject;

  explicit Wide(ShapeDefect defect) : launch(defect), subject(launch.of_nvfp4(a, b)) {}
};

template <std::uint32_t columns>
void wide_is_clean(std::uint64_t schedules) {
  Wide<columns> wide(ShapeDefect::none);
  const std::vector<float> expected = test::product(wide.a, 128, wide.b, columns, nvfp4_row_values, 1);
  wide.subject.correct = [&] { return wide.launch.c() == expected; };
  test::expect_clean(wide.subject, schedules);
}

TEST(TensorShapes, TwoBlocksOfScales) {
  wide_is_clean<256>(4);
  wide_is_clean<192>(4);
}
TEST(TensorShapes, SecondBlockOfScalesTwoColumnsOn) {
  const Wide<256> wide(ShapeDefect::second_scales_two_columns_on);
  test::expect_found(wide.subject, FindingKind::uninitialised, {"tcgen05::multiply", "nothing was written"});
}
TEST(TensorShapes, SecondBlockOfScalesNotCopied) {
  const Wide<192> wide(ShapeDefect::one_block_of_scales_of_b);
  test::expect_found(wide.subject, FindingKind::uninitialised, {"tcgen05::multiply", "nothing was written"});
}

// --- how sums are rounded --------------------------------------------------------------------------------------------

// What float32 rounds is cut by the tensor core, so that the two definitions differ where a sum is not exact.
TEST(TensorShapes, SumsAreOfTheHardwareUnlessFloat32IsAskedFor) {
  constexpr TensorTile tile{Group::block, Kind::f16, 64, 64};
  const Plain<tile, machine::Half> operands(0.1F);
  Launch<tile, machine::Half> launch(ShapeDefect::none);
  test::Subject subject = launch.of(operands.a, operands.b);
  subject.correct = [&] { return launch.c() != operands.product; };
  test::expect_clean(subject, 1);
  subject.options.tensor_sums = TensorSums::float32;
  subject.correct = [&] { return launch.c() == operands.product; };
  test::expect_clean(subject, 4);
}

// With scales the two agree where sums are exact.
TEST(TensorShapes, SumsOfScaledProductsInFloat32) {
  Wide<192> wide(ShapeDefect::none);
  const std::vector<float> expected = test::product(wide.a, 128, wide.b, 192, nvfp4_row_values, 1);
  wide.subject.options.tensor_sums = TensorSums::float32;
  wide.subject.correct = [&] { return wide.launch.c() == expected; };
  test::expect_clean(wide.subject, 2);
}

// 1,000 schedules of each: measurements/emulator_tensor_1000_schedules_*.txt has the command.
TEST(TensorShapes, DISABLED_CleanOn1000Schedules) {
  is_clean<TensorTile{Group::block, Kind::f16, 128, 64}, machine::Half>(1000);
  is_clean<TensorTile{Group::block, Kind::f16, 64, 64}, machine::BFloat16>(1000);
  is_clean<TensorTile{Group::pair, Kind::f8f6f4, 128, 32}, machine::E4M3>(1000);
  wide_is_clean<192>(1000);
}

}  // namespace
}  // namespace thresher::emulator
