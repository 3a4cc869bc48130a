#include "arena/emulation/attention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/attention/inputs.hpp"
#include "arena/attention/options.hpp"
#include "arena/attention/task.hpp"
#include "arena/emulation/host_kernel.hpp"
#include "machine/emulator/engine/tensor_map.hpp"
#include "ops/attention_launch.hpp"
#include "ops/knob_words.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// Clusters that take the work of a persistent kernel, fewer than there is work.
constexpr unsigned resident_clusters = 3;

class AttentionRun final : public EmulatedRun {
 public:
  AttentionRun(const AttentionTask& task, const ops::AttentionChoice& choice)
      : kernel_(host_kernel(ops::attention_program(task.problem, choice))),
        problem_(task.problem),
        inputs_(attention_inputs(task, Distribution::normal, 1)),
        outputs_(attention_outputs(task)),
        query_offsets_(offsets_of(task.query_lengths)),
        key_offsets_(offsets_of(task.key_lengths)) {
    AttentionTensors tensors = attention_tensors(task, [this](std::string_view name) { return find(name); });
    tensors.cu_seqlens_q.data = query_offsets_.data();
    tensors.cu_seqlens_k.data = key_offsets_.data();
    describe(tensors, choice);
    for (const HostTensor& input : inputs_) {
      memory_.add(input.name, input.values.data(), input.values.size(), emulator::Use::input);
    }
    for (const HostTensor& output : outputs_) {
      memory_.add(output.name, output.values.data(), output.values.size(), emulator::Use::output);
    }
    memory_.add("cu_seqlens_q", query_offsets_.data(), query_offsets_.size() * 4, emulator::Use::input);
    memory_.add("cu_seqlens_k", key_offsets_.data(), key_offsets_.size() * 4, emulator::Use::input);
  }

  [[nodiscard]] emulator::Report run(const emulator::Options& options) override {
    for (HostTensor& output : outputs_) {
      std::fill(output.values.begin(), output.values.end(), std::uint8_t{0xA5});
    }
    return emulator::launch(shape_, options, memory_, [this] { kernel_(&params_); });
  }

  [[nodiscard]] std::span<const std::uint8_t> output() const override { return outputs_.front().values; }

 private:
  [[nodiscard]] Tensor find(std::string_view name) const {
    for (const auto* tensors : {&inputs_, &outputs_}) {
      for (const HostTensor& tensor : *tensors) {
        if (tensor.name == name) {
          return tensor.view();
        }
      }
    }
    throw Error(ErrorCode::internal, "attention has no tensor " + std::string(name));
  }

  void describe(const AttentionTensors& tensors, const ops::AttentionChoice& choice) {
    const ops::AttentionGeometry geometry = ops::attention_geometry(choice);
    params_ = ops::attention_constants(problem_, geometry);
    ops::add_tensors(params_, problem_, tensors);
    if (geometry.copies) {
      const auto encode = [](const machine::TensorMapDescription& map, const Tensor& tensor) {
        return tensor.elements() == 0 ? machine::TensorMap{} : emulator::encode_tensor_map(map);
      };
      params_.query_map = encode(ops::query_map(problem_, geometry, tensors.q), tensors.q);
      params_.key_map = encode(ops::key_map(problem_, geometry, tensors.k), tensors.k);
      params_.value_map = encode(ops::key_map(problem_, geometry, tensors.v), tensors.v);
    }
    const ops::AttentionGrid grid = ops::attention_grid(problem_, choice, geometry, params_);
    shape_.grid = {geometry.persistent ? std::min(grid.x, resident_clusters * geometry.cluster) : grid.x, grid.y,
                   grid.z};
    shape_.block = geometry.threads;
    shape_.cluster.x = geometry.cluster;
    shape_.dynamic_shared_bytes = geometry.shared_bytes;
  }

  strategies::HostKernel kernel_;
  AttentionProblem problem_;
  std::vector<HostTensor> inputs_;
  std::vector<HostTensor> outputs_;
  std::vector<std::int32_t> query_offsets_;
  std::vector<std::int32_t> key_offsets_;
  strategies::attention::Params params_{};
  emulator::LaunchShape shape_;
  emulator::GlobalMemory memory_;
};

