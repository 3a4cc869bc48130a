#include "ops/cuda_call.hpp"

#include <algorithm>

#include "ops/cuda_programs.hpp"
#include "ops/cuda_tensor_map.hpp"
#include "ops/tensor_map_memo.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
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

/// What comes anew with each call lies mostly where it lay in one of the calls before.
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

}  // namespace thresher::ops
