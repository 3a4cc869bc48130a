#include "machine/emulator/engine/deadlock.hpp"

#include <map>
#include <tuple>
#include <utility>

#include "machine/emulator/engine/hand_over.hpp"

namespace thresher::emulator {
namespace {

/// Whether the lanes that a thread waits for have ended or wait in another warp exchange, so that they will never come.
/// Lanes that wait for a barrier have another cause.
bool left_by_the_rest(const Thread& thread) {
  const auto& meeting = *static_cast<const WarpMeeting*>(thread.wait.object);
  for (const Thread* other : thread.warp->lanes) {
    if (other == nullptr || (meeting.arrived >> (other->in_block % 32) & 1U) != 0) {
      continue;
    }
    if (other->state == Thread::State::done || other->wait.what == Wait::What::warp ||
        other->wait.what == Wait::What::block_barrier || other->wait.what == Wait::What::cluster_barrier) {
      return true;
    }
  }
  return false;
}

/// All have arrived and no copy is in flight, but the announced bytes differ from those delivered.
bool lacks_only_bytes(const Wait& wait) {
  const auto& barrier = *static_cast<const Mbarrier*>(wait.object);
  return barrier.pending == 0 && barrier.bytes != 0 && barrier.phase % 2 == wait.number;
}

}  // namespace

void report_deadlock(const Cluster& cluster, const Words& words, Findings& findings) {
  using Key = std::tuple<Wait::What, const void*, std::uint64_t, std::uint32_t>;
  std::map<Key, std::size_t> group_of;
  std::vector<std::vector<const Thread*>> groups;  // in the order of their first threads
  std::size_t waiting = 0;
  bool warp_split = false;
  bool bytes_wrong = false;
  bool registers = false;
  for (const auto& thread : cluster.threads) {
    if (thread->state == Thread::State::done) {
      continue;
    }
    ++waiting;
    const Wait& wait = thread->wait;
    warp_split = warp_split || (wait.what == Wait::What::warp && left_by_the_rest(*thread));
    bytes_wrong = bytes_wrong || (wait.what == Wait::What::barrier && lacks_only_bytes(wait));
    registers = registers || wait.what == Wait::What::registers;
    const auto [place, is_new] = group_of.try_emplace({wait.what, wait.object, wait.number, wait.site}, groups.size());
    if (is_new) {
      groups.emplace_back();
    }
    groups[place->second].push_back(thread.get());
  }
  std::vector<std::string> details;
  for (const auto& members : groups) {
    details.push_back(words.of(members) + " " + words.of(members.front()->wait));
  }
  const std::size_t ended = cluster.threads.size() - waiting;
  if (ended != 0) {
    details.push_back(std::to_string(ended) + " threads have ended");
  }
  for (const auto& block : cluster.blocks) {
    for (const auto& group : block->groups) {
      warp_split = describe_partial_product(cluster, group, words, details) || warp_split;
    }
    if (registers) {
      for (std::string& sentence : unequal_hand_overs(cluster, *block, words)) {
        details.push_back(std::move(sentence));
      }
    }
  }
  const FindingKind kind = registers     ? FindingKind::register_budget
                           : bytes_wrong ? FindingKind::byte_count
                           : warp_split  ? FindingKind::divergent
                                         : FindingKind::deadlock;
  findings.fatal(kind,
                 std::to_string(waiting) + " of " + std::to_string(cluster.threads.size()) +
                     " threads wait and nothing is under way",
                 std::move(details));
}

}  // namespace thresher::emulator
