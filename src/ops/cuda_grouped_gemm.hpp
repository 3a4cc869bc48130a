#pragma once
/// Grouped products on a GPU: the calls that their strategies planned, one for each number of rows, and their weights.
#include <memory>

#include "ops/grouped_backend.hpp"

namespace thresher::ops {

[[nodiscard]] std::shared_ptr<const PackedGroupedWeights::Storage> pack_on_gpu(const Device& device,
                                                                               const GroupedWeights& weights,
                                                                               const PackOptions& options);
/// Weights that a block keeps on the device.
[[nodiscard]] std::shared_ptr<const PackedGroupedWeights::Storage> restore_on_gpu(const Device& device,
                                                                                  const PackedContent& content);
[[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_packed_on_gpu(const Device& device,
                                                                             const GroupedProblem& problem,
                                                                             const PackedGroupedWeights& weights,
                                                                             const GroupedOptions& options,
                                                                             Bounds bounds);
/// What a strategy packs is packed here, at plan time.
[[nodiscard]] std::shared_ptr<const GroupedGemm::Backend> plan_raw_on_gpu(const Device& device,
                                                                          const GroupedProblem& problem,
                                                                          const GroupedWeights& weights,
                                                                          const GroupedOptions& options, Bounds bounds);

}  // namespace thresher::ops
