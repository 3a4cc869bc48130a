#include "arena/profile/profile.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "arena/gemm/kernel_variant.hpp"
#include "arena/operation/input_sets.hpp"
#include "arena/random.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::uint64_t data_seed = 1;

PreparedVariant prepare(Rig& rig, const Problem& problem, const ProfileOptions& options,
                        const std::vector<DeviceSet>& sets, const KernelVariant& variant) {
  return problem.operation().prepare_variant(problem, options.request, rig.device(), rig.memory(), sets, variant);
}

/// Whole cycles of the rotation, enough for the clock.
std::size_t calls_of_a_sample(Clock& clock, Runner& whole, std::size_t num_sets) {
  (void)clock.measure(whole, {1, 0, num_sets});  // loads code and faults in pages for the first call
  const double us = clock.measure(whole, {num_sets, 0, num_sets}).us_per_call;
  const auto turns = std::ceil(clock.shortest_batch_us() / (std::max(us, 1e-3) * static_cast<double>(num_sets)));
  return num_sets * std::max<std::size_t>(1, static_cast<std::size_t>(turns));
}

struct Sampling {
  std::size_t calls;
  std::size_t num_sets;
  int rounds;
  double rest_s;

  double us(Clock& clock, Runner& runner) const {
    clock.rest(rest_s);
    return clock.measure(runner, {calls, 0, num_sets}).us_per_call;
  }
};

struct Ablated {
  pipeline::Ablation ablation;
  const char* part;
  const char* variant;
};

constexpr Ablated ablations[] = {{pipeline::Ablation::no_epilogue, "epilogue", "left out"},
                                 {pipeline::Ablation::epilogue_twice, "epilogue", "done twice"},
                                 {pipeline::Ablation::loads_only, "products", "left out"},
                                 {pipeline::Ablation::products_only, "loads", "left out"}};

/// Alternates the whole kernel and the variant, so that drift affects both alike.
PartCost cost_of(const Ablated& ablated, Clock& clock, Runner& whole, Runner& varied, const Sampling& sampling,
                 std::vector<double>& whole_us) {
  std::vector<double> varied_us;
  std::vector<double> shares;
  (void)clock.measure(varied, {sampling.calls, 0, sampling.num_sets});
  for (int round = 0; round < sampling.rounds; ++round) {
    const double full = sampling.us(clock, whole);
    const double other = sampling.us(clock, varied);
    whole_us.push_back(full);
    varied_us.push_back(other);
    shares.push_back(std::string_view(ablated.variant) == "left out" ? 1 - other / full : other / full - 1);
  }
  Random random(derive_seed(data_seed, ablated.part));
  return {ablated.part, ablated.variant, median(varied_us), median_estimate(shares, random)};
}

Timeline take_timeline(Rig& rig, const Problem& problem, const ProfileOptions& options,
                       const std::vector<DeviceSet>& sets) {
  const auto buffer = std::make_shared<ProfileBuffer>();
  std::vector<DeviceSet> first;  // one plan, so that the timestamps belong to one known launch
  const Operation& operation = problem.operation();
  first.emplace_back(rig.memory(), operation.inputs(problem, Distribution::contest, data_seed),
                     operation.outputs(problem));
  const PreparedVariant timed = prepare(rig, problem, options, first, {.profile = buffer});
  (void)rig.clock().measure(*timed.runner, {1, 0, 1});
  const PreparedVariant between = prepare(rig, problem, options, sets, {});
  (void)rig.clock().measure(*between.runner, {sets.size(), 0, sets.size()});  // evicts the inputs from the cache
  (void)rig.clock().measure(*timed.runner, {1, 0, 1});
  rig.wait();
  return read_timeline(buffer->read(), buffer->shape);
}

}  // namespace

Profile profile(Rig& rig, const Problem& problem, const ProfileOptions& options) {
  if (rig.device().kind() != DeviceKind::cuda) {
    throw Error(ErrorCode::unsupported,
                "profile needs a GPU: there is none here, and the emulator's schedules do not measure time");
  }
  const InputSets inputs = make_input_sets(rig, problem, Distribution::contest, data_seed);
  const std::vector<DeviceSet>& sets = inputs.sets;
  const PreparedVariant whole = prepare(rig, problem, options, sets, {});
  Clock& clock = rig.clock();
  const Sampling sampling{calls_of_a_sample(clock, *whole.runner, sets.size()), sets.size(), options.rounds,
                          options.rest_s};
  Profile result;
  const std::string& knobs = options.request.knobs;
  result.contestant = knobs.empty() ? whole.strategy : whole.strategy + " (" + knobs + ")";
  result.problem = label(problem);
  result.machine = rig.device().name();
  std::vector<double> whole_us;
  for (const Ablated& ablated : ablations) {
    const PreparedVariant varied = prepare(rig, problem, options, sets, {.ablation = ablated.ablation});
    result.parts.push_back(cost_of(ablated, clock, *whole.runner, *varied.runner, sampling, whole_us));
  }
  result.us = median(whole_us);
  result.timeline = take_timeline(rig, problem, options, sets);
  return result;
}

}  // namespace thresher::arena
