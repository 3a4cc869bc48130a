#pragma once
/// One strategy object for every family of kernels. A family is a class of static members, and KernelStrategy makes a
/// Strategy of it. KernelFamily names the members that every family has, and FamilyDefaults those that it may replace.
#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/refusal.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies {

/// The members of FamilyDefaults that a family replaces: `static constexpr Overrides overrides{.role = true};`. A
/// member that is named here and missing, misspelt or of another type does not compile. Neither does one that the
/// family has and does not name.
struct Overrides {
  bool device_kind = false;
  bool supersedes = false;
  bool role = false;
  bool steady_knobs = false;
  bool sums = false;
  bool own_choice = false;
  bool completed = false;
  bool candidates = false;
  bool work = false;
  bool profiled = false;
  bool edges = false;
  bool built_in = false;
  bool samples = false;
};

/// The base of every family. Members without a comment are as Strategy has them.
template <class OfProblem, class OfConfig>
struct FamilyDefaults {
  using Problem = OfProblem;
  using Config = OfConfig;
  static constexpr Overrides overrides{};

  static constexpr DeviceKind device_kind = DeviceKind::cuda;
  static constexpr std::string_view supersedes{};
  static Role role(const Problem&) { return Role::competes; }
  static std::optional<Knobs> steady_knobs(const Problem&) { return Knobs{}; }
  /// The names among its knobs; not asked where a family has none of its own: then all knobs count.
  static std::optional<std::vector<std::string>> sums(const Config&) { return std::nullopt; }

  /// The configuration for a problem, before the knobs that were asked for are set.
  static Config own_choice(const Problem&, const Knobs&, const DeviceSpec&) { return {}; }
  /// `config` has the knobs that were asked for. The result also has what the problem decides, and what follows from
  /// other knobs and was not asked for.
  static Config completed(const Config& config, const Problem&, const Knobs&, const DeviceSpec&) { return config; }
  /// The configurations worth predicting; `own` is the choice above. They are given the knobs that were asked for and
  /// completed afterwards. Infeasible ones are left out, and equal ones are kept once.
  static std::vector<Config> candidates(const Problem&, const Config& own, const Knobs&, const DeviceSpec&) {
    return {own};
  }

  static WorkModel work(const Problem&, const Config&, const DeviceSpec&) { return {}; }
  static std::optional<ProfiledCall> profiled(const Problem&, const Config&, const DeviceSpec&, const ProfileRequest&) {
    return std::nullopt;
  }
  static std::vector<Problem> edges(const Problem& problem, const Config&, const DeviceSpec&) { return {problem}; }
  static std::vector<Sample<Problem>> built_in() { return {}; }
  static std::vector<Sample<Problem>> samples() { return {}; }
};

/// The members that every family has. `infeasible_reasons` and `plan` are asked only where there is no
/// `unsupported_reason`; `plan` leaves the call's strategy, knobs and work to KernelStrategy.
template <class Family>
concept KernelFamily =
    std::derived_from<Family, FamilyDefaults<typename Family::Problem, typename Family::Config>> &&
    requires(const typename Family::Problem& problem, const typename Family::Config& config, const DeviceSpec& device) {
      { Family::name } -> std::convertible_to<std::string_view>;
      { Family::summary } -> std::convertible_to<std::string_view>;
      { Family::knob_table() } -> std::same_as<const KnobTable<typename Family::Config>&>;
      { Family::unsupported_reason(problem, device) } -> std::same_as<std::optional<std::string>>;
      { Family::infeasible_reasons(problem, config, device) } -> std::same_as<std::vector<std::string>>;
      { Family::plan(problem, config, device) } -> std::same_as<PlannedCall>;
    };

namespace detail {
/// Whether a member is the family's own where it is named, and inherited where it is not.
template <class Own, class Inherited>
consteval bool agree(bool is_named, Own own, Inherited inherited) {
  if constexpr (std::same_as<Own, Inherited>) {
    return is_named == (own != inherited);
  } else {
    return false;
  }
}
}  // namespace detail

