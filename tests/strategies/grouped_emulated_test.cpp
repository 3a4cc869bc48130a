// Grouped products run by the emulator: every layout of rows, every knob, ragged and empty groups, nonsense for bounds,
// many schedules. Right, clean, and bitwise equal on every schedule.
#include <gtest/gtest.h>

#include "core/grouped_weights.hpp"
#include "emulated_case.hpp"
#include "reference/grouped_gemm.hpp"
#include "strategies/grouped_gemm/columns/candidates.hpp"
#include "strategies/grouped_gemm/columns/strategy.hpp"
#include "strategies/grouped_gemm/tensors.hpp"
#include "support/grouped_checks.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

using test::GroupedCase;
using test::GroupedForm;
using test::ragged_form;
using test::with_layout;
using test::wrong_rows;

const DeviceSpec& hopper() { return device_spec("H200"); }

EmulatedCall emulated(const PlannedCall& call, GroupedCase& host) {
  constexpr std::array names{"a", "b1 (gate)", "b2 (up)", "bias1", "bias2", "c", "groups", "row_ids", "row_weights"};
  const std::array tensors = in_order(weight_views(host.weights()), host.tensors());
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    named.push_back({names[i], tensors[i]});
  }
  return {call, named, test::compiled_in_kernel};
}

/// Runs the call on so many schedules; empty when all are clean, right, equal, and the status is as defined.
std::string run_and_judge(const PlannedCall& call, GroupedCase& host, std::uint64_t schedules) {
  EmulatedCall run = emulated(call, host);
  std::vector<std::uint8_t> first;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    host.c().poison();
    emulator::Options options;
    options.schedule = emulator::Schedule::from_seed(seed);
    std::string found;
    for (const emulator::Finding& finding : run.run(options).findings) {
      found += to_string(finding);
    }
    if (!found.empty()) {
      return found;
    }
    if (seed == 0) {
      if (std::string sentence = wrong_rows(host); !sentence.empty()) {
        return sentence;
      }
      first = host.c().bytes();
      const auto* const words = reinterpret_cast<const std::uint32_t*>(run.workspace());
      const GroupedStatus status = status_in({words, call.workspace[status_piece].bytes / sizeof(std::uint32_t)});
      const GroupedStatus wanted = reference::owned_rows(host.problem(), host.tensors()).status;
      if (status != wanted) {
        return "status: " + status.explain() + ", expected: " + wanted.explain();
      }
    } else if (host.c().bytes() != first) {
      return "schedule " + std::to_string(seed) + " wrote other bytes";
    }
  }
  return "";
}

class EmulatedColumns : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static Sample<GroupedProblem> sample() { return columns_strategy().samples()[GetParam()]; }
  static void clean_and_right(const GroupedProblem& problem, std::uint64_t schedules, GroupedForm form) {
    GroupedCase host(problem, std::move(form));
    const PlannedCall call = columns_strategy().plan(problem, sample().knobs, hopper());
    ASSERT_EQ(run_and_judge(call, host, schedules), "") << sample().knobs.text();
  }
  static void clean_and_right(const GroupedProblem& problem, std::uint64_t schedules) {
    clean_and_right(problem, schedules, ragged_form(problem));
  }
  /// Gathering is another kernel: its sample runs gathered rows, the others rows that lie as they are.
  [[nodiscard]] static bool is_gathered() { return sample().problem.layout == RowLayout::gathered; }
};

TEST_P(EmulatedColumns, ItsOwnSample) { clean_and_right(sample().problem, 8); }
TEST_P(EmulatedColumns, SmallerThanATile) {
  for (GroupedProblem& problem : columns_strategy().edges(sample().problem, sample().knobs, hopper())) {
    clean_and_right(problem, 3);
  }
}
TEST_P(EmulatedColumns, SlotsWithGarbageBehindTheCounts) {
  if (!is_gathered()) {
    GroupedProblem problem = with_layout(sample().problem, RowLayout::slots);
    problem.rows = problem.rows / 2 + 1;
    clean_and_right(problem, 4);
  }
}
TEST_P(EmulatedColumns, NonsenseForBounds) {
  const auto rows = static_cast<std::int32_t>(sample().problem.rows);
  GroupedForm form = ragged_form(sample().problem);
  form.groups = {-4, rows / 2, rows / 3, 2 * rows, rows / 4, rows};
  clean_and_right(sample().problem, 3, form);
}
TEST_P(EmulatedColumns, NoRowsAtAll) {
  GroupedForm form = ragged_form(sample().problem);
  form.groups.assign(form.groups.size(), 7);
  clean_and_right(sample().problem, 3, form);
}
TEST_P(EmulatedColumns, RowsWithGapsAndOutputsOffTheGrid) {
  GroupedForm form = ragged_form(sample().problem);
  form.layout = {.row_gap = 8, .out_row_gap = 1};
  clean_and_right(sample().problem, 2, form);
}
TEST_P(EmulatedColumns, GateAndUpInOneTensor) {
  if (!sample().problem.activation) {
    return;
  }
  for (const GateUpOrder order : all_gate_up_orders) {
    GroupedForm form = ragged_form(sample().problem);
    form.order = order;
    form.bias_format = Format::bf16;
    clean_and_right(sample().problem, 2, form);
  }
}

/// NaN and Inf stay in their own rows, of their own experts; behind a slot's rows there is nothing but NaN.
TEST_P(EmulatedColumns, NanStaysInItsRow) {
  const GroupedProblem problem =
      is_gathered() ? sample().problem : with_layout(sample().problem, RowLayout::slots);
  GroupedCase host(problem, ragged_form(problem));
  const std::vector<std::int32_t> groups = host.groups();
  if (is_gathered()) {
    for (std::int64_t k = 0; k < problem.k; ++k) {
      host.a().set_pattern(1, k, 0x7FFF);
    }
  } else {
    for (std::int64_t e = 0; e < problem.experts; ++e) {
      for (std::int64_t row = groups[static_cast<std::size_t>(e)]; row < problem.rows; ++row) {
        for (std::int64_t k = 0; k < problem.k; ++k) {
          host.a().set_pattern(e * problem.rows + row, k, 0x7FFF);
        }
      }
    }
    host.a().set_pattern(2, 3, 0x7FFF);
  }
  const PlannedCall call = columns_strategy().plan(problem, sample().knobs, hopper());
  ASSERT_EQ(run_and_judge(call, host, 2), "") << sample().knobs.text();
}

INSTANTIATE_TEST_SUITE_P(AllSamples, EmulatedColumns,
                         ::testing::Range(std::size_t{0}, columns::small_config_list.size()));

}  // namespace
}  // namespace thresher::strategies::grouped_gemm