class AttentionKernel final : public EmulatedKernel {
 public:
  AttentionKernel(const AttentionProblem& problem, ops::AttentionChoice choice)
      : format_(problem.format),
        head_dim_(problem.head_dim),
        general_(ops::attention_logits(problem) == strategies::attention::Logits::general),
        choice_(std::move(choice)) {}

  [[nodiscard]] std::string title() const override {
    std::string text = fmt::format("attention {} {}, head dimension {}{}", choice_.strategy, thresher::name(format_),
                                   head_dim_, general_ ? ", softcap" : "");
    if (choice_.strategy == "pipelined") {
      const auto& c = choice_.stream;
      text += fmt::format(", {} queries x {} keys, {} stages, cluster {}", c.rows(), c.keys, c.stages, c.cluster);
    } else if (choice_.strategy == "split") {
      const auto& c = choice_.split;
      text += fmt::format(", cluster {}, {} parts{}{}", c.cluster, c.parts, c.whole ? ", whole tiles" : "",
                          c.narrow_exchange ? ", 16-bit exchange" : "");
    }
    return text;
  }
  [[nodiscard]] std::string key() const override {
    return ops::attention_program(with(AttentionProblem{}), choice_).kernels.front();
  }

  [[nodiscard]] std::string arguments(const Problem&) const override {
    std::string knobs;
    if (choice_.strategy == "pipelined") {
      const auto& c = choice_.stream;
      knobs = fmt::format(
          "keys={} stages={} math_warpgroups={} cluster={} take_turns={:d} hold_softmax={:d} queries_in_registers={:d} "
          "base_descriptors={:d}",
          c.keys, c.stages, c.math_warpgroups, c.cluster, c.take_turns, c.hold_softmax, c.queries_in_registers,
          c.base_descriptors);
    } else if (choice_.strategy == "split") {
      const auto& c = choice_.split;
      knobs = fmt::format(
          "cluster={} whole={:d} parts={} inspect_early={:d} meet_early={:d} narrow_exchange={:d} alone={:d}",
          c.cluster, c.whole, c.parts, c.inspect_early, c.meet_early, c.narrow_exchange, c.alone);
    }
    return fmt::format("attention --strategy {}{} --a {} --head-dim {}{}", choice_.strategy,
                       knobs.empty() ? "" : fmt::format(" --knobs \"{}\"", knobs), thresher::name(format_), head_dim_,
                       general_ ? " --softcap" : "");
  }

  /// A causal one of more than one tile; a window, where rows see nothing, and sequences of several lengths, one of
  /// them empty.
  [[nodiscard]] std::vector<Problem> edges() const override {
    if (choice_.split.whole) {
      return {whole_problem()};
    }
    const std::int64_t tile_rows = ops::attention_geometry(choice_).tile_rows;
    AttentionTask causal{.problem = with({.heads = 2, .queries = tile_rows + 3, .keys = keys(), .causal = true}),
                         .lse = true,
                         .rows_first = true};
    AttentionTask window{
        .problem = with({.heads = 2, .queries = 75, .keys = 60, .window_left = 10, .window_right = 20}), .lse = true};
    std::vector<AttentionTask> tasks{causal, window};
    if (choice_.strategy != "split" || choice_.split.cluster > 1) {
      AttentionTask packed{
          .problem =
              with({.batch = 4, .heads = 2, .queries = 137, .keys = 290, .causal = true, .variable_length = true}),
          .rows_first = true,
          .query_lengths = {0, 70, 0, 67},
          .key_lengths = {9, 191, 40, 50}};
      tasks.push_back(packed);
    }
    std::vector<Problem> problems;
    for (const AttentionTask& task : tasks) {
      problems.push_back(problem_of(task));
    }
    return problems;
  }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    auto task = wanted.as<AttentionTask>();
    task.problem = with(task.problem);
    if (choice_.split.whole && !ops::is_whole(task.problem, choice_.split.cluster)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be emulated on {}: it takes whole tiles alone", title(), label(wanted)));
    }
    return std::make_unique<AttentionRun>(task, choice_);
  }

 private:
  /// A problem of two tiles in each of four heads, all keys of the cluster, nothing masked.
  [[nodiscard]] Problem whole_problem() const {
    using pipeline::attention::SplitConfig;
    return problem_of(
        AttentionTask{.problem = with({.batch = 2,
                                       .heads = 2,
                                       .queries = 2 * SplitConfig::rows,
                                       .keys = choice_.split.cluster * SplitConfig::chunk * SplitConfig::chunks}),
                      .lse = true,
                      .rows_first = true});
  }

  /// The problem in the kernel's format, head dimension and kind of logits.
  [[nodiscard]] AttentionProblem with(AttentionProblem problem) const {
    problem.format = format_;
    problem.head_dim = head_dim_;
    problem.softcap = general_ ? 2.0F : 0.0F;
    return problem;
  }

  /// Ragged, and more than one turn of the ring, or all blocks of a cluster that divides them.
  [[nodiscard]] std::int64_t keys() const {
    if (choice_.strategy == "pipelined") {
      return std::int64_t{choice_.stream.keys} * choice_.stream.stages + 75;
    }
    constexpr int of_a_block = pipeline::attention::SplitConfig::chunk * pipeline::attention::SplitConfig::chunks;
    return choice_.strategy == "split" ? choice_.split.cluster * of_a_block - 53 : 203;
  }

  Format format_;
  std::int64_t head_dim_;
  bool general_;
  ops::AttentionChoice choice_;
};

