// Appending on the emulator: right on every schedule, where rows lie in any order, and inside the tensors whatever
// positions and slots say.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "cpu/append.hpp"
#include "emulated_case.hpp"
#include "strategies/append/call.hpp"
#include "strategies/append/device/angle.hpp"
#include "strategies/append/tensors.hpp"
#include "support/append_case.hpp"

namespace thresher::strategies::append {
namespace {

using test::AppendCase;

EmulatedCall call_of(const AppendCase& host) {
  std::vector<NamedTensor> named;
  const auto tensors = in_order(host.tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    named.push_back({tensor_names[i], tensors[i]});
  }
  return {append_call(host.problem, device_spec("H200")), std::move(named), test::compiled_in_kernel};
}

std::string findings_of(const AppendCase& host, std::uint64_t seed) {
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  EmulatedCall call = call_of(host);
  std::string text;
  for (const emulator::Finding& finding : call.run(options).findings) {
    text += to_string(finding);
  }
  return text;
}

/// What the emulator finds, or what is wrong in what it leaves; empty when nothing is.
std::string fault(AppendCase& host, std::uint64_t seed = 1) {
  std::string found;
  const std::string wrong = host.fault_after([&] { found = findings_of(host, seed); });
  return found.empty() ? wrong : found;
}

AppendProblem small(Format format, RotaryPairs pairs, bool is_fp8) {
  AppendProblem problem{.tokens = 7,
                        .heads = 6,
                        .kv_heads = 2,
                        .head_dim = 64,
                        .value_dim = 32,
                        .format = format,
                        .pairs = pairs,
                        .page_size = 3,
                        .pages = 4};
  if (is_fp8) {
    problem.kv_format = Format::fp8_e4m3;
  }
  return problem;
}

/// All kernels: rotary dimensions of whole pieces, of single columns and of the whole row.
TEST(EmulatedAppend, TurnsAndWritesAsTheDefinitionSays) {
  std::uint64_t seed = 0;
  for (const Format format : {Format::fp16, Format::bf16}) {
    for (const RotaryPairs pairs : {RotaryPairs::none, RotaryPairs::halves, RotaryPairs::interleaved}) {
      for (const bool is_fp8 : {false, true}) {
        for (const std::int64_t rotary_dim : {0, 32, 20}) {
          AppendProblem problem = small(format, pairs, is_fp8);
          problem.rotary_dim = pairs == RotaryPairs::none ? 0 : rotary_dim;
          AppendCase host(problem, is_fp8 ? 32 : 64);
          EXPECT_EQ(fault(host, ++seed), "") << static_cast<int>(pairs) << is_fp8 << rotary_dim;
        }
      }
    }
  }
}

/// The CPU rounds the same sums: values of 16 bits are equal bit for bit, and so is all that is not turned.
TEST(EmulatedAppend, WhatIsNotTurnedIsBitForBitWhatTheCpuWrites) {
  for (const bool is_fp8 : {false, true}) {
    const AppendProblem problem = small(Format::bf16, RotaryPairs::none, is_fp8);
    AppendCase by_cpu(problem);
    AppendCase host(problem);
    EXPECT_EQ(by_cpu.fault_after([&] { cpu::append(problem, by_cpu.tensors, 1); }), "");
    EXPECT_EQ(findings_of(host, 3), "");
    EXPECT_EQ(host.q_out, by_cpu.q_out);
    EXPECT_EQ(host.k_out, by_cpu.k_out);
    EXPECT_EQ(host.k_cache, by_cpu.k_cache);
    EXPECT_EQ(host.v_cache, by_cpu.v_cache);
  }
}

TEST(EmulatedAppend, TakesCosinesAndSinesFromATable) {
  AppendProblem problem = small(Format::fp16, RotaryPairs::halves, false);
  problem.max_position = 4096;
  std::vector<float> table(4096 * 72);
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = std::sin(static_cast<float>(i));
  }
  AppendCase host(problem);
  host.tensors.cos_sin = Tensor::contiguous(table.data(), Format::fp32, {4096, 64});
  host.tensors.cos_sin.strides[0] = 72;
  EXPECT_EQ(fault(host), "");
}

/// Rows that other tensors' rows lie between, and heads of a page one after the other.
TEST(EmulatedAppend, RowsMayLieAnywhere) {
  const AppendProblem problem = small(Format::bf16, RotaryPairs::interleaved, true);
  AppendCase host(problem);
  host.tensors.k_cache.strides = {3 * 2 * 64, 64, 3 * 64, 1};
  host.tensors.v_cache.strides = {3 * 2 * 32, 32, 3 * 32, 1};
  host.tensors.k_descale.shape[0] = 2;
  host.tensors.k_descale.strides[0] = 0;
  host.tensors.v_descale = {};
  const reference::AppendResult definition = reference::append(problem, host.tensors);
  EXPECT_EQ(findings_of(host, 2), "");
  EXPECT_EQ(reference::fault_in_append(problem, host.tensors, definition), "");
}

TEST(EmulatedAppend, KeysAloneAndFewerTokensThanPlanned) {
  const AppendProblem problem = small(Format::fp16, RotaryPairs::halves, false);
  AppendCase host(problem);
  host.tensors.q = host.tensors.q_out = host.tensors.k_out = {};
  for (Tensor* tensor : {&host.tensors.k, &host.tensors.v}) {
    tensor->shape[0] = 3;
  }
  const reference::AppendResult definition = reference::append(problem, host.tensors);
  EXPECT_EQ(findings_of(host, 5), "");
  EXPECT_EQ(reference::fault_in_append(problem, host.tensors, definition), "");
}

/// Rows are read before they are written where they lie.
TEST(EmulatedAppend, TurnsRowsWhereTheyLie) {
  for (const std::int64_t rotary_dim : {64, 20}) {
    AppendProblem problem = small(Format::bf16, RotaryPairs::halves, false);
    problem.rotary_dim = rotary_dim;
    AppendCase apart(problem);
    EXPECT_EQ(fault(apart), "");
    AppendCase host(problem);
    host.tensors.q_out.data = host.tensors.q.data;
    host.tensors.k_out.data = host.tensors.k.data;
    EXPECT_EQ(fault(host), "");
    EXPECT_EQ(host.q, apart.q_out);
    EXPECT_EQ(host.k, apart.k_out);
  }
}

/// Slots that are not there write nowhere, and positions are taken to be the nearest that is.
TEST(EmulatedAppend, NonsenseStaysInsideTheTensors) {
  AppendProblem problem = small(Format::fp16, RotaryPairs::halves, false);
  problem.max_position = 40;
  std::vector<float> table(40 * 64, 0.5F);
  AppendCase host(problem);
  host.tensors.cos_sin = Tensor::contiguous(table.data(), Format::fp32, {40, 64});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  host.slots = {12, -1, most, -most, 3, 1LL << 32, 11};
  host.positions = {-1, 40, most, -most, 39, 0, 1LL << 32};
  AppendCase taken(problem);
  taken.tensors.cos_sin = host.tensors.cos_sin;
  taken.slots = {-1, -1, -1, -1, 3, -1, 11};
  taken.positions = {0, 39, 39, 0, 39, 0, 39};
  EXPECT_EQ(findings_of(host, 4), "");
  EXPECT_EQ(fault(taken), "");
  EXPECT_EQ(host.q_out, taken.q_out);
  EXPECT_EQ(host.k_cache, taken.k_cache);
  EXPECT_EQ(host.v_cache, taken.v_cache);
}

TEST(AppendAngle, IsRightForEveryPosition) {
  for (const std::int64_t position : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3},
                                      std::int64_t{1000}, std::int64_t{131071}, (std::int64_t{1} << 31) - 1}) {
    for (int pair = 0; pair < 64; pair += 3) {
      const double frequency = std::exp(-std::log(500000.0) * pair / 64);
      const Angle got = angle_of(position, frequency);
      const double angle = static_cast<double>(position) * frequency;
      EXPECT_NEAR(got.at[0], std::cos(angle), 0x1p-21) << position << " " << pair;
      EXPECT_NEAR(got.at[1], std::sin(angle), 0x1p-21) << position << " " << pair;
    }
  }
}

TEST(AppendCall, SaysWhatAGpuDoesNotTake) {
  AppendProblem problem = small(Format::fp16, RotaryPairs::halves, false);
  EXPECT_FALSE(obstacle(problem, device_spec("H200")));
  problem.theta = 0.5F;
  EXPECT_EQ(obstacle(problem, device_spec("H200")).value_or(""), "problem.theta is 0.5, a GPU takes 1 and more");
  problem.theta = 10000.0F;
  problem.heads = std::int64_t{1} << 30;
  EXPECT_EQ(obstacle(problem, device_spec("H200")).value_or(""),
            "problem.heads is 1073741824 and problem.kv_heads 2: a GPU takes less than 2147483648 columns of a token");
}

}  // namespace
}  // namespace thresher::strategies::append
