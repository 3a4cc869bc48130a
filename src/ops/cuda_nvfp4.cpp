#include "ops/cuda_nvfp4.hpp"

#include <fmt/format.h>

#include "kernels/nvfp4/pack.hpp"
#include "kernels/nvfp4/params.hpp"
#include "kernels/nvfp4/program.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/cuda_tensor_map.hpp"
#include "ops/cuda_weights.hpp"
#include "ops/nvfp4_choice.hpp"
#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = kernels::nvfp4;

constexpr std::int64_t row_alignment_bytes = 16;
constexpr unsigned preparation_threads = 128;

template <class T>
machine::Global<T> global(const void* pointer) {
  return {reinterpret_cast<std::uintptr_t>(pointer)};
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

device_code::Matrix nvfp4_matrix(const Tensor& tensor) {
  device_code::Matrix matrix;
  matrix.values = global<machine::u8>(tensor.data);
  matrix.scales = global<machine::u8>(tensor.scales);
  matrix.row_bytes = static_cast<machine::u64>(tensor.strides[0] / 2);
  matrix.rows = static_cast<machine::u32>(tensor.shape[0]);
  matrix.scale_columns = static_cast<machine::u32>(tensor.shape[1] / 16);
  matrix.scales_blocked = tensor.scale_layout == ScaleLayout::blocked ? 1 : 0;
  return matrix;
}

runtime::Kernel preparation_kernel(int ordinal, const std::string& name) {
  return load_program(ordinal, device_code::preparation_program()).kernel(name);
}

std::size_t packed_bytes(const Tensor& weights) {
  return std::size_t{device_code::output_groups(static_cast<machine::u32>(weights.shape[0]))} *
         device_code::k_blocks(static_cast<machine::u32>(weights.shape[1])) * device_code::block_bytes;
}

runtime::DeviceBuffer copied_scale(const Tensor& weights, int ordinal) {
  if (weights.global_scale == nullptr) {
    return {};
  }
  runtime::DeviceBuffer buffer(ordinal, sizeof(float), "a global scale");
  runtime::copy(buffer.data(), weights.global_scale, sizeof(float), ordinal);
  return buffer;
}

/// The shapes and formats of what was packed, with the packed memory as their data.
Tensor described(Tensor weights, const runtime::DeviceBuffer& packed) {
  weights.data = packed.data();
  weights.scales = static_cast<const std::uint8_t*>(packed.data());
  weights.global_scale = nullptr;
  return weights;
}

class CudaNvfp4 final : public DualGemm::Backend {
 public:
  CudaNvfp4(const Device& device, const DualGemmProblem& problem, std::shared_ptr<const CudaNvfp4Weights> weights,
            const std::string& knobs, const KernelVariant& variant)
      : Backend(problem, device.id(), "packed"),
        weights_(std::move(weights)),
        row_blocks_((problem.k + device_code::block_k - 1) / device_code::block_k),
        widens_(problem.a == Format::nvfp4),
        prepares_(widens_ || problem.k % device_code::block_k != 0),
        config_(varied(choose_packed(problem, knobs, runtime::device_properties(ordinal()).multiprocessors), variant)),
        profile_(variant.profile),
        kernel_(load(config_)),
        prepare_(preparation_kernel(
            ordinal(), widens_ ? device_code::widen_tokens_kernel_name() : device_code::pad_tokens_kernel_name())) {
    if (profile_) {
      profile_->prepare(ordinal(), static_cast<int>(token_tiles() * output_tiles()) * config_.split_k,
                        device_code::shape_of(config_));
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return prepares_ ? static_cast<std::size_t>(problem().m * row_blocks_ * device_code::block_k * 2) : 0;
  }
  [[nodiscard]] std::size_t data_alignment() const override { return row_alignment_bytes; }

  void run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    runtime::require_on_gpu(a.data, ordinal(), "a");
    runtime::require_on_gpu(c.data, ordinal(), "c");
    if (!prepares_ && a.strides[0] * 2 % row_alignment_bytes != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a has rows {} elements apart, this plan needs a multiple of 8: pad them", a.strides[0]));
    }
    if (prepares_) {
      runtime::require_on_gpu(workspace, ordinal(), "workspace");
      prepare(stream, a, workspace);
    }
    launch(stream, a, c, prepares_ ? workspace : a.data,
           prepares_ ? row_blocks_ * std::int64_t{device_code::block_k} : a.strides[0]);
  }

 private:
  [[nodiscard]] int ordinal() const { return device().ordinal; }

  static device_code::Config varied(device_code::Config config, const KernelVariant& variant) {
    config.profiled = variant.profile != nullptr;
    config.ablation = variant.ablation;
    return config;
  }

  [[nodiscard]] std::int64_t token_tiles() const {
    return round_up(problem().m, config_.block_tokens) / config_.block_tokens;
  }
  [[nodiscard]] std::int64_t output_tiles() const {
    const int outputs = device_code::tile_outputs(config_);
    return round_up(problem().n, outputs) / outputs;
  }

  [[nodiscard]] runtime::Kernel load(const device_code::Config& config) const {
    const kernels::DeviceProgram program = device_code::program(config);
    const runtime::Kernel kernel = load_program(ordinal(), program).kernel(program.kernels.front());
    kernel.allow_dynamic_shared(static_cast<std::size_t>(device_code::shared_bytes(config)));
    return kernel;
  }

  /// Tokens to 16 bits with zeros beyond K.
  void prepare(Stream stream, const Tensor& a, void* workspace) const {
    device_code::WidenTokensParams params{};
    if (widens_) {
      params.tokens = nvfp4_matrix(a);
    } else {
      params.tokens.values = global<machine::u8>(a.data);
      params.tokens.row_bytes = static_cast<machine::u64>(a.strides[0] * 2);
      params.tokens.rows = static_cast<machine::u32>(problem().m);
    }
    params.out = global<machine::u8>(workspace);
    params.row_blocks = static_cast<machine::u32>(row_blocks_);
    params.k = static_cast<machine::u32>(problem().k);
    const std::int64_t elements_a_thread = widens_ ? 16 : 8;
    const std::int64_t threads = problem().m * row_blocks_ * device_code::block_k / elements_a_thread;
    runtime::LaunchConfig launch;
    launch.grid.x = static_cast<unsigned>((threads + preparation_threads - 1) / preparation_threads);
    launch.block.x = preparation_threads;
    launch.dependent_launch = true;
    launch.stream = stream;
    prepare_.launch_with(launch, params);
  }

  [[nodiscard]] machine::TensorMap tokens_map(const void* tokens, std::int64_t row_stride) const {
    machine::TensorMapDescription map;
    map.address = reinterpret_cast<std::uintptr_t>(tokens);
    map.element =
        config_.operand == device_code::Number::bf16 ? machine::ElementType::bf16 : machine::ElementType::fp16;
    map.swizzle = machine::Swizzle::b128;
    map.rank = 3;
    map.extent[0] = device_code::block_k;
    map.extent[1] = static_cast<machine::u64>(problem().m);
    map.extent[2] = static_cast<machine::u64>(row_blocks_);
    map.stride_bytes[1] = static_cast<machine::u64>(row_stride * 2);
    map.stride_bytes[2] = device_code::block_k * 2;
    map.box[0] = device_code::block_k;
    map.box[1] = static_cast<machine::u32>(config_.block_tokens);
    map.box[2] = static_cast<machine::u32>(config_.blocks_per_slot);
    return encode_for_gpu(map, ordinal());
  }

  void launch(Stream stream, const Tensor& a, const Tensor& c, const void* tokens, std::int64_t row_stride) const {
    const DualGemmProblem& p = problem();
    device_code::Params params;
    params.tokens = tokens_map(tokens, row_stride);
    params.weights = global<machine::u8>(weights_->packed());
    params.c = global<machine::u8>(c.data);
    params.c_row_stride = static_cast<machine::u64>(c.strides[0]);
    params.token_scale = global<float>(a.global_scale);
    params.gate_scale = global<float>(weights_->gate_scale());
    params.up_scale = global<float>(weights_->up_scale());
    params.m = static_cast<machine::u32>(p.m);
    params.n = static_cast<machine::u32>(p.n);
    params.k_blocks = device_code::k_blocks(static_cast<machine::u32>(p.k));
    params.output_groups = device_code::output_groups(params.n);
    params.c_wide = p.n % 8 == 0 && c.strides[0] % 8 == 0 ? 1 : 0;
    params.token_tiles = static_cast<machine::u32>(token_tiles());
    params.output_tiles = static_cast<machine::u32>(output_tiles());
    if (profile_) {
      params.profile = global<machine::u64>(profile_->words.data());
    }
    params.result_scale = 1.0F / device_code::exact_result_scale;
    params.alpha = p.activation.alpha;
    params.limit = p.activation.limit;
    params.up_offset = p.activation.up_offset;
    runtime::LaunchConfig launch;
    launch.grid.x = params.token_tiles * params.output_tiles * static_cast<unsigned>(config_.split_k);
    launch.block.x = static_cast<unsigned>(device_code::launch_threads(config_));
    launch.cluster.x = static_cast<unsigned>(config_.split_k);
    launch.dynamic_shared_bytes = static_cast<unsigned>(device_code::shared_bytes(config_));
    launch.dependent_launch = true;
    launch.stream = stream;
    kernel_.launch_with(launch, params);
  }

  std::shared_ptr<const CudaNvfp4Weights> weights_;
  std::int64_t row_blocks_;
  bool widens_;
  bool prepares_;
  device_code::Config config_;
  std::shared_ptr<ProfileBuffer> profile_;
  runtime::Kernel kernel_;
  runtime::Kernel prepare_;
};

}  // namespace

