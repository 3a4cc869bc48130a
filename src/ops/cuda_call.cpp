#include "ops/cuda_call.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "ops/cuda_programs.hpp"
#include "ops/tensor_map_memo.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "runtime/tensor_map.hpp"
#include "strategies/status_words.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::CallTensors;
using strategies::HostCall;
using strategies::KernelLaunch;
using strategies::LaunchArguments;
using strategies::LibraryProduct;
using strategies::PlannedCall;

runtime::Extent3 extent(const strategies::Extent3& of) { return {of.x, of.y, of.z}; }

runtime::Kernel load_kernel(int ordinal, const KernelLaunch& launch) {
  runtime::Kernel kernel = load_program(ordinal, launch.program).kernel(launch.expression);
  if (launch.shared_bytes > 0) {
    kernel.allow_dynamic_shared(launch.shared_bytes);
  }
  constexpr std::uint32_t portable_cluster = 8;
  if (launch.cluster.x > portable_cluster) {
    kernel.allow_large_clusters();
  }
  return kernel;
}

/// An enumerator of the runtime that stands for the one of a description. Both count alike.
template <class To>
To runtime_enumerator(auto value, int offset = 0) {
  return static_cast<To>(static_cast<int>(value) + offset);
}
static_assert(static_cast<int>(runtime::TensorElement::fp32) == static_cast<int>(machine::ElementType::fp32));
static_assert(static_cast<int>(runtime::TensorSwizzle::bytes128) == static_cast<int>(machine::Swizzle::b128));
constexpr int first_promotion = static_cast<int>(runtime::TensorPromotion::bytes128);
static_assert(static_cast<int>(runtime::TensorPromotion::bytes256) ==
              first_promotion + static_cast<int>(machine::Promotion::b256));

/// The tensor map, encoded by the driver for memory of the GPU whose context is current. Throws Error(invalid_argument)
/// with the values when the TMA cannot address it.
machine::TensorMap encode_for_gpu(const machine::TensorMapDescription& description,
                                  const runtime::ContextGuard& current) {
  std::array<std::uint64_t, 5> extents{};
  std::array<std::uint64_t, 4> strides{};
  std::copy_n(description.extent, description.rank, extents.begin());
  std::copy_n(description.stride_bytes + 1, description.rank - 1, strides.begin());
  const runtime::TiledView view{
      .data = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(description.address)),
      .element = runtime_enumerator<runtime::TensorElement>(description.element),
      .extents = {extents.data(), description.rank},
      .byte_strides = {strides.data(), description.rank - 1},
      .box = {description.box, description.rank},
      .swizzle = runtime_enumerator<runtime::TensorSwizzle>(description.swizzle),
      .promotion = runtime_enumerator<runtime::TensorPromotion>(description.promotion, first_promotion)};
  return std::bit_cast<machine::TensorMap>(runtime::encode_tiled(view, current));
}

/// Most tensors of a call lie where those of an earlier call lay.
const machine::TensorMap& known_map(const machine::TensorMapDescription& description,
                                    const runtime::ContextGuard& current) {
  static thread_local TensorMapMemo memo;
  return memo.get(description, [&] { return encode_for_gpu(description, current); });
}

/// One kernel, and the one in its place for tensors that it does not take.
class LoadedLaunch {
 public:
  LoadedLaunch(const KernelLaunch& launch, int ordinal, const CallTensors& example)
      : bind_(&launch.bind), kernel_(load_kernel(ordinal, launch)) {
    config_.block = extent(launch.block);
    config_.cluster = extent(launch.cluster);
    config_.dynamic_shared_bytes = launch.shared_bytes;
    config_.dependent_launch = launch.dependent;
    if (launch.persistent) {
      max_blocks_ = resident_blocks();
    }
    if (launch.bind_weights) {
      const runtime::ContextGuard current(ordinal);
      LaunchArguments arguments;
      launch.bind_weights(example, arguments);
      for (const LaunchArguments::Map& map : arguments.maps()) {
        weights_.push_back({map.offset, encode_for_gpu(map.description, current)});
      }
    }
    if (launch.alternative != nullptr) {
      alternative_ = std::make_unique<const LoadedLaunch>(*launch.alternative, ordinal, example);
    }
  }

