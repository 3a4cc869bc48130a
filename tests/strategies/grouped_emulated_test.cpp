// Grouped products run by the emulator: every layout of rows, every knob, ragged and empty groups, nonsense for bounds,
// many schedules. Right, clean, and bitwise equal on every schedule.
#include <gtest/gtest.h>

#include <ostream>

#include "core/grouped_weights.hpp"
#include "emulated_case.hpp"
#include "reference/grouped_gemm.hpp"
#include "reference/plain_sums.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "support/grouped_checks.hpp"
#include "support/rows_of.hpp"

namespace thresher::strategies::gemm::grouped {
namespace {

using test::GroupedCase;
using test::GroupedForm;
using test::ragged_form;
using test::with_layout;
using test::wrong_rows;

/// The first card that the strategy is made for.
const DeviceSpec& card_of(const Strategy<ProductProblem>& strategy, const GroupedProblem& problem) {
  const DeviceSpec& hopper = device_spec("H200");
  return strategy.unsupported_reason(problem, hopper) ? device_spec("B200") : hopper;
}

EmulatedCall emulated(const PlannedCall& call, const std::array<Tensor, tensor_count>& tensors) {
  constexpr std::array names{"a", "b1 (gate)", "b2 (up)", "bias1", "bias2", "c", "groups", "row_ids", "row_weights"};
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    named.push_back({names[i], tensors[i]});
  }
  return {call, named, test::compiled_in_kernel};
}

EmulatedCall emulated(const PlannedCall& call, GroupedCase& host) {
  return emulated(call, in_order(weight_views(host.weights()), host.tensors()));
}

/// Runs the call on so many schedules; empty when all are clean, right, equal, and the status is as defined.
std::string run_and_judge(const PlannedCall& call, GroupedCase& host, std::uint64_t schedules) {
  EmulatedCall run = emulated(call, host);
  std::vector<std::uint8_t> first;
  std::vector<std::uint8_t> first_scales;
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
      const std::string* const numerics = call.knobs.find("numerics");
      const bool is_fast = numerics != nullptr && *numerics == "fast";
      const bool folds =
          reference::plain_sums(host.problem().a, host.problem().b,
                                is_fast ? thresher::Numerics::fast : thresher::Numerics::exact, DeviceKind::cuda)
              .is_folded;
      if (std::string sentence = wrong_rows(host, folds ? thresher::Numerics::fast : thresher::Numerics::exact);
          !sentence.empty()) {
        return sentence;
      }
      first = host.c().bytes();
      first_scales = host.c().scales();
      const auto* const words = reinterpret_cast<const std::uint32_t*>(run.workspace());
      const GroupedStatus status{flags_in({words, call.workspace[status_piece].bytes / sizeof(std::uint32_t)})};
      const GroupedStatus wanted = reference::owned_rows(host.problem(), host.tensors()).status;
      if (status != wanted) {
        return "status: " + status.explain() + ", expected: " + wanted.explain();
      }
    } else if (host.c().bytes() != first || host.c().scales() != first_scales) {
      return "schedule " + std::to_string(seed) + " wrote other bytes";
    }
  }
  return "";
}

/// One of a strategy's samples.
struct Chosen {
  const Strategy<ProductProblem>* strategy;
  Sample<ProductProblem> sample;
};
void PrintTo(const Chosen& one, std::ostream* out) { *out << one.strategy->name() << " " << one.sample.knobs.text(); }
std::vector<Chosen> all_samples() {
  std::vector<Chosen> all;
  for (const Strategy<ProductProblem>* strategy :
       {&columns_strategy(), &rows_strategy(), &packed_strategy(), &tcgen05_strategy(), &tcgen05_plain_strategy()}) {
    for (const Sample<ProductProblem>& sample : gemm::of_product(strategy->samples(), gemm::Product::grouped)) {
      all.push_back({strategy, sample});
    }
  }
  return all;
}

class EmulatedGrouped : public ::testing::TestWithParam<Chosen> {
 protected:
  [[nodiscard]] static const Strategy<ProductProblem>& strategy() { return *GetParam().strategy; }
  [[nodiscard]] static const Sample<ProductProblem>& sample() { return GetParam().sample; }
  [[nodiscard]] static GroupedProblem own_problem() { return sample().problem.grouped(); }
  static void clean_and_right(const GroupedProblem& problem, std::uint64_t schedules, GroupedForm form) {
    GroupedCase host(problem, std::move(form));
    const PlannedCall call = strategy().plan(problem, sample().knobs, card_of(strategy(), own_problem()));
    ASSERT_EQ(run_and_judge(call, host, schedules), "") << sample().knobs.text();
  }
  static void clean_and_right(const GroupedProblem& problem, std::uint64_t schedules) {
    clean_and_right(problem, schedules, ragged_form(problem));
  }
  /// Gathering is another kernel: its sample runs gathered rows, the others rows that lie as they are.
  [[nodiscard]] static bool is_gathered() { return sample().problem.layout == ProductRows::gathered; }
};

