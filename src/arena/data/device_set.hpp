#pragma once
/// One input set on a device: inputs and outputs in guarded buffers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arena/data/host_tensor.hpp"
#include "arena/rig/memory.hpp"

namespace thresher::arena {

/// Bytes that outputs are filled with before a call. A correct output may hold either, but not the one it was poisoned
/// with after two calls with both.
inline constexpr std::uint8_t first_poison = 0xFF;  // a NaN in every format
inline constexpr std::uint8_t second_poison = 0x5A;

/// All sets of a run together may take this share of the memory that is available.
inline constexpr double sets_memory_share = 0.4;

/// Copies refer to the same buffers.
class DeviceSet {
 public:
  /// Uploads `inputs`; `outputs` say only format and shape. Where `weights` is given, its weights are those of this set
  /// too, in the same buffers.
  DeviceSet(Memory& memory, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
            const DeviceSet* weights = nullptr);
  /// Refers to memory of another owner. It can only be run on: it has no guarded buffers to check.
  explicit DeviceSet(std::vector<std::pair<std::string, Tensor>> tensors) : tensors_(std::move(tensors)) {}

  /// Throws Error(internal) when there is none of that name.
  [[nodiscard]] const Tensor& tensor(std::string_view name) const;
  /// Null when there is none of that name.
  [[nodiscard]] const Tensor* find(std::string_view name) const noexcept;

  [[nodiscard]] const std::vector<std::pair<std::string, Tensor>>& tensors() const noexcept { return tensors_; }

  /// The memory of the tensor: its values and, if it has them, its scales and its global scale.
  [[nodiscard]] std::vector<std::span<std::byte>> places_of(const std::string& tensor) const;

  void poison_outputs(std::uint8_t byte);
  [[nodiscard]] std::vector<std::uint8_t> download(std::string_view output) const;
  /// Reads `bytes` of an output, starting at `offset`.
  [[nodiscard]] std::vector<std::uint8_t> download(std::string_view output, std::size_t offset,
                                                   std::size_t bytes) const;
  /// Overwrites the input `tensor.name`: values, scales and global scale, all of unchanged size.
  void replace(const HostTensor& tensor);
  /// Overwrites `bytes` of the input's values, starting at `offset`, with those of the tensor.
  void replace(const HostTensor& tensor, std::size_t offset, std::size_t bytes);

  /// Sentences such as "writes past the end of c: 12 bytes, the nearest 1 byte away".
  [[nodiscard]] std::vector<std::string> guard_damage() const;
  /// Names of the inputs that no longer hold what was uploaded.
  [[nodiscard]] std::vector<std::string> changed_inputs(const std::vector<HostTensor>& inputs) const;

 private:
  struct Part {
    std::string name;  ///< "b1", "b1 scales", "b1 global scale", "c"
    bool is_output;
    std::shared_ptr<GuardedBuffer> buffer;
  };
  void* add_part(Memory& memory, const std::string& name, bool is_output, const void* host, std::size_t bytes);
  void share(const DeviceSet& other, const HostTensor& host);
  [[nodiscard]] const Part& part(std::string_view name) const;
  [[nodiscard]] bool holds(const std::string& name, const void* host, std::size_t bytes) const;

  Memory* memory_ = nullptr;
  std::vector<Part> parts_;
  std::vector<std::pair<std::string, Tensor>> tensors_;
};

/// The bytes of a tensor on a device, with the guard zones of its buffers.
[[nodiscard]] std::size_t guarded_bytes(const HostTensor& tensor);

/// One sentence about a damaged guard zone of the buffer `name`.
[[nodiscard]] std::string describe(const GuardDamage& damage, std::string_view name);

}  // namespace thresher::arena