class AttentionEmulation final : public EmulatedOperation {
 public:
  [[nodiscard]] std::string_view name() const override { return "attention"; }
  [[nodiscard]] std::vector<std::string> strategies() const override {
    return {"simple", "pipelined", "split", "rows", "rows_shared", "rows_coalesced"};
  }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    if (device.matrix_unit != MatrixUnit::wgmma) {
      return {nullptr, fmt::format("there is no kernel for {} to emulate", device.name)};
    }
    AttentionOptions options{.strategy = request.strategy == planned_strategy ? "" : request.strategy,
                             .knobs = Knobs::parse(request.knobs)};
    options.knobs.erase("dependent_launch");  // of the launch, not of the kernel
    AttentionProblem wanted = problem.as<AttentionTask>().problem;
    const std::map<std::string, int> knobs = ops::whole_numbers(options.knobs);
    if (knobs.contains("whole") && knobs.at("whole") == 1) {
      using pipeline::attention::SplitConfig;
      const int cluster = knobs.contains("cluster") ? knobs.at("cluster") : 2;
      wanted = {.queries = SplitConfig::rows,
                .keys = cluster * SplitConfig::chunk * SplitConfig::chunks,
                .head_dim = wanted.head_dim,
                .format = wanted.format,
                .softcap = wanted.softcap};
    }
    return {make_attention_emulation(wanted, ops::choose_attention(wanted, options, device.multiprocessors)), ""};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(const std::string& strategy) const override {
    constexpr int multiprocessors = 132;
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    for (const std::int64_t head_dim : {64, 128}) {
      if (strategy.starts_with("rows") && head_dim != strategies::attention::row_head_dim) {
        continue;
      }
      for (const float softcap : {0.0F, 2.0F}) {
        const AttentionProblem problem{.heads = 2,
                                       .queries = 300,
                                       .keys = 300,
                                       .head_dim = head_dim,
                                       .format = head_dim == 64 ? Format::fp16 : Format::bf16,
                                       .softcap = softcap};
        found.push_back(
            make_attention_emulation(problem, ops::choose_attention(problem, {.strategy = strategy}, multiprocessors)));
      }
    }
    return found;
  }
};

}  // namespace

const EmulatedOperation& emulated_attention() {
  static const AttentionEmulation operation;
  return operation;
}

std::shared_ptr<const EmulatedKernel> make_attention_emulation(const AttentionProblem& problem,
                                                               const ops::AttentionChoice& choice) {
  return std::make_shared<const AttentionKernel>(problem, choice);
}

}  // namespace thresher::arena
