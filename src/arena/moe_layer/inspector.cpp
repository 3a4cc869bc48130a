#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arena/gemm/comparison.hpp"
#include "arena/moe_layer/judge.hpp"
#include "arena/moe_layer/judged_call.hpp"
#include "formats/elements.hpp"
#include "reference/output_format.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {
namespace {

using reference::MoeOutputs;
using reference::Region;

constexpr std::int64_t gauged_tokens = 8;
/// Neighbouring elements of a look.
constexpr std::int64_t columns_of_a_look = 64;
/// The largest error of a few elements is less than that of all.
constexpr double beyond_the_gauge = 2.5;
/// Threads are worth starting for a look of more multiplications than this.
constexpr double products_of_one_thread = 2e7;

class LayerInspector final : public Inspector {
 public:
  LayerInspector(const LayerTask& task, Distribution distribution, const std::vector<HostTensor>& inputs,
                 const Maker& maker, std::uint64_t seed)
      : task_(task),
        device_(maker.device),
        comparison_{.rule = reference::Rule::general,
                    .out = task.problem.out,
                    .is_folded = false,
                    .has_specials = distribution == Distribution::specials,
                    .widest = 0,
                    .folding_error = 0} {
    Random random(seed);
    gauge(pointers_to(inputs), random);
  }

  [[nodiscard]] Look choose(Random& random) const override {
    const std::int64_t columns = columns_seen();
    return {{{0, random.index(task_.problem.tokens), random.index(task_.problem.hidden_size - columns + 1), columns}},
            {}};
  }

  /// An output depends on every matrix of its token's experts, all but the rows of down that were not chosen.
  [[nodiscard]] double products_of_a_look() const override {
    const MoeProblem& p = task_.problem;
    return static_cast<double>(p.top_k) * static_cast<double>(p.intermediate_size) *
           static_cast<double>(2 * p.hidden_size + columns_seen());
  }

  [[nodiscard]] std::string fault_in(const Look& look, const InputsOfCall& inputs, std::uint8_t poison) const override {
    const RowPart& part = look.parts.front();
    std::vector<std::uint8_t> bytes = part.bytes;
    const Tensor there = Tensor::contiguous(bytes.data(), comparison_.out, {1, part.columns});
    const std::size_t element_bytes = bytes.size() / static_cast<std::size_t>(part.columns);
    const MoeOutputs wanted = outputs_at(inputs, part.row, part.first_column);
    for (std::int64_t column = 0; column < part.columns; ++column) {
      const auto at = static_cast<std::size_t>(column);
      const double value = formats::element(there, 0, column);
      const double bound = beyond_the_gauge * (std::isfinite(wanted.value[at]) ? wanted.bound[at] : 0.0);
      if (reference::error_ratio(comparison_.rule, comparison_.out, value, wanted.value[at], bound) > 1) {
        const std::string place = fmt::format("out[{}, {}]", part.row, part.first_column + column);
        return is_poison(&bytes[at * element_bytes], element_bytes, poison)
                   ? fmt::format("{} was not written, the definition gives {}", place, wanted.value[at])
                   : fmt::format("{} is {}, the definition gives {} ± {:.3g}", place, value, wanted.value[at], bound);
      }
    }
    return {};
  }

  [[nodiscard]] std::string fault_against(const std::vector<HostTensor>& outputs,
                                          const std::vector<HostTensor>& trusted) const override {
    return comparison_.fault(outputs.at(0).view(), trusted.at(0).view());
  }

 private:
  [[nodiscard]] std::int64_t columns_seen() const { return std::min(columns_of_a_look, task_.problem.hidden_size); }

  /// The definition of neighbouring elements of one token.
  [[nodiscard]] MoeOutputs outputs_at(const InputsOfCall& inputs, std::int64_t token, std::int64_t first_column) const {
    Region region{{token}, {}};
    for (std::int64_t column = 0; column < columns_seen(); ++column) {
      region.columns.push_back(first_column + column);
    }
    const JudgedLayer layer(task_, inputs);
    return reference::moe_layer(layer.call(), region, device_, products_of_a_look() > products_of_one_thread ? 0 : 1);
  }

  /// The widest bound of some tokens.
  void gauge(const InputsOfCall& inputs, Random& random) {
    const MoeProblem& p = task_.problem;
    for (std::int64_t i = 0; i < std::min(gauged_tokens, p.tokens); ++i) {
      const MoeOutputs found =
          outputs_at(inputs, random.index(p.tokens), random.index(p.hidden_size - columns_seen() + 1));
      for (std::size_t at = 0; at < found.value.size(); ++at) {
        const double bound = beyond_the_gauge * (found.bound[at] - reference::ulp(p.out, found.value[at]));
        comparison_.widest = std::isfinite(bound) ? std::max(comparison_.widest, bound) : comparison_.widest;
      }
    }
  }

  LayerTask task_;
  DeviceKind device_;
  OutputComparison comparison_;
};

}  // namespace

std::unique_ptr<Inspector> make_layer_inspector(const LayerTask& task, Distribution distribution,
                                                const std::vector<HostTensor>& inputs, const Maker& maker,
                                                std::uint64_t seed) {
  return std::make_unique<LayerInspector>(task, distribution, inputs, maker, seed);
}

}  // namespace thresher::arena
