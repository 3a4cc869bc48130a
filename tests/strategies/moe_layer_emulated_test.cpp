// A layer of experts run by the emulator: choices sorted by one launch and by two, with and without their rows, rows
// added up, and the whole chain around its products. Right, clean, and bitwise equal on every schedule.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "core/device_spec.hpp"
#include "core/grouped_weights.hpp"
#include "cpu/moe_rows.hpp"
#include "emulated_case.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "strategies/moe_layer/params.hpp"
#include "strategies/moe_layer/tensors.hpp"
#include "strategies/quantize/call.hpp"
#include "support/moe_case.hpp"
#include "support/quantize_case.hpp"

namespace thresher::strategies::moe_layer {
namespace {

Tensor integers(std::vector<std::int32_t>& values) {
  return Tensor::contiguous(values.data(), Format::int32, {std::ssize(values)});
}

/// What the emulator finds in one run; empty when it is clean.
std::string findings(EmulatedCall& call, std::uint64_t seed) {
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  std::string found;
  for (const emulator::Finding& finding : call.run(options).findings) {
    found += to_string(finding);
  }
  return found;
}

std::string findings(EmulatedCall&& call, std::uint64_t seed) { return findings(call, seed); }

template <std::size_t count>
std::vector<NamedTensor> named(const std::array<const char*, count>& names, const std::array<Tensor, count>& tensors) {
  std::vector<NamedTensor> found;
  for (std::size_t i = 0; i < count; ++i) {
    found.push_back({names[i], tensors[i]});
  }
  return found;
}

/// What sorting leaves, with something in it that is wrong everywhere.
struct Routed {
  std::vector<std::int32_t> offsets;
  std::vector<std::int32_t> row_ids;
  std::vector<std::int32_t> inverse;

