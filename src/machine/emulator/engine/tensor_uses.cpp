#include "machine/emulator/engine/tensor_uses.hpp"

#include <algorithm>

namespace thresher::emulator {
namespace {

bool knows(const VectorClock& clock, const TensorUse& use) {
  for (std::uint32_t i = 0; i < use.agents; ++i) {
    if (clock.at(static_cast<Lane>(use.lane + i)) < use.clock) {
      return false;
    }
  }
  return true;
}

const char* words_of(TensorUse::What what) {
  switch (what) {
    case TensorUse::What::nothing: break;
    case TensorUse::What::allocation: return "allocated";
    case TensorUse::What::load: return "loaded";
    case TensorUse::What::product: return "written by a product";
    case TensorUse::What::scales_of_a_product: return "read as scales by a product";
    case TensorUse::What::copy: return "written by a copy of scales";
  }
  return "not used";
}

bool is_own(const TensorUse& earlier, const TensorObserver& observer) {
  return earlier.lane == observer.self.lane && earlier.agents == observer.self.agents;
}

/// The order that PTX guarantees for instructions of one thread: products on the same accumulators in one shape, and a
/// copy before the products that read it. Also, a warp's own allocation precedes its own loads.
bool is_in_order(const TensorUse& earlier, TensorTouch touch, const TensorObserver& observer, bool copies_in_order) {
  if (!is_own(earlier, observer)) {
    return false;
  }
  switch (touch) {
    case TensorTouch::sums:
    case TensorTouch::added_sums:
      return earlier.what == TensorUse::What::product && earlier.shape == observer.self.shape;
    case TensorTouch::scales: return earlier.what == TensorUse::What::copy;
    case TensorTouch::load:
    case TensorTouch::give_back: return earlier.what == TensorUse::What::allocation;
    case TensorTouch::copy: return copies_in_order;
  }
  return false;
}

class Check {
 public:
  Check(Engine& engine, const Block& block, TensorTouch touch, const TensorObserver& observer)
      : engine_(engine), block_(block), touch_(touch), observer_(observer) {}

  void against(const TensorUse& earlier, std::uint32_t column) const {
    if (earlier.what != TensorUse::What::nothing &&
        !is_in_order(earlier, touch_, observer_, engine_.options.copies_in_order) &&
        !knows(*observer_.tensor_seen, earlier)) {
      report(earlier, column);
    }
  }

  /// Some of the lanes that are loaded together may be uninitialized, if their threads do not use them.
  void holds_something(const TensorCell& cell, std::uint8_t slabs, std::uint32_t quarter, std::uint32_t column) const {
    if ((cell.slabs & slabs) == 0 &&
        engine_.findings.first_time(FindingKind::uninitialised, observer_.self.site, column)) {
      engine_.findings.report(
          FindingKind::uninitialised,
          call() + " reads column " + std::to_string(column) + " of quarter " + std::to_string(quarter) +
              " of the tensor memory of " + engine_.words.of(block_) + ", to " +
              (cell.slabs == 0 ? "" : "those lanes of ") + "which nothing was written",
          {std::string("before: ") + words_of(cell.write.what) + engine_.words.at(cell.write.site)});
    }
  }

 private:
  [[nodiscard]] std::string call() const {
    return observer_.call + engine_.words.at(observer_.self.site) + " by " + engine_.words.of(*observer_.self.thread);
  }

  void report(const TensorUse& earlier, std::uint32_t column) const {
    std::string why;
    const FindingKind kind = judge(earlier, why);
    if (!engine_.findings.first_time(kind, observer_.self.site,
                                     std::uint64_t{earlier.site} << 8U | static_cast<std::uint64_t>(earlier.what))) {
      return;
    }
    engine_.findings.report(
        kind,
        call() + " touches column " + std::to_string(column) + " of the tensor memory of " + engine_.words.of(block_),
        {std::string("before: ") + words_of(earlier.what) + " by " + engine_.words.of(*earlier.thread) +
             engine_.words.at(earlier.site),
         why});
  }

  [[nodiscard]] FindingKind judge(const TensorUse& earlier, std::string& why) const {
    if (knows(*observer_.seen, earlier)) {
      why = "tensor_memory::after_barrier must follow the barrier";
      return FindingKind::missing_tensor_fence;
    }
    const bool by_threads = earlier.what == TensorUse::What::load || earlier.what == TensorUse::What::allocation;
    const bool has_met = observer_.seen->at(earlier.thread->lane()) >= earlier.thread_clock;
    if (by_threads && has_met && earlier.thread->tensor_arrived >= earlier.clock) {
      why = "tensor_memory::before_barrier must come before the barrier";
      return FindingKind::missing_tensor_fence;
    }
    if (by_threads && has_met) {
      why = "tensor_memory::wait_loads must come before the barrier";
    } else if (is_own(earlier, observer_)) {
      why = "the order of these two is not promised: wait for a commit between them";
    } else {
      why = "nothing that came before says that it is complete";
    }
    return FindingKind::tensor_in_flight;
  }

