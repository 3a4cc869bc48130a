#pragma once
/// The service of a kernel's process: calls over bindings of a kernel to tensors.
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/user_kernels/line/wire.hpp"

namespace thresher::arena::user_kernels {

class Served {
 public:
  virtual ~Served() = default;
  /// Begins a binding; `about` is the rest of the question.
  virtual void bind(std::uint32_t binding, Reader& about) = 0;
  /// `call` with addresses of this process.
  virtual void add_call(std::uint32_t binding, std::vector<std::byte> call) = 0;
  virtual void complete(std::uint32_t binding) = 0;
  virtual void unbind(std::uint32_t binding) = 0;
  /// Complete on return.
  virtual void call(std::uint32_t binding, std::uint32_t set) = 0;
  /// Questions only for a GPU's process; `piece` is the memory for bulk data. Throws Error(internal) for an unknown
  /// question.
  virtual void answer(Ask ask, Reader& question, std::byte* piece, Writer& answer);
};

/// Confines this process for good, before any user code is loaded. It reads its own folder and the system's libraries,
/// and writes only to the GPU's device files, if it has a GPU. A baseline gets the confinement of its opponent, since
/// system calls then cost more. Answers with the protections.
void confine(Reader& question, Writer& answer);

/// Each is defined in a file of its own; the rest of the question tells what to load.
[[nodiscard]] std::unique_ptr<Served> serve_library(Reader& question);
[[nodiscard]] std::unique_ptr<Served> serve_strategy(Reader& question);
[[nodiscard]] std::unique_ptr<Served> serve_cubin(Reader& question);

}  // namespace thresher::arena::user_kernels
