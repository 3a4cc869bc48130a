// Matrix products in float32 without any other library.
#include <algorithm>

#include "cpu/block_product.hpp"
#include "cpu/parallel.hpp"
#include "cpu/product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/product_highway.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once for each target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thresher::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;

/// Sums of six rows by two vectors of columns fit into the sixteen registers of AVX2 and hide the latency of a
/// multiply-add.
constexpr std::int64_t tile_rows = 6;

/// Rows row, row + 1, … and two vectors of columns from `column` on.
template <int rows>
void TileProduct(const BlockProduct& of, std::int64_t row, std::int64_t column) {
  const Floats d;
  using Vector = hn::Vec<Floats>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* left = of.left + row * of.left_stride;
  const float* right = of.block + column;
  // Separate variables: a vector whose size is only known at run time cannot be an element of an array.
  Vector low0 = hn::Zero(d), low1 = low0, low2 = low0, low3 = low0, low4 = low0, low5 = low0;
  Vector high0 = low0, high1 = low0, high2 = low0, high3 = low0, high4 = low0, high5 = low0;
  for (std::int64_t k = 0; k < of.depth; ++k) {
    const Vector r0 = hn::LoadU(d, right + k * of.block_columns);
    const Vector r1 = hn::LoadU(d, right + k * of.block_columns + lanes);
    const auto add = [&](int at, Vector& low, Vector& high) HWY_ATTR {
      const Vector x = hn::Set(d, left[at * of.left_stride + k]);
      low = hn::MulAdd(x, r0, low);
      high = hn::MulAdd(x, r1, high);
    };
    add(0, low0, high0);
    if constexpr (rows > 1) {
      add(1, low1, high1), add(2, low2, high2), add(3, low3, high3), add(4, low4, high4), add(5, low5, high5);
    }
  }
  const auto store = [&](int at, std::int64_t first, Vector sum) HWY_ATTR {
    const std::int64_t count = std::min(lanes, of.columns - first);
    float* out = of.out + (row + at) * of.out_stride + first;
    if (count == lanes) {
      hn::StoreU(of.accumulate ? hn::Add(hn::LoadU(d, out), sum) : sum, d, out);
      return;
    }
    HWY_ALIGN float sums[16];
    hn::Store(sum, d, sums);
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = of.accumulate ? out[i] + sums[i] : sums[i];
    }
  };
  const auto finish = [&](int at, Vector low, Vector high) HWY_ATTR {
    store(at, column, low);
    store(at, column + lanes, high);
  };
  finish(0, low0, high0);
  if constexpr (rows > 1) {
    finish(1, low1, high1), finish(2, low2, high2), finish(3, low3, high3), finish(4, low4, high4),
        finish(5, low5, high5);
  }
}

/// A block has a multiple of 32 columns, which is a multiple of two vectors.
void MultiplyBlock(const BlockProduct& of) {
  const auto step = 2 * static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t column = 0; column < of.columns; column += step) {
    std::int64_t row = 0;
    for (; row + tile_rows <= of.rows; row += tile_rows) {
      TileProduct<tile_rows>(of, row, column);
    }
    for (; row < of.rows; ++row) {
      TileProduct<1>(of, row, column);
    }
  }
}

/// out[i] (+)= left·(row i of R), four rows of R at a time.
void MultiplyRow(const float* left, const float* right, std::int64_t right_stride, std::int64_t columns,
                 std::int64_t depth, float* out, bool accumulate) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t column = 0; column < columns; column += 4) {
    const std::int64_t count = std::min<std::int64_t>(4, columns - column);
    // With fewer than four rows, the last one replaces the missing ones.
    const float* r[4];
    for (std::int64_t i = 0; i < 4; ++i) {
      r[i] = right + (column + std::min(i, count - 1)) * right_stride;
    }
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    std::int64_t k = 0;
    for (; k + lanes <= depth; k += lanes) {
      const auto x = hn::LoadU(d, left + k);
      s0 = hn::MulAdd(x, hn::LoadU(d, r[0] + k), s0);
      s1 = hn::MulAdd(x, hn::LoadU(d, r[1] + k), s1);
      s2 = hn::MulAdd(x, hn::LoadU(d, r[2] + k), s2);
      s3 = hn::MulAdd(x, hn::LoadU(d, r[3] + k), s3);
    }
    float sums[4] = {hn::GetLane(hn::SumOfLanes(d, s0)), hn::GetLane(hn::SumOfLanes(d, s1)),
                     hn::GetLane(hn::SumOfLanes(d, s2)), hn::GetLane(hn::SumOfLanes(d, s3))};
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t rest = k; rest < depth; ++rest) {
        sums[i] += left[rest] * r[i][rest];
      }
      out[column + i] = accumulate ? out[column + i] + sums[i] : sums[i];
    }
  }
}

}  // namespace thresher::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thresher::cpu {
namespace {
HWY_EXPORT(MultiplyBlock);
HWY_EXPORT(MultiplyRow);

constexpr std::int64_t block_columns = 32;
constexpr std::int64_t depth_step = 16;

std::int64_t padded(std::int64_t count, std::int64_t step) noexcept { return (count + step - 1) / step * step; }

}  // namespace

std::size_t element_bytes(ProductType) noexcept { return sizeof(float); }

ProductType native_product_type() { return ProductType::float32; }

std::string onednn_version() { return "none"; }

struct Product::Primitives {
  ProductShape shape;
  int threads;
};

Product::Product(const ProductShape& shape, PanelChoice panel, int threads)
    : primitives_(std::make_unique<const Primitives>(Primitives{shape, threads})) {
  if (panel == PanelChoice::fastest) {
    layout_.block_columns = block_columns;
    panel_bytes_ = static_cast<std::size_t>(padded(shape.columns, block_columns) * padded(shape.depth, depth_step)) *
                   sizeof(float);
  } else {
    panel_bytes_ = static_cast<std::size_t>(shape.columns * shape.depth) * sizeof(float);
  }
}

Product::~Product() = default;

void Product::run(const void* left, const void* right, float* out, bool accumulate, void* /*scratch*/) const {
  const ProductShape& shape = primitives_->shape;
  const int threads = primitives_->threads;
  const auto* const l = static_cast<const float*>(left);
  const auto* const r = static_cast<const float*>(right);
  const std::int64_t left_stride = shape.left_stride == 0 ? shape.depth : shape.left_stride;
  if (layout_.block_columns == 0) {
    const std::int64_t right_stride = shape.right_stride == 0 ? shape.depth : shape.right_stride;
    parallel_for(threads, shape.rows, [&](std::int64_t row, int) {
      HWY_DYNAMIC_DISPATCH(MultiplyRow)
      (l + row * left_stride, r, right_stride, shape.columns, shape.depth, out + row * shape.columns, accumulate);
    });
    return;
  }
  const std::int64_t blocks = (shape.columns + block_columns - 1) / block_columns;
  const std::int64_t block_floats = padded(shape.depth, depth_step) * block_columns;
  parallel_for(threads, blocks, [&](std::int64_t block, int) {
    const std::int64_t column = block * block_columns;
    HWY_DYNAMIC_DISPATCH(MultiplyBlock)
    ({.rows = shape.rows,
      .columns = std::min(block_columns, shape.columns - column),
      .depth = shape.depth,
      .block_columns = block_columns,
      .left = l,
      .left_stride = left_stride,
      .block = r + block * block_floats,
      .out = out + column,
      .out_stride = shape.columns,
      .accumulate = accumulate});
  });
}

}  // namespace thresher::cpu
#endif