CudaNvfp4Weights::CudaNvfp4Weights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up)
    : CudaNvfp4Weights(device, b1_gate, b2_up,
                       runtime::DeviceBuffer(device.id().ordinal, packed_bytes(b1_gate), "the packed weights")) {}

CudaNvfp4Weights::CudaNvfp4Weights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up,
                                   runtime::DeviceBuffer packed)
    : Storage(device, described(b1_gate, packed), described(b2_up, packed), Numerics::exact),
      packed_(std::move(packed)),
      gate_scale_(copied_scale(b1_gate, device.id().ordinal)),
      up_scale_(copied_scale(b2_up, device.id().ordinal)) {
  if (packed_.bytes() == 0) {
    return;
  }
  device_code::PackParams params;
  params.gate = nvfp4_matrix(b1_gate);
  params.up = nvfp4_matrix(b2_up);
  params.packed = global<machine::u8>(packed_.data());
  params.k_blocks = device_code::k_blocks(static_cast<machine::u32>(b1_gate.shape[1]));
  runtime::LaunchConfig launch;
  launch.grid.x = static_cast<unsigned>(packed_.bytes() / device_code::block_bytes);
  launch.block.x = device_code::threads;
  const int ordinal = device.id().ordinal;
  preparation_kernel(ordinal, device_code::pack_kernel_name()).launch_with(launch, params);
  runtime::synchronize({}, ordinal);
}

bool runs_packed_nvfp4(const Device& device) {
  return runtime::device_properties(device.id().ordinal).capability_major == 9;
}

std::shared_ptr<const DualGemm::Backend> make_cuda_nvfp4(const Device& device, const DualGemmProblem& problem,
                                                         std::shared_ptr<const CudaNvfp4Weights> weights,
                                                         const std::string& knobs, const KernelVariant& variant) {
  return std::make_shared<const CudaNvfp4>(device, problem, std::move(weights), knobs, variant);
}

}  // namespace thresher::ops
