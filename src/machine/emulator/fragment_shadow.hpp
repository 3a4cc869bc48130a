#pragma once
/// The emulator's record of a thread's A fragment beyond its words, which kernels write freely. It compares them with
/// their values at the multiply and at the last settle.
#include "machine/types.hpp"

namespace thresher::machine {

class FragmentShadow {
 public:
  FragmentShadow() = default;
  FragmentShadow(const FragmentShadow&) {}
  FragmentShadow& operator=(const FragmentShadow&);
  ~FragmentShadow();

  void on_settle(const u32* words);
  /// Called by a multiply: the words must be settled, fenced and not partly changed.
  void on_multiply(const u32* words, Site site) const;
  /// Called by the wait that retires the groups up to `group`; true when this fragment is free again.
  bool on_wait(u32 group) const;

 private:
  struct Settled {
    u32 words[4] = {};
    u32 fences = 0;  ///< wgmma fences of the thread at that time
    bool ever = false;
  };
  struct Taken {
    const u32* words = nullptr;  ///< the fragment's words
    u32 values[4] = {};
    u32 group = 0;  ///< the wgmma group that reads them, 0: none
    Site site{};
  };
  void check_untouched() const;

  Settled settled_;
  mutable Taken taken_;
};

}  // namespace thresher::machine