TEST_P(EmulatedGrouped, ItsOwnSample) { clean_and_right(own_problem(), 8); }
/// Behind a launch that has waited, offsets are read and the first tile's weights loaded before that launch has ended:
/// of more steps than there are stages, of fewer, and by blocks without a tile.
TEST_P(EmulatedGrouped, SettledOffsets) {
  if (is_gathered() || sample().knobs.find("dependent_launch") == nullptr) {
    return;
  }
  const DeviceSpec& card = card_of(strategy(), own_problem());
  Knobs knobs = sample().knobs;
  knobs.set("dependent_launch", "true");
  GroupedForm without_rows = ragged_form(own_problem());
  without_rows.groups.assign(without_rows.groups.size(), 7);
  GroupedProblem of_few_steps = own_problem();
  of_few_steps.k = strategy().edges(own_problem(), knobs, card).back().k;
  for (const auto& [problem, form] :
       {std::pair{own_problem(), ragged_form(own_problem())}, std::pair{own_problem(), without_rows},
        std::pair{of_few_steps, ragged_form(of_few_steps)}}) {
    GroupedCase host(problem, form);
    const PlannedCall call = moe_layer::with_settled_groups(strategy().plan(problem, knobs, card));
    ASSERT_EQ(run_and_judge(call, host, 6), "") << knobs.text();
  }
}
TEST_P(EmulatedGrouped, SmallerThanATile) {
  for (const ProductProblem& problem :
       strategy().edges(own_problem(), sample().knobs, card_of(strategy(), own_problem()))) {
    clean_and_right(problem.grouped(), 3);
  }
}
/// A turn is over when its one slot is there: many of them, one behind the other.
TEST_P(EmulatedGrouped, ManyTilesOfOneSlot) {
  GroupedProblem problem = own_problem();
  problem.k = strategy().edges(problem, sample().knobs, card_of(strategy(), problem)).back().k;
  problem.n *= 3;
  clean_and_right(problem, 12);
}
TEST_P(EmulatedGrouped, SlotsWithGarbageBehindTheCounts) {
  if (!is_gathered()) {
    GroupedProblem problem = with_layout(own_problem(), RowLayout::slots);
    problem.rows = problem.rows / 2 + 1;
    clean_and_right(problem, 4);
  }
}
TEST_P(EmulatedGrouped, NonsenseForBounds) {
  const auto rows = static_cast<std::int32_t>(own_problem().rows);
  GroupedForm form = ragged_form(own_problem());
  form.groups = {-4, rows / 2, rows / 3, 2 * rows, rows / 4, rows};
  clean_and_right(own_problem(), 3, form);
}
/// A dense product of one matrix comes without offsets, and no status is written.
TEST_P(EmulatedGrouped, OneExpertThatOwnsEveryRow) {
  if (is_gathered() || sample().problem.activation) {
    return;
  }
  const DeviceSpec& card = card_of(strategy(), own_problem());
  GroupedProblem problem = own_problem();
  problem.experts = 1;
  problem.rows = problem.rows / 2 + 1;
  GroupedForm form = ragged_form(own_problem());
  form.groups = {0, static_cast<std::int32_t>(problem.rows)};
  GroupedCase host(problem, form);
  ProductProblem dense = problem;
  dense.layout = gemm::ProductRows::dense;
  const PlannedCall call = strategy().plan(dense, sample().knobs, card);
  std::array tensors = in_order(weight_views(host.weights()), host.tensors());
  tensors[groups_index] = Tensor{};
  EmulatedCall run = emulated(call, tensors);
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    host.c().poison();
    emulator::Options options;
    options.schedule = emulator::Schedule::from_seed(seed);
    for (const emulator::Finding& finding : run.run(options).findings) {
      ADD_FAILURE() << sample().knobs.text() << ": " << to_string(finding);
    }
    const std::string* const numerics = sample().knobs.find("numerics");
    const bool is_fast = numerics != nullptr && *numerics == "fast";
    const bool folds =
        reference::plain_sums(problem.a, problem.b, is_fast ? thresher::Numerics::fast : thresher::Numerics::exact,
                              DeviceKind::cuda)
            .is_folded;
    ASSERT_EQ(wrong_rows(host, folds ? thresher::Numerics::fast : thresher::Numerics::exact), "")
        << sample().knobs.text();
  }
}
TEST_P(EmulatedGrouped, NoRowsAtAll) {
  GroupedForm form = ragged_form(own_problem());
  form.groups.assign(form.groups.size(), 7);
  clean_and_right(own_problem(), 3, form);
}
/// Between rows of operands: operands with scales are contiguous, and rows of FP8 begin every 16 bytes.
std::int64_t row_gap(const GroupedProblem& problem, std::int64_t of_16_bits) {
  const bool has_scales = format_traits(problem.a).has_scales() || format_traits(problem.b).has_scales();
  return has_scales ? 0 : bits(problem.a) == 8 ? 16 : of_16_bits;
}
TEST_P(EmulatedGrouped, RowsWithGapsAndOutputsOffTheGrid) {
  GroupedForm form = ragged_form(own_problem());
  form.layout = {.row_gap = row_gap(own_problem(), 8), .out_row_gap = 1};
  clean_and_right(own_problem(), 2, form);
}
/// Rows begin where 16 bytes may be stored and end where they may not; rows of A are no whole 16 bytes.
TEST_P(EmulatedGrouped, RowsThatEndBetweenSixteenBytes) {
  GroupedProblem problem = own_problem();
  problem.n -= format_traits(problem.out).n_multiple > 1 ? 0 : 3 + problem.n % 8;
  problem.k -= bits(problem.b) == 16 ? 4 : 0;
  GroupedForm form = ragged_form(problem);
  form.layout = {.row_gap = row_gap(problem, 4), .out_row_gap = 3};
  clean_and_right(problem, 2, form);
}
TEST_P(EmulatedGrouped, GateAndUpInOneTensor) {
  if (!own_problem().activation) {
    return;
  }
  for (const GateUpOrder order : all_gate_up_orders) {
    GroupedForm form = ragged_form(own_problem());
    form.order = order;
    form.bias_format = order == GateUpOrder::interleaved ? Format::bf16 : Format::fp16;
    GroupedProblem problem = own_problem();
    if (problem.b == Format::fp8_block) {  // gate and up in one tensor may not share a scale
      if (order == GateUpOrder::interleaved) {
        continue;
      }
      problem.n = 256;
    }
    clean_and_right(problem, 2, form);
  }
}
/// Tiles of half their rows, of one row more, of all, and of one.
TEST_P(EmulatedGrouped, TilesThatAreJustFull) {
  const auto most = static_cast<std::int32_t>(std::stoll(*sample().knobs.find("block_tokens")));
  GroupedForm form = ragged_form(own_problem());
  form.groups = {0, most / 2, most + 1, 2 * most + 1, 2 * most + 1, 2 * most + 2};
  clean_and_right(own_problem(), 2, form);
}
/// A block reports what it has seen itself: the row of no token is in the first tile, in a later one, or is nobody's.
TEST_P(EmulatedGrouped, RowsOfNoTokenAreReportedWhereverTheyAre) {
  if (!is_gathered()) {
    return;
  }
  const GroupedProblem problem = own_problem();
  const auto rows = static_cast<std::size_t>(problem.rows);
  for (const std::size_t skipped : {std::size_t{0}, std::size_t{3}, rows - 2, rows - 1}) {
    GroupedForm form = ragged_form(problem);
    const auto end = static_cast<std::int32_t>(rows - 1);
    form.groups = {0, 3, 3, 5, 5, end};
    std::fill(form.row_ids.begin(), form.row_ids.end(), 1);
    form.row_ids[skipped] = static_cast<std::int32_t>(problem.tokens * problem.row_ids_divisor);
    clean_and_right(problem, 2, form);
  }
}
/// Scales in blocks of 128 rows and four along K, which no expert and no slot fills: each has its own, padded.
TEST_P(EmulatedGrouped, ScalesInBlocks) {
  GroupedProblem problem = own_problem();
  if (problem.b != Format::nvfp4) {
    return;
  }
  problem.experts = 2;
  problem.n = 136;
  problem.rows = 130;
  problem.k = 304;
  if (problem.a == Format::nvfp4 && !is_gathered()) {
    problem = with_layout(problem, RowLayout::slots);
  }
  GroupedForm form = ragged_form(problem);
  form.layout.scales = ScaleLayout::blocked;
  if (problem.layout == RowLayout::slots) {
    form.groups = {3, 130};
  }
  clean_and_right(problem, 2, form);
}

