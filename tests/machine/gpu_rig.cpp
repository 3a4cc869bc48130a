#include <algorithm>
#include <map>

#include "machine/device_program.hpp"
#include "machine/rig.hpp"
#include "runtime/driver.hpp"
#include "runtime/kernel.hpp"
#include "runtime/memory.hpp"
#include "runtime/nvrtc.hpp"
#include "runtime/stream.hpp"
#include "runtime/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::machine::test {
namespace {

/// Compiles and runs on GPU 0.
class GpuRig final : public Rig {
 public:
  u64 place(const std::string& name, const void* data, std::size_t bytes, Use) override {
    buffers_.emplace_back(0, bytes, name.c_str());
    runtime::copy(buffers_.back().data(), data, bytes, 0);
    return static_cast<u64>(reinterpret_cast<std::uintptr_t>(buffers_.back().data()));
  }

  TensorMap encode(const TensorMapDescription& description) override {
    std::vector<std::uint64_t> extents(description.extent, description.extent + description.rank);
    std::vector<std::uint64_t> strides(description.stride_bytes + 1, description.stride_bytes + description.rank);
    std::vector<std::uint32_t> box(description.box, description.box + description.rank);
    const runtime::TensorMap encoded =
        runtime::encode_tiled({.data = reinterpret_cast<const void*>(description.address),
                               .element = static_cast<runtime::TensorElement>(description.element),
                               .extents = extents,
                               .byte_strides = strides,
                               .box = box,
                               .swizzle = static_cast<runtime::TensorSwizzle>(description.swizzle)});
    TensorMap map{};
    std::copy(encoded.opaque.begin(), encoded.opaque.end(), map.opaque);
    return map;
  }

  /// A fault of the kernel is the test's failure and says in which case; the context is lost with it.
  void launch(const LaunchShape& shape, const KernelRef& kernel, const void* params, std::size_t) override {
    const runtime::Kernel loaded = kernel_of(kernel);
    loaded.allow_dynamic_shared(shape.dynamic_shared_bytes);
    runtime::LaunchConfig config;
    config.grid = {shape.grid.x, shape.grid.y, shape.grid.z};
    config.block = {shape.block, 1, 1};
    config.cluster = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
    config.dynamic_shared_bytes = shape.dynamic_shared_bytes;
    void* argument = const_cast<void*>(params);
    loaded.launch(config, {&argument, 1});
    try {
      runtime::synchronize({}, 0);
    } catch (const Error& error) {
      FAIL() << kernel.expression << ": " << error.what();
    }
  }

  void fetch(u64 address, void* to, std::size_t bytes) override {
    runtime::copy(to, reinterpret_cast<const void*>(address), bytes, 0);
  }

 private:
  runtime::Kernel kernel_of(const KernelRef& kernel) {
    auto found = modules_.find(kernel.expression);
    if (found == modules_.end()) {
      const std::string text = read_file(std::string(THRESHER_SOURCE_DIR) + "/tests/" + kernel.header);
      runtime::Program program = program_of(kernel.header, text, {kernel.expression});
      program.arch = runtime::device_properties(0).arch();
      const runtime::Cubin cubin = runtime::compile(program);
      found =
          modules_
              .emplace(kernel.expression, Loaded{runtime::Module(0, cubin.image), cubin.kernels.front().lowered_name})
              .first;
    }
    return found->second.module.kernel(found->second.name);
  }

  struct Loaded {
    runtime::Module module;
    std::string name;
  };
  std::map<std::string, Loaded> modules_;  // by expression
  std::vector<runtime::DeviceBuffer> buffers_;
};

}  // namespace

std::unique_ptr<Rig> make_rig(std::string& why) {
  if (!runtime::driver_status().problem.empty()) {
    why = runtime::driver_status().problem;
    return nullptr;
  }
  if (!runtime::device_properties(0).is(Arch::sm_90a)) {
    why = "GPU 0 is no Hopper GPU";
    return nullptr;
  }
  return std::make_unique<GpuRig>();
}

}  // namespace thresher::machine::test
