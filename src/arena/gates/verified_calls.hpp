#pragma once
/// Timed calls are verified calls: fresh inputs before every sample, a look at its outputs after it.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/operation/call_sets.hpp"
#include "arena/operation/inspector.hpp"
#include "arena/operation/operation.hpp"
#include "arena/rig/environment.hpp"
#include "arena/rig/rig.hpp"
#include "arena/timing/timing.hpp"

namespace thresher::arena {

/// What was looked at, of all roles.
struct Verification {
  std::size_t samples = 0;
  std::size_t calls = 0;     ///< in them; of each some elements are held against the definition
  std::size_t whole = 0;     ///< calls whose whole outputs were compared with a trusted computation's
  std::size_t compared = 0;  ///< input tensors that were compared with what had been uploaded
};

/// A contestant and its baseline, prepared over sets of their own rigs, whose samples count only if their outputs hold.
/// Which of them are looked at, and where, is drawn after they were made.
class VerifiedCalls final : public Attendant {
 public:
  /// Prepares both; `contestant` is null where the baseline is timed alone. `calls` is how many a sample takes. Nobody
  /// may know `secret_seed`.
  VerifiedCalls(const Problem& problem, Distribution distribution, const Contestant* contestant,
                const Contestant& baseline, Rig& own, const Environment& environment, std::size_t calls, bool warm,
                std::uint64_t secret_seed);

  void prepare(Role role, const Batch& batch, bool cold) override;
  [[nodiscard]] std::string inspect(Role role, const Batch& batch, bool closely) override;
  /// What is looked at when all samples are taken: all guard zones and all weights.
  [[nodiscard]] std::string last_look();
  /// From now on the baseline is alone.
  void let_contestant_go();
  /// The contestant is prepared anew, after let_contestant_go.
  void call_contestant_back(const Contestant& contestant, Rig& own);

  [[nodiscard]] const CallPlan& plan() const noexcept { return plan_; }
  /// Since it was asked last.
  [[nodiscard]] Verification take_verification() { return std::exchange(verification_, {}); }
  [[nodiscard]] Clocked baseline() { return {*home_.runner, home_.rig->clock()}; }
  [[nodiscard]] std::optional<Clocked> contestant() {
    return away_ ? std::optional(Clocked{*away_->runner, away_->rig->clock()}) : std::nullopt;
  }

 private:
  /// One of the two, where it lives. `sets` are those of the other too where both live on one rig.
  struct Lane {
    Rig* rig = nullptr;
    std::vector<DeviceSet> sets;
    std::unique_ptr<Runner> runner;
    std::unique_ptr<Inspector> inspector;
  };
  /// What the host knows of one set since it was last prepared.
  struct Call {
    std::vector<HostTensor> activations;
    std::uint8_t poison = 0;
  };

  Lane& lane(Role role) { return role == Role::contestant && away_ ? *away_ : home_; }
  std::uint64_t next_seed();
  std::unique_ptr<Inspector> inspector_of(const Contestant& maker, Rig& own) const;
  Call fresh_call(std::uint64_t seed) const;
  [[nodiscard]] InputsOfCall inputs_of(const Call& call, std::size_t group) const;
  std::string look_at_each(Lane& lane, const Batch& batch);
  std::string look_at_whole(Lane& lane, std::size_t set);
  std::string changed_input(Lane& lane, std::size_t set, bool with_weights);
  std::string guard_damage(Lane& lane, std::size_t set);
  void read(const DeviceSet& set, Look& look) const;

  const Problem problem_;
  Distribution distribution_;
  std::vector<HostTensor> shapes_;
  std::uint64_t secret_seed_;
  std::uint64_t draws_ = 0;
  FreshInputs fresh_;
  CallPlan plan_;
  std::vector<std::vector<HostTensor>> groups_;  ///< inputs of each group; only the weights are read
  Lane home_;
  std::optional<Lane> away_;
  std::vector<Call> calls_;  ///< of each set, for the role that was prepared last
  Verification verification_;
  const Environment& environment_;
};

/// How many calls a sample takes, from a few calls over sets of their own.
[[nodiscard]] std::size_t estimated_calls(const Problem& problem, Distribution distribution,
                                          const Contestant* contestant, const Contestant& baseline, Rig& own,
                                          const Environment& environment, std::uint64_t secret_seed);

/// From the system: nothing that a contestant is handed tells it.
[[nodiscard]] std::uint64_t secret_seed();

}  // namespace thresher::arena