  void run(Stream stream, const CallTensors& tensors, const runtime::ContextGuard& current) const {
    LaunchArguments arguments;
    if (!(*bind_)(tensors, arguments)) {
      alternative_->run(stream, tensors, current);
      return;
    }
    runtime::LaunchConfig config = config_;
    config.grid = extent(arguments.grid);
    if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) {
      return;
    }
    config.grid.x = std::min(config.grid.x, max_blocks_);
    config.stream = stream;
    for (const EncodedMap& map : weights_) {
      map.copy_into(arguments);
    }
    for (const LaunchArguments::Map& map : arguments.maps()) {
      EncodedMap{map.offset, known_map(map.description, current)}.copy_into(arguments);
    }
    void* parameter = arguments.data();
    kernel_.launch(config, {&parameter, 1}, current);
  }

 private:
  struct EncodedMap {
    std::size_t offset;
    machine::TensorMap map;

    void copy_into(LaunchArguments& arguments) const { arguments.put(offset, map); }
  };

  /// Blocks of this kernel that the whole GPU holds at once: whole clusters of them.
  [[nodiscard]] unsigned resident_blocks() const {
    const int multiprocessors = runtime::device_properties(kernel_.ordinal()).multiprocessors;
    if (config_.cluster == runtime::Extent3{}) {
      return static_cast<unsigned>(
          kernel_.blocks_per_multiprocessor(static_cast<int>(config_.block.x), config_.dynamic_shared_bytes) *
          multiprocessors);
    }
    runtime::LaunchConfig many = config_;
    many.grid.x = config_.cluster.x * static_cast<unsigned>(multiprocessors);
    return static_cast<unsigned>(kernel_.resident_clusters(many)) * config_.cluster.x;
  }

  const strategies::Bind* bind_;
  runtime::Kernel kernel_;
  runtime::LaunchConfig config_;
  unsigned max_blocks_ = std::numeric_limits<unsigned>::max();
  std::vector<EncodedMap> weights_;
  std::unique_ptr<const LoadedLaunch> alternative_;
};

/// A product of the vendor's library, with its scratch memory at the end of the workspace.
class LoadedProduct {
 public:
  LoadedProduct(const LibraryProduct& product, int ordinal, const PlannedCall& call, const CallTensors& example)
      : bind_(&product.bind) {
    if (product.m > 0 && product.n > 0) {
      matmul_.emplace(ordinal, runtime::MatmulShape{.m = product.m,
                                                    .n = product.n,
                                                    .k = product.k,
                                                    .input = product.input,
                                                    .a_row_stride = product.k,
                                                    .b_row_stride = product.bind(example).b_row_stride,
                                                    .d_row_stride = product.d_row_stride});
    }
    if (product.scratch_piece + 1 != call.workspace.size()) {
      throw Error(ErrorCode::internal,
                  "the scratch memory of \"" + product.title + "\" is not the last piece of the workspace");
    }
    scratch_offset_ = call.workspace.back().offset;
  }

  void run(Stream stream, const CallTensors& tensors, const runtime::ContextGuard& /*current*/) const {
    const LibraryProduct::Addresses at = (*bind_)(tensors);
    if (at.rows > 0 && matmul_) {
      matmul_->run(stream, at.rows, at.a, at.a_row_stride, at.b, at.d,
                   static_cast<std::byte*>(tensors.workspace) + scratch_offset_);
    }
  }

  [[nodiscard]] std::size_t workspace_end() const {
    return scratch_offset_ + (matmul_ ? matmul_->workspace_bytes() : 0);
  }

 private:
  const std::function<LibraryProduct::Addresses(const CallTensors&)>* bind_;
  std::optional<runtime::Matmul> matmul_;  ///< none of a product without elements
  std::size_t scratch_offset_ = 0;
};

std::variant<CudaCall, PlannedCall> prepared(DeviceId device, PlannedCall call, const CallTensors& example) {
  if (device.kind == DeviceKind::cpu) {
    return call;
  }
  return CudaCall(std::move(call), device.ordinal, example);
}

}  // namespace

