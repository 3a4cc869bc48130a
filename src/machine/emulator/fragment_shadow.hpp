#pragma once
/// What the emulator knows about a thread's A fragment beyond its words, which kernels write freely: it compares them
/// with what they were when a multiply took them and when they were last settled.
#include "machine/types.hpp"

namespace thresher::machine {

class FragmentShadow {
 public:
  FragmentShadow() = default;
  FragmentShadow(const FragmentShadow&) {}
  FragmentShadow& operator=(const FragmentShadow&);
  ~FragmentShadow();

  void on_settle(const u32* words);
  /// A multiply calls it: the words must be settled, fenced and not in the middle of another change.
  void on_multiply(const u32* words, Site site) const;
  /// The wait that retires the groups up to `group` calls it; true when this fragment is free again.
  bool on_wait(u32 group) const;

 private:
  struct Settled {
    u32 words[4] = {};
    u32 fences = 0;  ///< wgmma fences of the thread by then
    bool ever = false;
  };
  struct Taken {
    const u32* words = nullptr;  ///< where the fragment lies
    u32 values[4] = {};
    u32 group = 0;  ///< the wgmma group that reads them, 0: none
    Site site{};
  };
  void check_untouched() const;

  Settled settled_;
  mutable Taken taken_;
};

}  // namespace thresher::machine
