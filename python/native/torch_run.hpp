#pragma once
/// Runs a cached call through its function of the C interface.
#include <array>
#include <cstddef>

#include "thresher/thresher.h"
#include "torch_arguments.hpp"
#include "torch_operators.h"

namespace thresher::torch_binding {

/// The tensors of an append, whose addresses come with each call.
class AppendTemplate {
 public:
  /// A copy; null for a call that is no append.
  explicit AppendTemplate(const thresher_append_tensors* given);

  [[nodiscard]] thresher_status run(const thresher_torch_call& how, const Arguments& arguments, void* stream) const;

 private:
  static constexpr std::size_t max_views = 10;

  thresher_append_tensors tensors_{};
  std::array<thresher_tensor, max_views> views_{};
};

/// The outputs and the workspace of a call.
struct Memory {
  void* out;
  void* second;  ///< the LSE, or the scales of a quantization
  void* workspace;
};

/// The status from the C interface; nothing was written unless it is THRESHER_OK.
[[nodiscard]] thresher_status run(const thresher_torch_call& how, const AppendTemplate& append,
                                  const Arguments& arguments, void* stream, const Memory& memory);

}  // namespace thresher::torch_binding