  Routed(std::int64_t experts, std::size_t choices)
      : offsets(static_cast<std::size_t>(experts) + 1, -77), row_ids(choices, -77), inverse(choices, -77) {}
};

constexpr std::array routed_names{"a",       "b1 (gate)",   "b2 (up)", "bias1",    "bias2",   "c", "groups",
                                  "row_ids", "row_weights", "profile", "topk_ids", "inverse", "x"};

/// Of a call that has this product's tensors and sorts the choices `topk_ids` into `made`.
EmulatedCall routed_call(PlannedCall call, const WeightViews& weights, GroupedTensors of, const Tensor& topk_ids,
                         Routed& made, const Tensor& x = {}) {
  of.offsets = integers(made.offsets);
  of.row_ids = integers(made.row_ids);
  RoutedTensors routed{topk_ids, topk_ids, x};
  routed.inverse.data = made.inverse.data();
  return {std::move(call), named(routed_names, in_order(weights, of, routed)), test::compiled_in_kernel};
}

/// What differs from the definition.
std::string faults(const Routed& made, const MoeProblem& problem, const Tensor& topk_ids) {
  const reference::SortedChoices wanted = reference::sorted_choices(problem, topk_ids);
  std::string found = made.offsets == wanted.offsets ? "" : "offsets are wrong\n";
  found += made.row_ids == wanted.row_ids ? "" : "row ids are wrong\n";
  found += made.inverse == wanted.inverse ? "" : "the inverse is wrong\n";
  return found;
}

/// Sorts with the plan for `most`; empty when the result is the definition's.
std::string route(const MoeProblem& most, const MoeProblem& problem, std::vector<std::int32_t> ids,
                  std::uint64_t seed) {
  const std::int64_t tokens = std::ssize(ids) / problem.top_k;
  const Tensor topk_ids = Tensor::contiguous(ids.data(), Format::int32, {tokens, problem.top_k});
  Routed made(problem.experts, ids.size());
  const PlannedCall sorts = with_routing({}, gate_up_problem(most), DeviceKind::cuda);
  std::string found = findings(routed_call(sorts, {}, {}, topk_ids, made), seed);
  return found += faults(made, problem, topk_ids);
}

MoeProblem choices_of(std::int64_t experts, std::int64_t tokens, std::int64_t top_k) {
  return {.experts = experts, .tokens = tokens, .top_k = top_k, .hidden_size = 8, .intermediate_size = 8};
}

TEST(EmulatedMoe, ChoicesAreSortedInOneLaunch) {
  std::uint64_t seed = 0;
  for (const MoeProblem& problem :
       {choices_of(1, 1, 1), choices_of(5, 33, 3), choices_of(8, 300, 2), choices_of(31, 64, 8), choices_of(32, 100, 7),
        choices_of(600, 120, 6), choices_of(3, 4096, 2)}) {
    for (int schedule = 0; schedule < 3; ++schedule, ++seed) {
      EXPECT_EQ(route(problem, problem, test::random_choices(problem, static_cast<unsigned>(seed)), seed), "")
          << problem.experts;
    }
  }
}

/// The plan for many choices sorts few of them, too.
TEST(EmulatedMoe, ManyChoicesAreSortedInTwo) {
  std::uint64_t seed = 0;
  for (const std::int64_t experts : {3, 64}) {
    const MoeProblem most = choices_of(experts, 5000, 2);
    for (const std::int64_t tokens : {5000, 4097, 4096, 7}) {
      const MoeProblem problem = choices_of(experts, tokens, 2);
      EXPECT_EQ(route(most, problem, test::random_choices(problem, static_cast<unsigned>(seed)), seed), "") << tokens;
      ++seed;
    }
  }
}

TEST(EmulatedMoe, AllChoicesOfOneExpertOrOfNone) {
  const MoeProblem problem = choices_of(7, 50, 2);
  for (const std::int32_t id : {0, 3, 6, 7, -1}) {
    EXPECT_EQ(route(problem, problem, std::vector<std::int32_t>(100, id), 4), "") << id;
  }
}

/// Sorts with the plan for `most` and brings the rows together; empty when both are right and nothing lies where no row
/// is.
std::string gather(const MoeProblem& most, const MoeProblem& problem, std::uint64_t seed) {
  std::vector<std::int32_t> ids = test::random_choices(problem, static_cast<unsigned>(seed));
  const Tensor topk_ids = Tensor::contiguous(ids.data(), Format::int32, {problem.tokens, problem.top_k});
  const auto value = [&](std::int64_t row, std::int64_t column) {
    return static_cast<float>((row * 31 + column) % 251 + 1);
  };
  test::Matrix x = test::Matrix::of_values(problem.x, problem.tokens, problem.hidden_size, 8, value);
  const GroupedTensors of{.a = x.view(),
                          .c = Tensor::contiguous(nullptr, problem.x, {std::ssize(ids), problem.intermediate_size})};
  WeightViews weights;
  weights.gate =
      Tensor::contiguous(nullptr, problem.x, {problem.experts, problem.intermediate_size, problem.hidden_size});
  PlannedCall call;
  const gemm::RowsInWorkspace rows = gemm::add_gathering(gate_up_problem(most), std::nullopt, true, call);
  Routed made(problem.experts, ids.size());
  EmulatedCall brings =
      routed_call(with_routing(std::move(call), gate_up_problem(most), DeviceKind::cuda), weights, of, topk_ids, made);
  std::string found = findings(brings, seed);
  found += faults(made, problem, topk_ids);
  const auto row_bytes = static_cast<std::size_t>(problem.hidden_size * bits(problem.x) / 8);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const std::int32_t choice = made.row_ids[row];
    const std::vector<std::byte> nothing(row_bytes);
    const auto* const wanted =
        choice < 0 ? nothing.data()
                   : static_cast<const std::byte*>(x.view().data) +
                         static_cast<std::size_t>(choice / problem.top_k * x.view().strides[0] * bits(problem.x) / 8);
    if (std::memcmp(brings.workspace() + rows.offset + row * static_cast<std::size_t>(rows.row_bytes), wanted,
                    row_bytes) != 0) {
      return found + "row " + std::to_string(row) + " is wrong";
    }
  }
  return found;
}

MoeProblem rows_of(std::int64_t tokens, std::int64_t top_k, std::int64_t columns, Format format = Format::bf16) {
  return {.experts = 5,
          .tokens = tokens,
          .top_k = top_k,
          .hidden_size = columns,
          .intermediate_size = 8,
          .x = format,
          .gate_up = format};
}

/// A block is alone, or blocks have a choice each, whose row all threads copy, or several, the last one fewer. Rows
/// fill no 16 bytes, or have more pieces than a block's threads have on their way at once. Blocks are told of each
/// other's choices by a launch ahead, or need not be.
TEST(EmulatedMoe, TheLaunchThatSortsBringsTheRowsTogether) {
  std::uint64_t seed = 0;
  for (const MoeProblem& problem :
       {rows_of(1, 1, 8), rows_of(9, 3, 40), rows_of(5, 2, 4104), rows_of(2, 2, 33000), rows_of(7, 3, 1024),
        rows_of(50, 3, 72), rows_of(11, 3, 24, Format::fp8_row), rows_of(66, 3, 24)}) {
    for (int schedule = 0; schedule < 3; ++schedule, ++seed) {
      EXPECT_EQ(gather(problem, problem, seed), "") << problem.tokens << " " << problem.hidden_size;
    }
  }
  const MoeProblem most = rows_of(4150, 2, 40);
  for (const std::int64_t tokens : {4150, 4096, 40}) {
    EXPECT_EQ(gather(most, rows_of(tokens, 2, 40), seed++), "") << tokens;
  }
}

/// Quantizes tokens and brings their rows together; empty when rows and scales have the bits that quantizing first
/// gives.
std::string quantize_and_gather(const MoeProblem& problem, ScaleLayout layout, std::uint64_t seed) {
  std::vector<std::int32_t> ids = test::random_choices(problem, static_cast<unsigned>(seed));
  const Tensor topk_ids = Tensor::contiguous(ids.data(), Format::int32, {problem.tokens, problem.top_k});
  const QuantizeProblem tokens{.rows = problem.tokens, .columns = problem.hidden_size, .x = problem.x};
  test::QuantizeCase right(tokens, {.scales = layout});
  const std::array all{right.x, right.out};
  std::get<HostCall>(quantize::quantize_call(tokens, DeviceKind::cpu).steps.front()).call({all});
  test::QuantizeCase host(tokens, {.scales = layout});
  const std::vector<std::uint8_t> untouched = host.codes;
  WeightViews weights;
  weights.gate =
      Tensor::contiguous(nullptr, Format::fp8_block, {problem.experts, problem.intermediate_size, problem.hidden_size});
  PlannedCall call;
  const gemm::RowsInWorkspace rows = gemm::add_gathering(gate_up_problem(problem), std::nullopt, true, call);
  call = with_routing(std::move(call), gate_up_problem(problem), DeviceKind::cuda, QuantizedTokens{.from = problem.x});
  Routed made(problem.experts, ids.size());
  EmulatedCall brings = routed_call(
      std::move(call), weights,
      {.a = host.out, .c = Tensor::contiguous(nullptr, Format::bf16, {std::ssize(ids), problem.intermediate_size})},
      topk_ids, made, host.x);
  std::string found = findings(brings, seed);
  found += faults(made, problem, topk_ids);
  const auto columns = static_cast<std::size_t>(problem.hidden_size);
  const std::vector<std::uint8_t> nothing(columns);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const std::int32_t choice = made.row_ids[row];
    const std::uint8_t* const wanted =
        choice < 0 ? nothing.data() : right.codes.data() + static_cast<std::size_t>(choice / problem.top_k) * columns;
    const auto* const is = reinterpret_cast<const std::uint8_t*>(brings.workspace()) + rows.offset +
                           row * static_cast<std::size_t>(rows.row_bytes);
    if (!std::equal(is, is + columns, wanted, [](std::uint8_t one, std::uint8_t other) {
          return one == other || (formats::is_e4m3_nan(one) && formats::is_e4m3_nan(other));
        })) {
      found += "row " + std::to_string(row) + " is wrong\n";
    }
  }
  const bool has_scales =
      std::memcmp(host.scales.data(), right.scales.data(), right.scales.size() * sizeof(float)) == 0;
  found += has_scales ? "" : "scales are wrong\n";
  return found + (host.codes == untouched ? "" : "values that nobody reads were written");
}

