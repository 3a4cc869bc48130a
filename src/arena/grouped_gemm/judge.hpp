#pragma once
/// Judges outputs of grouped products against the float64 definition: each expert's rows as the output of a product of
/// their own; and looks at outputs of many calls.
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/grouped_gemm/task.hpp"
#include "arena/operation/operation.hpp"

namespace thresher::arena {

/// As make_dual_gemm_judge.
[[nodiscard]] std::unique_ptr<Judge> make_grouped_judge(const GroupedTask& task, Distribution distribution,
                                                        const std::vector<HostTensor>& inputs, const Maker& maker,
                                                        std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Inspector> make_grouped_inspector(const GroupedTask& task, Distribution distribution,
                                                                const std::vector<HostTensor>& inputs,
                                                                const Maker& maker, std::uint64_t seed);

}  // namespace thresher::arena