/// Refuses a family whose own members are not those that its `overrides` name, in a sentence for each.
template <KernelFamily Family>
class CheckedOverrides {
  using Defaults = FamilyDefaults<typename Family::Problem, typename Family::Config>;
  static constexpr Overrides named = Family::overrides;

  static_assert(detail::agree(named.device_kind, &Family::device_kind, &Defaults::device_kind),
                "overrides.device_kind is set if and only if there is a 'static constexpr DeviceKind device_kind'");
  static_assert(detail::agree(named.supersedes, &Family::supersedes, &Defaults::supersedes),
                "overrides.supersedes is set if and only if there is a 'static constexpr std::string_view supersedes'");
  static_assert(detail::agree(named.role, &Family::role, &Defaults::role),
                "overrides.role is set if and only if there is a 'static Role role(const Problem&)'");
  static_assert(detail::agree(named.steady_knobs, &Family::steady_knobs, &Defaults::steady_knobs),
                "overrides.steady_knobs is set if and only if there is a 'static std::optional<Knobs> "
                "steady_knobs(const Problem&)'");
  static_assert(detail::agree(named.sums, &Family::sums, &Defaults::sums),
                "overrides.sums is set if and only if there is a 'static std::optional<std::vector<std::string>> "
                "sums(const Config&)'");
  static_assert(detail::agree(named.own_choice, &Family::own_choice, &Defaults::own_choice),
                "overrides.own_choice is set if and only if there is a 'static Config own_choice(const Problem&, const "
                "Knobs&, const DeviceSpec&)'");
  static_assert(detail::agree(named.completed, &Family::completed, &Defaults::completed),
                "overrides.completed is set if and only if there is a 'static Config completed(const Config&, const "
                "Problem&, const Knobs&, const DeviceSpec&)'");
  static_assert(detail::agree(named.candidates, &Family::candidates, &Defaults::candidates),
                "overrides.candidates is set if and only if there is a 'static std::vector<Config> candidates(const "
                "Problem&, const Config& own, const Knobs&, const DeviceSpec&)'");
  static_assert(detail::agree(named.work, &Family::work, &Defaults::work),
                "overrides.work is set if and only if there is a 'static WorkModel work(const Problem&, const Config&, "
                "const DeviceSpec&)'");
  static_assert(detail::agree(named.profiled, &Family::profiled, &Defaults::profiled),
                "overrides.profiled is set if and only if there is a 'static std::optional<ProfiledCall> "
                "profiled(const Problem&, const Config&, const DeviceSpec&, const ProfileRequest&)'");
  static_assert(detail::agree(named.edges, &Family::edges, &Defaults::edges),
                "overrides.edges is set if and only if there is a 'static std::vector<Problem> edges(const Problem&, "
                "const Config&, const DeviceSpec&)'");
  static_assert(detail::agree(named.built_in, &Family::built_in, &Defaults::built_in),
                "overrides.built_in is set if and only if there is a 'static std::vector<Sample<Problem>> built_in()'");
  static_assert(detail::agree(named.samples, &Family::samples, &Defaults::samples),
                "overrides.samples is set if and only if there is a 'static std::vector<Sample<Problem>> samples()'");
};

/// The strategy that a family makes.
template <KernelFamily Family>
class KernelStrategy final : public Strategy<typename Family::Problem>, private CheckedOverrides<Family> {
 public:
  using Problem = typename Family::Problem;
  using Config = typename Family::Config;

  /// The configuration of a problem with these knobs. Throws Error(invalid_argument) for knobs that it does not take.
  [[nodiscard]] static Config config(const Problem& problem, const Knobs& knobs, const DeviceSpec& device) {
    return with(Family::own_choice(problem, knobs, device), problem, knobs, device);
  }

