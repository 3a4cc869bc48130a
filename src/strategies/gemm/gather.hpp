#pragma once
/// The launch that brings gathered rows together in the workspace.
#include <optional>
#include <string>

#include "strategies/gemm/call.hpp"
#include "strategies/gemm/device/gather_params.hpp"

namespace thresher::strategies::gemm {

std::string gather_kernel_name();
DeviceProgram gather_program();

/// Rows that a kernel left in the workspace, one behind the other.
struct RowsInWorkspace {
  std::size_t piece = 0;
  std::size_t offset = 0;
  std::int64_t row_bytes = 0;  ///< a multiple of 16
};

[[nodiscard]] RowsInWorkspace add_rows(std::string title, std::int64_t rows, std::int64_t row_bytes, PlannedCall& call);

/// Adds the piece and the launch, which becomes the call's next step. The launch takes rows from A, whose elements have
/// 8 or 16 bits, or from what an earlier step made of A.
RowsInWorkspace add_gathering(const ProductProblem& problem, const std::optional<RowsInWorkspace>& from, bool dependent,
                              PlannedCall& call);

/// The launch's share of the work.
[[nodiscard]] MemoryPass gathering_work(const ProductProblem& problem);

/// Whether `step` is a launch that add_gathering added.
[[nodiscard]] bool is_gathering(const Step& step);
/// Returns the parameters of such a launch for these tensors.
[[nodiscard]] GatherParams gather_params(const KernelLaunch& gathering, const CallTensors& of);

/// Rows in the workspace for the product's tensor maps: `rows` in each of `slots`, k elements of each.
[[nodiscard]] OperandRows token_rows(const CallTensors& call, const RowsInWorkspace& rows, machine::ElementType element,
                                     std::int64_t k);

}  // namespace thresher::strategies::gemm
