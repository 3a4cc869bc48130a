#include "strategies/host/emulated_call.hpp"

#include <algorithm>
#include <map>

#include "core/grouped_weights.hpp"
#include "machine/emulator/engine/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies {
namespace {

constexpr std::size_t memory_alignment = 256;
/// Blocks of a persistent kernel: few, so that each takes several pieces of work if there are several.
constexpr std::uint32_t max_resident_clusters = 3;
constexpr int poison = 0xA5;

[[noreturn]] void refuse(const PlannedCall& call, const std::string& title, const char* whose) {
  throw Error(ErrorCode::unsupported,
              "the step \"" + title + "\" of strategy " + call.strategy + " is " + whose + " and cannot be emulated");
}

const KernelLaunch& launch_of(const PlannedCall& call, const Step& step) {
  if (const auto* product = std::get_if<LibraryProduct>(&step)) {
    refuse(call, product->title, "a library's kernel (cuBLASLt)");
  }
  if (const auto* host = std::get_if<HostCall>(&step)) {
    refuse(call, host->title, "a function of the CPU");
  }
  return std::get<KernelLaunch>(step);
}

/// The memory that an early launch may read only after it has waited for the launch before it.
bool is_earlier_input(const KernelLaunch& launch, const Access& access) {
  return launch.dependent && access.use == Access::Use::depends_on_previous;
}

emulator::Use use_of(const KernelLaunch& launch, const Access& access) {
  if (access.use == Access::Use::writes) {
    return emulator::Use::output;
  }
  return is_earlier_input(launch, access) ? emulator::Use::earlier_input : emulator::Use::input;
}

/// The first launch of a call relies on one of another call.
void require_settled(const KernelLaunch& launch, const KernelLaunch* previous) {
  const bool relies = std::any_of(launch.accesses.begin(), launch.accesses.end(),
                                  [](const Access& access) { return access.use == Access::Use::settled; });
  if (relies && previous != nullptr && !previous->releases_after_wait) {
    throw Error(ErrorCode::internal, "the step \"" + launch.title + "\" reads before it waits, and the step \"" +
                                         previous->title + "\" lets it start before it has waited itself");
  }
}

/// From the first element to the last.
std::int64_t extent(const Tensor& tensor) {
  std::int64_t elements = tensor.rank == 0 || tensor.elements() == 0 ? 0 : 1;
  for (int d = 0; elements > 0 && d < tensor.rank; ++d) {
    elements += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  return elements;
}

std::size_t extent_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(extent(tensor) * bits(tensor.format) / 8);
}

bool is_written_tensor(const Access& access) {
  return access.memory == Access::Memory::tensor && access.use == Access::Use::writes;
}

bool is_written_scales(const Access& access) {
  return access.memory == Access::Memory::scales && access.use == Access::Use::writes;
}

emulator::Extent extent(const Extent3& of) { return {of.x, of.y, of.z}; }

emulator::LaunchShape shape_of(const KernelLaunch& launch, const LaunchArguments& arguments) {
  emulator::LaunchShape shape;
  shape.grid = extent(arguments.grid);
  shape.block = launch.block.x;
  shape.cluster = extent(launch.cluster);
  shape.dynamic_shared_bytes = launch.shared_bytes;
  if (launch.persistent) {
    const std::uint32_t pairs = shape.grid.x / launch.cluster.x / 2;
    shape.grid.x = std::min(shape.grid.x, std::clamp(pairs, 1U, max_resident_clusters) * launch.cluster.x);
  }
  shape.registers_at_launch = launch.registers;
  shape.after_earlier_grid = launch.dependent;
  shape.releases_after_wait = launch.releases_after_wait;
  return shape;
}

void encode_maps(LaunchArguments& arguments) {
  for (const LaunchArguments::Map& map : arguments.maps()) {
    const machine::TensorMap encoded = emulator::encode_tensor_map(map.description);
    arguments.put(map.offset, encoded);
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
      packing_workspace_(call_.packing == nullptr ? 0 : call_.packing->workspace_bytes()),
      packed_(call_.packed_bytes()),
      find_(std::move(find)) {
  for (const NamedTensor& one : named_) {
    plain_.push_back(one.tensor);
  }
  if (call_.packing != nullptr) {
    load(*call_.packing, true);
  }
  load(call_, false);
}

void EmulatedCall::load(const PlannedCall& call, bool packs) {
  const KernelLaunch* previous = nullptr;
  for (const Step& step : call.steps) {
    const KernelLaunch& launch = launch_of(call, step);
    require_settled(launch, previous);
    previous = &launch;
    launches_.push_back({&launch, find_(launch), packs});
  }
}

CallTensors EmulatedCall::tensors(bool packs) const {
  return {plain_, packs ? packing_workspace_.data() : workspace_.data(), packed_.data()};
}

EmulatedCall::Region EmulatedCall::region_of(const Access& access, bool packs) const {
  const auto piece = [](const WorkspacePiece& of, const Memory& in) {
    return Region{of.name, in.data() + of.offset, of.bytes};
  };
  if (access.memory == Access::Memory::packed) {
    return piece(call_.packed[access.index], packed_);
  }
  if (access.memory == Access::Memory::workspace) {
    return packs ? piece(call_.packing->workspace[access.index], packing_workspace_)
                 : piece(call_.workspace[access.index], workspace_);
  }
  const auto& [name, tensor] = named_[access.index];
  if (access.memory == Access::Memory::scales) {
    return {name + ".scales", tensor.scales.data, scale_extent_bytes(tensor)};
  }
  if (access.memory == Access::Memory::global_scale) {
    return {name + ".global_scale", tensor.global_scale, global_scales(tensor) * sizeof(float)};
  }
  return {name, tensor.data, extent_bytes(tensor)};
}

emulator::GlobalMemory EmulatedCall::memory_of(const Loaded& loaded) const {
  std::map<const void*, std::pair<Region, emulator::Use>> regions;
  for (const Access& access : loaded.launch->accesses) {
    const Region region = region_of(access, loaded.packs);
    if (region.data == nullptr || region.bytes == 0) {
      continue;
    }
    const emulator::Use use = use_of(*loaded.launch, access);
    const auto [known, is_new] = regions.try_emplace(region.data, region, use);
    if (!is_new && known->second.second != use) {
      known->second.second = emulator::Use::input_output;
    }
  }
  emulator::GlobalMemory memory;
  for (auto at = regions.begin(); at != regions.end();) {
    auto [region, use] = at->second;
    // Gate and up in one tensor are two views that overlap: one region with both names.
    for (++at; at != regions.end() && at->second.second == use && at->second.first.begin() < region.end(); ++at) {
      region.name += " and " + at->second.first.name;
      region.bytes = std::max(region.end(), at->second.first.end()) - region.begin();
    }
    memory.add(region.name, region.data, region.bytes, use);
  }
  return memory;
}

emulator::Report EmulatedCall::run(const Loaded& loaded, const emulator::Options& options) {
  const CallTensors on = tensors(loaded.packs);
  LaunchArguments arguments;
  if (!loaded.launch->bind(on, arguments)) {
    const KernelLaunch& alternative = *loaded.launch->alternative;
    return run({&alternative, find_(alternative), loaded.packs}, options);
  }
  const emulator::LaunchShape shape = shape_of(*loaded.launch, arguments);
  if (shape.grid.count() == 0) {
    return {};
  }
  if (loaded.launch->bind_weights) {
    loaded.launch->bind_weights(on, arguments);
  }
  encode_maps(arguments);
  return emulator::launch(shape, options, memory_of(loaded), [&] { loaded.kernel(arguments.data()); });
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

void EmulatedCall::poison_outputs() {
  for (const Loaded& loaded : launches_) {
    for (const Access& access : loaded.launch->accesses) {
      if (is_written_tensor(access) && named_[access.index].tensor.data != nullptr) {
        const Tensor& tensor = named_[access.index].tensor;
        std::memset(tensor.data, poison, extent_bytes(tensor));
      } else if (is_written_scales(access) && named_[access.index].tensor.scales.data != nullptr) {
        const Tensor& tensor = named_[access.index].tensor;
        std::memset(const_cast<void*>(tensor.scales.data), poison, scale_extent_bytes(tensor));
      }
    }
  }
}

std::span<const std::uint8_t> EmulatedCall::output() const {
  const std::vector<Access>& accesses = launches_.back().launch->accesses;
  const auto written = std::find_if(accesses.begin(), accesses.end(), is_written_tensor);
  if (written == accesses.end()) {
    return {};
  }
  const Tensor& tensor = named_[written->index].tensor;
  return {static_cast<const std::uint8_t*>(tensor.data), extent_bytes(tensor)};
}

}  // namespace thresher::strategies
