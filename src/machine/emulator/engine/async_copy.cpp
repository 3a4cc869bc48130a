// cp.async: each thread's own small copies, in numbered groups.
#include <cstring>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator {
namespace {

AsyncCopies& copies_of(Engine& engine, Thread& thread) {
  if (!thread.copies) {
    thread.copies = std::make_unique<AsyncCopies>();
    thread.copies->lane = engine.ordering.new_lane({LaneOwner::What::copies, &thread});
  }
  return *thread.copies;
}

class SmallCopy final : public AsyncWork {
 public:
  SmallCopy(Engine& engine, Thread& thread, std::uint8_t* to, const void* from, std::uint32_t bytes)
      : engine_(engine), thread_(thread), to_(to), from_(from), bytes_(bytes) {}
  void complete() override {
    if (from_ != nullptr) {
      std::memcpy(to_, from_, bytes_);
    } else {
      std::memset(to_, 0, bytes_);
    }
    ++thread_.copies->groups.done;
    if (thread_.wait.what == Wait::What::copies) {
      engine_.scheduler.wake(thread_);
    }
  }

 private:
  Engine& engine_;
  Thread& thread_;
  std::uint8_t* to_;
  const void* from_;  // null: zeros
  std::uint32_t bytes_;
};

/// Is queued behind the copies that it covers.
class Arrival final : public AsyncWork {
 public:
  Arrival(Engine& engine, Thread& thread, Mbarrier& barrier, std::uint32_t clock, std::uint32_t site)
      : engine_(engine), thread_(thread), barrier_(barrier), clock_(clock), site_(site) {}
  void complete() override {
    barrier_.arriving.seen.raise(thread_.copies->lane, clock_);
    engine_.barriers.arrive(barrier_, 1, thread_, "cp.async of ", site_);
  }

 private:
  Engine& engine_;
  Thread& thread_;
  Mbarrier& barrier_;
  std::uint32_t clock_;
  std::uint32_t site_;
};

}  // namespace

namespace calls {

void copy_async(std::uint32_t shared_address, std::uint64_t global_address, std::uint32_t bytes, bool valid,
                Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  const char* call = bytes == 16 ? "async_copy::copy16" : "async_copy::copy4";
  std::uint8_t* to = engine.memory.shared_bytes(shared_address, bytes, bytes, call, site);
  AsyncCopies& copies = copies_of(engine, thread);
  const std::uint32_t clock = copies.clock;
  if (valid) {
    GlobalBuffer* buffer = engine.memory.global_buffer(global_address, bytes, bytes, call, site);
    engine.memory.check_global(
        *buffer, global_address, bytes,
        {{clock, site, engine.cluster.serial, copies.lane, AccessKind::read}, &thread.knowledge.seen, nullptr});
  }
  engine.memory.check_shared(
      *thread.block, shared_address & 0xFFFFFFU, bytes,
      {{clock, site, engine.cluster.serial, copies.lane, AccessKind::copy_write}, &thread.knowledge.seen, nullptr});
  ++copies.groups.issued;
  engine.scheduler.submit(
      std::make_unique<SmallCopy>(engine, thread, to, valid ? reinterpret_cast<const void*>(global_address) : nullptr,
                                  bytes),
      &copies.queue);
}

void copy_async_commit(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  static_cast<void>(engine.sites.number(where));
  AsyncCopies& copies = copies_of(engine, thread);
  copies.groups.ends.push_back(copies.groups.issued);
  copies.clock_of_group.push_back(copies.clock++);
}

void copy_async_wait(std::uint32_t pending, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  AsyncCopies& copies = copies_of(engine, thread);
  const std::uint32_t closed = copies.groups.closed();
  const std::uint32_t target = closed > pending ? closed - pending : 0;
  while (copies.groups.done < copies.groups.needed(target)) {
    engine.scheduler.block(thread, {Wait::What::copies, site, target, nullptr});
  }
  if (target != 0) {
    Ordering::learn(thread, copies.lane, copies.clock_of_group[target - 1]);
  }
}

void copy_async_arrive(std::uint32_t barrier_address, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  Mbarrier& barrier = engine.barriers.at(barrier_address, "async_copy::arrive_when_done", site);
  engine.barriers.check_published(thread, barrier, false, "async_copy::arrive_when_done", site);
  AsyncCopies& copies = copies_of(engine, thread);
  // Later copies are not covered: they have a later clock.
  engine.scheduler.submit(std::make_unique<Arrival>(engine, thread, barrier, copies.clock++, site), &copies.queue);
}

}  // namespace calls
}  // namespace thresher::emulator
