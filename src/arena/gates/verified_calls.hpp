#pragma once
/// Timed calls are verified calls: they get fresh inputs before every sample, and their outputs are checked after it.
#include <cstdint>
#include <map>
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

/// Counts of the calls that were checked, over all roles.
struct VerifiedCounts {
  std::size_t samples = 0;
  std::size_t calls = 0;      ///< in them
  std::size_t looked = 0;     ///< of these, calls with elements that were checked against the definition
  std::size_t whole = 0;      ///< calls whose whole outputs were compared with a trusted computation's
  std::size_t compared = 0;   ///< input tensors that were compared with their upload
  std::size_t uncounted = 0;  ///< samples on data that the contestant had seen, or almost
};

/// The source of a call's activations.
struct Recipe {
  std::uint64_t seed = 0;
  std::uint64_t change = 0;  ///< chooses an element to negate; 0: none
};

/// A call and its outputs.
struct MadeCall {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;
  Recipe recipe;
  std::uint8_t poison = 0;
};

/// A contestant and its baseline, prepared over sets of their own rigs. Their samples count only if their outputs hold.
/// The choice of calls and elements to check is drawn after the sample.
class VerifiedCalls final : public Attendant {
 public:
  /// Prepares both; `contestant` is null where the baseline is timed alone. A sample has `calls` calls. `secret_seed`
  /// must stay secret.
  VerifiedCalls(const Problem& problem, Distribution distribution, const Contestant* contestant,
                const Contestant& baseline, Rig& own, const Environment& environment, std::size_t calls, bool warm,
                std::uint64_t secret_seed);
  /// Waits until nothing uses its sets any more.
  ~VerifiedCalls() override;

  void prepare(Role role, const Batch& batch, bool cold) override;
  /// On the CPU all calls are issued at once: caches stay as a call left them, and a process gets inputs only with
  /// their call.
  void make(Role role, const Batch& batch) override;
  void put_in_inputs(Role role, const Batch& batch) override;
  [[nodiscard]] std::string inspect(Role role, const Batch& batch, bool closely) override;
  /// One in eight of the contestant's samples serves another purpose than its time, unless set otherwise.
  [[nodiscard]] SampleKind kind() const override { return kind_; }
  void wait(Role role) { lane(role).rig->wait(); }
  /// The final check, after all samples: all guard zones and all weights.
  [[nodiscard]] std::string last_look();
  /// Whether a write of one of the two may damage the other's buffers.
  [[nodiscard]] bool share_a_rig() const { return contestant_ && contestant_->rig == baseline_.rig; }
  /// Leaves the baseline alone from now on.
  void let_contestant_go();
  /// Whether the last fault is the baseline's, whose outputs are the comparison.
  [[nodiscard]] bool baseline_is_wrong() const { return baseline_is_wrong_; }
  /// Sets the interval of samples that repeat seen inputs; 0: none.
  void look_back_in_one_of(std::uint64_t samples) { samples_of_a_look_back_ = samples; }
  /// From now on weights of a contestant that packs none change between its samples, at the same addresses.
  void change_weights_too() { changes_weights_ = true; }
  /// The next sample calls `set` on the activations of `before`, with differently poisoned outputs.
  void repeat_next(std::size_t set, const MadeCall& before) { repeated_ = Repeated{set, before.recipe, before.poison}; }
  /// The last call of `role` on the set; its sample was the last that was prepared.
  [[nodiscard]] MadeCall made(Role role, std::size_t set) const;
  /// "writes past the end of c: …" for a buffer of the set or of the workspace; empty when all guard zones hold.
  [[nodiscard]] std::string damage_of(Role role, std::size_t set) const;
  /// The same for all buffers of both roles, or for those of `most` random sets of each.
  [[nodiscard]] std::string damage(std::size_t most = max_sets * 4);
  /// "its input b1 was written to"; empty when no input was.
  [[nodiscard]] std::string change_of(Role role, std::size_t set);
  /// Prepares the contestant anew, after let_contestant_go.
  void call_contestant_back(const Contestant& contestant, Rig& own);

  [[nodiscard]] const CallPlan& plan() const noexcept { return plan_; }
  /// Since it was asked last.
  [[nodiscard]] VerifiedCounts take_verified_counts() { return std::exchange(verified_counts_, {}); }
  [[nodiscard]] Clocked baseline() { return {*baseline_.runner, baseline_.rig->clock()}; }
  [[nodiscard]] std::optional<Clocked> contestant() {
    return contestant_ ? std::optional(Clocked{*contestant_->runner, contestant_->rig->clock()}) : std::nullopt;
  }

