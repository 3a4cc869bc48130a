#include "arena/gates/honest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/gates/verified_calls.hpp"
#include "arena/honesty/honesty.hpp"
#include "arena/operation/call_sets.hpp"

namespace thresher::arena {
namespace {

/// The upper limit of a problem's operations: about half a second on a CPU and a millisecond on a GPU. Suites that are
/// not timed use a shape that takes a thousandth of a second.
constexpr double cpu_operations = 4e10;
constexpr double gpu_operations = 4e11;
constexpr double untimed_cpu_operations = 5e7;
constexpr double untimed_gpu_operations = 4e9;

/// Every experiment prepares its contestant anew, which may pack the weights of every group.
constexpr std::size_t max_groups = 48;

/// Makes calls as timed calls of the problem are made. Experiments need at least three sets.
SamplePattern pattern_of(Match& match, const Problem& problem, Rig& rig) {
  SamplePattern pattern;
  pattern.calls = calls_in_a_sample(match, problem);
  const std::vector<HostTensor> inputs =
      problem.operation().inputs(problem, match.suite.distributions.front(), secret_seed());
  pattern.plan = plan_calls(problem, inputs, {&match.baseline.rig(match.rig), &rig}, pattern.calls, false);
  CallPlan& plan = pattern.plan;
  plan.groups = std::clamp<std::size_t>(plan.groups, 3, max_groups);
  plan.cold = (std::min(plan.cold, std::max(pattern.calls, plan.groups)) + plan.groups - 1) / plan.groups * plan.groups;
  pattern.rest_s = match.timing.rest_s;
  return pattern;
}

class HonestGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::honest; }
  [[nodiscard]] GateResult judge(Match& match) const override {
    HonestyOptions options;
    options.seed = match.seed;
    options.is_timed = match.suite.timed;
    options.weights_are_packed = match.contestant.packs_weights();
    options.secret_seed = secret_seed();
    const bool is_cpu = match.rig.device().kind() == DeviceKind::cpu;
    options.max_operations = match.suite.timed ? (is_cpu ? cpu_operations : gpu_operations)
                                               : (is_cpu ? untimed_cpu_operations : untimed_gpu_operations);
    if (match.suite.timed && !match.timing.warm) {
      options.pattern_of = [&match](const Problem& problem, Rig& rig) { return pattern_of(match, problem, rig); };
    }
    options.check_time = [&match] { match.check_time(); };
    match.progress.begin(std::string(name(kind())), fmt::format("{} on {}", match.contestant.name(), match.suite.name));
    GateResult result = judge_honesty(match.suite, match.contestant, match.rig, options);
    match.progress.end();
    return result;
  }
};

}  // namespace

std::unique_ptr<Gate> make_honest_gate() { return std::make_unique<HonestGate>(); }

}  // namespace thresher::arena
