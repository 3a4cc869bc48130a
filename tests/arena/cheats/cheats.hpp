#pragma once
/// One planted cheat for each way a kernel has been seen to fool a harness. Each computes the right answer where the
/// harness is expected to look, and is caught and named by an experiment of the gate `honest`.
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arena/honesty/honesty.hpp"
#include "arena/planted.hpp"

namespace thresher::arena::cheats {

/// What a cheat may get hold of.
struct Stage {
  Problem problem;
  const std::vector<DeviceSet>* sets = nullptr;
  Memory* memory = nullptr;
  FakeClock* clock = nullptr;
  /// Work that another stream does after the call has returned.
  std::function<void(std::function<void()>)> later;

  [[nodiscard]] KernelCall call(std::size_t set, int number) const {
    const DeviceSet& data = (*sets)[set];
    return {dual_gemm(problem), data.tensor("a"), data.tensor("b1"), data.tensor("b2"), data.tensor("c"), number};
  }
};

/// One prepared cheat: what it does in call `number` on input set `set`. Its return is the call's time in microseconds.
using Act = std::function<double(std::size_t set, int number)>;
/// Prepares: may look at everything.
using Prepare = std::function<Act(const Stage&)>;

struct Cheat {
  std::string name;
  std::string accusation;  ///< the gate's words
  Prepare prepare;
  bool weights_are_packed = true;
  FakeMachine machine{};
};

/// A rig whose other streams finish at the second wait, and whose own stream can be held when it is told so.
class CheatRig final : public Rig {
 public:
  explicit CheatRig(const FakeMachine& machine, std::uint64_t seed = 1) : rig_(machine, seed) {}
  std::string name() const override { return "fake"; }
  Device device() const override { return rig_.device(); }
  Memory& memory() override { return rig_.memory(); }
  Clock& clock() override { return rig_.clock(); }
  FakeClock& fake_clock() { return rig_.fake_clock(); }
  Stream stream() override { return {}; }
  void wait() override;
  bool hold_stream(double microseconds) override {
    held_until_s_ = can_hold_ ? fake_clock().now_s() + microseconds * 1e-6 : 0;
    return can_hold_;
  }
  std::size_t last_level_cache_bytes() const override { return rig_.last_level_cache_bytes(); }
  const Ceilings& ceilings() override { return rig_.ceilings(); }
  Machine machine() const override { return rig_.machine(); }
  void later(std::function<void()> work) { pending_.push_back({std::move(work), 2}); }
  /// From now on calls are not complete on return.
  void let_stream_be_held() { can_hold_ = true; }
  /// Does the work at once, or at the next wait while the stream is held.
  void on_stream(std::function<void()> work) {
    if (fake_clock().now_s() < held_until_s_) {
      pending_.push_back({std::move(work), 1});
    } else {
      work();
    }
  }

 private:
  struct Pending {
    std::function<void()> work;
    int waits;
  };
  FakeRig rig_;
  std::vector<Pending> pending_;
  bool can_hold_ = false;
  double held_until_s_ = 0;
};

class CheatContestant final : public Contestant {
 public:
  CheatContestant(const std::string& name, Prepare prepare, CheatRig& rig)
      : Contestant({"dual_gemm", name}), prepare_(std::move(prepare)), rig_(rig) {}
  Answer feasible(const Problem&, Memory&) const override { return {}; }
  Answer compile(const Problem&) const override { return {}; }
  std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                  const std::vector<DeviceSet>& sets) const override;

 private:
  Prepare prepare_;
  CheatRig& rig_;
};

/// Does its work, every time, in `us` microseconds.
[[nodiscard]] Prepare honest(double us);

[[nodiscard]] std::vector<Cheat> all_cheats();

/// The problem that cheats are planted on, and the seed that is announced.
[[nodiscard]] Problem planted_problem();
inline constexpr std::uint64_t announced_seed = 42;

/// Machines that honest contestants meet, one for each tournament, from quiet to impossible.
[[nodiscard]] FakeMachine machine_of(int tournament);

}  // namespace thresher::arena::cheats
