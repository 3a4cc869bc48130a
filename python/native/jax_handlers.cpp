// The handlers of XLA's foreign functions behind thresher.jax, compiled with the headers of jaxlib.
#include "jax_handlers.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace {

namespace ffi = xla::ffi;

constexpr std::size_t workspace_alignment = 256;

std::atomic<thresher_jax_run> run_in_python{nullptr};
thread_local ffi::ScratchAllocator* scratch_of_call = nullptr;

/// The functions of CUDA's driver that a call needs beside its stream.
struct Driver {
  int (*copy_to_host)(void*, unsigned long long, std::size_t, void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*set_bytes)(unsigned long long, unsigned char, std::size_t, void*) = nullptr;

  [[nodiscard]] bool is_there() const {
    return copy_to_host != nullptr && synchronize != nullptr && set_bytes != nullptr;
  }
};

const Driver& driver() {
  static const Driver found = [] {
    Driver functions;
    if (void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL); library != nullptr) {
      const auto get = [&](auto& to, const char* name) {
        to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
      };
      get(functions.copy_to_host, "cuMemcpyDtoHAsync_v2");
      get(functions.synchronize, "cuStreamSynchronize");
      get(functions.set_bytes, "cuMemsetD8Async");
    }
    return functions;
  }();
  return found;
}

ffi::Error failed(const std::string& sentence) { return {ffi::ErrorCode::kInvalidArgument, sentence}; }

/// One call's memory, on the CPU or in a GPU's stream order.
class Memory {
 public:
  Memory(bool is_gpu, void* stream) : is_gpu_(is_gpu), stream_(stream) {}

  [[nodiscard]] bool read(const void* from, std::size_t bytes, void* to) const {
    if (!is_gpu_) {
      std::memcpy(to, from, bytes);
      return true;
    }
    return driver().copy_to_host(to, reinterpret_cast<std::uintptr_t>(from), bytes, stream_) == 0 &&
           driver().synchronize(stream_) == 0;
  }

  [[nodiscard]] bool zero(void* data, std::size_t bytes) const {
    if (bytes == 0) {
      return true;
    }
    if (!is_gpu_) {
      std::memset(data, 0, bytes);
      return true;
    }
    return driver().set_bytes(reinterpret_cast<std::uintptr_t>(data), 0, bytes, stream_) == 0;
  }

 private:
  bool is_gpu_;
  void* stream_;
};

thresher_jax_buffer buffer_of(const ffi::AnyBuffer& buffer) {
  const auto extents = buffer.dimensions();
  return {.data = buffer.untyped_data(),
          .extents = extents.begin(),
          .header = nullptr,
          .header_bytes = 0,
          .type = static_cast<std::int32_t>(buffer.element_type()),
          .rank = static_cast<std::int32_t>(extents.size())};
}

/// The header of packed weights, which begin with its length; empty where they are too short for one.
std::optional<std::string> header_of(const ffi::AnyBuffer& block, const Memory& memory) {
  constexpr std::size_t length_bytes = 8;
  const std::size_t bytes = block.size_bytes();
  std::uint64_t length = 0;
  if (bytes < length_bytes) {
    return "";
  }
  if (!memory.read(block.untyped_data(), length_bytes, &length)) {
    return std::nullopt;
  }
  std::string header(length > bytes - length_bytes ? bytes : length_bytes + length, '\0');
  return memory.read(block.untyped_data(), header.size(), header.data()) ? std::optional(std::move(header))
                                                                         : std::nullopt;
}

/// `packed` has a 1 for each operand with packed weights, else a 0; with `zeros` results are zeroed first.
ffi::Error make_call(ffi::RemainingArgs operands, ffi::RemainingRets results, std::string_view text,
                     std::string_view packed, bool zeros, std::int32_t device, void* stream) {
  const thresher_jax_run run = run_in_python.load();
  if (run == nullptr || packed.size() != operands.size()) {
    return failed("a program of thresher.jax is run, but thresher.jax of its version was not imported");
  }
  const bool is_gpu = device >= 0;
  if (is_gpu && !driver().is_there()) {
    return failed("the driver of the GPU cannot be loaded: install libcuda.so.1");
  }
  const Memory memory(is_gpu, stream);
  std::vector<thresher_jax_buffer> given(operands.size());
  std::vector<thresher_jax_buffer> made(results.size());
  std::vector<std::string> headers(operands.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto operand = operands.get<ffi::AnyBuffer>(i);
    given[i] = buffer_of(*operand);
    if (packed[i] == '1') {
      auto header = header_of(*operand, memory);
      if (!header) {
        return failed("the header of packed weights cannot be read from the GPU");
      }
      headers[i] = std::move(*header);
      given[i].header = headers[i].data();
      given[i].header_bytes = static_cast<std::int64_t>(headers[i].size());
    }
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    auto result = results.get<ffi::AnyBuffer>(i);
    made[i] = buffer_of(**result);
    if (zeros && !memory.zero((*result)->untyped_data(), (*result)->size_bytes())) {
      return failed("a result cannot be zeroed on the GPU");
    }
  }
  const thresher_jax_call call{.text = text.data(),
                               .text_bytes = static_cast<std::int64_t>(text.size()),
                               .operands = given.data(),
                               .results = made.data(),
                               .operand_count = static_cast<std::int32_t>(given.size()),
                               .result_count = static_cast<std::int32_t>(made.size()),
                               .device = device,
                               .reserved = 0,
                               .stream = stream};
  const char* sentence = run(&call);
  return sentence == nullptr ? ffi::Error::Success() : failed(sentence);
}

ffi::Error on_cpu(ffi::RemainingArgs operands, ffi::RemainingRets results, std::string_view text,
                  std::string_view packed, bool zeros) {
  return make_call(operands, results, text, packed, zeros, -1, nullptr);
}

ffi::Error on_gpu(void* stream, ffi::ScratchAllocator scratch, std::int32_t device, ffi::RemainingArgs operands,
                  ffi::RemainingRets results, std::string_view text, std::string_view packed, bool zeros) {
  scratch_of_call = &scratch;
  ffi::Error error = make_call(operands, results, text, packed, zeros, device, stream);
  scratch_of_call = nullptr;
  return error;
}

}  // namespace

#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(thresher_jax_cpu, on_cpu,
                              ffi::Ffi::Bind()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<std::string_view>("call")
                                  .Attr<std::string_view>("packed")
                                  .Attr<bool>("zeros"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(thresher_jax_cuda, on_gpu,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<std::string_view>("call")
                                  .Attr<std::string_view>("packed")
                                  .Attr<bool>("zeros"));
#pragma GCC visibility pop

void thresher_jax_set_run(thresher_jax_run run) { run_in_python.store(run); }

void* thresher_jax_scratch(int64_t bytes) {
  constexpr std::size_t max_alignment = 16;  // XLA rejects larger ones
  if (scratch_of_call == nullptr || bytes < 0) {
    return nullptr;
  }
  std::size_t space = static_cast<std::size_t>(bytes) + workspace_alignment - max_alignment;
  void* memory = scratch_of_call->Allocate(space, max_alignment).value_or(nullptr);
  return memory == nullptr ? nullptr : std::align(workspace_alignment, static_cast<std::size_t>(bytes), memory, space);
}
