#include "arena/user_kernels/sandbox_worker.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "arena/contestants/registry.hpp"
#include "arena/gates/match.hpp"
#include "arena/results/record_json.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "arena/user_kernels/watched_rig.hpp"
#include "arena/user_kernels/wire.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr double between_signs_s = 0.05;

class Line {
 public:
  std::string read_line() {
    std::string text;
    std::array<char, 1 << 14> buffer{};
    for (ssize_t count = 0; text.find('\n') == std::string::npos;) {
      count = ::read(worker_descriptor, buffer.data(), buffer.size());
      if (count <= 0) {
        break;
      }
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  void say(const nlohmann::json& json) {
    const std::string text = line_of(json);
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::send(worker_descriptor, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) {
        ::_exit(1);  // nobody listens any more
      }
      sent += static_cast<std::size_t>(count);
    }
    said_ = std::chrono::steady_clock::now();
  }

  /// A sign of life, unless there was one just now.
  void alive() {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - said_;
    if (since.count() > between_signs_s) {
      say({{"alive", true}});
    }
  }

 private:
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
};

/// Tells of the gate's result as soon as there is one.
class ToldGate final : public Gate {
 public:
  ToldGate(std::unique_ptr<Gate> gate, Line& line) : gate_(std::move(gate)), line_(line) {}
  [[nodiscard]] GateKind kind() const override { return gate_->kind(); }
  [[nodiscard]] GateResult judge(Match& match) const override {
    const std::size_t measured_before = match.measurements.size();
    GateResult result = judge_gate(*gate_, match);
    nlohmann::json measurements = nlohmann::json::array();
    for (std::size_t i = measured_before; i < match.measurements.size(); ++i) {
      measurements.push_back(to_wire(match.measurements[i]));
    }
    line_.say({{"gate", to_wire(result)},
               {"measurements", measurements},
               {"verdict", arena::name(match.verdict)},
               {"clocks", to_json(clock_summary(match))}});
    return result;
  }

 private:
  std::unique_ptr<Gate> gate_;
  Line& line_;
};

void hold(const nlohmann::json& request, Line& line) {
  const nlohmann::json& asked = request.at("suite");
  Suite suite = parse_suite(asked.at("text").get<std::string>(), asked.at("name"), asked.at("name"));
  Pitch pitch = parse_pitch(request.at("pitch").at("text").get<std::string>(), request.at("pitch").at("file"));
  pitch.kernel.value().text = request.at("kernel_text");  // as it was when the tournament began
  const auto alive = [&line] { line.alive(); };
  WatchedRig rig(make_rig(request.at("device")), alive);
  const auto contestant = make_contestant(pitch.contestant, *pitch.kernel, rig.device(), alive);
  const auto baseline = library_registry(rig.device())->create(pitch.baseline);
  Progress progress = Progress::silent();
  progress.tell(
      [&](const std::string& kind, const std::string& what) {
        line.say({{"begin", kind}, {"what", what}});
      },
      [&] {
        line.say({{"end", true}});
      });
  std::string left_out = leave_out_other_formats(suite, *contestant);
  Match match{suite,
              *contestant,
              *baseline,
              &pitch,
              rig,
              request.at("seed"),
              timing_options(suite, request.at("seconds")),
              progress,
              std::move(left_out)};
  std::vector<std::unique_ptr<Gate>> gates;
  for (std::unique_ptr<Gate>& gate : standard_gates()) {
    gates.push_back(std::make_unique<ToldGate>(std::move(gate), line));
  }
  (void)hold_match(match, gates, {});
}

}  // namespace

int work_in_sandbox() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Line line;
  try {
    hold(nlohmann::json::parse(line.read_line()), line);
  } catch (const std::exception& error) {
    line.say({{"failed", error.what()}});
  }
  ::_exit(0);  // nothing of a kernel from outside may run any more
}

}  // namespace thresher::arena::user_kernels
