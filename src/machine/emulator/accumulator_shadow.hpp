#pragma once
/// What the emulator knows about a thread's accumulators beyond their values.
#include "machine/types.hpp"

namespace thresher::machine {

class AccumulatorShadow {
 public:
  AccumulatorShadow();
  AccumulatorShadow(const AccumulatorShadow& other);
  AccumulatorShadow& operator=(const AccumulatorShadow& other);
  ~AccumulatorShadow();

  void on_get(int element, Site site) const;
  void on_set(int element, Site site);
  void on_settle(Site site);

  /// What the multiply that uses the accumulators reads and changes.
  struct State {
    u64 defined[2] = {};            ///< bit per element
    u32 group = 0;                  ///< the warpgroup's wgmma group that last used them, 0: none
    u32 fences_at_touch = 0;        ///< wgmma fences of the thread when it last read or wrote an element
    bool set_unsettled = false;     ///< set() came after the last settle
    bool retired_unsettled = true;  ///< no settle yet since a wait retired `group`
  };
  mutable State state;

 private:
  bool in_flight() const;
};

}  // namespace thresher::machine
