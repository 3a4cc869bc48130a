#pragma once
/// A kernel's calls, with their tensors.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arena/data/device_set.hpp"
#include "arena/operation/problem.hpp"
#include "arena/pitches/call_structure.hpp"
#include "arena/rig/memory.hpp"
#include "arena/user_kernels/line/wire.hpp"

namespace thresher::arena::user_kernels {

/// The input sets of a kernel or of a strategy, as its process gets them.
class Calls {
 public:
  using Memories = std::vector<std::span<std::byte>>;

  /// For a user kernel; the sets share the workspace.
  Calls(const Problem& problem, Memory& memory, const std::vector<DeviceSet>& sets, std::size_t workspace_bytes,
        Receiver receiver);
  /// For a strategy of Thresher's own, which gets the problem and the sets' tensors.
  Calls(const Problem& problem, const std::vector<DeviceSet>& sets);

  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  [[nodiscard]] const std::vector<std::byte>& operator[](std::size_t set) const { return calls_[set]; }
  [[nodiscard]] const CallLayout& layout() const { return layout_; }
  /// The rest of the message that begins a binding.
  [[nodiscard]] const Writer& about() const { return about_; }
  /// The memory of a set's activations, which no other call reads.
  [[nodiscard]] const Memories& activations(std::size_t set) const { return activations_[set]; }
  /// The memory that a call on the set writes.
  [[nodiscard]] const Memories& outputs(std::size_t set) const { return outputs_[set]; }
  [[nodiscard]] std::vector<std::string> guard_damage() const;

 private:
  void add_memories(const DeviceSet& set, const std::vector<Argument>& arguments);

  CallLayout layout_;
  Writer about_;
  std::vector<std::vector<std::byte>> calls_;
  std::vector<Memories> activations_;
  std::vector<Memories> outputs_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

}  // namespace thresher::arena::user_kernels
