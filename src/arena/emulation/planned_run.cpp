#include "arena/emulation/planned_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "arena/emulation/host_kernel.hpp"
#include "machine/emulator/engine/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::Access;
using strategies::KernelLaunch;
using strategies::LaunchArguments;
using strategies::PlannedCall;

constexpr std::size_t device_alignment = 256;
constexpr std::uint8_t poison = 0xA5;

[[noreturn]] void refuse(const PlannedCall& call, const std::string& title, const char* whose) {
  throw Error(ErrorCode::unsupported,
              fmt::format("the step \"{}\" of strategy {} is {} and cannot be emulated", title, call.strategy, whose));
}

const KernelLaunch& launch_of(const PlannedCall& call, const strategies::Step& step) {
  if (const auto* product = std::get_if<strategies::LibraryProduct>(&step)) {
    refuse(call, product->title, "a library's kernel (cuBLASLt)");
  }
  if (const auto* host = std::get_if<strategies::HostCall>(&step)) {
    refuse(call, host->title, "a function of the CPU");
  }
  return std::get<KernelLaunch>(step);
}

emulator::Use use_of(Access::Use use, bool is_dependent) {
  switch (use) {
    case Access::Use::writes: return emulator::Use::output;
    case Access::Use::reads_earlier: return is_dependent ? emulator::Use::earlier_input : emulator::Use::input;
    case Access::Use::reads: break;
  }
  return emulator::Use::input;
}

emulator::Extent extent(const strategies::Extent3& of) { return {of.x, of.y, of.z}; }

/// Encodes the maps into the parameter.
void encode_maps(LaunchArguments& arguments) {
  for (const LaunchArguments::Map& map : arguments.maps()) {
    const machine::TensorMap encoded = emulator::encode_tensor_map(map.description);
    std::memcpy(arguments.data() + map.offset, &encoded, sizeof encoded);
  }
}

emulator::LaunchShape shape_of(const KernelLaunch& launch, const LaunchArguments& arguments) {
  emulator::LaunchShape shape;
  shape.grid = extent(arguments.grid);
  if (launch.persistent) {
    shape.grid.x = std::min(shape.grid.x, PlannedRun::resident_clusters * launch.cluster.x);
  }
  shape.block = launch.block.x;
  shape.cluster = extent(launch.cluster);
  shape.dynamic_shared_bytes = launch.shared_bytes;
  shape.after_earlier_grid =
      launch.dependent && std::any_of(launch.accesses.begin(), launch.accesses.end(),
                                      [](const Access& access) { return access.use == Access::Use::reads_earlier; });
  return shape;
}

}  // namespace

PlannedRun::Buffer::Buffer(std::size_t size) : bytes(size == 0 ? 0 : size + device_alignment) {}

std::uint8_t* PlannedRun::Buffer::data() {
  void* aligned = bytes.data();
  std::size_t space = bytes.size();
  return bytes.empty()
             ? nullptr
             : static_cast<std::uint8_t*>(std::align(device_alignment, space - device_alignment, aligned, space));
}

PlannedRun::PlannedRun(PlannedCall call, std::vector<EmulatedTensor> tensors, std::shared_ptr<const void> storage)
    : call_(std::move(call)),
      tensors_(std::move(tensors)),
      storage_(std::move(storage)),
      packing_(call_.packing == nullptr ? std::vector<Kernels>{} : kernels_of(*call_.packing)),
      kernels_(kernels_of(call_)),
      workspace_(call_.workspace_bytes()),
      packing_workspace_(call_.packing == nullptr ? 0 : call_.packing->workspace_bytes()),
      packed_(call_.packed_bytes()) {
  for (const EmulatedTensor& tensor : tensors_) {
    views_.push_back(tensor.tensor);
  }
}

std::vector<PlannedRun::Kernels> PlannedRun::kernels_of(const PlannedCall& call) {
  std::vector<Kernels> all;
  for (const strategies::Step& step : call.steps) {
    const KernelLaunch& launch = launch_of(call, step);
    Kernels kernels{&launch, host_kernel(launch.program, launch.expression)};
    if (launch.alternative != nullptr) {
      kernels.alternative = host_kernel(launch.alternative->program, launch.alternative->expression);
    }
    all.push_back(kernels);
  }
  return all;
}

