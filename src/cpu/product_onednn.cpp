#include "cpu/product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>

#include "cpu/parallel.hpp"
#include "thresher/error.hpp"

namespace thresher::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

memory::data_type onednn_type(ProductType type) noexcept {
  return type == ProductType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

struct BlockedTag {
  std::int64_t block_columns;
  Tag float32;
  Tag bf16;
};

/// The blocked layouts that PanelLayout describes, as oneDNN's tags.
constexpr std::array blocked_tags{
    BlockedTag{64, Tag::BA16a64b, Tag::BA16a64b2a},
    BlockedTag{48, Tag::BA16a48b, Tag::BA16a48b2a},
    BlockedTag{32, Tag::BA16a32b, Tag::BA16a32b2a},
    BlockedTag{16, Tag::BA16a16b, Tag::BA16a16b2a},
};

/// Columns of a block if `panel` has one of PanelLayout's layouts, otherwise 0.
std::int64_t block_columns_of(const memory::desc& panel, const ProductShape& shape) {
  for (const BlockedTag& tag : blocked_tags) {
    const memory::desc blocked({shape.depth, shape.columns}, onednn_type(shape.type),
                               shape.type == ProductType::bf16 ? tag.bf16 : tag.float32);
    if (panel == blocked) {
      return tag.block_columns;
    }
  }
  return 0;
}

using Descriptor = dnnl::matmul::primitive_desc;

Descriptor describe(const memory::desc& left, const memory::desc& right, const memory::desc& out, bool accumulate) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), left, right, out, attributes};
#else
  return {dnnl::matmul::desc(left, right, out), attributes, engine()};
#endif
}

memory::desc row_major(ProductType type, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  return {{rows, columns}, onednn_type(type), memory::dims{stride == 0 ? columns : stride, 1}};
}

/// R in oneDNN's orientation: [depth, columns].
memory::desc transposed_right(const ProductShape& shape) {
  return {{shape.depth, shape.columns},
          onednn_type(shape.type),
          memory::dims{1, shape.right_stride == 0 ? shape.depth : shape.right_stride}};
}

/// The layout that oneDNN multiplies fastest if PanelLayout can describe it, otherwise row-major.
memory::desc fastest_panel(const ProductShape& shape, const memory::desc& left, const memory::desc& out) {
  const memory::desc any({shape.depth, shape.columns}, onednn_type(shape.type), Tag::any);
  const memory::desc suggested = describe(left, any, out, false).weights_desc();
  return block_columns_of(suggested, shape) > 0 ? suggested : transposed_right(shape);
}

}  // namespace

std::size_t element_bytes(ProductType type) noexcept { return type == ProductType::bf16 ? 2 : 4; }

ProductType native_product_type() {
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (has & needed) == needed ? ProductType::bf16 : ProductType::float32;
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

struct Product::Primitives {
  memory::desc left;
  memory::desc right;
  memory::desc out;
  memory::desc overwriting_scratch;
  memory::desc accumulating_scratch;
  dnnl::matmul overwriting;
  dnnl::matmul accumulating;
};

Product::Product(const ProductShape& shape, PanelChoice panel, int threads) {
  const OneDnnThreads scope(threads);
  try {
    const memory::desc left = row_major(shape.type, shape.rows, shape.depth, shape.left_stride);
    const memory::desc out = row_major(ProductType::float32, shape.rows, shape.columns, 0);
    const memory::desc right =
        panel == PanelChoice::fastest ? fastest_panel(shape, left, out) : transposed_right(shape);
    const Descriptor overwriting = describe(left, right, out, false);
    const Descriptor accumulating = describe(left, right, out, true);
    layout_.block_columns = block_columns_of(right, shape);
    panel_bytes_ = right.get_size();
    scratch_bytes_ = std::max(overwriting.scratchpad_desc().get_size(), accumulating.scratchpad_desc().get_size());
    primitives_ = std::make_unique<const Primitives>(Primitives{
        .left = left,
        .right = right,
        .out = out,
        .overwriting_scratch = overwriting.scratchpad_desc(),
        .accumulating_scratch = accumulating.scratchpad_desc(),
        .overwriting = dnnl::matmul(overwriting),
        .accumulating = dnnl::matmul(accumulating),
    });
  } catch (const dnnl::error& error) {
    throw Error(ErrorCode::unsupported,
                fmt::format("oneDNN cannot multiply [{}, {}] by [{}, {}] transposed on this CPU: {}", shape.rows,
                            shape.depth, shape.columns, shape.depth, error.what()));
  }
}

Product::~Product() = default;

void Product::run(const void* left, const void* right, float* out, bool accumulate, void* scratch) const {
  static thread_local dnnl::stream stream(engine());
  const Primitives& p = *primitives_;
  const auto view = [](const memory::desc& shape, const void* data) {
    return memory(shape, engine(), const_cast<void*>(data));
  };
  const dnnl::matmul& product = accumulate ? p.accumulating : p.overwriting;
  product.execute(stream,
                  {{DNNL_ARG_SRC, view(p.left, left)},
                   {DNNL_ARG_WEIGHTS, view(p.right, right)},
                   {DNNL_ARG_DST, view(p.out, out)},
                   {DNNL_ARG_SCRATCHPAD, view(accumulate ? p.accumulating_scratch : p.overwriting_scratch, scratch)}});
}

}  // namespace thresher::cpu
