#pragma once
/// What attention's strategies on a GPU have in common: one kernel, launched once.
#include <fmt/format.h>
#include <algorithm>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/attention/abilities.hpp"
#include "strategies/attention/launch.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/refusal.hpp"
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// A kernel's configuration, and how it is launched.
template <class Kernel>
struct Launched : Kernel {
  bool dependent_launch = false;
};

/// A kernel without choices.
struct NoKnobs {};

template <class Config>
Knob<Config> dependent_launch_knob() {
  return of_launch(flag("dependent_launch", &Config::dependent_launch,
                        "the call may start while the one before it in the stream is ending"));
}

/// `Kernel` is the configuration that the kernel is compiled for.
template <class Kernel>
class GpuStrategy : public Strategy<AttentionProblem> {
 public:
  using Config = Launched<Kernel>;

  GpuStrategy(std::string_view name, std::string_view summary, Role role, KnobTable<Config> table)
      : name_(name), summary_(summary), role_(role), table_(std::move(table)) {}

  [[nodiscard]] std::string_view name() const final { return name_; }
  [[nodiscard]] std::string_view summary() const final { return summary_; }
  [[nodiscard]] DeviceKind device_kind() const final { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const AttentionProblem&) const final { return role_; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const final { return table_.help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const AttentionProblem&,
                                                              const DeviceSpec& device) const final {
    if (device.matrix_unit == MatrixUnit::wgmma) {
      return std::nullopt;
    }
    return fmt::format("attention's {} runs on GPUs of compute capability 9.0 (Hopper), not on {}", name_, device.name);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const AttentionProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const final {
    const Config config = with(problem, knobs);
    if (std::optional<std::string> reason = unsupported_reason(problem, device)) {
      return {*std::move(reason)};
    }
    if (std::vector<std::string> all = beyond(abilities(), problem); !all.empty()) {
      return all;
    }
    std::vector<std::string> all = infeasible_reasons_of(problem, config);
    for (const auto& [argument, rows] : {std::pair{"queries", problem.queries}, std::pair{"keys", problem.keys}}) {
      if (rows >= max_rows) {
        all.push_back(fmt::format("problem.{} is {}, a GPU takes less than {}", argument, rows, max_rows));
      }
    }
    const Geometry geometry = geometry_of(config);
    if (geometry.shared_bytes > static_cast<std::uint32_t>(device.shared_bytes_per_block)) {
      all.push_back(fmt::format("it needs {} bytes of shared memory, a block of {} has {}", geometry.shared_bytes,
                                device.name, device.shared_bytes_per_block));
    }
    return all;
  }

  [[nodiscard]] std::vector<Knobs> candidates(const AttentionProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const final {
    if (!is_entered(problem, device) || !infeasible_reasons(problem, knobs, device).empty()) {
      return {};
    }
    return {table_.knobs(with(problem, knobs))};
  }

  [[nodiscard]] PlannedCall plan(const AttentionProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const final {
    refuse_infeasible(name_, knobs, infeasible_reasons(problem, knobs, device));
    const Config config = with(problem, knobs);
    PlannedCall call;
    call.strategy = name_;
    Geometry geometry = geometry_of(config);
    std::vector<Access> accesses;
    if (problem.page_size > 0 && geometry.persistent) {
      constexpr std::size_t max_threads = 2048;  // of a multiprocessor
      const std::size_t blocks = static_cast<std::size_t>(device.multiprocessors) * (max_threads / geometry.threads);
      const std::size_t piece = add_status(call, blocks);
      geometry.status_offset = call.workspace[piece].offset;
      accesses.push_back({Access::Memory::workspace, piece, Access::Use::writes});
    }
    KernelLaunch launch = kernel_launch(problem, geometry, header(), expression(problem, config));
    launch.accesses.insert(launch.accesses.end(), accesses.begin(), accesses.end());
    launch.program.title = fmt::format("attention {}", name_);
    launch.dependent = config.dependent_launch;
    launch.expected = expectations(config, problem);
    call.knobs = table_.knobs(config);
    call.steps.emplace_back(std::move(launch));
    call.work = work_of(problem, config);
    call.why = why(problem, config);
    return call;
  }

  [[nodiscard]] WorkModel work(const AttentionProblem& problem, const Knobs& knobs, const DeviceSpec&) const final {
    return work_of(problem, with(problem, knobs));
  }

  [[nodiscard]] std::vector<AttentionProblem> edges(const AttentionProblem& problem, const Knobs& knobs,
                                                    const DeviceSpec&) const final {
    return edges_of(problem, with(problem, knobs));
  }

  [[nodiscard]] std::vector<Sample<AttentionProblem>> samples() const final {
    std::vector<Sample<AttentionProblem>> all;
    for (const auto& [head_dim, format] : {std::pair{64, Format::fp16}, std::pair{128, Format::bf16}}) {
      for (const float softcap : {0.0F, 2.0F}) {
        const AttentionProblem problem{
            .heads = 2, .queries = 300, .keys = 300, .head_dim = head_dim, .format = format, .softcap = softcap};
        if (beyond(abilities(), problem).empty() && infeasible_reasons_of(problem, own_choice(problem)).empty()) {
          all.push_back({problem, {}});
        }
        if (softcap == 0.0F) {
          for (const Knobs& knobs : sample_knobs()) {
            all.push_back({problem, knobs});
          }
        }
      }
    }
    return all;
  }

 protected:
  [[nodiscard]] virtual Abilities abilities() const { return {}; }
  /// Whether it is a candidate for this problem where it is not asked for by name.
  [[nodiscard]] virtual bool is_entered(const AttentionProblem&, const DeviceSpec&) const { return true; }
  /// Its choice for a problem, before any knob is asked for.
  [[nodiscard]] virtual Config own_choice(const AttentionProblem&) const { return {}; }
  /// Changes what follows from other knobs and was not asked for.
  virtual void follow(const AttentionProblem&, const Knobs&, Config&) const {}
  [[nodiscard]] virtual std::vector<std::string> infeasible_reasons_of(const AttentionProblem&, const Config&) const {
    return {};
  }
  /// Other choices whose code the emulator runs too, with direct logits.
  [[nodiscard]] virtual std::vector<Knobs> sample_knobs() const { return {}; }
  [[nodiscard]] virtual Geometry geometry_of(const Config& config) const = 0;
  /// Within strategies/attention/.
  [[nodiscard]] virtual std::string header() const = 0;
  [[nodiscard]] virtual std::string expression(const AttentionProblem& problem, const Config& config) const = 0;
  [[nodiscard]] virtual Expectations expectations(const Config& config, const AttentionProblem& problem) const = 0;
  [[nodiscard]] virtual WorkModel work_of(const AttentionProblem&, const Config&) const { return {}; }
  [[nodiscard]] virtual std::string why(const AttentionProblem&, const Config&) const { return ""; }
  /// By default a causal problem of more than one tile, a window where rows see nothing, and sequences of several
  /// lengths.
  [[nodiscard]] virtual std::vector<AttentionProblem> edges_of(const AttentionProblem& problem,
                                                               const Config& config) const {
    return ragged(problem, geometry_of(config).tile_rows, 203);
  }

  [[nodiscard]] const KnobTable<Config>& table() const { return table_; }

  /// One long problem for each format and head dimension: a kernel each, whatever the lengths are.
  [[nodiscard]] static std::vector<Sample<AttentionProblem>> long_sequences() {
    std::vector<Sample<AttentionProblem>> all;
    for (const Format format : {Format::fp16, Format::bf16}) {
      for (const std::int64_t head_dim : {64, 128}) {
        all.push_back({{.queries = 4096, .keys = 4096, .head_dim = head_dim, .format = format}, {}});
      }
    }
    return all;
  }
  /// Small problems whose code is `problem`'s, and whose logits are of its kind: batches, heads that share keys in
  /// groups, and sequences of several heads. Only one of them is of more than a tile, since it takes most of the time.
  [[nodiscard]] static std::vector<AttentionProblem> ragged(const AttentionProblem& problem, std::int64_t tile_rows,
                                                            std::int64_t keys) {
    AttentionProblem causal = bare(problem, tile_rows + 3, keys);
    causal.causal = true;
    causal.batch = 2;
    causal.heads = causal.kv_heads = 1;
    AttentionProblem window = bare(problem, 75, 60);
    window.window_left = 10;
    window.window_right = 20;
    window.heads = 4;
    AttentionProblem lengths =
        bare(problem, std::min<std::int64_t>(tile_rows, 128) + 9, std::min<std::int64_t>(keys, 203) + 87);
    lengths.batch = 4;
    lengths.causal = true;
    lengths.variable_length = true;
    return {causal, window, lengths};
  }
  [[nodiscard]] static AttentionProblem bare(const AttentionProblem& problem, std::int64_t queries, std::int64_t keys) {
    return {.heads = 2,
            .kv_heads = 2,
            .queries = queries,
            .keys = keys,
            .head_dim = problem.head_dim,
            .value_dim = problem.value_dim,
            .format = problem.format,
            .softcap = has_general_logits(problem) ? 2.0F : 0.0F};
  }

 private:
  [[nodiscard]] Config with(const AttentionProblem& problem, const Knobs& knobs) const {
    Config config = table_.with(own_choice(problem), knobs, name_);
    follow(problem, knobs, config);
    return config;
  }

  std::string_view name_;
  std::string_view summary_;
  Role role_;
  KnobTable<Config> table_;
};

}  // namespace thresher::strategies::attention