void load_programs(int ordinal, std::span<const PlannedRows> calls) {
  std::vector<const strategies::DeviceProgram*> programs;
  for (const PlannedRows& planned : calls) {
    for (const strategies::Step& step : planned.call.steps) {
      for (const auto* launch = std::get_if<KernelLaunch>(&step); launch != nullptr;
           launch = launch->alternative.get()) {
        programs.push_back(&launch->program);
      }
    }
  }
  load_programs(ordinal, std::move(programs));
}

struct CudaCall::LoadedStep {
  std::variant<LoadedLaunch, LoadedProduct> step;
};

CudaCall::CudaCall(CudaCall&&) noexcept = default;
CudaCall::~CudaCall() = default;

CudaCall::CudaCall(PlannedCall call, int ordinal, const CallTensors& example)
    : call_(std::move(call)), ordinal_(ordinal), workspace_bytes_(call_.workspace_bytes()) {
  CallTensors stand_ins = example;
  stand_ins.workspace = stand_in_address();
  bool has_products = false;
  for (const strategies::Step& step : call_.steps) {
    if (const auto* launch = std::get_if<KernelLaunch>(&step)) {
      steps_.push_back(std::make_unique<const LoadedStep>(LoadedStep{LoadedLaunch(*launch, ordinal, stand_ins)}));
    } else if (const auto* product = std::get_if<LibraryProduct>(&step)) {
      LoadedProduct loaded(*product, ordinal, call_, stand_ins);
      workspace_bytes_ = std::max(workspace_bytes_, loaded.workspace_end());
      steps_.push_back(std::make_unique<const LoadedStep>(LoadedStep{std::move(loaded)}));
      has_products = true;
    } else {
      throw Error(ErrorCode::internal, "the strategy " + call_.strategy + " has a step that runs on the CPU (" +
                                           std::get<HostCall>(step).title + "), which a GPU's plan cannot run");
    }
  }
  if (has_products) {  // the library loads its kernels when they are first enqueued: now, and executes nothing
    runtime::load_kernels(ordinal, [&](Stream stream) { run(stream, stand_ins); });
  }
}

void CudaCall::run(Stream stream, const CallTensors& tensors, std::size_t first_step, std::size_t last_step) const {
  const runtime::ContextGuard current(ordinal_);
  for (std::size_t i = first_step; i < std::min(last_step, steps_.size()); ++i) {
    std::visit([&](const auto& step) { step.run(stream, tensors, current); }, steps_[i]->step);
  }
}

DeviceCall::DeviceCall(DeviceId device, PlannedCall call, const CallTensors& example)
    : call_(prepared(device, std::move(call), example)) {}

void DeviceCall::run(Stream stream, const CallTensors& tensors, std::size_t first_step, std::size_t last_step) const {
  if (const auto* const on_gpu = std::get_if<CudaCall>(&call_)) {
    on_gpu->run(stream, tensors, first_step, last_step);
    return;
  }
  const std::vector<strategies::Step>& steps = std::get<PlannedCall>(call_).steps;
  for (std::size_t i = first_step; i < std::min(last_step, steps.size()); ++i) {
    std::get<strategies::HostCall>(steps[i]).call(tensors);
  }
}

const PlannedCall& DeviceCall::planned() const noexcept {
  const auto* const on_gpu = std::get_if<CudaCall>(&call_);
  return on_gpu != nullptr ? on_gpu->planned() : *std::get_if<PlannedCall>(&call_);
}

std::size_t DeviceCall::workspace_bytes() const {
  const auto* const on_gpu = std::get_if<CudaCall>(&call_);
  return on_gpu != nullptr ? on_gpu->workspace_bytes() : planned().workspace_bytes();
}

std::uint32_t status_flags(Stream stream, const void* workspace, std::size_t bytes, DeviceId device) {
  const std::size_t max_words = bytes / sizeof(std::uint32_t);
  if (device.kind == DeviceKind::cpu) {
    return strategies::flags_in({static_cast<const std::uint32_t*>(workspace), max_words});
  }
  runtime::synchronize(stream, device.ordinal);
  std::uint32_t count = 0;
  runtime::copy(&count, workspace, sizeof count, device.ordinal);
  std::vector<std::uint32_t> words(std::min(std::size_t{count} + 1, max_words));
  runtime::copy(words.data(), workspace, words.size() * sizeof(std::uint32_t), device.ordinal);
  return strategies::flags_in(words);
}

}  // namespace thresher::ops
