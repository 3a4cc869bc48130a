#pragma once
/// What all of attention's kernels have in common when they are launched: their parameter, their tensor maps and their
/// grid.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/integers.hpp"
#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// Lengths stay below it, so that the kernels' 32-bit sums of lengths and windows cannot overflow.
inline constexpr std::int64_t max_rows = std::int64_t{1} << 28;

/// Rows, columns and blocks as a kernel copies and takes them.
struct Geometry {
  std::int64_t tile_rows = 0;                      ///< queries of one piece of work
  int query_box_rows = 0;                          ///< what one copy brings; 0: the kernel uses no tensor maps
  int query_box_panels = 0;                        ///< of the same copy
  pipeline::attention::CopiedShare key_share{};    ///< what one copy brings
  pipeline::attention::CopiedShare value_share{};  ///< what one copy brings
  /// Where the launch writes Paging::status in the workspace.
  std::optional<std::size_t> status_offset{};
  std::uint32_t threads = 0;
  std::uint32_t cluster = 1;
  std::uint32_t shared_bytes = 0;
  std::uint32_t registers = 0;  ///< KernelLaunch::registers
  bool persistent = false;      ///< fewer blocks may take all the work
  bool grid_of_heads = false;   ///< heads along x, tiles along y, sequences along z; else all pieces along x
};

[[nodiscard]] Divisor divisor(std::int64_t value);

/// The rows of a page that one copy brings: the largest power of two that divides a page and `keys`.
[[nodiscard]] int page_box_rows(const AttentionProblem& problem, int keys);
/// log2 of a power of two.
[[nodiscard]] std::uint32_t box_shift(int rows);

/// Keys or values in pages: columns of a panel, rows of a page, panels, heads, pages.
inline constexpr int all_panels = 0;
[[nodiscard]] machine::TensorMapDescription page_map(const Tensor& tensor, int rows, int panels, int heads = 1);

/// What the problem alone determines.
[[nodiscard]] Params params_of(const AttentionProblem& problem, const Geometry& geometry);
/// Adds the tensors of one call, all but their maps.
void add_tensors(Params& params, const AttentionProblem& problem, const CallTensors& call);

/// One launch of `expression`, a kernel of `header`.
[[nodiscard]] KernelLaunch kernel_launch(const AttentionProblem& problem, const Geometry& geometry,
                                         const std::string& header, const std::string& expression);

/// Keys and values are codes of FP8.
[[nodiscard]] bool has_fp8_keys(const AttentionProblem& problem);
/// Queries too.
[[nodiscard]] bool has_fp8_queries(const AttentionProblem& problem);
/// The problem's logits are formed before their largest is looked for.
[[nodiscard]] bool has_general_logits(const AttentionProblem& problem);
[[nodiscard]] Logits logits_of(const AttentionProblem& problem);

/// Of the output, of queries, and of keys and values.
struct KernelFormats {
  Format output;
  Format queries = output;
  Format keys = output;
};
[[nodiscard]] KernelFormats formats_of(const AttentionProblem& problem);

/// "thresher::machine::Half" and "thresher::strategies::attention::Logits::direct", as the kernels' template arguments.
[[nodiscard]] std::string element_argument(Format format);
[[nodiscard]] std::string logits_argument(Logits logits);

}  // namespace thresher::strategies::attention