/// Scales that are written: row by row, block by block of rows rounded up to 4, powers of two; of slots each its own,
/// whatever lies between the rows of outputs.
TEST_P(EmulatedGrouped, OutputScalesInEveryLayout) {
  if (!format_traits(own_problem().out).is_quantized_output()) {
    return;
  }
  for (const ScaleLayout layout : {ScaleLayout::row_major, ScaleLayout::column_major}) {
    for (const RowLayout rows : {RowLayout::packed, RowLayout::slots}) {
      if (is_gathered() && rows == RowLayout::slots) {
        continue;
      }
      GroupedProblem problem = is_gathered() ? own_problem() : with_layout(own_problem(), rows);
      problem.rows = problem.rows / 2 + 1;
      GroupedForm form = ragged_form(problem);
      form.layout = {.out_row_gap = 16, .out_scales = layout, .out_powers_of_two = layout == ScaleLayout::column_major};
      clean_and_right(problem, 2, form);
    }
  }
}

/// Scales of 1 × 128 of tokens that lie one behind the other for each 128 along K, of rows rounded up to 4.
TEST_P(EmulatedGrouped, ScalesThatLieColumnByColumn) {
  GroupedProblem problem = own_problem();
  if (problem.a != Format::fp8_block) {
    return;
  }
  problem.k = 3 * 128 + 16;
  GroupedForm form = ragged_form(problem);
  form.layout.scales = ScaleLayout::column_major;
  clean_and_right(problem, 2, form);
  if (!is_gathered()) {
    GroupedProblem slots = with_layout(problem, RowLayout::slots);
    slots.rows = slots.rows / 2 + 2;
    GroupedForm of_slots = ragged_form(slots);
    of_slots.layout.scales = ScaleLayout::column_major;
    clean_and_right(slots, 2, of_slots);
  }
}
/// Weights whose last block of 128 rows has few, and whose tiles lie in two blocks and in the second of one.
TEST_P(EmulatedGrouped, OutputsInSeveralBlocksOfScales) {
  GroupedProblem problem = own_problem();
  if (problem.b != Format::fp8_block) {
    return;
  }
  problem.n = format_traits(problem.out).n_multiple > 1 ? 3 * 128 : 2 * 128 + 72;
  problem.k = 2 * 128 + 48;
  clean_and_right(problem, 2);
}

