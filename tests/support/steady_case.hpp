#pragma once
/// Whether the bits of rows, and of sequences, depend on the batch: calls of some rows beside one of all, on the CPU or
/// on GPU 0.
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/integers.hpp"
#include "runtime/stream.hpp"
#include "support/attention_case.hpp"
#include "support/gated_mlp_case.hpp"
#include "support/gemm_case.hpp"
#include "support/moe_case.hpp"
#include "support/rows_of.hpp"
#include "support/tensor_on_gpu.hpp"
#include "thresher/thresher.hpp"

namespace thresher::test {

inline const std::string batch = "batch";  ///< the value of `deterministic`

/// A tensor of the host where a device reads and writes it.
class Placed {
 public:
  Placed(const Tensor& host, const Device& device) : host_(host) {
    if (device.kind() == DeviceKind::cuda && host.rank > 0) {
      on_gpu_ = std::make_unique<TensorOnGpu>(host);
    }
  }
  [[nodiscard]] Tensor tensor() const { return on_gpu_ ? on_gpu_->tensor() : host_; }
  [[nodiscard]] Tensor rows(std::int64_t first, std::int64_t count) const { return rows_of(tensor(), first, count); }
  /// The bytes of such rows, once all work is done.
  [[nodiscard]] std::vector<std::uint8_t> bytes(std::int64_t first, std::int64_t count) const {
    if (on_gpu_) {
      runtime::synchronize({}, 0);
      on_gpu_->fetch(host_);
    }
    const auto* const from = static_cast<const std::uint8_t*>(rows_of(host_, first, 1).data);
    return {from, from + count * host_.strides[0] * bits(host_.format) / 8};
  }

 private:
  Tensor host_;
  std::unique_ptr<TensorOnGpu> on_gpu_;
};

/// What a call of `count` rows from `first` on writes.
using RunRows = std::function<std::vector<std::uint8_t>(std::int64_t first, std::int64_t count)>;

/// The first call whose bits are not those of a call with all `rows` rows, in words; empty if there is none. Of every
/// `step`-th number of rows, the first and the last ones are run.
inline std::string unsteady_rows(std::int64_t rows, std::int64_t step, const RunRows& run) {
  const std::vector<std::uint8_t> all = run(0, rows);
  const std::int64_t row_bytes = static_cast<std::int64_t>(all.size()) / rows;
  for (std::int64_t count = 1; count <= rows; count += step) {
    for (const std::int64_t first : {std::int64_t{0}, rows - count}) {
      const std::vector<std::uint8_t> some = run(first, count);
      if (!std::equal(some.begin(), some.end(), all.begin() + first * row_bytes)) {
        return fmt::format("{} rows from {} differ from {} rows", count, first, rows);
      }
    }
  }
  return "";
}

/// A plan for all rows of the problem, and one for at most `few`, which small calls take.
template <class Plan>
struct TwoPlans {
  Plan all;
  Plan small;
  std::int64_t few;
  Workspace workspace;

