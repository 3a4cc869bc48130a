#pragma once
/// Reads how machine code uses Blackwell's tensor cores and tensor memory.
#include <optional>
#include <string_view>

#include "arena/audit/sass.hpp"
#include "arena/results/audit_report.hpp"

namespace thresher::arena {

/// Empty for a kernel that uses no tensor memory.
[[nodiscard]] std::optional<TensorReport> read_tensor_code(const SassFunction& function);

/// Bytes that `mnemonic`, an LDTM, loads for the 32 threads of a warp: 8192 for "LDTM.x64", 2048 for
/// "LDTM.16dp256bit.x4".
[[nodiscard]] std::int64_t loaded_bytes_of(std::string_view mnemonic) noexcept;

}  // namespace thresher::arena
