#include "machine/emulator/engine/hand_over.hpp"

#include <algorithm>

namespace thresher::emulator {
namespace {

constexpr std::uint32_t warps_of_group = 4;

std::string in_words(const HandOver& reallocation, const Words& words) {
  return std::string(reallocation.increase ? "registers::increase" : "registers::decrease") +
         words.at(reallocation.site) + " to " + std::to_string(reallocation.count);
}

bool same(const std::vector<HandOver>& one, const std::vector<HandOver>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const HandOver& a, const HandOver& b) {
    return a.count == b.count && a.increase == b.increase;
  });
}

std::vector<const Thread*> threads_of(const Cluster& cluster, const Block& block, std::uint32_t warp) {
  std::vector<const Thread*> threads;
  const std::uint32_t end = std::min((warp + 1) * 32, block.threads);
  for (std::uint32_t t = warp * 32; t < end; ++t) {
    threads.push_back(cluster.threads[block.first_thread + t].get());
  }
  return threads;
}

/// The first reallocation of one of two warps that the other did not make.
std::string first_difference(const Cluster& cluster, const Block& block, std::uint32_t one, std::uint32_t other,
                             const Words& words) {
  const auto& ones = block.warps[one].hand_overs;
  const auto& others = block.warps[other].hand_overs;
  if (ones.size() < others.size()) {
    return first_difference(cluster, block, other, one, words);
  }
  std::size_t at = 0;
  while (at < others.size() && ones[at].count == others[at].count && ones[at].increase == others[at].increase) {
    ++at;
  }
  return in_words(ones[at], words) + " was made by " + words.of(threads_of(cluster, block, one)) + " and not by " +
         words.of(threads_of(cluster, block, other)) + " of its warpgroup";
}

const std::vector<HandOver>& hand_overs_of(const Warpgroup& group) {
  return group.block->warps[std::size_t{group.index} * warps_of_group].hand_overs;
}

std::string standing(const Warpgroup& group, const Words& words) {
  const std::vector<HandOver>& made = hand_overs_of(group);
  return made.empty() ? "as many registers as it was launched with"
                      : std::to_string(made.back().count) + " registers (" + in_words(made.back(), words) + ")";
}

}  // namespace

std::vector<std::string> unequal_hand_overs(const Cluster& cluster, const Block& block, const Words& words) {
  std::vector<std::string> found;
  for (std::uint32_t first = 0; first < block.warps.size(); first += warps_of_group) {
    const auto end = std::min<std::uint32_t>(first + warps_of_group, static_cast<std::uint32_t>(block.warps.size()));
    for (std::uint32_t warp = first + 1; warp < end; ++warp) {
      if (!same(block.warps[first].hand_overs, block.warps[warp].hand_overs)) {
        found.push_back(first_difference(cluster, block, first, warp, words));
        break;
      }
    }
  }
  return found;
}

void check_hand_over_before_product(Warpgroup& group, std::uint32_t site, const Words& words, Findings& findings) {
  group.first_product = site;
  for (const Warpgroup& other : group.block->groups) {
    if (&other == &group || other.first_product != site || same(hand_overs_of(group), hand_overs_of(other))) {
      continue;
    }
    if (findings.first_time(FindingKind::register_budget, site, 0)) {
      findings.report(FindingKind::register_budget,
                      "wgmma::multiply" + words.at(site) + " by " + words.of(group) + " with " + standing(group, words),
                      {words.of(other) + " runs it with " + standing(other, words),
                       "code is compiled for one number of registers: all that run it reallocate alike"});
    }
    return;
  }
}

}  // namespace thresher::emulator
