#pragma once
/// What a kernel's process serves: calls over bindings of a kernel to tensors.
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/user_kernels/line/wire.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {

class Served {
 public:
  virtual ~Served() = default;
  /// Begins a binding; `launch` is the rest of the question.
  virtual void bind(std::uint32_t binding, Reader& launch) = 0;
  /// `call` with addresses of this process.
  virtual void add_call(std::uint32_t binding, const thresher_own_dual_gemm& call) = 0;
  virtual void complete(std::uint32_t binding) = 0;
  virtual void unbind(std::uint32_t binding) = 0;
  /// Complete on return.
  virtual void call(std::uint32_t binding, std::uint32_t set) = 0;
  /// Questions for a GPU's process alone; `piece` is the memory through which bulk data come. Throws Error(internal)
  /// for what it does not know.
  virtual void answer(Ask ask, Reader& question, std::byte* piece, Writer& answer);
};

/// Confines this process for good, before anything from outside is loaded: it reads its own folder and the system's
/// libraries, and writes nothing but to the GPU's device files where it has one. A baseline is confined as the kernel
/// is that it meets, since system calls cost more then. Answers with what holds it.
void confine(Reader& question, Writer& answer);

/// Each in its file; what to load is the rest of the question.
[[nodiscard]] std::unique_ptr<Served> serve_library(Reader& question);
[[nodiscard]] std::unique_ptr<Served> serve_strategy(Reader& question);
[[nodiscard]] std::unique_ptr<Served> serve_cubin(Reader& question);

}  // namespace thresher::arena::user_kernels