/// NaN and Inf stay in their own rows, of their own experts; behind a slot's rows there is nothing but NaN.
TEST_P(EmulatedGrouped, NanStaysInItsRow) {
  const GroupedProblem problem = is_gathered() ? own_problem() : with_layout(own_problem(), RowLayout::slots);
  GroupedCase host(problem, ragged_form(problem));
  const std::vector<std::int32_t> groups = host.groups();
  const auto spoil = [&](std::int64_t row) {
    if (problem.a == Format::nvfp4) {
      host.a().set_scale(row, 0, 0x7F);
    } else {
      host.a().set_pattern(row, 3, bits(problem.a) == 8 ? 0x7F : 0x7FFF);
    }
  };
  for (std::int64_t e = 0; e < problem.experts && !is_gathered(); ++e) {
    for (std::int64_t row = groups[static_cast<std::size_t>(e)]; row < problem.rows; ++row) {
      spoil(e * problem.rows + row);
    }
  }
  spoil(1);
  const PlannedCall call = strategy().plan(problem, sample().knobs, card_of(strategy(), own_problem()));
  ASSERT_EQ(run_and_judge(call, host, 2), "") << sample().knobs.text();
}

/// Samples whose outputs are float32, which a launch of its own may quantize: of each kind of kernel one.
std::vector<Chosen> samples_in_float32() {
  std::vector<Chosen> found;
  for (const Chosen& one : all_samples()) {
    if (one.sample.problem.out == Format::fp32 && one.sample.problem.a != Format::fp8_block &&
        !one.strategy->unsupported_reason(one.sample.problem, device_spec("H200"))) {
      found.push_back(one);
    }
  }
  return found;
}

