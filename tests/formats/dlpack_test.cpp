#include "thresher/dlpack.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "formats/elements.hpp"
#include "formats/nvfp4.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

/// A DLTensor and the arrays it points to.
struct Foreign {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  DLTensor tensor{};

  Foreign(void* data, DLDataType type, std::vector<std::int64_t> extents, std::vector<std::int64_t> steps = {})
      : shape(std::move(extents)), strides(std::move(steps)) {
    tensor.data = data;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = type;
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
  }
};

constexpr DLDataType float16{kDLFloat, 16, 1};
constexpr DLDataType float32{kDLFloat, 32, 1};
constexpr DLDataType uint8{kDLUInt, 8, 1};

struct Refusal {
  ErrorCode code;
  std::string sentence;
};

template <typename Call>
Refusal refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "nothing was refused";
  return {ErrorCode::internal, ""};
}

void expect_refused(const DLTensor& tensor, ErrorCode code, const std::string& part) {
  const Refusal refused = refusal([&] { (void)from_dlpack(tensor, "a"); });
  EXPECT_EQ(refused.code, code) << refused.sentence;
  EXPECT_EQ(refused.sentence.substr(0, 2), "a ");
  EXPECT_NE(refused.sentence.find(part), std::string::npos) << refused.sentence;
}

TEST(Dlpack, BorrowsShapeStridesAndOffset) {
  std::array<float, 64> data{};
  Foreign strided(data.data(), float32, {3, 4}, {10, 1});
  strided.tensor.byte_offset = 8;
  const Tensor view = from_dlpack(strided.tensor);
  EXPECT_EQ(view.data, data.data() + 2);
  EXPECT_EQ(view.format, Format::fp32);
  EXPECT_EQ(view.rank, 2);
  EXPECT_EQ(view.shape[0], 3);
  EXPECT_EQ(view.shape[1], 4);
  EXPECT_EQ(view.strides[0], 10);
  EXPECT_EQ(view.device, (DeviceId{DeviceKind::cpu, 0}));

  const Foreign compact(data.data(), float32, {2, 3, 4});
  EXPECT_TRUE(from_dlpack(compact.tensor).is_contiguous());
  EXPECT_EQ(from_dlpack(compact.tensor).strides[0], 12);
}

TEST(Dlpack, KnowsTheDevices) {
  std::array<float, 4> data{};
  Foreign foreign(data.data(), float32, {4});
  foreign.tensor.device = {kDLCUDA, 3};
  EXPECT_EQ(from_dlpack(foreign.tensor).device, (DeviceId{DeviceKind::cuda, 3}));
  foreign.tensor.device = {kDLCUDAManaged, 1};
  EXPECT_EQ(from_dlpack(foreign.tensor).device, (DeviceId{DeviceKind::cuda, 1}));
  foreign.tensor.device = {kDLCUDAHost, 0};
  EXPECT_EQ(from_dlpack(foreign.tensor).device, (DeviceId{DeviceKind::cpu, 0}));
  foreign.tensor.device = {kDLMetal, 0};
  expect_refused(foreign.tensor, ErrorCode::unsupported, "device type 8");
}

TEST(Dlpack, RefusesWhatItDoesNotKnow) {
  std::array<float, 64> data{};
  for (const DLDataType type : {DLDataType{kDLFloat, 64, 1}, DLDataType{kDLFloat, 16, 2}, DLDataType{kDLInt, 64, 1},
                                DLDataType{kDLComplex, 64, 1}, DLDataType{17, 4, 2}}) {
    expect_refused(Foreign(data.data(), type, {2, 2}).tensor, ErrorCode::unsupported, "DLPack type code");
  }
  expect_refused(Foreign(data.data(), float32, {1, 1, 1, 1, 1}).tensor, ErrorCode::unsupported, "5 dimensions");
  expect_refused(Foreign(data.data(), float32, {2, -1}).tensor, ErrorCode::invalid_argument, "negative extent");
  expect_refused(Foreign(data.data(), float32, {std::int64_t{1} << 40, std::int64_t{1} << 40}).tensor,
                 ErrorCode::invalid_argument, "more elements than 63 bits can count");
  expect_refused(Foreign(nullptr, float32, {2, 2}).tensor, ErrorCode::invalid_argument, "null");
  Foreign shapeless(data.data(), float32, {2, 2});
  shapeless.tensor.shape = nullptr;
  expect_refused(shapeless.tensor, ErrorCode::invalid_argument, "no shape");
  Foreign odd(data.data(), float32, {2, 2});
  odd.tensor.byte_offset = 2;
  expect_refused(odd.tensor, ErrorCode::invalid_argument, "not aligned");
  EXPECT_EQ(from_dlpack(Foreign(nullptr, float32, {0, 2}).tensor).elements(), 0);
}

TEST(Dlpack, EveryPlainFormatSurvivesTheWayOutAndIn) {
  std::array<std::byte, 256> data{};
  for (const Format format :
       {Format::fp32, Format::fp16, Format::bf16, Format::fp8_e4m3, Format::int32, Format::uint8}) {
    Tensor tensor = Tensor::contiguous(data.data(), format, {3, 4}, {DeviceKind::cuda, 2});
    tensor.strides[0] = 6;
    DLManagedTensor* exported = to_dlpack(tensor);
    const Tensor back = from_dlpack(exported->dl_tensor);
    EXPECT_EQ(back.format, format);
    EXPECT_EQ(back.data, tensor.data);
    EXPECT_EQ(back.rank, 2);
    EXPECT_EQ(back.shape, tensor.shape);
    EXPECT_EQ(back.strides, tensor.strides);
    EXPECT_EQ(back.device, tensor.device);
    exported->deleter(exported);
  }
}

