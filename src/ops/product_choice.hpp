#pragma once
/// Chooses the strategy of a product, with its knobs, and the calls for fewer rows than a plan has. Everything here is
/// a pure function of the problem, the options and the device.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "ops/cuda_programs.hpp"
#include "planner/choose.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::ops {

using strategies::gemm::Product;
using strategies::gemm::ProductProblem;

/// The value of the knob `numerics`, by default exact.
[[nodiscard]] Numerics numerics_of(const Knobs& knobs);
/// Sets the knob if it is not set. Every strategy is exact by default.
void ask_for(Numerics numerics, Knobs& knobs);

/// Sets a knob that a member of the options stands for. Throws Error(invalid_argument) where the knobs say otherwise.
void set_from_option(const std::string& knob, const std::string& value, Knobs& knobs);
/// The same of `threads`, 0 for no wish.
void set_threads(int threads, Knobs& knobs);

/// Takes the option `deterministic`, or the knob of that name, into the request. Throws Error(invalid_argument) for a
/// value that there is not.
void set_deterministic(const std::string& option, planner::Request& request);

/// The request that `options` stand for.
[[nodiscard]] planner::Request request_of(const DualGemmOptions& options);

/// The names of all that the device offers, in their order.
[[nodiscard]] std::vector<std::string> strategy_names(Product product, const Device& device);

/// Why the strategy that is asked for is not made for the problem's formats or for the device; empty when it is.
[[nodiscard]] std::string unsupported_reason(DeviceKind kind, const DeviceSpec& device, const ProductProblem& problem,
                                             const DualGemmOptions& options);
/// Throws Error(invalid_argument) for a strategy, a knob or a value that there is not on the device, whether or not the
/// strategy can run the problem.
void check_knobs(const Device& device, const ProductProblem& problem, const DualGemmOptions& options);
/// Why it cannot run the problem with these knobs whatever its tensors; empty when it can.
[[nodiscard]] std::string product_obstacle(const Device& device, const ProductProblem& problem,
                                           const DualGemmOptions& options);

/// All candidates for a request, ranked. Where bits must not depend on the batch, how the first one sums does not
/// depend on the problem's rows either.
[[nodiscard]] planner::Choices product_choices(const ProductProblem& problem, const planner::Request& request,
                                               DeviceKind kind, const DeviceSpec& device);

/// The candidate with the fastest prediction among those without an obstacle. Candidates are those of the requested
/// strategy, or of all that compete, or else of the fallbacks. Throws Error(unsupported) with the reasons, and
/// Error(invalid_argument) for unknown knobs.
[[nodiscard]] strategies::PlannedCall choose_product(const ProductProblem& problem, const planner::Request& request,
                                                     DeviceKind kind, const DeviceSpec& device,
                                                     const CallObstacle& obstacle = {});

/// One of a plan's calls, and for how many rows.
struct PlannedRows {
  std::int64_t rows = 0;
  strategies::PlannedCall call;
};

/// Row counts that a plan for up to `m` rows is made for, `m` the last: a call takes the first that it fits.
[[nodiscard]] std::vector<std::int64_t> planned_rows(std::int64_t m);

/// A change to every call of a plan, which was made for that problem; empty for none.
using CallChange = std::function<strategies::PlannedCall(strategies::PlannedCall, const ProductProblem&)>;

/// A call for each number of rows of C (masked: of one expert), chosen as for a plan of so many rows. All read the same
/// packed weights, and calls that launch alike are one. The rows ascend. A dual GEMM takes the strategy that was
/// measured fastest on `device` (ops/tuning.hpp), if that still exists and has no obstacle.
[[nodiscard]] std::vector<PlannedRows> planned_calls(const Device& device, const ProductProblem& problem,
                                                     const DualGemmOptions& options, const CallObstacle& obstacle = {},
                                                     const CallChange& change = {});

}  // namespace thresher::ops