  TwoPlans(const Device& device, Plan of_all, Plan of_few, std::int64_t rows)
      : all(std::move(of_all)),
        small(std::move(of_few)),
        few(rows),
        workspace(device, std::max(all.workspace_bytes(), small.workspace_bytes())) {}
  [[nodiscard]] const Plan& of(std::int64_t rows) const { return rows <= few ? small : all; }
};

constexpr std::int64_t few_rows = 5;

inline std::string unsteady_gemm(const Device& device, const GemmProblem& problem, std::int64_t step,
                                 const GemmOptions& options = {.deterministic = batch}) {
  GemmCase host(problem);
  const Placed b(host.weights().b, device);
  const Placed a(host.tensors().a, device);
  const Placed c(host.tensors().c, device);
  GemmProblem small = problem;
  small.m = few_rows;
  const auto planned = [&](const GemmProblem& of) { return plan(device, of, GemmWeights{.b = b.tensor()}, options); };
  const TwoPlans<Gemm> plans(device, planned(problem), planned(small), few_rows);
  return unsteady_rows(problem.m, step, [&](std::int64_t first, std::int64_t count) {
    plans.of(count).run({}, a.rows(first, count), c.rows(first, count), plans.workspace.data());
    return c.bytes(first, count);
  });
}

inline std::string unsteady_mlp(const Device& device, const GatedMlpProblem& problem, std::int64_t step) {
  GatedMlpCase host(problem);
  const Placed gate(host.weights().gate, device);
  const Placed up(host.weights().up, device);
  const Placed down(host.weights().down, device);
  const Placed x(host.x(problem.tokens), device);
  const Placed out(host.out(problem.tokens), device);
  GatedMlpProblem small = problem;
  small.tokens = few_rows;
  const auto planned = [&](const GatedMlpProblem& of) {
    return plan(device, of, GatedMlpWeights{.gate = gate.tensor(), .up = up.tensor(), .down = down.tensor()},
                {.gate_up = {.deterministic = batch}, .down = {.deterministic = batch}});
  };
  const TwoPlans<GatedMlp> plans(device, planned(problem), planned(small), few_rows);
  return unsteady_rows(problem.tokens, step, [&](std::int64_t first, std::int64_t count) {
    plans.of(count).run({}, x.rows(first, count), out.rows(first, count), plans.workspace.data());
    return out.bytes(first, count);
  });
}

inline std::string unsteady_experts(const Device& device, const MoeProblem& problem, std::int64_t step) {
  MoeCase host(problem, random_choices(problem, 1));
  const Placed b1(host.gate_up().b1, device);
  const Placed b2(host.gate_up().b2, device);
  const Placed down(host.down().b1, device);
  const Placed x(host.tensors().x, device);
  const Placed ids(host.tensors().topk_ids, device);
  const Placed weights(host.tensors().topk_weights, device);
  const Placed out(host.tensors().out, device);
  MoeProblem small = problem;
  small.tokens = few_rows;
  const auto planned = [&](const MoeProblem& of) {
    return plan(device, of, GroupedWeights{.b1 = b1.tensor(), .b2 = b2.tensor()}, GroupedWeights{.b1 = down.tensor()},
                {.gate_up = {.deterministic = batch}, .down = {.deterministic = batch}});
  };
  const TwoPlans<MoeLayer> plans(device, planned(problem), planned(small), few_rows);
  return unsteady_rows(problem.tokens, step, [&](std::int64_t first, std::int64_t count) {
    plans.of(count).run({},
                        {.x = x.rows(first, count),
                         .topk_ids = ids.rows(first, count),
                         .topk_weights = weights.rows(first, count),
                         .out = out.rows(first, count)},
                        plans.workspace.data());
    return out.bytes(first, count);
  });
}

/// Attention over keys in pages, of sequences with so many queries and keys each: the first sequences of a call, and
/// each sequence alone, in a plan of their own.
inline std::string unsteady_pages(const Device& device, AttentionProblem problem,
                                  const std::vector<std::int32_t>& queries, const std::vector<std::int32_t>& keys) {
  std::vector<std::int32_t> offsets{0};
  problem.variable_length = true;
  problem.batch = static_cast<std::int64_t>(queries.size());
  problem.keys = *std::max_element(keys.begin(), keys.end());
  problem.pages = 1;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    offsets.push_back(offsets.back() + queries[i]);
    problem.pages += ceil_div(std::int64_t{keys[i]}, problem.page_size);
  }
  problem.queries = offsets.back();
  AttentionCase host(problem, Order::heads_first, offsets, keys);
  const Placed q(host.tensors.q, device);
  const Placed k(host.tensors.k, device);
  const Placed v(host.tensors.v, device);
  const Placed o(host.tensors.o, device);
  const Placed table(host.tensors.block_table, device);
  const Placed used(host.tensors.seqused_k, device);
  const auto run = [&](std::size_t first, std::size_t count) {
    AttentionProblem own = problem;
    std::vector<std::int32_t> own_offsets;
    for (std::size_t i = first; i <= first + count; ++i) {
      own_offsets.push_back(offsets[i] - offsets[first]);
    }
    own.batch = static_cast<std::int64_t>(count);
    own.queries = own_offsets.back();
    const Placed lengths(Tensor::contiguous(own_offsets.data(), Format::int32, {own.batch + 1}), device);
    const auto at = static_cast<std::int64_t>(first);
    const Attention attention = plan(device, own, {.deterministic = batch});
    const Workspace workspace(device, attention.workspace_bytes());
    attention.run({},
                  {.q = q.rows(offsets[first], own.queries),
                   .k = k.tensor(),
                   .v = v.tensor(),
                   .o = o.rows(offsets[first], own.queries),
                   .cu_seqlens_q = lengths.tensor(),
                   .block_table = table.rows(at, own.batch),
                   .seqused_k = used.rows(at, own.batch)},
                  workspace.data());
    return o.bytes(offsets[first], own.queries);
  };
  const std::vector<std::uint8_t> all = run(0, queries.size());
  const std::int64_t row_bytes = static_cast<std::int64_t>(all.size()) / problem.queries;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    for (const auto& [first, count] : {std::pair{std::size_t{0}, i + 1}, {i, std::size_t{1}}}) {
      const std::vector<std::uint8_t> some = run(first, count);
      if (!std::equal(some.begin(), some.end(), all.begin() + offsets[first] * row_bytes)) {
        return fmt::format("{} sequences from {} differ from {}", count, first, queries.size());
      }
    }
  }
  return "";
}

/// Attention of sequences of one length each: of fewer sequences in a plan of their own.
inline std::string unsteady_sequences(const Device& device, const AttentionProblem& problem) {
  AttentionCase host(problem);
  const Placed q(host.tensors.q, device);
  const Placed k(host.tensors.k, device);
  const Placed v(host.tensors.v, device);
  const Placed o(host.tensors.o, device);
  return unsteady_rows(problem.batch, 1, [&](std::int64_t first, std::int64_t count) {
    AttentionProblem own = problem;
    own.batch = count;
    const Attention attention = plan(device, own, {.deterministic = batch});
    const Workspace workspace(device, attention.workspace_bytes());
    attention.run(
        {},
        {.q = q.rows(first, count), .k = k.rows(first, count), .v = v.rows(first, count), .o = o.rows(first, count)},
        workspace.data());
    return o.bytes(first, count);
  });
}

}  // namespace thresher::test
