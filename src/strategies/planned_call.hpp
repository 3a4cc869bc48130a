#pragma once
/// What a strategy would do for a problem on a device, as a value: every launch with its program, its extents and how
/// its parameter is made from tensors; the workspace; the work that the predictor reads; what the machine code must
/// hold. The GPU backend, the emulator, the audit, the predictor, the profiler and the list of built-in programs read
/// it, and nothing else decides what is launched.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "machine/tensor_map.hpp"
#include "strategies/device_program.hpp"
#include "strategies/expectations.hpp"
#include "strategies/work_model.hpp"
#include "thresher/knobs.hpp"
#include "thresher/tensor.hpp"

namespace thresher::strategies {

/// What addresses and strides that the copy engine is given are multiples of (machine/tensor_map.hpp).
inline constexpr std::int64_t tma_alignment_bytes = 16;

/// Of what is known to fit, as extents of a call do.
[[nodiscard]] constexpr std::uint32_t narrow(std::int64_t value) noexcept { return static_cast<std::uint32_t>(value); }

struct Extent3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  bool operator==(const Extent3&) const = default;
};

/// The tensors of one call in the order of the operation (strategies/<operation>/tensors.hpp), its workspace, and what
/// was packed of the weights once.
struct CallTensors {
  std::span<const Tensor> tensors{};
  void* workspace = nullptr;
  void* packed = nullptr;  ///< of PlannedCall::packed_bytes(), aligned to 256 bytes
};

/// A kernel's one parameter for one call, and how many blocks that call takes. Made anew in every `run`, so it lives on
/// the stack.
class LaunchArguments {
 public:
  static constexpr std::size_t max_bytes = 1024;
  static constexpr std::size_t max_maps = 6;

  /// A tensor map inside the parameter: whoever launches encodes it there.
  struct Map {
    std::size_t offset = 0;
    machine::TensorMapDescription description;
  };

  Extent3 grid{};

  /// Copies a parameter struct, whose tensor maps are still to be encoded.
  template <class Params>
  void set(const Params& params) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= max_bytes);
    std::memcpy(bytes_.data(), &params, sizeof params);
    size_ = sizeof params;
  }
  /// Changes one member of the parameter, `offset` bytes into it. Throws std::logic_error beyond its end.
  template <class Member>
  void put(std::size_t offset, const Member& member) {
    static_assert(std::is_trivially_copyable_v<Member>);
    require_within(size_, offset, sizeof member);
    std::memcpy(bytes_.data() + offset, &member, sizeof member);
  }
  /// The parameter, which was set as a `Params`. Throws std::logic_error where it has another size.
  template <class Params>
  [[nodiscard]] Params get() const {
    static_assert(std::is_trivially_copyable_v<Params>);
    if (size_ != sizeof(Params)) {
      throw std::logic_error("a kernel's parameter is read as what it is not");
    }
    Params params{};
    std::memcpy(&params, bytes_.data(), sizeof params);
    return params;
  }
  /// Names the map that lies `offset` bytes into the parameter. Of a tensor without elements nothing is copied: its
  /// map stays zero. The parameter may still be set. Throws std::logic_error beyond `max_bytes` and beyond
  /// `max_maps`.
  void add_map(std::size_t offset, const machine::TensorMapDescription& description) {
    const auto* const extents = description.extent;
    if (std::find(extents, extents + description.rank, 0) != extents + description.rank) {
      return;
    }
    require_within(max_bytes, offset, sizeof(machine::TensorMap));
    if (map_count_ == max_maps) {
      throw std::logic_error("a launch has more tensor maps than it can name");
    }
    Map& map = maps_[map_count_++];
    map.offset = offset;
    map.description = description;
  }

  [[nodiscard]] std::byte* data() noexcept { return bytes_.data(); }
  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<const Map> maps() const noexcept { return {maps_.data(), map_count_}; }

 private:
  static void require_within(std::size_t size, std::size_t offset, std::size_t bytes) {
    if (offset > size || bytes > size - offset) {
      throw std::logic_error("a place lies beyond a kernel's parameter");
    }
  }

  alignas(64) std::array<std::byte, max_bytes> bytes_;
  std::size_t size_ = 0;
  std::array<Map, max_maps> maps_;
  std::size_t map_count_ = 0;
};

/// Fills in the arguments. False when these tensors are for the launch's alternative (an output that the copy engine
/// cannot address). Allocates nothing, and throws nothing but std::logic_error of a mistake in the strategy: the
/// operation validated the tensors.
using Bind = std::function<bool(const CallTensors&, LaunchArguments&)>;