emulator::Report PlannedRun::run(const emulator::Options& options) {
  for (const Kernels& kernels : kernels_) {
    for (const Access& access : kernels.launch->accesses) {
      if (access.memory == Access::Memory::tensor && access.use == Access::Use::writes) {
        const EmulatedTensor& written = tensors_[access.index];
        std::memset(written.tensor.data, poison, written.tensor.data == nullptr ? 0 : written.bytes);
      }
    }
  }
  if (call_.packing != nullptr) {
    emulator::Report report = run_all(*call_.packing, packing_, packing_workspace_, options);
    if (!report.clean()) {
      return report;
    }
  }
  return run_all(call_, kernels_, workspace_, options);
}

emulator::Report PlannedRun::run_all(const PlannedCall& call, const std::vector<Kernels>& kernels, Buffer& workspace,
                                     const emulator::Options& options) {
  emulator::Report report;
  for (const Kernels& one : kernels) {
    report = run_one(call, one, workspace, options);
    if (!report.clean()) {
      break;
    }
  }
  return report;
}

emulator::Report PlannedRun::run_one(const PlannedCall& call, const Kernels& kernels, Buffer& workspace,
                                     const emulator::Options& options) {
  const strategies::CallTensors tensors{views_, workspace.data(), packed_.data()};
  auto arguments = std::make_unique<LaunchArguments>();
  const KernelLaunch* launch = kernels.launch;
  strategies::HostKernel kernel = kernels.kernel;
  if (!launch->bind(tensors, *arguments)) {
    launch = launch->alternative.get();
    kernel = kernels.alternative;
    arguments = std::make_unique<LaunchArguments>();
    (void)launch->bind(tensors, *arguments);
  }
  if (launch->bind_weights) {
    launch->bind_weights(tensors, *arguments);
  }
  encode_maps(*arguments);
  const emulator::LaunchShape shape = shape_of(*launch, *arguments);
  if (shape.grid.count() == 0) {
    return {};
  }
  return emulator::launch(shape, options, memory_of(call, *launch, workspace), [&] { kernel(arguments->data()); });
}

PlannedRun::Region PlannedRun::region_of(const PlannedCall& call, const Access& access, Buffer& workspace) {
  const auto piece = [&](const strategies::WorkspacePiece& of, Buffer& in) {
    return Region{of.name, in.data() + of.offset, of.bytes};
  };
  if (access.memory == Access::Memory::workspace) {
    return piece(call.workspace[access.index], workspace);
  }
  if (access.memory == Access::Memory::packed) {
    return piece(call_.packed[access.index], packed_);
  }
  const EmulatedTensor& of = tensors_[access.index];
  if (access.memory == Access::Memory::scales) {
    return {of.name + ".scales", of.tensor.scales.data, of.scale_bytes};
  }
  if (access.memory == Access::Memory::global_scale) {
    return {of.name + ".global_scale", of.tensor.global_scale, sizeof(float)};
  }
  return {of.name, of.tensor.data, of.bytes};
}

emulator::GlobalMemory PlannedRun::memory_of(const PlannedCall& call, const KernelLaunch& launch, Buffer& workspace) {
  std::map<const void*, std::pair<Region, emulator::Use>> regions;
  for (const Access& access : launch.accesses) {
    const Region region = region_of(call, access, workspace);
    if (region.data == nullptr || region.bytes == 0) {
      continue;
    }
    const emulator::Use use = use_of(access.use, launch.dependent);
    const auto [known, is_new] = regions.try_emplace(region.data, region, use);
    if (!is_new && known->second.second != use) {
      known->second.second = emulator::Use::input_output;
    }
  }
  emulator::GlobalMemory memory;
  for (const auto& [data, known] : regions) {
    memory.add(known.first.name, data, known.first.bytes, known.second);
  }
  return memory;
}

std::span<const std::uint8_t> PlannedRun::output() const {
  for (const Access& access : kernels_.back().launch->accesses) {
    if (access.memory == Access::Memory::tensor && access.use == Access::Use::writes) {
      const EmulatedTensor& written = tensors_[access.index];
      return {static_cast<const std::uint8_t*>(written.tensor.data), written.bytes};
    }
  }
  return {};
}

}  // namespace thresher::arena
