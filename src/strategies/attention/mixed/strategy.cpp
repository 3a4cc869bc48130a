#include "strategies/attention/mixed/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "strategies/attention/gpu_strategy.hpp"
#include "strategies/attention/pipelined/strategy.hpp"
#include "strategies/attention/stream_k/params.hpp"
#include "strategies/attention/stream_k/strategy.hpp"
#include "strategies/attention/tile_work.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::attention {
namespace {

struct Share {
  int few_queries = 16;
};
using Config = Launched<Share>;

/// As many queries of one head as are rows of a tile of `stream_k`: of fewer it reads keys no more often.
int few_queries(const AttentionProblem& problem) {
  const std::int64_t widest = std::max(problem.head_dim, effective_value_dim(problem));
  return widest > 128 ? 8 : widest > 64 ? 16 : 32;
}

/// Some sequence may have more queries than decoding takes, and not all have as many, of which all can be. The host
/// knows no more than how many there are together.
bool may_be_of_both_kinds(const AttentionProblem& problem, int few) {
  if (problem.batch < 2 || problem.queries - (problem.batch - 1) <= few) {
    return false;
  }
  return problem.queries % problem.batch != 0 || problem.queries / problem.batch > few;
}

KnobTable<Config> knob_table() {
  return {"",
          {number<Config>("few_queries", &Share::few_queries, {8, 16, 32},
                          "sequences of no more are taken by stream_k, the others by pipelined"),
           dependent_launch_knob<Config>()}};
}

// The parameters of both ways begin with what a call's sequences are told by.
static_assert(offsetof(StreamKParams, call) == 0 && std::is_same_v<decltype(StreamKParams::call), Params>);

/// The launch leaves sequences of fewer than `fewest` or more than `most` queries to another one; what it has of the
/// workspace begins `workspace` bytes into the call's, and its pieces are behind the first `pieces`.
void restrict(KernelLaunch& launch, int fewest, int most, std::size_t workspace, std::size_t pieces) {
  launch.bind = [bind = std::move(launch.bind), fewest, most, workspace](const CallTensors& call,
                                                                         LaunchArguments& out) {
    CallTensors own = call;
    own.workspace = static_cast<std::byte*>(call.workspace) + workspace;
    const bool is_bound = bind(own, out);
    out.put(offsetof(Params, fewest_queries), static_cast<i32>(fewest));
    out.put(offsetof(Params, max_queries), static_cast<i32>(most));
    return is_bound;
  };
  for (Access& access : launch.accesses) {
    access.index += access.memory == Access::Memory::workspace ? pieces : 0;
  }
}

class Mixed final : public Strategy<AttentionProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "mixed"; }
  [[nodiscard]] std::string_view summary() const override {
    return "for keys in pages: stream_k for sequences of few queries, pipelined for the others";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const AttentionProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return table_.help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const AttentionProblem& problem,
                                                              const DeviceSpec& device) const override {
    return why_not_pages_on_hopper(name(), problem, device);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const AttentionProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override {
    (void)with(problem, knobs);
    if (std::optional<std::string> reason = unsupported_reason(problem, device)) {
      return {*std::move(reason)};
    }
    std::vector<std::string> all = stream_k_strategy().infeasible_reasons(problem, {}, device);
    if (all.empty()) {
      all = pipelined_strategy().infeasible_reasons(problem, {}, device);
    }
    return all;
  }

  [[nodiscard]] std::vector<Knobs> candidates(const AttentionProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    const Config config = with(problem, knobs);
    if (!may_be_of_both_kinds(problem, config.few_queries) || !infeasible_reasons(problem, knobs, device).empty()) {
      return {};
    }
    return {table_.knobs(config)};
  }

  [[nodiscard]] PlannedCall plan(const AttentionProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
    const Config config = with(problem, knobs);
    const Knobs launch{{"dependent_launch", config.dependent_launch ? "true" : "false"}};
    PlannedCall call = stream_k_strategy().plan(problem, launch, device);
    PlannedCall many = pipelined_strategy().plan(problem, {{"dependent_launch", "true"}}, device);
    for (Step& step : call.steps) {
      restrict(std::get<KernelLaunch>(step), 0, config.few_queries, 0, 0);
    }
    const std::size_t bytes = (call.workspace_bytes() + 255) / 256 * 256;
    for (Step& step : many.steps) {
      restrict(std::get<KernelLaunch>(step), config.few_queries + 1, std::numeric_limits<int>::max(), bytes,
               call.workspace.size());
      call.steps.push_back(std::move(step));
    }
    for (WorkspacePiece& piece : many.workspace) {
      piece.offset += bytes;
      call.workspace.push_back(std::move(piece));
    }
    call.strategy = name();
    call.knobs = table_.knobs(config);
    call.work = work(problem, knobs, device);
    call.why = fmt::format("some sequence may have more than {} queries", config.few_queries);
    return call;
  }

  /// A sequence takes the better of the two ways, as far as the lengths are known.
  [[nodiscard]] WorkModel work(const AttentionProblem& problem, const Knobs& knobs,
                               const DeviceSpec& device) const override {
    WorkModel all;
    for (const AttentionProblem& alike : assumed_sequences(problem)) {
      const bool has_few = alike.queries <= with(problem, knobs).few_queries;
      const auto& strategy = has_few ? stream_k_strategy() : pipelined_strategy();
      AttentionProblem own = alike;
      own.queries *= own.batch;
      const WorkModel work = strategy.work(own, {}, device);
      all.parts.insert(all.parts.end(), work.parts.begin(), work.parts.end());
    }
    return all;
  }

  [[nodiscard]] std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Knobs& knobs,
                                                    const DeviceSpec&) const override {
    AttentionProblem small = problem;
    small.batch = 4;
    small.kv_heads = 1;
    small.heads = std::min<std::int64_t>(problem.heads / problem.kv_heads, 2);
    small.queries = 2 * with(problem, knobs).few_queries * small.batch;
    small.keys = 300;
    small.pages = small.batch * ceil_div(small.keys, problem.page_size);
    return {small};
  }

  [[nodiscard]] std::vector<Sample<AttentionProblem>> samples() const override {
    AttentionProblem problem{.batch = 3, .heads = 2, .kv_heads = 1, .queries = 100, .keys = 300, .causal = true};
    problem.variable_length = true;
    problem.page_size = 16;
    problem.pages = 3 * ceil_div(problem.keys, problem.page_size);
    AttentionProblem codes = problem;
    codes.kv_format = Format::fp8_e4m3;
    return {{problem, {}}, {codes, {}}};
  }

 private:
  [[nodiscard]] Config with(const AttentionProblem& problem, const Knobs& knobs) const {
    Config own;
    own.few_queries = few_queries(problem);
    return table_.with(own, knobs, name());
  }

  KnobTable<Config> table_ = knob_table();
};

}  // namespace

const Strategy<AttentionProblem>& mixed_strategy() {
  static const Mixed strategy;
  return strategy;
}

}  // namespace thresher::strategies::attention