 private:
  /// One of the two, on its rig. Both use the same `sets` where they share a rig.
  struct Lane {
    Rig* rig = nullptr;
    std::vector<DeviceSet> sets;
    std::unique_ptr<Runner> runner;
    std::unique_ptr<Inspector> inspector;
    std::vector<std::optional<Recipe>> had;  ///< of each set's last call
    /// Weights that changed since the sets were made, by group; all others are those of `groups_`.
    std::map<std::size_t, std::vector<HostTensor>> changed_weights{};
    std::size_t warm_samples = 0;
  };
  /// The baseline on one more set of its rig, which takes weights that changed.
  struct Trusted {
    std::vector<DeviceSet> sets;
    std::unique_ptr<Runner> runner{};
  };
  struct Repeated {
    std::size_t set = 0;
    Recipe recipe;
    std::uint8_t poison_before = 0;
  };
  /// The host's knowledge of one set since it was last prepared.
  struct Call {
    Recipe recipe;
    std::vector<HostTensor> activations;
    std::uint8_t poison = 0;
  };

  /// Otherwise both share sets, and a check of the baseline's covers the contestant's.
  [[nodiscard]] bool has_sets_of_its_own() const { return contestant_ && contestant_->rig != baseline_.rig; }
  Lane& lane(Role role) { return role == Role::contestant && contestant_ ? *contestant_ : baseline_; }
  [[nodiscard]] const Lane& lane(Role role) const {
    return role == Role::contestant && contestant_ ? *contestant_ : baseline_;
  }
  std::uint64_t next_seed();
  std::unique_ptr<Inspector> inspector_of(const Contestant& maker, Rig& own) const;
  SampleKind draw_kind(Role role, const Batch& batch);
  void make_all_calls(Role role, const Batch& batch);
  void put_in_place(Lane& lane, const Batch& batch);
  void change_weights(Lane& lane, const Batch& batch);
  [[nodiscard]] const HostTensor& weight_of(const Lane& lane, std::size_t group, const HostTensor& input) const;
  /// Runs the baseline on the inputs of the lane's call. The set holds its outputs.
  const DeviceSet& compute_trusted(const Lane& lane, std::size_t set);
  /// The poison and the data of a call.
  struct Order {
    Recipe recipe;
    std::uint8_t poison = 0;
  };
  std::vector<Order> orders_of(Lane& lane, const Batch& batch);
  [[nodiscard]] Call make_call(const Order& order) const;
  [[nodiscard]] InputsOfCall inputs_of(const Lane& lane, std::size_t set) const;
  std::string look_at_each(Lane& lane, const Batch& batch);
  std::string look_at_whole(Lane& lane, std::size_t set);
  std::string changed_input(Lane& lane, std::size_t set, bool with_weights);
  void read(const DeviceSet& set, Look& look) const;

  const Problem problem_;
  Distribution distribution_;
  std::vector<HostTensor> shapes_;
  bool has_outputs_;  ///< any element at all
  std::uint64_t secret_seed_;
  std::uint64_t draws_ = 0;
  FreshInputs fresh_;
  CallPlan plan_;
  std::vector<std::vector<HostTensor>> groups_;  ///< inputs of each group; only the weights are read
  Lane baseline_;
  const Contestant* baseline_contestant_;
  std::optional<Lane> contestant_;
  bool weights_may_change_ = false;  ///< the contestant's, between its samples
  bool changes_weights_ = false;
  std::optional<std::size_t> call_on_changed_weights_;  ///< of the sample that was prepared last
  std::optional<Trusted> trusted_;
  std::vector<Call> calls_;  ///< of each set, for the role that was prepared last
  SampleKind kind_ = SampleKind::counted;
  std::uint64_t samples_of_a_look_back_ = 8;
  bool baseline_is_wrong_ = false;
  std::optional<Repeated> repeated_;
  VerifiedCounts verified_counts_;
  const Environment& environment_;
  Rig& own_;
};

/// The calls of a sample to check against the definition, ascending. It returns all where the budget allows, else as
/// many as it allows and at least one. Unwritten calls come first; `random` draws the others.
[[nodiscard]] std::vector<std::size_t> calls_to_look_at(double products_of_a_look, const std::vector<bool>& unwritten,
                                                        Random& random);

/// Estimates the number of calls in a sample, from a few calls over sets of their own.
[[nodiscard]] std::size_t estimated_calls(const Problem& problem, Distribution distribution,
                                          const Contestant* contestant, const Contestant& baseline, Rig& own,
                                          const Environment& environment, std::uint64_t secret_seed);

/// Comes from the system: nothing that a contestant receives reveals it.
[[nodiscard]] std::uint64_t secret_seed();

}  // namespace thresher::arena
