#pragma once
/// The configurations that bench_nvfp4_variants compares.
#include <string>
#include <vector>

#include "nvfp4_variants_problem.hpp"

namespace thresher::bench {

/// For one problem; the first of each path and kind of tokens is what `rank` chooses, which the others are compared
/// with.
std::vector<Variant> variants(const device_code::Extents& extents);

/// "fast nvfp4 128x128x256 st4 split1 step regs216/40 x2": outputs' weight rows × tokens × K of a slot.
std::string words(const Variant& variant);

}  // namespace thresher::bench