/// Threads have one piece of a token, or many. A token's assignments have one block, or two. Half a warp may be behind
/// the last piece. Assignments are counted by a launch ahead, or need not be.
TEST(EmulatedMoe, TheLaunchThatSortsQuantizesTheRowsThatItBrings) {
  std::uint64_t seed = 0;
  for (const Format from : {Format::bf16, Format::fp16}) {
    for (MoeProblem problem : {rows_of(1, 1, 128, from), rows_of(9, 3, 384, from), rows_of(7, 3, 8320, from),
                               rows_of(50, 3, 128, from), rows_of(4150, 2, 128, from)}) {
      problem.gate_up = Format::fp8_block;
      problem.quantized_x = Format::fp8_block;
      for (const ScaleLayout layout : {ScaleLayout::row_major, ScaleLayout::column_major}) {
        EXPECT_EQ(quantize_and_gather(problem, layout, ++seed), "") << problem.tokens << " " << problem.hidden_size;
      }
    }
  }
}

/// A thread of the launch that only gathers has one piece of a row, or many.
TEST(EmulatedMoe, RowsAreGatheredByTheirIds) {
  for (const std::int64_t columns : {8, 20'000}) {
    const MoeProblem problem = rows_of(3, 2, columns);
    test::Matrix x = test::Matrix::of_values(problem.x, 3, columns, 8, [](std::int64_t row, std::int64_t column) {
      return static_cast<float>((row * 31 + column) % 251 + 1);
    });
    WeightViews weights;
    weights.gate = Tensor::contiguous(nullptr, problem.x, {problem.experts, problem.intermediate_size, columns});
    PlannedCall call;
    const gemm::RowsInWorkspace rows = gemm::add_gathering(gate_up_problem(problem), std::nullopt, true, call);
    Routed made(problem.experts, 6);
    made.row_ids = {5, 0, -1, 3, 6, 1};
    const std::vector<std::int32_t> ids = made.row_ids;
    Tensor topk_ids = Tensor::contiguous(nullptr, Format::int32, {3, 2});
    EmulatedCall gathers = routed_call(
        call, weights, {.a = x.view(), .c = Tensor::contiguous(nullptr, problem.x, {6, 8})}, topk_ids, made);
    EXPECT_EQ(findings(gathers, 7), "");
    const auto row_bytes = static_cast<std::size_t>(columns) * 2;
    for (std::size_t row = 0; row < 6; ++row) {
      if (ids[row] < 0 || ids[row] > 5) {
        continue;
      }
      const auto* const wanted = static_cast<const std::byte*>(x.view().data) +
                                 static_cast<std::size_t>(ids[row] / 2 * x.view().strides[0] * 2);
      EXPECT_EQ(std::memcmp(gathers.workspace() + rows.offset + row * static_cast<std::size_t>(rows.row_bytes), wanted,
                            row_bytes),
                0)
          << row;
    }
  }
}

/// The grid that sorts so many choices of two to a token, and brings their rows together.
Extent3 sorting_grid(std::int64_t choices, std::int64_t columns) {
  const MoeProblem problem = rows_of(choices / 2, 2, columns);
  PlannedCall call;
  (void)gemm::add_gathering(gate_up_problem(problem), std::nullopt, true, call);
  call = with_routing(std::move(call), gate_up_problem(problem), DeviceKind::cuda);
  const auto empty = [](Format format, std::initializer_list<std::int64_t> shape) {
    return Tensor::contiguous(nullptr, format, shape);
  };
  WeightViews weights;
  weights.gate = empty(problem.gate_up, {problem.experts, problem.intermediate_size, columns});
  const Tensor ids = empty(Format::int32, {problem.tokens, problem.top_k});
  const std::array tensors = in_order(weights,
                                      {.a = empty(problem.x, {problem.tokens, columns}),
                                       .c = empty(problem.x, {choices, problem.intermediate_size}),
                                       .offsets = empty(Format::int32, {problem.experts + 1}),
                                       .row_ids = empty(Format::int32, {choices})},
                                      {ids, ids});
  LaunchArguments arguments;
  std::get<KernelLaunch>(call.steps.back()).bind({tensors}, arguments);
  return arguments.grid;
}

/// As many blocks as a large card has at once, and no more than have 16 bytes for each thread; of very many choices
/// more, each of which brings the rows of a 32nd of what it sorts.
TEST(EmulatedMoe, RowsAreSharedOutAmongBlocks) {
  EXPECT_EQ(sorting_grid(6, 8), (Extent3{1, 1}));
  EXPECT_EQ(sorting_grid(6, 4096), (Extent3{1, 6}));
  EXPECT_EQ(sorting_grid(128, 2048), (Extent3{1, 64}));
  EXPECT_EQ(sorting_grid(128, 7168), (Extent3{1, 128}));
  EXPECT_EQ(sorting_grid(4096, 2048), (Extent3{1, 128}));
  EXPECT_EQ(sorting_grid(8192, 2048), (Extent3{1, 128}));
  EXPECT_EQ(sorting_grid(16384, 2048), (Extent3{2, 64}));
  EXPECT_EQ(sorting_grid(65536, 2048), (Extent3{8, 32}));
}

std::vector<std::string> titles(const PlannedCall& call) {
  std::vector<std::string> found;
  for (const Step& step : call.steps) {
    found.push_back(std::get<KernelLaunch>(step).title);
  }
  return found;
}

/// Folding tokens needs no choices and comes first; where rows are prepared and not gathered, sorting is a launch
/// ahead.
TEST(EmulatedMoe, SortingTakesTheGatheringsPlace) {
  const auto of_gate_up = [](const Strategy<ProductProblem>& strategy, const char* card, std::int64_t tokens,
                             const Sample<ProductProblem>& like) {
    GroupedProblem problem = gate_up_problem({.experts = 8,
                                              .tokens = tokens,
                                              .top_k = 4,
                                              .hidden_size = 256,
                                              .intermediate_size = 128,
                                              .x = like.problem.a,
                                              .gate_up = like.problem.b,
                                              .intermediate = Format::bf16});
    const Knobs chosen = strategy.candidates(problem, like.knobs, device_spec(card)).front();
    return titles(with_routing(strategy.plan(problem, chosen, device_spec(card)), problem, DeviceKind::cuda));
  };
  const auto knobs = [](const char* numerics) {
    Knobs of;
    of.set("numerics", numerics);
    return of;
  };
  const Sample<ProductProblem> plain{GroupedProblem{.a = Format::bf16, .b = Format::bf16}, {}};
  const Sample<ProductProblem> exact{GroupedProblem{.a = Format::bf16, .b = Format::nvfp4}, knobs("exact")};
  const Sample<ProductProblem> fast{GroupedProblem{.a = Format::bf16, .b = Format::nvfp4}, knobs("fast")};
  const Sample<ProductProblem> codes{GroupedProblem{.a = Format::nvfp4, .b = Format::nvfp4}, {}};
  using Titles = std::vector<std::string>;
  const std::string sorts = "permute by expert and gather the rows";
  const auto& columns = gemm::columns_strategy();
  const auto& packed = gemm::packed_strategy();
  EXPECT_EQ(of_gate_up(columns, "H200", 2048, plain), (Titles{sorts, "multiply"}));
  EXPECT_EQ(of_gate_up(columns, "H200", 2049, plain), (Titles{"count the assignments", sorts, "multiply"}));
  const auto quantized = [&](Format to, std::int64_t hidden_size) {
    const GroupedProblem problem = gate_up_problem({.experts = 8,
                                                    .tokens = 16,
                                                    .top_k = 4,
                                                    .hidden_size = hidden_size,
                                                    .intermediate_size = 128,
                                                    .gate_up = to,
                                                    .quantized_x = to});
    const Knobs chosen = columns.candidates(problem, {}, device_spec("H200")).front();
    return titles(
        with_routing(columns.plan(problem, chosen, device_spec("H200")), problem, DeviceKind::cuda, QuantizedTokens{}));
  };
  EXPECT_EQ(quantized(Format::fp8_block, 256), (Titles{sorts + " in FP8", "multiply"}));
  EXPECT_EQ(quantized(Format::fp8_block, 272), (Titles{"quantize the rows", sorts, "multiply"}));
  EXPECT_EQ(quantized(Format::fp8_row, 256), (Titles{"quantize the rows", sorts, "multiply"}));
  EXPECT_EQ(of_gate_up(packed, "H200", 16, exact), (Titles{sorts, "multiply"}));
  EXPECT_EQ(of_gate_up(packed, "H200", 16, fast), (Titles{"quantize the tokens", sorts, "multiply"}));
  EXPECT_EQ(of_gate_up(gemm::tcgen05_strategy(), "B200", 2049, codes),
            (Titles{"count the assignments", "permute by expert", "prepare the rows", "multiply"}));
}

TEST(EmulatedMoe, TheCpuSortsAsTheDefinitionDoes) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const MoeProblem problem = choices_of(1 + seed % 7, 30, 3);
    std::vector<std::int32_t> ids = test::random_choices(problem, seed);
    Routed made(problem.experts, ids.size());
    cpu::sort_choices(ids, made.offsets, made.row_ids, made.inverse);
    const reference::SortedChoices wanted =
        reference::sorted_choices(problem, Tensor::contiguous(ids.data(), Format::int32, {30, 3}));
    EXPECT_EQ(made.offsets, wanted.offsets);
    EXPECT_EQ(made.row_ids, wanted.row_ids);
    EXPECT_EQ(made.inverse, wanted.inverse);
  }
}

