#pragma once
/// The kernels of the products on tcgen05: their knobs, names, programs and launches.
#include <cstdint>
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/tcgen05/config.hpp"
#include "strategies/knob_table.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm::tcgen05 {

/// The knobs of tcgen05, or of tcgen05_plain.
[[nodiscard]] const KnobTable<Config>& knob_table(bool is_nvfp4);

/// The product's one kernel.
[[nodiscard]] DeviceProgram program(const Config& config);
[[nodiscard]] std::string kernel_name(const Config& config);

/// Its launch, without what it reads, writes and binds.
[[nodiscard]] KernelLaunch product_launch(const Config& config, std::int64_t experts);
/// Shared memory of one block.
[[nodiscard]] int block_bytes(const Config& config, std::int64_t experts);

/// `config` is feasible. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors);

namespace block_scaled {

/// The kernels ahead of products of NVFP4, for any architecture. `packing_program` has every kernel that packs weights,
/// and for static tiles the one that prepares tokens. `preparation_program` has the one that prepares the rows of
/// groups.
[[nodiscard]] DeviceProgram packing_program(bool dense);
[[nodiscard]] std::string pack_kernel_name(bool dense, int matrices);
[[nodiscard]] DeviceProgram preparation_program(const Config& config);
[[nodiscard]] std::string prepare_kernel_name(const Config& config);

/// Tokens whose scales are known to have no sign are read where they lie where their blocks fit the tiles.
[[nodiscard]] bool prepares(const ProductProblem& problem, const Config& config);

[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors);

}  // namespace block_scaled
}  // namespace thresher::strategies::gemm::tcgen05
