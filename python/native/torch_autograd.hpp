#pragma once
/// PyTorch's dispatcher below autograd, whether a call needs autograd, and the counting of writes. The stable ABI has
/// none of these functions: they are looked up in the loaded libraries. Where they are missing, Python does their work.
#include <cstddef>
#include <cstdint>

#include "torch_tensors.hpp"

namespace thresher::torch_binding {

/// The keys of autograd, as torch._C counts them in this process; 0 until they are known.
void set_autograd_keys(std::uint64_t keys);

/// Whether a call needs no derivative and no Python: no gradient is recorded, no forward-mode level is open, and this
/// thread has no dispatch mode. A dispatch mode's exceptions could not pass through C++.
[[nodiscard]] bool may_go_below_autograd();

/// Whether `count_write` can report writes to autograd.
[[nodiscard]] bool counts_writes();

/// Makes autograd reject values of the tensor that an earlier operation saved. A tensor of inference mode has no count.
void count_write(TensorView written);

/// During its lifetime, this thread's calls skip the keys of autograd.
class BelowAutograd {
 public:
  BelowAutograd();
  BelowAutograd(const BelowAutograd&) = delete;
  BelowAutograd& operator=(const BelowAutograd&) = delete;
  ~BelowAutograd();

 private:
  static constexpr std::size_t guard_bytes = 64;  // PyTorch's has 16
  alignas(std::max_align_t) std::byte guard_[guard_bytes]{};
};

}  // namespace thresher::torch_binding
