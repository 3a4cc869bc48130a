#pragma once
/// SHA-256 (FIPS 180-4) for the ledger's chain: two texts with the same hash cannot be made.
#include <string>
#include <string_view>

namespace thresher::arena {

/// 64 hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view text);

}  // namespace thresher::arena
