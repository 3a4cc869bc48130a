#include "machine/emulator/engine/ordering.hpp"

namespace thresher::emulator {

void Ordering::start_cluster() {
  lanes_.clear();
  acquired_.clear();
  for (const auto& thread : cluster_.threads) {
    new_lane({LaneOwner::What::thread, thread.get()});
    thread->knowledge.seen.raise(thread->lane(), 1);
  }
  earlier_grid_ = new_lane({LaneOwner::What::earlier_grid, nullptr});
}

Lane Ordering::new_lane(LaneOwner owner) {
  lanes_.push_back(owner);
  return static_cast<Lane>(lanes_.size() - 1);
}

void Ordering::learn(Thread& thread, const Knowledge& news) {
  thread.knowledge.join(news);
  ++thread.news;
}

void Ordering::learn(Thread& thread, Lane lane, std::uint32_t clock) {
  if (thread.knowledge.seen.raise(lane, clock)) {
    ++thread.news;
  }
}

void Ordering::release(Thread& thread, Knowledge& into) {
  into.join(thread.knowledge);
  tick(thread);
}

void Ordering::release(Thread& thread, std::uint64_t address) {
  auto& known = releases_[address];
  for (GlobalRelease& earlier : known) {
    if (earlier.cluster == cluster_.serial) {
      earlier.seen.join(thread.knowledge.seen);
      tick(thread);
      return;
    }
  }
  known.push_back({cluster_.serial, thread.knowledge.seen});
  tick(thread);
}

void Ordering::acquire(Thread& thread, std::uint64_t address) {
  const auto found = releases_.find(address);
  if (found == releases_.end()) {
    return;
  }
  for (const GlobalRelease& release : found->second) {
    if (release.cluster == cluster_.serial) {
      Knowledge knowledge;
      knowledge.seen = release.seen;
      learn(thread, knowledge);
      continue;
    }
    const auto [entry, is_new] = acquired_.try_emplace(&release, Lane{0});
    if (is_new) {
      entry->second = new_lane({LaneOwner::What::release, nullptr});
    }
    learn(thread, entry->second, 1);
  }
}

Access Ordering::access(const Thread& thread, AccessKind kind, std::uint32_t site_number) const {
  return {thread.clock(), site_number, cluster_.serial, thread.lane(), kind};
}

void Ordering::fence_async(const Thread& thread, VectorClock& fenced) const {
  fenced.raise(thread.lane(), thread.clock());
  for (std::size_t lane = cluster_.threads.size(); lane < lanes_.size(); ++lane) {
    if (lanes_[lane].what == LaneOwner::What::copies) {
      fenced.raise(static_cast<Lane>(lane), thread.knowledge.seen.at(static_cast<Lane>(lane)));
    }
  }
}

bool Ordering::ordered_across_clusters(const Access& earlier, const VectorClock& seen) const {
  for (const auto& [release, lane] : acquired_) {
    if (release->cluster == earlier.cluster && release->seen.at(earlier.lane) >= earlier.clock && seen.at(lane) != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace thresher::emulator
