#include "arena/moe_layer/judge.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "arena/gemm/comparison.hpp"
#include "arena/gemm/judge.hpp"
#include "arena/gemm/mistakes.hpp"
#include "arena/moe_layer/judged_call.hpp"
#include "arena/random.hpp"
#include "formats/elements.hpp"

namespace thresher::arena {
namespace {

using reference::MoeCall;
using reference::MoeOutputs;
using reference::Region;
using reference::Verdict;

/// The multiplications that judging one call may cost where not all of it is judged.
constexpr double sampled_products = 8e9;
constexpr std::int64_t columns_of_a_tile = 8;
/// Every tile is seen so often where that does not cost too much.
constexpr int max_rounds = 4;
constexpr double as_made_without_weights = 0.02;  ///< of the norm

/// The multiplications of one row of an expert, with so many columns of out. The definition is computed beside what a
/// plain kernel makes.
double products_of_a_row(const MoeProblem& p, std::int64_t columns) {
  return static_cast<double>(p.intermediate_size) * static_cast<double>(2 * p.hidden_size + columns);
}

/// Tokens until every 64 rows of every expert have one among them, then as many again. The first and the last token
/// are among them.
std::vector<std::int64_t> tokens_of_every_tile(const MoeCall& call, std::uint64_t seed) {
  const MoeProblem& p = call.problem;
  const reference::SortedChoices sorted = reference::sorted_choices(p, call.tensors.topk_ids);
  const auto* const ids = static_cast<const std::int32_t*>(call.tensors.topk_ids.data);
  std::vector<std::int64_t> order(static_cast<std::size_t>(p.tokens));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  Random random(seed);
  random.shuffle(order);
  std::set<std::int64_t> chosen{0, p.tokens - 1};
  double products = 0;
  for (int round = 0; round < max_rounds && products <= sampled_products; ++round) {
    std::set<std::pair<std::int32_t, std::int64_t>> seen;
    for (const std::int64_t token : order) {
      bool is_new = false;
      for (std::int64_t choice = token * p.top_k; choice < (token + 1) * p.top_k && !chosen.contains(token); ++choice) {
        const std::int32_t row = sorted.inverse[static_cast<std::size_t>(choice)];
        const std::int32_t id = ids[choice];
        is_new =
            (row >= 0 &&
             seen.emplace(id, (row - sorted.offsets[static_cast<std::size_t>(id)]) / reference::tile_side).second) ||
            is_new;
      }
      if (is_new) {
        chosen.insert(token);
        products += static_cast<double>(p.top_k) * products_of_a_row(p, p.hidden_size);
      }
    }
  }
  return {chosen.begin(), chosen.end()};
}

Region judged_region(const MoeCall& call, std::uint64_t seed) {
  const MoeProblem& p = call.problem;
  const double rows = static_cast<double>(p.tokens) * static_cast<double>(p.top_k);
  if (rows * products_of_a_row(p, p.hidden_size) <= whole_output_products) {
    return reference::whole(p.tokens, p.hidden_size);
  }
  Region region = reference::sample_every_tile(p.tokens, p.hidden_size, columns_of_a_tile, seed);
  region.rows = tokens_of_every_tile(call, seed);
  return region;
}

class LayerJudge final : public Judge {
 public:
  LayerJudge(const LayerTask& task, const std::vector<HostTensor>& inputs, const Maker& maker, std::uint64_t seed)
      : tokens_(task.problem.tokens), columns_(task.problem.hidden_size), has_router_(!task.is_dense) {
    const JudgedLayer layer(task, pointers_to(inputs));
    region_ = judged_region(layer.call(), seed);
    wanted_ = reference::moe_layer(layer.call(), region_, maker.device);
  }

  Finding judge(const std::vector<HostTensor>& outputs) const override {
    const Tensor out = outputs.at(0).view();
    const Verdict verdict = reference::judge_moe_outputs(out, region_, wanted_);
    Finding found;
    found.correct = verdict.passed;
    found.worst_ratio = verdict.worst.ratio;
    if (!verdict.passed) {
      found.fault =
          leaves_weights_out(out) ? "the router's weights left out" : fault_of(verdict, tokens_ - 1, columns_ - 1);
    }
    found.sentence = verdict.explain();
    found.evidence = evidence_of(verdict, tokens_ * columns_);
    return found;
  }

 private:
  [[nodiscard]] bool leaves_weights_out(const Tensor& out) const {
    std::vector<double> values;
    for (const std::int64_t row : region_.rows) {
      for (const std::int64_t column : region_.columns) {
        values.push_back(formats::element(out, row, column));
      }
    }
    return has_router_ && distance(values, wanted_.unweighted) < as_made_without_weights &&
           distance(wanted_.value, wanted_.unweighted) > as_made_without_weights;
  }

  std::int64_t tokens_;
  std::int64_t columns_;
  bool has_router_;
  Region region_;
  MoeOutputs wanted_;
};

}  // namespace

std::unique_ptr<Judge> make_layer_judge(const LayerTask& task, const std::vector<HostTensor>& inputs,
                                        const Maker& maker, std::uint64_t seed) {
  return std::make_unique<LayerJudge>(task, inputs, maker, seed);
}

}  // namespace thresher::arena
