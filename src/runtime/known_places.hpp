#pragma once
/// Whether the driver must be asked for the device of a call's pointers, which takes longer than all other checks.

namespace thresher::runtime {

/// For this thread; see ValidatedPointers.
inline thread_local bool places_are_known = false;

/// While one lives, the pointers of this thread's calls are known to be memory of their plans' GPU: they were checked
/// before, or the caller guarantees it.
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