/// The fifth of the first expert, in all of its rows.
void spoil_an_output(GroupedCase& host) {
  const Tensor gate = host.weights().b1;
  const std::int64_t at = 5 * gate.strides[1] + 3;
  if (gate.format == Format::nvfp4) {
    const_cast<std::uint8_t*>(gate.scales.codes())[5 * gate.shape[2] / 16] = 0x7F;
  } else if (bits(gate.format) == 8) {
    static_cast<std::uint8_t*>(gate.data)[at] = 0x7F;
  } else {
    static_cast<std::uint16_t*>(gate.data)[at] = 0x7FFF;
  }
}

class EmulatedQuantizedRows : public EmulatedGrouped {
 protected:
  /// The sample with outputs in every format; of some there are scales in two layouts.
  static void in_every_format(const GroupedProblem& product, const GroupedForm& form, std::uint64_t schedules,
                              bool has_nan = false) {
    for (const Format out : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
      GroupedProblem problem = product;
      problem.out = out;
      problem.n = (problem.n / format_traits(out).n_multiple + 1) * format_traits(out).n_multiple;
      if (!strategy().infeasible_reasons(problem, sample().knobs, device_spec("H200")).empty()) {
        continue;  // tiles without all that shares a scale
      }
      const PlannedCall call = strategy().plan(problem, sample().knobs, device_spec("H200"));
      if (call.workspace.back().name != "outputs in float32") {
        continue;  // quantized where the sums are
      }
      for (const ScaleLayout layout : {ScaleLayout::row_major, ScaleLayout::column_major, ScaleLayout::blocked}) {
        if (may_lie(layout, out, OperandRole::tokens)) {
          GroupedForm of_layout = form;
          of_layout.layout.out_scales = layout;
          of_layout.layout.out_powers_of_two = layout == ScaleLayout::column_major;
          GroupedCase host(problem, of_layout);
          if (has_nan) {
            spoil_an_output(host);
          }
          ASSERT_EQ(run_and_judge(call, host, schedules), "") << name(out) << " " << sample().knobs.text();
        }
      }
    }
  }
};

TEST_P(EmulatedQuantizedRows, AreRightInEveryLayout) {
  for (const RowLayout rows : {RowLayout::packed, RowLayout::slots, RowLayout::gathered}) {
    if (is_gathered() == (rows == RowLayout::gathered)) {
      const GroupedProblem problem = with_layout(own_problem(), rows);
      in_every_format(problem, ragged_form(problem), 2);
    }
  }
}
TEST_P(EmulatedQuantizedRows, KeepNanOfOneOutput) {
  in_every_format(own_problem(), ragged_form(own_problem()), 1, true);
}
/// Rows before the first, behind the last and of no token, gaps, and bounds that make no sense.
TEST_P(EmulatedQuantizedRows, OfMoreOutputsThanAWarpHas) {
  GroupedProblem problem = own_problem();
  problem.n = 520;  // a warp has 512
  in_every_format(problem, ragged_form(problem), 1);
}
TEST_P(EmulatedQuantizedRows, LeaveWhatIsNobodys) {
  const auto rows = static_cast<std::int32_t>(own_problem().rows);
  for (const std::vector<std::int32_t>& groups :
       {std::vector<std::int32_t>{3, rows / 4, rows / 4, rows / 2, rows / 2, rows - 5},
        {2, rows / 2, rows / 3, rows / 4, 5, 1}}) {
    GroupedForm form = ragged_form(own_problem());
    form.groups = groups;
    form.layout.out_row_gap = 6;
    in_every_format(own_problem(), form, 1);
  }
}

// --- one group whose rows the launch knows

std::vector<Chosen> plain_samples() {
  std::vector<Chosen> all;
  for (const Strategy<ProductProblem>* strategy : {&columns_strategy(), &packed_strategy()}) {
    for (const Sample<ProductProblem>& sample : gemm::of_product(strategy->samples(), gemm::Product::gemm)) {
      all.push_back({strategy, sample});
    }
  }
  return all;
}

