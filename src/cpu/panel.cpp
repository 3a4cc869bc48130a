#include "cpu/panel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/panel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thresher::cpu::HWY_NAMESPACE {

void PackPanelBlock(const std::uint32_t* rows, std::size_t units, std::size_t block_columns, std::uint32_t* block) {
  for (std::size_t column = 0; column < block_columns; column += 4) {
    for (std::size_t unit = 0; unit < units; unit += 4) {
      Transpose4x4(rows + column * units + unit, units, block + unit * block_columns + column, block_columns);
    }
  }
}

}  // namespace thresher::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thresher::cpu {
namespace {
HWY_EXPORT(PackPanelBlock);
}  // namespace

void pack_panel_block(const std::uint32_t* rows, std::int64_t units, std::int64_t block_columns, std::uint32_t* block) {
  HWY_DYNAMIC_DISPATCH(PackPanelBlock)
  (rows, static_cast<std::size_t>(units), static_cast<std::size_t>(block_columns), block);
}

}  // namespace thresher::cpu
#endif