TEST(EmulatedMoe, MoreExpertsThanABlockCountsAreRefused) {
  EXPECT_NO_THROW(require_sortable(2758, DeviceKind::cuda));
  EXPECT_NO_THROW(require_sortable(2759, DeviceKind::cpu));
  EXPECT_LE(route_words(2758, block_choices) * 4, 227U * 1024U);
  EXPECT_GT(route_words(2759, block_choices) * 4, 227U * 1024U);
  try {
    require_sortable(2759, DeviceKind::cuda);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_STREQ(error.what(),
                 "problem.experts is 2759, expected 1 to 2758 on a GPU, whose shared memory counts the assignments "
                 "of each expert");
  }
}

/// Each may start while the one ahead of it ends, whatever that is.
TEST(EmulatedMoe, LaunchesAreDependentOnes) {
  const MoeProblem problem = choices_of(4, 5000, 2);
  for (const PlannedCall& call :
       {with_routing({}, gate_up_problem(problem), DeviceKind::cuda), combine_call(problem, DeviceKind::cuda)}) {
    for (const Step& step : call.steps) {
      EXPECT_TRUE(std::get<KernelLaunch>(step).dependent) << std::get<KernelLaunch>(step).title;
    }
  }
}

/// Rows of random numbers: the CPU adds up in the same order, so that every bit is the same.
std::string combine(const MoeProblem& problem, std::int64_t gap, bool is_settled, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  const std::int64_t choices = problem.tokens * problem.top_k;
  test::Matrix rows = test::Matrix::of_values(problem.rows, choices, problem.hidden_size, 0,
                                              [&](std::int64_t, std::int64_t) { return normal(random); });
  test::Matrix weights = test::Matrix::of_values(Format::fp32, problem.tokens, problem.top_k, 0,
                                                 [&](std::int64_t, std::int64_t) { return normal(random); });
  std::vector<std::int32_t> ids = test::random_choices(problem, static_cast<unsigned>(seed));
  const Tensor topk_ids = Tensor::contiguous(ids.data(), Format::int32, {problem.tokens, problem.top_k});
  std::vector<std::int32_t> inverse = reference::sorted_choices(problem, topk_ids).inverse;
  Tensor places = topk_ids;
  places.data = inverse.data();
  std::array<test::Matrix, 2> outs{test::Matrix::of_values(problem.out, problem.tokens, problem.hidden_size, gap,
                                                           [](std::int64_t, std::int64_t) { return 0.0F; }),
                                   test::Matrix::of_values(problem.out, problem.tokens, problem.hidden_size, gap,
                                                           [](std::int64_t, std::int64_t) { return 0.0F; })};
  outs[0].poison();
  outs[1].poison();
  const std::array tensors{rows.view(), places, weights.view(), outs[0].view()};
  const std::string found = findings(
      {combine_call(problem, DeviceKind::cuda, is_settled), named(combine_names, tensors), test::compiled_in_kernel},
      seed);
  cpu::combine_rows(rows.view(), places, weights.view(), outs[1].view(), 1);
  for (std::size_t i = 0; i < outs[0].bytes().size(); ++i) {
    if (outs[0].bytes()[i] != outs[1].bytes()[i]) {
      return found + "wrong at " + std::to_string(i);
    }
  }
  return found;
}

