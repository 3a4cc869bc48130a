#pragma once
/// Whether the driver has to be asked where a pointer of a call lies, which takes it longer than all other checks.

namespace thresher::runtime {

/// Of this thread; see ValidatedPointers.
inline thread_local bool places_are_known = false;

/// While one lives, what this thread's calls are given is known to be memory of their plans' GPU: it lies in memory
/// that has been looked at, or the caller vouches for it.
class ValidatedPointers {
 public:
  ValidatedPointers() : before_(places_are_known) { places_are_known = true; }
  ValidatedPointers(const ValidatedPointers&) = delete;
  ValidatedPointers& operator=(const ValidatedPointers&) = delete;
  ~ValidatedPointers() { places_are_known = before_; }

 private:
  bool before_;
};

}  // namespace thresher::runtime
