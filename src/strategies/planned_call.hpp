#pragma once
/// A strategy's plan for a problem on a device, as a value. It has every launch with its program, its extents and the
/// function that makes its parameter from tensors. It also has the workspace, the predictor's work model, and the
/// expectations of the machine code. The GPU backend, the emulator, the audit, the predictor, the profiler and the list
/// of built-in programs read it. Nothing else decides what is launched.
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

/// Addresses and strides given to the TMA are multiples of this (machine/tensor_map.hpp).
inline constexpr std::int64_t tma_alignment_bytes = 16;

/// For values that are known to fit, such as extents of a call.
[[nodiscard]] constexpr std::uint32_t narrow(std::int64_t value) noexcept { return static_cast<std::uint32_t>(value); }

struct Extent3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  bool operator==(const Extent3&) const = default;
};

/// The tensors of one call in the order of the operation (strategies/<operation>/tensors.hpp), its workspace, and the
/// prepacked weights.
struct CallTensors {
  std::span<const Tensor> tensors{};
  void* workspace = nullptr;
  void* packed = nullptr;       ///< of PlannedCall::packed_bytes(), aligned to 256 bytes
  bool settled_groups = false;  ///< of a grouped product: its kernels read offsets or counts before they wait
};

/// A kernel's one parameter for one call, and the number of blocks of that call. Made anew in every `run`, so it is on
/// the stack.
class LaunchArguments {
 public:
  static constexpr std::size_t max_bytes = 1024;
  static constexpr std::size_t max_maps = 6;

  /// A tensor map inside the parameter: the launcher encodes it there.
  struct Map {
    std::size_t offset = 0;
    machine::TensorMapDescription description;
  };

  Extent3 grid{};

  /// Copies a parameter struct, whose tensor maps are not encoded yet.
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
  /// The parameter, which was set as a `Params`. Throws std::logic_error if it has another size.
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
  /// Describes the map at `offset` bytes into the parameter. Empty tensors need no map; it stays zero. The parameter
  /// may be set afterwards. Throws std::logic_error beyond `max_bytes` and beyond `max_maps`.
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

/// Fills in the arguments. False when these tensors need the launch's alternative (an output that the TMA cannot
/// address). Allocates nothing, and throws only std::logic_error for a mistake in the strategy: the operation validated
/// the tensors.
using Bind = std::function<bool(const CallTensors&, LaunchArguments&)>;

/// Memory that a launch reads or writes: tensor `index` of the call, or piece `index` of the workspace or of the packed
/// weights.
struct Access {
  enum class Memory : std::uint8_t { tensor, scales, global_scale, workspace, packed };
  enum class Use : std::uint8_t {
    reads,                ///< the same in every call of a plan: weights, and data derived from them
    depends_on_previous,  ///< written by a previous launch, of this call or before: a PDL launch waits first
    /// written before the previous launch, which has waited for it (KernelLaunch::releases_after_wait): a PDL launch
    /// reads it before it waits
    settled,
    writes,  ///< may still be in use by a previous launch: a PDL launch waits first
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
  std::uint32_t registers = 0;  ///< per thread at the start; 0 without register reallocation (launch_registers.hpp)
  /// Programmatic dependent launch (PDL): may start before the previous launch on the stream has ended; the kernel
  /// waits itself.
  bool dependent = false;
  /// Each block waits for the launches before this one, and then lets the next one start: what they wrote is settled
  /// for it.
  bool releases_after_wait = false;
  /// Its blocks take tile after tile: the launcher limits grid.x to the clusters that are resident at once.
  bool persistent = false;
  std::vector<Access> accesses{};
  Bind bind{};
  /// Adds the tensor maps of weights. They are the same in every call of a plan, so they are described and encoded
  /// once; null without any.
  std::function<void(const CallTensors&, LaunchArguments&)> bind_weights{};
  /// Launched when `bind` returns false; null if it never does.
  std::shared_ptr<const KernelLaunch> alternative{};
  Expectations expected{};
};

/// D = A·Bᵀ by the vendor's library: fp32 [m, n] from two operands of one format.
struct LibraryProduct {
  std::string title{};
  Format input = Format::fp16;
  std::int64_t m = 0;  ///< the maximum number of rows; a call may have fewer
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
  std::size_t scratch_piece = 0;  ///< the last one of the workspace; the library decides its size
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

/// The alignment that a step needs of a tensor that it reads in place.
struct Alignment {
  std::size_t tensor = 0;     ///< its index in the call
  std::size_t row_bytes = 1;  ///< row strides and the data address are multiples of it
};

struct PlannedCall {
  std::string strategy{};
  Knobs knobs{};                      ///< all of them, as chosen
  std::vector<Step> steps{};          ///< in the order of the stream
  std::size_t preparation_steps = 0;  ///< the first steps, which depend on the tokens alone (DualGemm::prepare)
  std::vector<WorkspacePiece> workspace{};
  /// The result of `packing`, a call with the weights alone when a model is loaded; empty and null if weights are used
  /// as they are.
  std::vector<WorkspacePiece> packed{};
  std::shared_ptr<const PlannedCall> packing{};
  std::string packed_layout{};          ///< the name of `packed` in files, including its version
  std::size_t data_alignment = 16;      ///< bytes; the data pointers of inputs and outputs must be multiples
  std::vector<Alignment> alignments{};  ///< additional ones
  WorkModel work{};
  std::string why{};  ///< why this configuration, one sentence

  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] std::size_t packed_bytes() const;
};

/// From the beginning of the first piece to the end of the last.
[[nodiscard]] std::size_t total_bytes(const std::vector<WorkspacePiece>& pieces);
/// Appends a piece of `bytes` bytes to a workspace, or to packed weights, and returns its index.
std::size_t add_piece(std::vector<WorkspacePiece>& pieces, std::string name, std::size_t bytes);
inline std::size_t add_piece(PlannedCall& call, std::string name, std::size_t bytes) {
  return add_piece(call.workspace, std::move(name), bytes);
}

}  // namespace thresher::strategies
