#pragma once
/// Errors of the public API: a code for programs and one sentence for people.
#include <cstdint>
#include <stdexcept>
#include <string>

namespace thresher {

enum class ErrorCode : std::uint8_t {
  invalid_argument,  ///< an argument's value, shape, type or alignment is wrong
  unsupported,       ///< valid, but not available on this device or in this build
  out_of_memory,     ///< host or device memory ran out
  io,                ///< a file could not be read, or a result could not be written
  device,            ///< the GPU driver or a GPU library reported a failure
  compile,           ///< device code did not compile, or compiled badly (spills, serialised wgmma)
  internal,          ///< a defect in Thresher itself
};

/// Thrown by planning and by every host-side check. `what()` is one sentence that names the argument, its value and
/// the limit. Nothing has been written to any output when an Error is thrown.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace thresher
