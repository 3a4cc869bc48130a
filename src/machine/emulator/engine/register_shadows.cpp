// Checks of a thread's accumulators and fragments around multiplies.
#include <algorithm>

#include "machine/emulator/accumulator_shadow.hpp"
#include "machine/emulator/engine/engine.hpp"
#include "machine/emulator/engine/product.hpp"
#include "machine/emulator/fragment_shadow.hpp"

namespace thresher::machine {
namespace {

using emulator::Engine;
using emulator::FindingKind;
using emulator::Thread;

}  // namespace

AccumulatorShadow::AccumulatorShadow()
    : fences_(&Engine::self().product_fences), waited_(&Engine::self().products_waited) {
  state.fences_at_touch = *fences_;
}

AccumulatorShadow::AccumulatorShadow(const AccumulatorShadow& other)
    : state(other.state), fences_(other.fences_), waited_(other.waited_) {
  if (other.in_flight()) {
    other.on_get(0, {});
  }
  state.group = 0;
  state.fences_at_touch = *fences_;
}

AccumulatorShadow& AccumulatorShadow::operator=(const AccumulatorShadow& other) {
  if (this != &other) {
    on_set(0, {});
    const u32 group = state.group;
    state = AccumulatorShadow(other).state;
    state.group = group;
    state.set_unsettled = true;
  }
  return *this;
}

AccumulatorShadow::~AccumulatorShadow() {
  if (!in_flight()) {
    return;
  }
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  emulator::forget_accumulators(*thread.group, this);
  if (!engine.findings.stopping() && engine.findings.first_time(FindingKind::accumulator_in_flight, 0, 0)) {
    engine.findings.report(FindingKind::accumulator_in_flight, "accumulators of " + engine.words.of(thread) +
                                                                   " went out of scope while wgmma group " +
                                                                   std::to_string(state.group) + " writes them");
  }
}

void AccumulatorShadow::report_get(int element, Site where) const {
  Engine& engine = Engine::current();
  const Thread& thread = Engine::self();
  const u32 site = engine.sites.number(where);
  const std::string who = "accumulator element " + std::to_string(element) + " read" + engine.words.at(site) + " by " +
                          engine.words.of(thread);
  if (in_flight()) {
    if (engine.findings.first_time(FindingKind::accumulator_in_flight, site, 1)) {
      engine.findings.report(FindingKind::accumulator_in_flight,
                             who + " while wgmma group " + std::to_string(state.group) + " may still write it",
                             {"wgmma::wait has retired group " + std::to_string(thread.products_waited) + " of " +
                              std::to_string(thread.products_closed) + " closed ones"});
    }
  } else if (!is_defined(element)) {
    if (engine.findings.first_time(FindingKind::uninitialised, site, 1)) {
      engine.findings.report(FindingKind::uninitialised, who + " before anything was computed into it");
    }
  } else if (engine.findings.first_time(FindingKind::accumulator_in_flight, site, 2)) {
    engine.findings.report(FindingKind::accumulator_in_flight, who + " without wgmma::settle after the wait",
                           {"the compiler may move the read above the wait"});
  }
}

void AccumulatorShadow::report_set(int element, Site where) const {
  Engine& engine = Engine::current();
  const u32 site = engine.sites.number(where);
  if (engine.findings.first_time(FindingKind::accumulator_in_flight, site, 3)) {
    engine.findings.report(FindingKind::accumulator_in_flight,
                           "accumulator element " + std::to_string(element) + " set" + engine.words.at(site) + " by " +
                               engine.words.of(Engine::self()) + " while wgmma group " + std::to_string(state.group) +
                               " may still use it");
  }
}

void AccumulatorShadow::on_settle(Site) {
  if (!in_flight()) {
    state.retired_unsettled = false;
  }
  state.set_unsettled = false;
}

FragmentShadow& FragmentShadow::operator=(const FragmentShadow&) {
  check_untouched();
  return *this;
}

FragmentShadow::~FragmentShadow() {
  if (taken_.group == 0) {
    return;
  }
  if (!Engine::current().findings.stopping()) {
    check_untouched();
  }
  std::erase(Engine::self().fragments, this);
}

bool FragmentShadow::on_wait(u32 group) const {
  check_untouched();
  if (taken_.group > group) {
    return false;
  }
  taken_.group = 0;
  return true;
}

/// While a multiply may still read them, the words must not change.
void FragmentShadow::check_untouched() const {
  if (taken_.group == 0) {
    return;
  }
  Thread& thread = Engine::self();
  if (taken_.group <= thread.products_waited || std::equal(taken_.values, taken_.values + 4, taken_.words)) {
    return;
  }
  Engine& engine = Engine::current();
  const u32 site = engine.sites.number(taken_.site);
  if (engine.findings.first_time(FindingKind::accumulator_in_flight, site, 4)) {
    engine.findings.report(FindingKind::accumulator_in_flight,
                           "a fragment of " + engine.words.of(thread) + " was overwritten while wgmma group " +
                               std::to_string(taken_.group) + " may still read it; the multiply is" +
                               engine.words.at(site),
                           {"wgmma::wait has retired group " + std::to_string(thread.products_waited) + " of " +
                            std::to_string(thread.products_closed) + " closed ones"});
  }
  std::copy(taken_.words, taken_.words + 4, taken_.values);  // report it once
}

void FragmentShadow::on_settle(const u32* words) {
  check_untouched();
  std::copy(words, words + 4, settled_.words);
  settled_.fences = Engine::self().product_fences;
  settled_.ever = true;
}

void FragmentShadow::on_multiply(const u32* words, Site where) const {
  check_untouched();
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const u32 site = engine.sites.number(where);
  const bool settled = settled_.ever && std::equal(words, words + 4, settled_.words);
  if ((!settled || settled_.fences >= thread.product_fences) &&
      engine.findings.first_time(FindingKind::missing_wgmma_fence, site, 1)) {
    engine.findings.report(FindingKind::missing_wgmma_fence,
                           "wgmma::multiply" + engine.words.at(site) + " by " + engine.words.of(thread) +
                               " takes a fragment that was written since the last wgmma::fence",
                           {settled ? "wgmma::fence must come after wgmma::settle"
                                    : "writing it needs wgmma::settle and then wgmma::fence before the multiply"});
  }
  if (taken_.group == 0) {
    thread.fragments.push_back(this);
  }
  taken_ = {words, {words[0], words[1], words[2], words[3]}, thread.products_closed + 1, where};
}

}  // namespace thresher::machine