/// Rows of out that begin on 16 bytes and rows that do not; fewer columns than a block has, and more; fewer choices
/// than are asked for together, as many, and more.
TEST(EmulatedMoe, RowsOfEveryFormatAreAddedUp) {
  std::uint64_t seed = 0;
  for (const Format rows : unscaled_output_formats) {
    for (const Format out : unscaled_output_formats) {
      for (const std::int64_t gap : {0, 3}) {
        for (const auto& [top_k, columns] : {std::pair{1, 24}, std::pair{8, 1096}, std::pair{11, 64}}) {
          MoeProblem problem = choices_of(3, 5, top_k);
          problem.hidden_size = columns;
          problem.rows = rows;
          problem.out = out;
          EXPECT_EQ(combine(problem, gap, seed % 2 == 0, seed), "") << name(rows) << " " << name(out) << " " << gap;
          ++seed;
        }
      }
    }
  }
}

PlannedCall chain(std::initializer_list<bool> releases_after_wait) {
  PlannedCall call;
  for (const bool releases : releases_after_wait) {
    KernelLaunch launch;
    launch.releases_after_wait = releases;
    launch.accesses = {{Access::Memory::tensor, gemm::tokens_index, Access::Use::depends_on_previous},
                       {Access::Memory::tensor, gemm::groups_index, Access::Use::depends_on_previous}};
    launch.bind = [](const CallTensors& of, LaunchArguments& out) {
      out.grid.x = of.settled_groups ? 2 : 1;
      return true;
    };
    call.steps.emplace_back(launch);
  }
  return call;
}

