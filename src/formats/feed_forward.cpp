#include "formats/feed_forward.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

[[noreturn]] void reject(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

/// How a family of models calls its matrices.
struct Family {
  const char* block;
  const char* gate;
  const char* up;
  const char* down;
};
constexpr std::array families{Family{"mlp", "gate_proj", "up_proj", "down_proj"},
                              Family{"block_sparse_moe", "w1", "w3", "w2"}};

/// Layers of their own that add to what experts do.
constexpr std::array beside_experts{"shared_experts", "shared_expert"};

/// A layer's matrix, however its values are stored.
bool has_matrix(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.has(name) || checkpoint.has(name + ".weight") || checkpoint.has(name + ".weight_packed");
}

FeedForwardMatrices matrices_at(const Family& family, const std::string& place) {
  return {fmt::format("{}.{}", place, family.gate), fmt::format("{}.{}", place, family.up),
          fmt::format("{}.{}", place, family.down)};
}

/// "model.layers.3." and whatever else names of this layer begin with.
std::set<std::string> places_of(const Checkpoint& checkpoint, std::int64_t layer) {
  const std::string wanted = fmt::format("layers.{}.", layer);
  std::set<std::string> places;
  for (const std::string& name : checkpoint.names_from("")) {
    const std::size_t at = name.find(wanted);
    if (at != std::string::npos && (at == 0 || name[at - 1] == '.')) {
      places.insert(name.substr(0, at + wanted.size()));
    }
  }
  return places;
}

std::string beside(const Checkpoint& checkpoint, const std::string& block) {
  for (const char* const other : beside_experts) {
    if (!checkpoint.names_from(fmt::format("{}.{}.", block, other)).empty()) {
      return other;
    }
  }
  return "";
}

/// Experts are counted from 0 without a gap.
std::vector<FeedForwardMatrices> experts_of(const Checkpoint& checkpoint, const Family& family,
                                            const std::string& block) {
  std::vector<FeedForwardMatrices> experts;
  const std::string all = fmt::format("{}.experts.", block);
  for (FeedForwardMatrices next = matrices_at(family, all + "0"); has_matrix(checkpoint, next.gate);
       next = matrices_at(family, fmt::format("{}{}", all, experts.size()))) {
    experts.push_back(std::move(next));
  }
  std::set<std::string> numbers;
  for (const std::string& name : checkpoint.names_from(all)) {
    numbers.insert(name.substr(all.size(), name.find('.', all.size()) - all.size()));
  }
  for (std::size_t expert = 0; expert < experts.size(); ++expert) {
    numbers.erase(std::to_string(expert));
  }
  if (!experts.empty() && !numbers.empty()) {
    reject(fmt::format("{} has {} and no {}, expected experts that are counted from 0 without a gap",
                       checkpoint.title(), quoted_name(all + *numbers.begin()),
                       quoted_name(fmt::format("{}{}.{}", all, experts.size(), family.gate))));
  }
  return experts;
}

/// The layers of names that begin with `place`, dense ones and of experts.
std::vector<FeedForwardNames> layers_at(const Checkpoint& checkpoint, const std::string& place) {
  std::vector<FeedForwardNames> found;
  for (const Family& family : families) {
    const std::string block = place + family.block;
    if (std::vector<FeedForwardMatrices> experts = experts_of(checkpoint, family, block); !experts.empty()) {
      found.push_back(
          {.block = block, .has_experts = true, .matrices = std::move(experts), .left_out = beside(checkpoint, block)});
    }
    if (FeedForwardMatrices dense = matrices_at(family, block); has_matrix(checkpoint, dense.gate)) {
      found.push_back({.block = block, .matrices = {std::move(dense)}});
    }
  }
  const std::string experts = place + "mlp.experts.";
  if (checkpoint.has(experts + "gate_up_proj_blocks")) {
    found.push_back({.block = place + "mlp",
                     .has_experts = true,
                     .has_blocks = true,
                     .gate_up = experts + "gate_up_proj",
                     .down = experts + "down_proj",
                     .left_out = beside(checkpoint, place + "mlp")});
  }
  return found;
}

std::string described(const FeedForwardNames& layer) {
  return fmt::format("{} at {}", layer.has_experts ? "experts" : "a dense layer", quoted_name(layer.block));
}

}  // namespace

FeedForwardNames feed_forward_names(const Checkpoint& checkpoint, std::int64_t layer) {
  const std::set<std::string> places = places_of(checkpoint, layer);
  if (places.empty()) {
    reject(fmt::format("{} has no layer {}: no name has layers.{}. in it; it has {}", checkpoint.title(), layer, layer,
                       checkpoint.listing("model.layers.")));
  }
  std::vector<FeedForwardNames> found;
  for (const std::string& place : places) {
    std::vector<FeedForwardNames> there = layers_at(checkpoint, place);
    std::move(there.begin(), there.end(), std::back_inserter(found));
  }
  if (found.empty()) {
    const std::string& place = *places.begin();
    reject(
        fmt::format("layer {} of {} has no feed-forward matrices named {}mlp.gate_proj, {}mlp.experts.0.gate_proj, "
                    "{}block_sparse_moe.experts.0.w1 or {}mlp.experts.gate_up_proj_blocks; it has {}",
                    layer, checkpoint.title(), printable(place), printable(place), printable(place), printable(place),
                    checkpoint.listing(place)));
  }
  if (found.size() > 1) {
    reject(fmt::format("layer {} of {} is there twice, as {} and as {}, expected one", layer, checkpoint.title(),
                       described(found[0]), described(found[1])));
  }
  return found.front();
}

}  // namespace thresher::formats
