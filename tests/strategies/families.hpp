#pragma once
// Small families: two in order, and with BAD_FAMILIES others that each have one member wrong.
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::test {

struct ToyProblem {
  int rows = 0;
};
struct ToyConfig {
  int rows = 1;
  bool is_large = false;
};

/// Nothing but what is required.
struct Plain : FamilyDefaults<ToyProblem, ToyConfig> {
  static constexpr std::string_view name = "plain";
  static constexpr std::string_view summary = "a toy";
  static const KnobTable<ToyConfig>& knob_table() {
    static const KnobTable<ToyConfig> table{"ToyConfig", {number("rows", &ToyConfig::rows, {1, 2, 4}, "of a tile")}};
    return table;
  }
  static std::optional<std::string> unsupported_reason(const ToyProblem&, const DeviceSpec&) { return std::nullopt; }
  static std::vector<std::string> infeasible_reasons(const ToyProblem& problem, const ToyConfig& config,
                                                     const DeviceSpec&) {
    return problem.rows < config.rows ? std::vector<std::string>{"it has too few rows"} : std::vector<std::string>{};
  }
  static PlannedCall plan(const ToyProblem&, const ToyConfig& config, const DeviceSpec&) {
    PlannedCall call;
    call.why = config.is_large ? "it is large" : "";
    return call;
  }
};

/// Members of its own.
struct Own : Plain {
  static constexpr Overrides overrides{.device_kind = true,
                                       .supersedes = true,
                                       .role = true,
                                       .own_choice = true,
                                       .completed = true,
                                       .candidates = true,
                                       .work = true,
                                       .profiled = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};
  static constexpr DeviceKind device_kind = DeviceKind::cpu;
  static constexpr std::string_view name = "own";
  static constexpr std::string_view supersedes = "plain";
  static Role role(const ToyProblem&) { return Role::by_name; }
  static ToyConfig own_choice(const ToyProblem&, const Knobs&, const DeviceSpec&) { return {.rows = 2}; }
  static ToyConfig completed(const ToyConfig& config, const ToyProblem&, const Knobs&, const DeviceSpec&) {
    return {config.rows, config.rows > 2};
  }
  static std::vector<ToyConfig> candidates(const ToyProblem&, const ToyConfig& own, const Knobs&, const DeviceSpec&) {
    return {own, own, {.rows = 1}, {.rows = 4}};
  }
  static WorkModel work(const ToyProblem&, const ToyConfig&, const DeviceSpec&) {
    return {{MemoryPass{"copying", 1.0, false}}};
  }
  static std::optional<ProfiledCall> profiled(const ToyProblem&, const ToyConfig&, const DeviceSpec&,
                                              const ProfileRequest&) {
    return ProfiledCall{};
  }
  static std::vector<ToyProblem> edges(const ToyProblem&, const ToyConfig& config, const DeviceSpec&) {
    return {{config.rows + 1}};
  }
  static std::vector<Sample<ToyProblem>> built_in() { return {{{8}, {}}}; }
  static std::vector<Sample<ToyProblem>> samples() { return {{{8}, {}}, {{9}, {}}}; }
};

#ifndef BAD_FAMILIES
inline const KernelStrategy<Plain> plain;
inline const KernelStrategy<Own> own;
#else
struct MisspeltRole : Plain {
  static constexpr Overrides overrides{.role = true};
  static Role roll(const ToyProblem&) { return Role::by_name; }
};
struct MistypedRole : Plain {
  static constexpr Overrides overrides{.role = true};
  static Role role(ToyProblem) { return Role::by_name; }
};
struct UnnamedRole : Plain {
  static Role role(const ToyProblem&) { return Role::by_name; }
};
struct MisspeltDeviceKind : Plain {
  static constexpr Overrides overrides{.device_kind = true};
  static constexpr DeviceKind device = DeviceKind::cpu;
};
struct MistypedSupersedes : Plain {
  static constexpr Overrides overrides{.supersedes = true};
  static constexpr const char* supersedes = "plain";
};
struct UnnamedOwnChoice : Plain {
  static ToyConfig own_choice(const ToyProblem&, const Knobs&, const DeviceSpec&) { return {}; }
};
struct MistypedCompleted : Plain {
  static constexpr Overrides overrides{.completed = true};
  static void completed(ToyConfig&, const ToyProblem&, const Knobs&, const DeviceSpec&) {}
};
struct MisspeltCandidates : Plain {
  static constexpr Overrides overrides{.candidates = true};
  static std::vector<ToyConfig> candidate(const ToyProblem&, const ToyConfig& own, const Knobs&, const DeviceSpec&) {
    return {own};
  }
};
struct UnnamedWork : Plain {
  static WorkModel work(const ToyProblem&, const ToyConfig&, const DeviceSpec&) { return {}; }
};
struct MisspeltProfiled : Plain {
  static constexpr Overrides overrides{.profiled = true};
};
struct UnnamedEdges : Plain {
  static std::vector<ToyProblem> edges(const ToyProblem&, const ToyConfig&, const DeviceSpec&) { return {}; }
};
struct MistypedBuiltIn : Plain {
  static constexpr Overrides overrides{.built_in = true};
  static std::vector<ToyProblem> built_in() { return {}; }
};
struct UnnamedSamples : Plain {
  static std::vector<Sample<ToyProblem>> samples() { return {}; }
};
/// What every family has.
struct WithoutPlan : FamilyDefaults<ToyProblem, ToyConfig> {
  static constexpr std::string_view name = "without a plan";
  static constexpr std::string_view summary = "a toy";
  static const KnobTable<ToyConfig>& knob_table() { return Plain::knob_table(); }
  static std::optional<std::string> unsupported_reason(const ToyProblem&, const DeviceSpec&) { return std::nullopt; }
  static std::vector<std::string> infeasible_reasons(const ToyProblem&, const ToyConfig&, const DeviceSpec&) {
    return {};
  }
};

inline const KernelStrategy<MisspeltRole> misspelt_role;
inline const KernelStrategy<MistypedRole> mistyped_role;
inline const KernelStrategy<UnnamedRole> unnamed_role;
inline const KernelStrategy<MisspeltDeviceKind> misspelt_device_kind;
inline const KernelStrategy<MistypedSupersedes> mistyped_supersedes;
inline const KernelStrategy<UnnamedOwnChoice> unnamed_own_choice;
inline const KernelStrategy<MistypedCompleted> mistyped_completed;
inline const KernelStrategy<MisspeltCandidates> misspelt_candidates;
inline const KernelStrategy<UnnamedWork> unnamed_work;
inline const KernelStrategy<MisspeltProfiled> misspelt_profiled;
inline const KernelStrategy<UnnamedEdges> unnamed_edges;
inline const KernelStrategy<MistypedBuiltIn> mistyped_built_in;
inline const KernelStrategy<UnnamedSamples> unnamed_samples;
inline const KernelStrategy<WithoutPlan> without_plan;
#endif

}  // namespace thresher::strategies::test