  [[nodiscard]] std::string_view name() const override { return Family::name; }
  [[nodiscard]] std::string_view summary() const override { return Family::summary; }
  [[nodiscard]] DeviceKind device_kind() const override { return Family::device_kind; }
  [[nodiscard]] std::string_view supersedes() const override { return Family::supersedes; }
  [[nodiscard]] Role role(const Problem& problem) const override { return Family::role(problem); }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return Family::knob_table().help(); }
  [[nodiscard]] std::optional<Knobs> steady_knobs(const Problem& problem) const override {
    return Family::steady_knobs(problem);
  }
  [[nodiscard]] std::optional<Knobs> sums(const Problem& problem, const Knobs& knobs,
                                          const DeviceSpec& device) const override {
    if constexpr (!Family::overrides.sums) {
      return knobs;
    }
    const std::optional<std::vector<std::string>> names = Family::sums(config(problem, knobs, device));
    if (!names) {
      return std::nullopt;
    }
    Knobs found;
    for (const std::string& knob : *names) {
      if (const std::string* const value = knobs.find(knob)) {
        found.set(knob, *value);
      }
    }
    return found;
  }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const Problem& problem,
                                                              const DeviceSpec& device) const override {
    return Family::unsupported_reason(problem, device);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const Problem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override {
    return reasons(problem, config(problem, knobs, device), device);
  }

  [[nodiscard]] std::vector<Knobs> candidates(const Problem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    const Config own = Family::own_choice(problem, knobs, device);
    std::vector<Knobs> found;
    if ((void)with(own, problem, knobs, device); Family::unsupported_reason(problem, device)) {
      return found;
    }
    for (const Config& choice : Family::candidates(problem, own, knobs, device)) {
      const Config candidate = with(choice, problem, knobs, device);
      const Knobs all = Family::knob_table().knobs(candidate);
      if (Family::infeasible_reasons(problem, candidate, device).empty() &&
          std::find(found.begin(), found.end(), all) == found.end()) {
        found.push_back(all);
      }
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const Problem& problem, const Knobs& knobs, const DeviceSpec& device) const override {
    const Config wanted = feasible(problem, knobs, device);
    PlannedCall call = Family::plan(problem, wanted, device);
    describe(call, problem, wanted, device);
    return call;
  }

  [[nodiscard]] WorkModel work(const Problem& problem, const Knobs& knobs, const DeviceSpec& device) const override {
    return Family::work(problem, config(problem, knobs, device), device);
  }

  [[nodiscard]] std::optional<ProfiledCall> profiled(const Problem& problem, const Knobs& knobs,
                                                     const DeviceSpec& device,
                                                     const ProfileRequest& request) const override {
    if constexpr (!Family::overrides.profiled) {
      return std::nullopt;
    }
    const Config wanted = feasible(problem, knobs, device);
    std::optional<ProfiledCall> profiled = Family::profiled(problem, wanted, device, request);
    if (profiled) {
      describe(profiled->call, problem, wanted, device);
    }
    return profiled;
  }

  [[nodiscard]] std::vector<Problem> edges(const Problem& problem, const Knobs& knobs,
                                           const DeviceSpec& device) const override {
    return Family::edges(problem, config(problem, knobs, device), device);
  }
  [[nodiscard]] std::vector<Sample<Problem>> built_in() const override { return Family::built_in(); }
  [[nodiscard]] std::vector<Sample<Problem>> samples() const override { return Family::samples(); }

 private:
  static Config with(const Config& choice, const Problem& problem, const Knobs& knobs, const DeviceSpec& device) {
    return Family::completed(Family::knob_table().with(choice, knobs, Family::name), problem, knobs, device);
  }

  static std::vector<std::string> reasons(const Problem& problem, const Config& config, const DeviceSpec& device) {
    if (std::optional<std::string> reason = Family::unsupported_reason(problem, device)) {
      return {*std::move(reason)};
    }
    return Family::infeasible_reasons(problem, config, device);
  }

  static Config feasible(const Problem& problem, const Knobs& knobs, const DeviceSpec& device) {
    const Config wanted = config(problem, knobs, device);
    refuse_infeasible(Family::name, knobs, reasons(problem, wanted, device));
    return wanted;
  }

  static void describe(PlannedCall& call, const Problem& problem, const Config& config, const DeviceSpec& device) {
    call.strategy = Family::name;
    call.knobs = Family::knob_table().knobs(config);
    call.work = Family::work(problem, config, device);
  }
};

/// The one strategy of a family.
template <KernelFamily Family>
const Strategy<typename Family::Problem>& strategy_of() {
  static const KernelStrategy<Family> strategy;
  return strategy;
}

}  // namespace thresher::strategies
