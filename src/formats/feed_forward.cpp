#include "formats/feed_forward.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "core/printable.hpp"
#include "formats/reject.hpp"
#include "formats/weight_parts.hpp"

namespace thresher::formats {
namespace {

/// The names that a family of models gives its matrices. An empty gate: there is none.
struct Family {
  const char* block;
  const char* gate;
  const char* up;
  const char* down;
};
constexpr std::array families{Family{"mlp", "gate_proj", "up_proj", "down_proj"},
                              Family{"feed_forward", "gate_proj", "up_proj", "down_proj"},
                              Family{"block_sparse_moe", "w1", "w3", "w2"},
                              Family{"feed_forward", "w1", "w3", "w2"},
                              Family{"ffn", "w1", "w3", "w2"},
                              Family{"mlp", "", "up_proj", "down_proj"},
                              Family{"mixer", "", "up_proj", "down_proj"}};

/// Names of routers. They are not needed: `topk_ids` and `topk_weights` hold the router's result.
constexpr std::array of_routers{"gate", "router", "gate_bias", "expert_bias", "e_score_correction_bias", "moe_statics"};

/// A layer's matrix, in any storage of its values.
bool has_matrix(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.has(name) || checkpoint.has(name + ".weight") || checkpoint.has(name + "_packed") ||
         checkpoint.has(name + ".weight_packed");
}

FeedForwardMatrices matrices_at(const Family& family, const std::string& place) {
  const bool is_gated = *family.gate != '\0';
  return {is_gated ? fmt::format("{}.{}", place, family.gate) : "", fmt::format("{}.{}", place, family.up),
          fmt::format("{}.{}", place, family.down)};
}

/// Whether `place` has a layer of the family: its gate, or its up and no gate.
bool has_layer(const Checkpoint& checkpoint, const Family& family, const std::string& place) {
  const auto has = [&](const char* name) { return has_matrix(checkpoint, fmt::format("{}.{}", place, name)); };
  return *family.gate != '\0' ? has(family.gate)
                              : has(family.up) && has(family.down) && !has("gate_proj") && !has("gate_up_proj");
}

/// The prefixes before "layers.3." in names of this layer: "model." and others.
std::set<std::string> prefixes_of(const Checkpoint& checkpoint, std::int64_t layer) {
  const std::string wanted = fmt::format("layers.{}.", layer);
  std::set<std::string> prefixes;
  for (const std::string& name : checkpoint.names_from("")) {
    const std::size_t at = name.find(wanted);
    if (at != std::string::npos && (at == 0 || name[at - 1] == '.')) {
      prefixes.insert(name.substr(0, at));
    }
  }
  return prefixes;
}

/// "shared_experts" of "model.layers.3.mlp.shared_experts.up_proj.weight": the name that follows `all`.
std::set<std::string> children_of(const Checkpoint& checkpoint, const std::string& all) {
  std::set<std::string> children;
  for (const std::string& name : checkpoint.names_from(all)) {
    children.insert(name.substr(all.size(), name.find('.', all.size()) - all.size()));
  }
  return children;
}

/// The parts beside experts and their router.
std::string beside_experts(const Checkpoint& checkpoint, const std::string& block) {
  std::string others;
  for (const std::string& child : children_of(checkpoint, block + ".")) {
    if (child != "experts" && std::find(of_routers.begin(), of_routers.end(), child) == of_routers.end()) {
      others += (others.empty() ? "" : ", ") + printable(child);
    }
  }
  return others;
}

/// Whether the rest of a name is a part of a matrix, which is read or rejected with the matrix.
bool is_part(std::string_view rest) {
  return rest.empty() || rest.front() == '.' ||
         (rest.front() == '_' && (rest == "_packed" || names_part(rest.substr(1))));
}

/// Any other tensor inside would change the result of the matrices.
void refuse_beside(const Checkpoint& checkpoint, const std::string& place, const std::vector<std::string>& matrices) {
  for (const std::string& name : checkpoint.names_from(place + ".")) {
    const bool is_known = std::any_of(matrices.begin(), matrices.end(), [&](const std::string& matrix) {
      return name.starts_with(matrix) && is_part(std::string_view(name).substr(matrix.size()));
    });
    if (!is_known) {
      reject(fmt::format("{} has {} beside {}: what it does to the layer is not known here", checkpoint.title(),
                         quoted_name(name), quoted_name(matrices.front())));
    }
  }
}

/// Experts are numbered from 0 without a gap.
std::vector<FeedForwardMatrices> experts_of(const Checkpoint& checkpoint, const Family& family,
                                            const std::string& block) {
  std::vector<FeedForwardMatrices> experts;
  const std::string all = fmt::format("{}.experts.", block);
  for (std::string next = all + "0"; has_layer(checkpoint, family, next);
       next = fmt::format("{}{}", all, experts.size())) {
    experts.push_back(matrices_at(family, next));
  }
  if (experts.empty()) {
    return experts;
  }
  std::set<std::string> others = children_of(checkpoint, all);
  for (std::size_t expert = 0; expert < experts.size(); ++expert) {
    others.erase(std::to_string(expert));
  }
  if (!others.empty()) {
    reject(fmt::format(
        "{} has {} and no {}, expected experts that are counted from 0 without a gap", checkpoint.title(),
        quoted_name(all + *others.begin()),
        quoted_name(fmt::format("{}{}.{}", all, experts.size(), *family.gate != '\0' ? family.gate : family.up))));
  }
  return experts;
}

bool has_bias(const Checkpoint& checkpoint, const std::string& matrix) {
  return checkpoint.has(matrix + "_bias") || checkpoint.has(matrix + ".bias");
}

/// All experts in one tensor, as stacks or blocks.
FeedForwardNames of_all_experts(const Checkpoint& checkpoint, const std::string& prefix, const std::string& block,
                                FeedForwardKind kind) {
  const std::string gate_up = block + ".experts.gate_up_proj";
  const std::string down = block + ".experts.down_proj";
  return {.prefix = prefix,
          .block = block,
          .has_experts = true,
          .kind = kind,
          .gate_up = gate_up,
          .down = down,
          .gate_up_bias = gate_up + "_bias",
          .down_bias = down + "_bias",
          .is_gpt_oss = kind == FeedForwardKind::blocks || has_bias(checkpoint, gate_up) || has_bias(checkpoint, down),
          .left_out = beside_experts(checkpoint, block)};
}

/// MXFP4 blocks under the names that the gpt-oss package reads. No name has "layers." in it.
std::optional<FeedForwardNames> of_gpt_oss_itself(const Checkpoint& checkpoint, std::int64_t layer) {
  const std::string block = fmt::format("block.{}.mlp", layer);
  if (!checkpoint.has(block + ".mlp1_weight.blocks")) {
    return std::nullopt;
  }
  return FeedForwardNames{.prefix = "",
                          .block = block,
                          .has_experts = true,
                          .kind = FeedForwardKind::blocks,
                          .gate_up = block + ".mlp1_weight",
                          .down = block + ".mlp2_weight",
                          .gate_up_bias = block + ".mlp1_bias",
                          .down_bias = block + ".mlp2_bias",
                          .is_gpt_oss = true};
}

/// The layers with names that begin with `prefix` and "layers.N.", dense ones and MoE experts.
std::vector<FeedForwardNames> layers_at(const Checkpoint& checkpoint, const std::string& prefix, std::int64_t layer) {
  const std::string place = fmt::format("{}layers.{}.", prefix, layer);
  std::vector<FeedForwardNames> found;
  for (const Family& family : families) {
    const std::string block = place + family.block;
    if (std::vector<FeedForwardMatrices> experts = experts_of(checkpoint, family, block); !experts.empty()) {
      found.push_back({.prefix = prefix,
                       .block = block,
                       .has_experts = true,
                       .matrices = std::move(experts),
                       .left_out = beside_experts(checkpoint, block)});
    }
    if (has_layer(checkpoint, family, block)) {
      found.push_back({.prefix = prefix, .block = block, .matrices = {matrices_at(family, block)}});
    }
  }
  const std::string mlp = place + "mlp";
  if (const std::string both = mlp + ".gate_up_proj"; has_matrix(checkpoint, both)) {
    found.push_back(
        {.prefix = prefix, .block = mlp, .kind = FeedForwardKind::fused, .gate_up = both, .down = mlp + ".down_proj"});
  }
  if (has_matrix(checkpoint, mlp + ".experts.gate_up_proj")) {
    found.push_back(of_all_experts(checkpoint, prefix, mlp, FeedForwardKind::stacks));
  }
  if (checkpoint.has(mlp + ".experts.gate_up_proj_blocks")) {
    found.push_back(of_all_experts(checkpoint, prefix, mlp, FeedForwardKind::blocks));
  }
  return found;
}

void refuse_others(const Checkpoint& checkpoint, const FeedForwardNames& layer) {
  for (std::size_t i = 0; i < layer.matrices.size(); ++i) {
    const FeedForwardMatrices& one = layer.matrices[i];
    refuse_beside(checkpoint, layer.has_experts ? fmt::format("{}.experts.{}", layer.block, i) : layer.block,
                  layer.is_gated() ? std::vector{one.gate, one.up, one.down} : std::vector{one.up, one.down});
  }
  if (layer.kind != FeedForwardKind::matrices) {
    refuse_beside(checkpoint, layer.has_experts ? layer.block + ".experts" : layer.block, {layer.gate_up, layer.down});
  }
}

std::string described(const FeedForwardNames& layer) {
  return fmt::format("{} at {}", layer.has_experts ? "experts" : "a dense layer", quoted_name(layer.block));
}

/// "--prefix model.", or "--prefix ''" for no prefix.
std::string option_for(const FeedForwardNames& layer) {
  return fmt::format("--prefix {}", layer.prefix.empty() ? "''" : printable(layer.prefix));
}

[[noreturn]] void refuse_several(const Checkpoint& checkpoint, std::int64_t layer,
                                 const std::vector<FeedForwardNames>& found) {
  const bool may_choose = found[0].prefix != found[1].prefix;
  reject(fmt::format("layer {} of {} is there {}, as {} and as {}, expected one{}", layer, checkpoint.title(),
                     found.size() == 2 ? "twice" : fmt::format("{} times", found.size()), described(found[0]),
                     described(found[1]),
                     may_choose ? fmt::format(": say {} or {}", option_for(found[0]), option_for(found[1])) : ""));
}

[[noreturn]] void refuse_names(const Checkpoint& checkpoint, std::int64_t layer, const std::string& prefix) {
  const std::string place = fmt::format("{}layers.{}.", prefix, layer);
  reject(
      fmt::format("layer {} of {} has no feed-forward matrices named {}mlp.gate_proj, mlp.gate_up_proj, "
                  "mlp.experts.0.gate_proj, mlp.experts.gate_up_proj, mlp.experts.gate_up_proj_blocks, "
                  "block_sparse_moe.experts.0.w1, feed_forward.w1 or ffn.experts.0.w1; it has {}",
                  layer, checkpoint.title(), printable(place), checkpoint.listing(place)));
}

/// The prefix that `wanted` names.
std::set<std::string> chosen(const Checkpoint& checkpoint, std::int64_t layer, std::string wanted,
                             const std::set<std::string>& prefixes) {
  if (!wanted.empty() && !wanted.ends_with('.')) {
    wanted += '.';
  }
  if (!prefixes.contains(wanted)) {
    reject(fmt::format("--prefix {}: {} has no {}; it has {}", printable(wanted), checkpoint.title(),
                       quoted_name(fmt::format("{}layers.{}.", wanted, layer)),
                       quoted_name(fmt::format("{}layers.{}.", *prefixes.begin(), layer))));
  }
  return {wanted};
}

}  // namespace

FeedForwardNames feed_forward_names(const Checkpoint& checkpoint, std::int64_t layer,
                                    const std::optional<std::string>& prefix) {
  std::set<std::string> prefixes = prefixes_of(checkpoint, layer);
  if (prefixes.empty() && !prefix) {
    if (std::optional<FeedForwardNames> own = of_gpt_oss_itself(checkpoint, layer)) {
      refuse_beside(
          checkpoint, own->block,
          {own->gate_up, own->down, own->gate_up_bias, own->down_bias, own->block + ".norm", own->block + ".gate"});
      return *std::move(own);
    }
  }
  if (prefixes.empty()) {
    reject(fmt::format("{} has no layer {}: no name has layers.{}. in it; it has {}", checkpoint.title(), layer, layer,
                       checkpoint.listing("model.layers.")));
  }
  if (prefix) {
    prefixes = chosen(checkpoint, layer, *prefix, prefixes);
  }
  std::vector<FeedForwardNames> found;
  for (const std::string& one : prefixes) {
    std::vector<FeedForwardNames> there = layers_at(checkpoint, one, layer);
    std::move(there.begin(), there.end(), std::back_inserter(found));
  }
  if (found.empty()) {
    refuse_names(checkpoint, layer, *prefixes.begin());
  }
  if (found.size() > 1) {
    refuse_several(checkpoint, layer, found);
  }
  refuse_others(checkpoint, found.front());
  return found.front();
}

}  // namespace thresher::formats
