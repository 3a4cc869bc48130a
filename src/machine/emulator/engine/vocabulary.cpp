// The small calls: thread indices, names, expectations, earlier grids.
#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/engine.hpp"

namespace thresher::emulator::calls {

std::uint32_t thread_index() { return Engine::self().in_block; }
std::uint32_t thread_count() { return Engine::current().shape.block; }

Index block_index() {
  const Extent& at = Engine::self().block->at;
  return {at.x, at.y, at.z};
}

Index block_count() {
  const Extent& grid = Engine::current().shape.grid;
  return {grid.x, grid.y, grid.z};
}

std::uint32_t shared_base() { return Engine::self().block->rank << 24; }
std::uint32_t shared_bytes() { return Engine::current().shape.dynamic_shared_bytes; }
std::uint32_t cluster_rank() { return Engine::self().block->rank; }
std::uint32_t cluster_size() { return static_cast<std::uint32_t>(Engine::current().cluster.blocks.size()); }
std::uint32_t lane() { return Engine::self().in_block % 32; }

/// The emulator has no time; profiles only need a growing number.
std::uint64_t clock_cycles() { return Engine::current().statistics.switches; }

void earlier_grids_wait(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  static_cast<void>(engine.sites.number(where));
  engine.scheduler.pause(thread);
  Ordering::learn(thread, engine.ordering.earlier_grid(), 1);
}

void dependents_release(Site where) {
  Engine& engine = Engine::current();
  const Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  if (engine.shape.releases_after_wait && thread.knowledge.seen.at(engine.ordering.earlier_grid()) == 0 &&
      engine.findings.first_time(FindingKind::earlier_grid, site, 0)) {
    engine.findings.report(FindingKind::earlier_grid,
                           "launch::release_dependents" + engine.words.at(site) + " by " + engine.words.of(thread) +
                               ": launch::wait_for_earlier_grids did not come before, and the next grid relies on it");
  }
}

void set_role(const char* name, std::uint32_t index) {
  Thread& thread = Engine::self();
  thread.role = name;
  thread.role_index = index;
}

void name_shared(std::uint32_t address, std::uint32_t bytes, const char* name, std::uint32_t index) {
  Engine& engine = Engine::current();
  Block& block = engine.memory.block_of(address);
  for (const NamedBytes& known : block.names) {
    if (known.offset == (address & 0xFFFFFFU) && known.bytes == bytes) {
      return;
    }
  }
  block.names.push_back({address & 0xFFFFFFU, bytes, name, index});
}

void expect(bool condition, const char* sentence, Site where) {
  if (condition) {
    return;
  }
  Engine& engine = Engine::current();
  const std::uint32_t site = engine.sites.number(where);
  if (engine.findings.first_time(FindingKind::failed_expectation, site, 0)) {
    engine.findings.report(
        FindingKind::failed_expectation,
        std::string(sentence) + ": not so for " + engine.words.of(Engine::self()) + engine.words.at(site));
  }
}

}  // namespace thresher::emulator::calls