  Engine& engine_;
  const Block& block_;
  TensorTouch touch_;
  const TensorObserver& observer_;
};

void record(TensorCell& cell, std::uint8_t slabs, TensorTouch touch, const TensorUse& use) {
  if (touch == TensorTouch::load || touch == TensorTouch::scales) {
    const auto same = std::find_if(cell.reads.begin(), cell.reads.end(),
                                   [&](const TensorUse& read) { return read.lane == use.lane; });
    if (same != cell.reads.end()) {
      *same = use;
    } else {
      cell.reads.push_back(use);
    }
    return;
  }
  cell.reads.clear();
  if (touch == TensorTouch::give_back) {
    cell = {};
  } else {
    cell.write = use;
    cell.slabs |= slabs;
  }
}

}  // namespace

bool touch_tensor_memory(Engine& engine, Block& block, const TensorPlace& place, TensorTouch touch,
                         const TensorObserver& observer) {
  const Check check(engine, block, touch, observer);
  const auto outside = [&](std::uint32_t column) {
    engine.findings.fatal(FindingKind::out_of_bounds, observer.call + engine.words.at(observer.self.site) + " by " +
                                                          engine.words.of(*observer.self.thread) + " reaches column " +
                                                          std::to_string(column) + " of the tensor memory of " +
                                                          engine.words.of(block) + ", which is not allocated");
    return false;
  };
  if (!block.tensor_memory) {
    return outside(place.first);
  }
  for (std::uint32_t column = place.first; column < place.first + place.columns; ++column) {
    for (std::uint32_t quarter = 0; quarter < tensor_quarters; ++quarter) {
      if ((place.quarters >> quarter & 1U) == 0) {
        continue;
      }
      if (column >= tensor_columns) {
        return outside(column);
      }
      TensorCell& cell = block.tensor_memory->cells[quarter * tensor_columns + column];
      if (cell.write.what == TensorUse::What::nothing) {
        return outside(column);
      }
      check.against(cell.write, column);
      if (touch != TensorTouch::load && touch != TensorTouch::scales) {
        for (const TensorUse& read : cell.reads) {
          check.against(read, column);
        }
      }
      if (touch == TensorTouch::load || touch == TensorTouch::scales || touch == TensorTouch::added_sums) {
        check.holds_something(cell, place.slabs, quarter, column);
      }
      record(cell, place.slabs, touch, observer.self);
    }
  }
  return true;
}

void check_tensor_group(Engine& engine, const Thread& thread, bool pair, const char* call, std::uint32_t site) {
  const std::uint32_t blocks = pair ? 2 : 1;
  if (pair && engine.cluster.blocks.size() % 2 != 0) {
    engine.findings.fatal(FindingKind::bad_argument, std::string(call) + engine.words.at(site) + " by " +
                                                         engine.words.of(thread) +
                                                         " needs a cluster of an even number of blocks");
  }
  std::uint32_t& group = engine.cluster.tensor_group;
  if (group != 0 && group != blocks) {
    engine.findings.fatal(FindingKind::bad_argument, std::string(call) + engine.words.at(site) + " by " +
                                                         engine.words.of(thread) + " is of " +
                                                         (pair ? "a pair" : "one block") +
                                                         ", what came before was not; all of a kernel's are alike");
  }
  group = blocks;
}

TensorBlocks tensor_blocks(Engine& engine, const Thread& thread, bool pair) {
  if (!pair) {
    return {{thread.block, nullptr}, 1};
  }
  const std::uint32_t even = thread.block->rank & ~1U;
  return {{engine.cluster.blocks[even].get(), engine.cluster.blocks[even + 1].get()}, 2};
}

Lane tensor_lane(Engine& engine, Warp& warp) {
  if (warp.tensor_lane == 0) {
    for (const Thread* thread : warp.lanes) {
      if (thread != nullptr) {
        const Lane lane = engine.ordering.new_lane({LaneOwner::What::tensor_uses, thread});
        warp.tensor_lane = warp.tensor_lane == 0 ? lane : warp.tensor_lane;
      }
    }
  }
  return warp.tensor_lane;
}

}  // namespace thresher::emulator