TEST(Dlpack, KeepsTheOwnerUntilTheDeleterIsCalled) {
  auto owner = std::make_shared<std::vector<float>>(4);
  const std::weak_ptr<std::vector<float>> watch = owner;
  DLManagedTensor* exported = to_dlpack(Tensor::contiguous(owner->data(), Format::fp32, {4}), owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  exported->deleter(exported);
  EXPECT_TRUE(watch.expired());
}

class DlpackNvfp4 : public testing::TestWithParam<ScaleLayout> {};

TEST_P(DlpackNvfp4, SurvivesTheWayOutAndIn) {
  std::vector<float> x(std::size_t{3} * 48);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 13) - 5.0F;
  }
  formats::Nvfp4Matrix matrix =
      formats::quantize_nvfp4(Tensor::contiguous(x.data(), Format::fp32, {3, 48}), "x", GetParam());
  const Nvfp4Dlpack parts = nvfp4_to_dlpack(matrix.view());
  EXPECT_EQ(parts.values->dl_tensor.shape[1], 24);
  EXPECT_EQ(parts.scales->dl_tensor.ndim, GetParam() == ScaleLayout::row_major ? 2 : 1);
  const Tensor back =
      nvfp4_from_dlpack(parts.values->dl_tensor, parts.scales->dl_tensor, GetParam(), &parts.global_scale->dl_tensor);
  EXPECT_EQ(formats::dequantize_to_double(back, "back"), formats::dequantize_to_double(matrix.view(), "matrix"));
  for (DLManagedTensor* part : {parts.values, parts.scales, parts.global_scale}) {
    part->deleter(part);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, DlpackNvfp4, testing::Values(ScaleLayout::row_major, ScaleLayout::blocked),
                         [](const auto& layout) {
                           return layout.param == ScaleLayout::blocked ? "blocked" : "row_major";
                         });

TEST(DlpackNvfp4Parts, RowsMayBeStrided) {
  std::vector<std::uint8_t> values(64, 0x22);
  std::vector<std::uint8_t> scales(2, 0x38);
  const Foreign strided(values.data(), uint8, {2, 8}, {20, 1});
  const Foreign scale(scales.data(), uint8, {2, 1});
  values[20] = 0x07;
  const Tensor view = nvfp4_from_dlpack(strided.tensor, scale.tensor, ScaleLayout::row_major);
  EXPECT_EQ(view.strides[0], 40);
  EXPECT_EQ(view.global_scale, nullptr);
  EXPECT_EQ(formats::element(view, 1, 0), 6.0);
}

TEST(DlpackNvfp4Parts, PartsThatDoNotFitAreRefused) {
  std::vector<std::uint8_t> bytes(4096);
  std::vector<float> floats(2);
  const Foreign values(bytes.data(), uint8, {2, 16});
  const Foreign scales(bytes.data(), uint8, {2, 2});
  const Foreign global(floats.data(), float32, {1});
  const Foreign two_globals(floats.data(), float32, {2});
  const auto refused = [&](const Foreign& v, const Foreign& s, ScaleLayout layout, const DLTensor* g) {
    return refusal([&] { (void)nvfp4_from_dlpack(v.tensor, s.tensor, layout, g, "b1"); }).sentence;
  };
  const auto row_major = ScaleLayout::row_major;
  EXPECT_NO_THROW((void)nvfp4_from_dlpack(values.tensor, scales.tensor, row_major, &global.tensor));
  EXPECT_NE(refused(Foreign(bytes.data(), float16, {2, 16}), scales, row_major, nullptr).find("b1 is fp16"),
            std::string::npos);
  EXPECT_NE(refused(Foreign(bytes.data(), uint8, {32}), scales, row_major, nullptr).find("uint8 [rows, K/2]"),
            std::string::npos);
  EXPECT_NE(refused(Foreign(bytes.data(), uint8, {2, 12}), scales, row_major, nullptr).find("multiple of 16"),
            std::string::npos);
  EXPECT_NE(refused(Foreign(bytes.data(), uint8, {2, 16}, {32, 2}), scales, row_major, nullptr).find("not contiguous"),
            std::string::npos);
  EXPECT_NE(refused(values, Foreign(bytes.data(), float16, {2, 2}), row_major, nullptr).find("fp16 scales"),
            std::string::npos);
  EXPECT_NE(refused(values, Foreign(bytes.data(), uint8, {4}), row_major, nullptr).find("row-major scales [2, 2]"),
            std::string::npos);
  EXPECT_NE(refused(values, scales, ScaleLayout::blocked, nullptr).find("needs 512"), std::string::npos);
  EXPECT_NE(refused(values, Foreign(bytes.data(), uint8, {2, 2}, {4, 1}), row_major, nullptr).find("not contiguous"),
            std::string::npos);
  EXPECT_NE(refused(values, scales, row_major, &two_globals.tensor).find("one float32"), std::string::npos);
  Foreign elsewhere(bytes.data(), uint8, {2, 2});
  elsewhere.tensor.device = {kDLCUDA, 0};
  EXPECT_NE(refused(values, elsewhere, row_major, nullptr).find("different devices"), std::string::npos);
  EXPECT_NE(refusal([&] { (void)to_dlpack(Tensor::nvfp4(bytes.data(), bytes.data(), 2, 32)); }).sentence.find("nvfp4"),
            std::string::npos);
  EXPECT_THROW((void)nvfp4_to_dlpack(Tensor::contiguous(bytes.data(), Format::fp16, {2, 32})), Error);
}

}  // namespace
}  // namespace thresher