/// Memory that a launch reads or writes: tensor `index` of the call, or piece `index` of the workspace or of what was
/// packed.
struct Access {
  enum class Memory : std::uint8_t { tensor, scales, global_scale, workspace, packed };
  enum class Use : std::uint8_t {
    reads,                ///< what is the same in every call of a plan: weights, and what was made of them
    depends_on_previous,  ///< what a launch ahead of it writes, of this call or before: a dependent launch waits first
    writes,               ///< and what a launch ahead may still use: a dependent launch waits first
  };
  Memory memory = Memory::tensor;
  std::size_t index = 0;
  Use use = Use::reads;
};

struct KernelLaunch {
  std::string title{};       ///< what it does, for messages and profiles: "quantize the tokens", "multiply"
  DeviceProgram program{};   ///< may hold other kernels too
  std::string expression{};  ///< the kernel's name expression, one of program.kernels
  Extent3 block{};           ///< threads
  Extent3 cluster{};         ///< blocks
  std::uint32_t shared_bytes = 0;
  std::uint32_t registers = 0;  ///< of a thread when it starts; 0 where none are handed over (launch_registers.hpp)
  /// May start before the launch ahead of it on the stream has ended; the kernel waits itself.
  bool dependent = false;
  /// Its blocks take tile after tile: the launcher caps grid.x at the clusters that are resident at once.
  bool persistent = false;
  std::vector<Access> accesses{};
  Bind bind{};
  /// Adds the tensor maps of weights, which are the same in every call of a plan, so that they are described and
  /// encoded once; null where there are none.
  std::function<void(const CallTensors&, LaunchArguments&)> bind_weights{};
  /// Launched when `bind` refuses the tensors; null where it never does.
  std::shared_ptr<const KernelLaunch> alternative{};
  Expectations expected{};
};

/// D = A·Bᵀ in the vendor's library: fp32 [m, n] from two operands of one format.
struct LibraryProduct {
  std::string title{};
  Format input = Format::fp16;
  std::int64_t m = 0;  ///< the most rows; a call may have fewer
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t d_row_stride = 0;
  /// Addresses for one call.
  struct Addresses {
    const void* a = nullptr;
    std::int64_t a_row_stride = 0;
    const void* b = nullptr;
    std::int64_t b_row_stride = 0;  ///< the same in every call: of weights, or of a copy of them
    void* d = nullptr;
    std::int64_t rows = 0;
  };
  std::function<Addresses(const CallTensors&)> bind{};
  std::size_t scratch_piece = 0;  ///< the last one of the workspace, whose size is the library's to say
};

/// A function of this CPU, complete on return.
struct HostCall {
  std::string title{};
  std::function<void(const CallTensors&)> call{};
};

using Step = std::variant<KernelLaunch, LibraryProduct, HostCall>;

/// A part of the workspace, or of packed weights, aligned to 256 bytes.
struct WorkspacePiece {
  std::string name{};  ///< "prepared tokens"
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// What a step asks of a tensor that it reads where it lies.
struct Alignment {
  std::size_t tensor = 0;     ///< its index in the call
  std::size_t row_bytes = 1;  ///< a multiple of which one row lies behind the other; its data, too
};

struct PlannedCall {
  std::string strategy{};
  Knobs knobs{};                      ///< all of them, as chosen
  std::vector<Step> steps{};          ///< in the order of the stream
  std::size_t preparation_steps = 0;  ///< the first so many depend on the tokens alone (DualGemm::prepare)
  std::vector<WorkspacePiece> workspace{};
  /// What `packing`, a call of the weights alone, makes once when a model is loaded; empty and null where weights are
  /// taken as they are.
  std::vector<WorkspacePiece> packed{};
  std::shared_ptr<const PlannedCall> packing{};
  std::string packed_layout{};          ///< what `packed` is called in files, its version included
  std::size_t data_alignment = 16;      ///< bytes that the data pointers of inputs and outputs must be multiples of
  std::vector<Alignment> alignments{};  ///< beyond that
  WorkModel work{};
  std::string why{};  ///< why this configuration, one sentence

  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] std::size_t packed_bytes() const;
};

/// Appends a piece of `bytes` bytes to a workspace, or to what is packed, and gives its index.
std::size_t add_piece(std::vector<WorkspacePiece>& pieces, std::string name, std::size_t bytes);
inline std::size_t add_piece(PlannedCall& call, std::string name, std::size_t bytes) {
  return add_piece(call.workspace, std::move(name), bytes);
}

}  // namespace thresher::strategies