class EmulatedPlain : public ::testing::TestWithParam<Chosen> {
 protected:
  [[nodiscard]] static const ProductProblem& own_problem() { return GetParam().sample.problem; }
  static void clean_and_right(const ProductProblem& problem, std::uint64_t schedules) {
    const Sample<ProductProblem>& sample = GetParam().sample;
    GroupedForm form;
    form.groups = {0, static_cast<std::int32_t>(problem.rows)};
    form.layout.out_row_gap = problem.rows % 2 == 0 ? 0 : 8;
    GroupedCase host(problem.grouped(), form);
    GroupedTensors tensors = host.tensors();
    tensors.offsets = {};
    EmulatedCall run = emulated(GetParam().strategy->plan(problem, sample.knobs, device_spec("H200")),
                                in_order(weight_views(host.weights()), tensors));
    const std::string* const numerics = sample.knobs.find("numerics");
    const bool folds = problem.b == Format::nvfp4 && numerics != nullptr && *numerics == "fast";
    std::vector<std::uint8_t> first;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      host.c().poison();
      emulator::Options options;
      options.schedule = emulator::Schedule::from_seed(seed);
      for (const emulator::Finding& finding : run.run(options).findings) {
        ADD_FAILURE() << sample.knobs.text() << ": " << to_string(finding);
      }
      ASSERT_EQ(wrong_rows(host, folds ? thresher::Numerics::fast : thresher::Numerics::exact), "")
          << sample.knobs.text();
      first = first.empty() ? host.c().bytes() : first;
      ASSERT_EQ(host.c().bytes(), first) << "schedule " << seed << " wrote other bytes";
    }
  }
};

TEST_P(EmulatedPlain, ItsOwnSample) { clean_and_right(own_problem(), 8); }
TEST_P(EmulatedPlain, EdgesOfItsTile) {
  const Sample<ProductProblem>& sample = GetParam().sample;
  for (const ProductProblem& problem : GetParam().strategy->edges(own_problem(), sample.knobs, device_spec("H200"))) {
    clean_and_right(problem, 3);
  }
}
/// Blocks that share a tile's K keep columns that have no rows.
TEST_P(EmulatedPlain, FewerRowsThanBlocksKeep) {
  ProductProblem problem = own_problem();
  for (const std::int64_t rows : {1, 9}) {
    problem.rows = rows;
    clean_and_right(problem, 3);
  }
}

/// In tiles of other widths and at other places too.
TEST_P(EmulatedPlain, RowsHaveTheBitsThatTheyHaveAmongOthers) {
  constexpr std::int64_t most = 17;
  ProductProblem problem = own_problem();
  problem.rows = most;
  const Sample<ProductProblem>& sample = GetParam().sample;
  if (!GetParam().strategy->sums(problem, sample.knobs, device_spec("H200"))) {
    GTEST_SKIP() << "more than two blocks share K";
  }
  const PlannedCall call = GetParam().strategy->plan(problem, sample.knobs, device_spec("H200"));
  GroupedForm form;
  form.groups = {0, most};
  GroupedCase host(problem.grouped(), form);
  const auto run = [&](std::int64_t first, std::int64_t rows) {
    GroupedTensors tensors = host.tensors();
    tensors.offsets = {};
    tensors.a = test::rows_of(tensors.a, first, rows);
    tensors.c = test::rows_of(tensors.c, first, rows);
    if (tensors.row_weights.rank > 0) {
      tensors.row_weights = test::rows_of(tensors.row_weights, first, rows);
    }
    host.c().poison();
    EXPECT_TRUE(emulated(call, in_order(weight_views(host.weights()), tensors)).run({}).clean()) << rows;
    const std::vector<std::uint8_t>& bytes = host.c().bytes();
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(bytes.size()) / most;
    return std::vector(bytes.begin() + first * row, bytes.begin() + (first + rows) * row);
  };
  const std::vector<std::uint8_t> all = run(0, most);
  for (std::int64_t rows = 1; rows < most; ++rows) {
    const std::vector<std::uint8_t> first = run(0, rows);
    ASSERT_TRUE(std::equal(first.begin(), first.end(), all.begin())) << rows << ": " << call.knobs.text();
    const std::vector<std::uint8_t> last = run(most - rows, rows);
    ASSERT_TRUE(std::equal(last.rbegin(), last.rend(), all.rbegin())) << rows << ": " << call.knobs.text();
  }
}

std::string name_of(const ::testing::TestParamInfo<Chosen>& of) {
  return std::string(of.param.strategy->name()) + std::to_string(of.index);
}

INSTANTIATE_TEST_SUITE_P(InFloat32, EmulatedQuantizedRows, ::testing::ValuesIn(samples_in_float32()), name_of);
INSTANTIATE_TEST_SUITE_P(OneMatrix, EmulatedPlain, ::testing::ValuesIn(plain_samples()), name_of);
INSTANTIATE_TEST_SUITE_P(AllSamples, EmulatedGrouped, ::testing::ValuesIn(all_samples()), name_of);

}  // namespace
}  // namespace thresher::strategies::gemm::grouped