/// Whether each launch reads offsets before it waits, as it was told.
std::vector<bool> settled(const PlannedCall& call) {
  std::vector<bool> found;
  for (const Step& step : call.steps) {
    const auto& launch = std::get<KernelLaunch>(step);
    EXPECT_EQ(launch.accesses[0].use, Access::Use::depends_on_previous);
    LaunchArguments arguments;
    launch.bind({}, arguments);
    found.push_back(launch.accesses[1].use == Access::Use::settled);
    EXPECT_EQ(arguments.grid.x == 2, found.back());
  }
  return found;
}

/// Launches that wait before they let the next one start settle for it what was written before.
TEST(EmulatedMoe, OffsetsAreSettledBehindLaunchesThatWait) {
  EXPECT_FALSE(settles({}));
  EXPECT_TRUE(settles(chain({false, true})));
  EXPECT_FALSE(settles(chain({true, false})));
  EXPECT_EQ(settled(with_settled_groups(chain({true, true}))), (std::vector{true, true}));
  EXPECT_EQ(settled(with_settled_groups(chain({true, false, true}))), (std::vector{true, false, false}));
  EXPECT_EQ(settled(chain({true})), std::vector{false});
}

/// A sample of the 16-bit kernels, which the build compiled.
const Sample<ProductProblem>& sample_that(const std::function<bool(const GroupedProblem&)>& fits) {
  static const std::vector<Sample<ProductProblem>> samples = gemm::columns_strategy().samples();
  return *std::find_if(samples.begin(), samples.end(),
                       [&](const auto& sample) { return fits(sample.problem.grouped()); });
}

