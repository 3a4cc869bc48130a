#pragma once
/// The dual GEMM in the arena.
#include "arena/operation.hpp"

namespace thresher::arena {

class DualGemmOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view name() const override { return "dual_gemm"; }
  [[nodiscard]] bool offers(const Problem& problem, Distribution distribution) const override;
  [[nodiscard]] std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                               std::uint64_t seed) const override;
  [[nodiscard]] std::vector<HostTensor> outputs(const Problem& problem) const override;
  [[nodiscard]] std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                  std::size_t index) const override;
  [[nodiscard]] std::unique_ptr<Judge> judge(const Problem& problem, Distribution distribution,
                                             const std::vector<HostTensor>& inputs, const Maker& maker,
                                             std::uint64_t seed) const override;
  [[nodiscard]] Cost cost(const Problem& problem) const override;
  [[nodiscard]] std::vector<HostTensor> activations(const Problem& problem, Distribution distribution,
                                                    std::uint64_t seed) const override;
  [[nodiscard]] std::optional<Problem> neighbour(const Problem& problem) const override;
  [[nodiscard]] std::optional<Problem> smaller(const Problem& problem) const override;
};

}  // namespace thresher::arena
