#pragma once
/// Packing the right operand of a product into oneDNN's layout.
#include <cstdint>

namespace thresher::cpu {

/// Writes one block of a PanelLayout, [units / 16][16][block_columns], from row-major [block_columns][units]. `units`
/// is a multiple of 16 and `block_columns` of 4.
void pack_panel_block(const std::uint32_t* rows, std::int64_t units, std::int64_t block_columns, std::uint32_t* block);

}  // namespace thresher::cpu
