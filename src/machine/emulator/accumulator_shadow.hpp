#pragma once
/// The emulator's record of a thread's accumulators beyond their values.
#include "machine/types.hpp"

namespace thresher::machine {

class AccumulatorShadow {
 public:
  AccumulatorShadow();
  AccumulatorShadow(const AccumulatorShadow& other);
  AccumulatorShadow& operator=(const AccumulatorShadow& other);
  ~AccumulatorShadow();

  void on_get(int element, Site site) const {
    state.fences_at_touch = *fences_;
    if (!is_defined(element) || in_flight() || (state.group != 0 && state.retired_unsettled)) {
      report_get(element, site);
    }
  }
  void on_set(int element, Site site) {
    state.fences_at_touch = *fences_;
    state.set_unsettled = true;
    state.defined[element / 64] |= 1ULL << (element % 64);
    if (in_flight()) {
      report_set(element, site);
    }
  }
  void on_settle(Site site);

  /// The part that a multiply with the accumulators reads and changes.
  struct State {
    u64 defined[2] = {};            ///< bit per element
    u32 group = 0;                  ///< the warpgroup's wgmma group that last used them, 0: none
    u32 fences_at_touch = 0;        ///< wgmma fences of the thread when it last read or wrote an element
    bool set_unsettled = false;     ///< set() came after the last settle
    bool retired_unsettled = true;  ///< no settle yet since a wait retired `group`
  };
  mutable State state;

 private:
  bool is_defined(int element) const { return (state.defined[element / 64] >> (element % 64) & 1U) != 0; }
  bool in_flight() const { return state.group > *waited_; }
  void report_get(int element, Site site) const;
  void report_set(int element, Site site) const;

  // These point into the thread that owns the accumulators.
  const u32* fences_;  // wgmma fences that the thread has executed
  const u32* waited_;  // groups that it has waited for
};

}  // namespace thresher::machine
