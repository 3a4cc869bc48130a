#pragma once
/// The parts that the launches of all of attention's kernels share: the parameter, tensor maps, grid and workspace.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_spec.hpp"
#include "core/integers.hpp"
#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "strategies/launch_tools.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// Lengths stay below it, so that the kernels' 32-bit sums of lengths and windows cannot overflow.
inline constexpr std::int64_t max_rows = std::int64_t{1} << 28;

/// Rows, columns and blocks as a kernel copies and takes them.
struct Geometry {
  std::int64_t tile_rows = 0;                      ///< queries of one piece of work
  int query_box_rows = 0;                          ///< of one copy; 0: the kernel uses no tensor maps
  int query_box_panels = 0;                        ///< of the same copy
  pipeline::attention::CopiedShare key_share{};    ///< what one copy brings
  pipeline::attention::CopiedShare value_share{};  ///< what one copy brings
  std::uint32_t threads = 0;
  std::uint32_t cluster = 1;
  std::uint32_t shared_bytes = 0;
  std::uint32_t registers = 0;  ///< KernelLaunch::registers
  bool persistent = false;      ///< fewer blocks may take all the work
  bool whole_rows = false;      ///< of pages, one copy brings all panels
  bool grid_of_heads = false;   ///< heads along x, tiles along y, sequences along z; else all pieces along x
};

[[nodiscard]] Divisor divisor(std::int64_t value);

/// The rows of a page that one copy brings: the largest power of two that divides a page and `keys`.
[[nodiscard]] int page_box_rows(const AttentionProblem& problem, int keys);
/// log2 of a power of two.
[[nodiscard]] std::uint32_t box_shift(int rows);

/// The map of keys or values in pages: columns of a panel, rows of a page, panels, heads, pages.
inline constexpr int all_panels = 0;
[[nodiscard]] machine::TensorMapDescription page_map(const Tensor& tensor, int rows, int panels, int heads = 1);

/// Groups of 8 rows from a page to the next; 0 where pages are no whole number of them apart.
[[nodiscard]] int page_groups(const Tensor& tensor);
/// The same map, of whole rows: columns of a panel, 8 rows, panels, groups of 8 rows of all pages, heads.
[[nodiscard]] machine::TensorMapDescription page_group_map(const Tensor& tensor, int rows);

/// A launch takes the sequences with so many queries, and leaves others to another launch of its call.
struct QueryRange {
  int min = 0;
  int max = std::numeric_limits<int>::max();
};

/// The members that the problem alone determines.
[[nodiscard]] Params params_of(const AttentionProblem& problem, const Geometry& geometry, const QueryRange& queries);
/// Adds the tensors of one call, all but their maps.
void add_tensors(Params& params, const AttentionProblem& problem, const CallTensors& call);
/// Every kernel reads all tensors but those that it writes.
[[nodiscard]] std::vector<Access> tensor_accesses();
/// A program that includes `header` of strategies/attention/.
[[nodiscard]] DeviceProgram device_program(std::string_view strategy, std::string_view header,
                                           std::vector<std::string> kernels);

/// How a strategy launches its one kernel.
struct AttentionKernel {
  Geometry geometry{};
  std::string_view header{};  ///< within strategies/attention/
  std::string expression{};
  Expectations expected{};
  std::string why{};  ///< PlannedCall::why
};

/// Adds the launch of `kernel`, and a status to the workspace where the kernel writes one.
void add_launch(PlannedCall& call, std::string_view strategy, const AttentionProblem& problem, AttentionKernel kernel,
                bool dependent, const DeviceSpec& device, const QueryRange& queries = {});

/// Keys and values are FP8.
[[nodiscard]] bool has_fp8_keys(const AttentionProblem& problem);
/// Queries are FP8 too.
[[nodiscard]] bool has_fp8_queries(const AttentionProblem& problem);
/// The problem's logits are formed before their largest is looked for.
[[nodiscard]] bool has_general_logits(const AttentionProblem& problem);
[[nodiscard]] Logits logits_of(const AttentionProblem& problem);

/// The formats of the output, of queries, and of keys and values.
struct KernelFormats {
  Format output;
  Format queries = output;
  Format keys = output;
};
[[nodiscard]] KernelFormats formats_of(const AttentionProblem& problem);

/// "thresher::strategies::attention::Logits::direct", as a template argument.
[[nodiscard]] std::string logits_argument(Logits logits);

/// The name expressions of the kernels without a configuration.
[[nodiscard]] std::string simple_expression(const KernelFormats& formats, std::int64_t head_dim,
                                            std::int64_t value_dim);
[[nodiscard]] std::string rows_expression(Format format, Staging staging);

}  // namespace thresher::strategies::attention
