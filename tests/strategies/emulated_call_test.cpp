// A planned call on the emulator: which memory its kernels may touch.
#include "strategies/host/emulated_call.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "core/grouped_weights.hpp"
#include "machine/launch.hpp"
#include "strategies/host/sources.hpp"

namespace thresher::strategies {
namespace {

void nothing(const void*) {}

/// A launch of one thread that reads both tensors of the call, and their scales and global scales.
PlannedCall reads_both() {
  KernelLaunch launch;
  launch.block = {32, 1, 1};
  launch.cluster = {1, 1, 1};
  for (const std::size_t index : {0, 1}) {
    launch.accesses.push_back({Access::Memory::tensor, index, Access::Use::reads});
    launch.accesses.push_back({Access::Memory::scales, index, Access::Use::reads});
    launch.accesses.push_back({Access::Memory::global_scale, index, Access::Use::reads});
  }
  launch.bind = [](const CallTensors&, LaunchArguments& arguments) {
    arguments.grid = {1, 1, 1};
    return true;
  };
  PlannedCall call;
  call.strategy = "reads both";
  call.steps.emplace_back(std::move(launch));
  return call;
}

struct SmallParams {
  machine::TensorMap map;
  int number;
};

TEST(LaunchArgumentsTest, APlaceBeyondTheParameterIsRefused) {
  LaunchArguments arguments;
  arguments.set(SmallParams{});
  arguments.put(offsetof(SmallParams, number), 7);
  EXPECT_EQ(arguments.get<SmallParams>().number, 7);
  EXPECT_THROW(arguments.put(sizeof(SmallParams), 7), std::logic_error);
  EXPECT_THROW(arguments.put(sizeof(SmallParams) - 1, 7), std::logic_error);
  EXPECT_THROW(arguments.put(~std::size_t{0}, 7), std::logic_error);
  EXPECT_THROW((void)arguments.get<int>(), std::logic_error);
  machine::TensorMapDescription description;
  description.rank = 1;
  description.extent[0] = 64;
  EXPECT_THROW(arguments.add_map(LaunchArguments::max_bytes - sizeof(machine::TensorMap) + 1, description),
               std::logic_error);
}

TEST(LaunchArgumentsTest, AMapTooManyIsRefused) {
  LaunchArguments arguments;
  arguments.set(SmallParams{});
  machine::TensorMapDescription description;
  description.rank = 1;
  description.extent[0] = 64;
  for (std::size_t i = 0; i < LaunchArguments::max_maps; ++i) {
    arguments.add_map(offsetof(SmallParams, map), description);
  }
  EXPECT_THROW(arguments.add_map(offsetof(SmallParams, map), description), std::logic_error);
  EXPECT_EQ(arguments.maps().size(), LaunchArguments::max_maps);
}

/// Gate and up in one tensor are two views of one memory, in every order.
TEST(EmulatedCallTest, TwoViewsOfOneTensorAreOneRegion) {
  constexpr std::int64_t experts = 3;
  constexpr std::int64_t n = 4;
  constexpr std::int64_t k = 32;
  std::vector<std::uint8_t> values(experts * 2 * n * k / 2);
  std::vector<std::uint8_t> scales(experts * 2 * n * k / 16);
  const std::vector<float> globals(experts, 1.0F);
  Tensor both = Tensor::contiguous(values.data(), Format::nvfp4, {experts, 2 * n, k});
  both.scales.data = scales.data();
  both.global_scale = globals.data();
  for (const GateUpOrder order : all_gate_up_orders) {
    const WeightViews views = weight_views({.b1 = both, .order = order});
    EmulatedCall call(reads_both(), {{"gate", views.gate}, {"up", views.up}},
                      [](const KernelLaunch&) -> HostKernel { return nothing; });
    EXPECT_TRUE(call.run({}).clean()) << name(order);
  }
}

/// The kernels of two launches, the second of which reads tensor 0 at once.
void waits_and_releases(const void*) {
  machine::launch::wait_for_earlier_grids();
  machine::launch::release_dependents();
}
void releases_and_waits(const void*) {
  machine::launch::release_dependents();
  machine::launch::wait_for_earlier_grids();
}
void reads_at_once(const void* parameter) {
  (void)static_cast<const machine::Global<machine::u32>*>(parameter)->load();
}

struct Chain {
  HostKernel first = waits_and_releases;
  bool releases_after_wait = true;
  Access::Use use = Access::Use::settled;
};

/// Runs both; what the second finds, or the first.
emulator::Report run(const Chain& chain) {
  KernelLaunch first;
  first.title = "first";
  first.block = {32, 1, 1};
  first.dependent = true;
  first.releases_after_wait = chain.releases_after_wait;
  first.bind = [](const CallTensors&, LaunchArguments& arguments) {
    arguments.set(machine::Global<machine::u32>{});
    return true;
  };
  KernelLaunch second = first;
  second.title = "second";
  second.releases_after_wait = false;
  second.accesses = {{Access::Memory::tensor, 0, chain.use}};
  second.bind = [](const CallTensors& of, LaunchArguments& arguments) {
    arguments.set(machine::Global<machine::u32>{reinterpret_cast<machine::u64>(of.tensors[0].data)});
    return true;
  };
  PlannedCall call;
  call.steps.emplace_back(first);
  call.steps.emplace_back(second);
  std::vector<std::int32_t> values{1, 2, 3};
  return EmulatedCall(call, {{"values", Tensor::contiguous(values.data(), Format::int32, {3})}},
                      [&](const KernelLaunch& launch) { return launch.title == "first" ? chain.first : reads_at_once; })
      .run({});
}

/// Memory that was written before the launch ahead is there once that has waited and released its dependents.
TEST(EmulatedCallTest, SettledMemoryIsReadBeforeWaiting) {
  EXPECT_TRUE(run({}).clean());
  const emulator::Report early = run({.use = Access::Use::depends_on_previous});
  ASSERT_FALSE(early.clean());
  EXPECT_EQ(early.findings.front().kind, emulator::FindingKind::earlier_grid);
}

TEST(EmulatedCallTest, SettledMemoryNeedsALaunchAheadThatWaits) {
  const emulator::Report report = run({.first = releases_and_waits});
  ASSERT_FALSE(report.clean());
  EXPECT_EQ(report.findings.front().kind, emulator::FindingKind::earlier_grid);
  try {
    (void)run({.releases_after_wait = false});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the step \"second\" reads before it waits, and the step \"first\" lets it start before it has "
                 "waited itself");
  }
}

// Else a kernel whose knobs nobody compiled in does not compile for this CPU.
TEST(HostSources, HoldEveryHeaderThatTheyInclude) {
  const std::span<const EmbeddedFile> sources = host_sources();
  for (const EmbeddedFile& source : sources) {
    constexpr std::string_view include = "#include \"";
    for (std::size_t at = source.text.find(include); at != std::string_view::npos;
         at = source.text.find(include, at + 1)) {
      const std::string_view rest = source.text.substr(at + include.size());
      const std::string_view wanted = rest.substr(0, rest.find('"'));
      const bool is_there =
          std::any_of(sources.begin(), sources.end(), [&](const EmbeddedFile& each) { return each.name == wanted; });
      // The GPU's body of the vocabulary stands behind a condition.
      EXPECT_TRUE(is_there || wanted.starts_with("machine/ptx/")) << source.name << " includes " << wanted;
    }
  }
}

}  // namespace
}  // namespace thresher::strategies
