#include "strategies/host/emulated_call.hpp"

#include <algorithm>
#include <cstring>

#include "machine/emulator/engine/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies {
namespace {

constexpr std::size_t memory_alignment = 256;
/// A few multiprocessors: persistent blocks take several tiles.
constexpr std::uint32_t resident_blocks = 3;

emulator::Use use_of(Access::Use use) {
  switch (use) {
    case Access::Use::reads: return emulator::Use::input;
    case Access::Use::reads_earlier: return emulator::Use::earlier_input;
    case Access::Use::writes: break;
  }
  return emulator::Use::output;
}

std::size_t extent_bytes(const Tensor& tensor) {
  std::int64_t elements = tensor.rank == 0 || tensor.elements() == 0 ? 0 : 1;
  for (int d = 0; elements > 0 && d < tensor.rank; ++d) {
    elements += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  return static_cast<std::size_t>(elements * bits(tensor.format) / 8);
}

emulator::LaunchShape shape_of(const KernelLaunch& launch, const LaunchArguments& arguments) {
  emulator::LaunchShape shape;
  shape.grid.x = arguments.grid.x;
  shape.grid.y = arguments.grid.y;
  shape.grid.z = arguments.grid.z;
  shape.block = launch.block.x;
  shape.cluster.x = launch.cluster.x;
  shape.dynamic_shared_bytes = launch.shared_bytes;
  if (launch.persistent) {
    shape.grid.x = std::min(shape.grid.x, std::max(resident_blocks / launch.cluster.x, 1U) * launch.cluster.x);
  }
  shape.after_earlier_grid = std::any_of(launch.accesses.begin(), launch.accesses.end(),
                                         [](const Access& access) { return access.use == Access::Use::reads_earlier; });
  return shape;
}

void encode_maps(LaunchArguments& arguments) {
  for (const LaunchArguments::Map& map : arguments.maps()) {
    const machine::TensorMap encoded = emulator::encode_tensor_map(map.description);
    std::memcpy(arguments.data() + map.offset, &encoded, sizeof encoded);
  }
}

}  // namespace

EmulatedCall::Memory::Memory(std::size_t bytes) : bytes_(bytes + memory_alignment) {
  const std::size_t over = reinterpret_cast<std::uintptr_t>(bytes_.data()) % memory_alignment;
  start_ = bytes_.data() + (memory_alignment - over) % memory_alignment;
}

EmulatedCall::EmulatedCall(PlannedCall call, std::vector<NamedTensor> tensors, FindKernel find)
    : call_(std::move(call)),
      named_(std::move(tensors)),
      workspace_(call_.workspace_bytes()),
      packed_(call_.packed_bytes()),
      find_(std::move(find)) {
  for (const NamedTensor& one : named_) {
    plain_.push_back(one.tensor);
  }
  const auto load = [&](const PlannedCall& from) {
    for (const Step& step : from.steps) {
      const auto* launch = std::get_if<KernelLaunch>(&step);
      if (launch == nullptr) {
        throw Error(ErrorCode::unsupported, "the strategy " + call_.strategy + " has a step that is no kernel launch");
      }
      launches_.push_back({launch, find_(*launch)});
    }
  };
  if (call_.packing != nullptr) {
    load(*call_.packing);
  }
  load(call_);
}

CallTensors EmulatedCall::tensors() const { return {plain_, workspace_.data(), packed_.data()}; }

void EmulatedCall::add(emulator::GlobalMemory& memory, const Access& access) const {
  const emulator::Use use = use_of(access.use);
  const auto piece = [&](const std::vector<WorkspacePiece>& pieces, std::byte* base) {
    const WorkspacePiece& one = pieces[access.index];
    memory.add(one.name, base + one.offset, one.bytes, use);
  };
  switch (access.memory) {
    case Access::Memory::workspace: piece(call_.workspace, workspace_.data()); return;
    case Access::Memory::packed: piece(call_.packed, packed_.data()); return;
    default: break;
  }
  const auto& [name, tensor] = named_[access.index];
  if (access.memory == Access::Memory::tensor) {
    memory.add(name, tensor.data, extent_bytes(tensor), use);
  } else if (access.memory == Access::Memory::scales) {
    memory.add(name + ".scales", tensor.scales.data, scale_bytes(tensor), use);
  } else if (tensor.global_scale != nullptr) {
    memory.add(name + ".global_scale", tensor.global_scale, sizeof(float), use);
  }
}

emulator::GlobalMemory EmulatedCall::memory_of(const KernelLaunch& launch) const {
  emulator::GlobalMemory memory;
  for (const Access& access : launch.accesses) {
    add(memory, access);
  }
  return memory;
}

emulator::Report EmulatedCall::run(const Loaded& loaded, const emulator::Options& options) {
  LaunchArguments arguments;
  if (!loaded.launch->bind(tensors(), arguments)) {
    const KernelLaunch& alternative = *loaded.launch->alternative;
    return run({&alternative, find_(alternative)}, options);
  }
  if (arguments.grid.x == 0) {
    return {};
  }
  if (loaded.launch->bind_weights) {
    loaded.launch->bind_weights(tensors(), arguments);
  }
  encode_maps(arguments);
  return emulator::launch(shape_of(*loaded.launch, arguments), options, memory_of(*loaded.launch),
                          [&] { loaded.kernel(arguments.data()); });
}

emulator::Report EmulatedCall::run(const emulator::Options& options) {
  emulator::Report report;
  for (const Loaded& loaded : launches_) {
    report = run(loaded, options);
    if (!report.clean()) {
      break;
    }
  }
  return report;
}

}  // namespace thresher::strategies
