#include "arena/gates/honest.hpp"

#include <fmt/format.h>

#include "arena/gates/verified_calls.hpp"
#include "arena/honesty/honesty.hpp"

namespace thresher::arena {
namespace {

/// About a millisecond of a CPU, some microseconds of a GPU.
constexpr double cpu_operations = 5e7;
constexpr double gpu_operations = 4e9;

class HonestGate final : public Gate {
 public:
  [[nodiscard]] GateKind kind() const override { return GateKind::honest; }
  [[nodiscard]] GateResult judge(Match& match) const override {
    HonestyOptions options;
    options.seed = match.seed;
    options.is_timed = match.suite.timed;
    options.secret_seed = secret_seed();
    options.max_operations = match.rig.device().kind() == DeviceKind::cpu ? cpu_operations : gpu_operations;
    match.progress.begin(std::string(name(kind())), fmt::format("{} on {}", match.contestant.name(), match.suite.name));
    GateResult result = judge_honesty(match.suite, match.contestant, match.rig, options);
    match.progress.end();
    return result;
  }
};

}  // namespace

std::unique_ptr<Gate> make_honest_gate() { return std::make_unique<HonestGate>(); }

}  // namespace thresher::arena