PlannedCall planned(const GroupedProblem& problem, const Sample<ProductProblem>& sample) {
  Knobs knobs = sample.knobs;
  knobs.set("dependent_launch", "true");
  return gemm::columns_strategy().plan(problem, knobs, device_spec("H200"));
}

TEST(EmulatedMoe, TheWholeLayerIsRightOnManySchedules) {
  const Sample<ProductProblem>& gathered =
      sample_that([](const GroupedProblem& p) { return p.layout == RowLayout::gathered && p.a == Format::fp16; });
  const Sample<ProductProblem>& plain =
      sample_that([](const GroupedProblem& p) { return !p.activation && !p.bias && p.a == Format::bf16; });
  MoeProblem problem{.experts = 4,
                     .tokens = 21,
                     .top_k = 3,
                     .hidden_size = 136,
                     .intermediate_size = 72,
                     .x = gathered.problem.a,
                     .gate_up = gathered.problem.b,
                     .intermediate = gathered.problem.out,
                     .down = plain.problem.b,
                     .rows = plain.problem.out,
                     .out = Format::bf16,
                     .activation = *gathered.problem.activation,
                     .gate_up_bias = gathered.problem.bias};
  ASSERT_EQ(plain.problem.a, problem.intermediate);
  test::MoeCase host(problem, test::random_choices(problem, 3));
  const std::int64_t choices = problem.tokens * problem.top_k;
  GroupedProblem first_problem = gate_up_problem(problem);
  first_problem.row_weights = gathered.problem.row_weights;  // the sample's kernel has them: all are 1
  const PlannedCall first = with_routing(planned(first_problem, gathered), first_problem, DeviceKind::cuda);
  ASSERT_TRUE(settles(first));
  const PlannedCall second = with_settled_groups(planned(down_problem(problem), plain));
  ASSERT_TRUE(settles(second));
  test::Matrix ones =
      test::Matrix::of_values(Format::fp32, 1, choices, 0, [](std::int64_t, std::int64_t) { return 1.0F; });
  const Tensor row_weights = Tensor::contiguous(ones.view().data, Format::fp32, {choices});

  constexpr std::array names{"a", "b1 (gate)", "b2 (up)", "bias1", "bias2", "c", "groups", "row_ids", "row_weights"};
  std::vector<std::uint8_t> first_bytes;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Routed sorted(problem.experts, static_cast<std::size_t>(choices));
    test::Matrix hidden = test::Matrix::of_values(problem.intermediate, choices, problem.intermediate_size, 0,
                                                  [](std::int64_t, std::int64_t) { return 0.0F; });
    test::Matrix rows = test::Matrix::of_values(problem.rows, choices, problem.hidden_size, 0,
                                                [](std::int64_t, std::int64_t) { return 0.0F; });
    hidden.poison();
    rows.poison();
    host.out().poison();
    const MoeTensors of = host.tensors();
    Tensor places = of.topk_ids;
    places.data = sorted.inverse.data();
    const GroupedTensors of_first{
        .a = of.x, .c = hidden.view(), .row_weights = first_problem.row_weights ? row_weights : Tensor{}};
    const GroupedTensors of_second{.a = hidden.view(), .c = rows.view(), .offsets = integers(sorted.offsets)};
    const std::array combine_tensors{rows.view(), places, of.topk_weights, of.out};
    ASSERT_EQ(findings(routed_call(first, weight_views(host.gate_up()), of_first, of.topk_ids, sorted), seed), "");
    ASSERT_EQ(
        findings({second, named(names, gemm::in_order(weight_views(host.down()), of_second)), test::compiled_in_kernel},
                 seed),
        "");
    ASSERT_EQ(findings({combine_call(problem, DeviceKind::cuda, true), named(combine_names, combine_tensors),
                        test::compiled_in_kernel},
                       seed),
              "");
    if (seed == 0) {
      const reference::Verdict verdict = host.judged(of, DeviceKind::cuda);
      EXPECT_TRUE(verdict.passed) << verdict.explain();
      first_bytes = host.out().bytes();
    }
    ASSERT_EQ(host.out().bytes(), first_bytes) << "schedule " << seed << " wrote other bytes";
  }
}

}  // namespace
}  // namespace thresher::strategies::moe_layer
