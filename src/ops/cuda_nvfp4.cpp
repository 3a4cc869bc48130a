#include "ops/cuda_nvfp4.hpp"

#include <fmt/format.h>

#include "ops/cuda_programs.hpp"
#include "ops/cuda_tensor_map.hpp"
#include "ops/cuda_weights.hpp"
#include "ops/nvfp4_choice.hpp"
#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
#include "strategies/dual_gemm/packed/fold_tokens.hpp"
#include "strategies/dual_gemm/packed/host/launches.hpp"
#include "strategies/dual_gemm/packed/pack.hpp"
#include "strategies/dual_gemm/packed/prepare_tokens.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = strategies::dual_gemm::packed;

constexpr std::int64_t row_alignment_bytes = 16;

template <class T>
machine::Global<T> global(const void* pointer) {
  return {reinterpret_cast<std::uintptr_t>(pointer)};
}

runtime::Kernel preparation_kernel(int ordinal, const std::string& name) {
  return load_program(ordinal, device_code::preparation_program()).kernel(name);
}

runtime::DeviceBuffer copied_scale(const Tensor& weights, int ordinal) {
  if (weights.global_scale == nullptr) {
    return {};
  }
  runtime::DeviceBuffer buffer(ordinal, sizeof(float), "a global scale");
  runtime::copy(buffer.data(), weights.global_scale, sizeof(float), ordinal);
  return buffer;
}

runtime::DeviceBuffer uploaded(const std::vector<float>& scale, int ordinal) {
  if (scale.empty()) {
    return {};
  }
  runtime::DeviceBuffer buffer(ordinal, sizeof(float), "a global scale");
  runtime::copy(buffer.data(), scale.data(), sizeof(float), ordinal);
  return buffer;
}

/// The shape of weights that a file kept packed.
Tensor restored(const PackedContent& content, const Device& device) {
  return Tensor::nvfp4(nullptr, nullptr, content.n, content.k, nullptr, ScaleLayout::row_major, device.id());
}

/// The shapes and formats of what was packed, with the packed memory as their data.
Tensor described(Tensor weights, const runtime::DeviceBuffer& packed) {
  weights.data = packed.data();
  weights.scales.data = packed.data();
  weights.global_scale = nullptr;
  return weights;
}

class CudaNvfp4 final : public DualGemm::Backend {
 public:
  CudaNvfp4(const Device& device, const DualGemmProblem& problem, std::shared_ptr<const CudaNvfp4Weights> weights,
            const std::string& knobs, const KernelVariant& variant)
      : Backend(problem, device.id(), "packed"),
        weights_(std::move(weights)),
        extents_{problem.m, problem.n, problem.k},
        config_(varied(chosen(problem, knobs), variant)),
        prepared_(device_code::prepared_tokens(config_.path, problem.m, problem.k)),
        prepares_(is_fast() || widens() || problem.k % device_code::block_k != 0),
        profile_(variant.profile),
        kernel_(load(config_)),
        prepare_(preparation_kernel(ordinal(), is_fast()  ? fold_kernel_name(problem.a)
                                               : widens() ? device_code::widen_tokens_kernel_name()
                                                          : device_code::pad_tokens_kernel_name())) {
    if (profile_) {
      const device_code::Params params = device_code::scalars(config_, extents_, problem.n, problem.activation);
      profile_->prepare(ordinal(), static_cast<int>(device_code::blocks(config_, params)),
                        device_code::shape_of(config_));
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return prepares_ ? static_cast<std::size_t>(prepared_.bytes) : 0;
  }
  [[nodiscard]] std::size_t data_alignment() const override { return row_alignment_bytes; }

  void prepare(Stream stream, const Tensor& a, void* workspace) const override {
    runtime::require_on_gpu(a.data, ordinal(), "a");
    if (!prepares_) {
      return;
    }
    runtime::require_on_gpu(workspace, ordinal(), "workspace");
    if (is_fast()) {
      fold(stream, a, workspace);
    } else {
      widen(stream, a, workspace);
    }
  }

  void run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    runtime::require_on_gpu(a.data, ordinal(), "a");
    runtime::require_on_gpu(c.data, ordinal(), "c");
    if (prepares_) {
      runtime::require_on_gpu(workspace, ordinal(), "workspace");
    }
    if (!prepares_ && a.strides[0] * 2 % row_alignment_bytes != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a has rows {} elements apart, this plan needs a multiple of 8: pad them", a.strides[0]));
    }
    launch(stream, a, c, workspace);
  }

 private:
  [[nodiscard]] int ordinal() const { return device().ordinal; }
  [[nodiscard]] bool is_fast() const { return config_.path == device_code::Path::fast; }
  [[nodiscard]] bool widens() const { return problem().a == Format::nvfp4; }
  static std::string fold_kernel_name(Format format) {
    return device_code::fold_tokens_kernel_name(device_code::token_format(format));
  }

  [[nodiscard]] device_code::Config chosen(const DualGemmProblem& problem, const std::string& knobs) const {
    const Numerics numerics = weights_->numerics();
    const device_code::Config config =
        choose_packed(problem, knobs, runtime::device_properties(ordinal()).multiprocessors, numerics);
    if (config.path != device_code::path_of(numerics)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the weights were packed with numerics {}, the knobs \"{}\" are for others: pack again",
                              name(numerics), knobs));
    }
    return config;
  }

  static device_code::Config varied(device_code::Config config, const KernelVariant& variant) {
    config.profiled = variant.profile != nullptr;
    config.ablation = variant.ablation;
    return config;
  }

  [[nodiscard]] runtime::Kernel load(const device_code::Config& config) const {
    const strategies::DeviceProgram program = device_code::program(config);
    const runtime::Kernel kernel = load_program(ordinal(), program).kernel(program.kernels.front());
    kernel.allow_dynamic_shared(static_cast<std::size_t>(device_code::shared_bytes(config)));
    return kernel;
  }

  /// Tokens to 16 bits with zeros beyond K.
  void widen(Stream stream, const Tensor& a, void* workspace) const {
    device_code::WidenTokensParams params = device_code::widen_params(a);
    params.out = global<machine::u8>(workspace);
    runtime::LaunchConfig launch;
    launch.grid.x = device_code::widen_blocks(a);
    launch.block.x = device_code::widen_threads;
    launch.dependent_launch = true;
    launch.stream = stream;
    prepare_.launch_with(launch, params);
  }

  /// Tokens to e4m3, a factor for each.
  void fold(Stream stream, const Tensor& a, void* workspace) const {
    device_code::FoldTokensParams params = device_code::fold_params(a);
    params.out = global<machine::u8>(workspace);
    params.factors = global<float>(factors(workspace));
    runtime::LaunchConfig launch;
    launch.grid.x = static_cast<unsigned>(problem().m);
    launch.block.x = device_code::fold_threads;
    launch.dynamic_shared_bytes = device_code::fold_shared_bytes;
    launch.dependent_launch = true;
    launch.stream = stream;
    prepare_.launch_with(launch, params);
  }

  [[nodiscard]] const void* factors(const void* workspace) const {
    return static_cast<const std::uint8_t*>(workspace) + prepared_.factors_offset;
  }

  void launch(Stream stream, const Tensor& a, const Tensor& c, const void* workspace) const {
    device_code::Params params = device_code::scalars(config_, extents_, c.strides[0], problem().activation);
    params.tokens = encode_for_gpu(
        device_code::tokens_map(config_, extents_, reinterpret_cast<std::uintptr_t>(prepares_ ? workspace : a.data),
                                prepares_ ? prepared_.row_bytes : a.strides[0] * 2),
        ordinal());
    params.weights = global<machine::u8>(weights_->packed());
    params.c = global<machine::u8>(c.data);
    params.token_scale = global<float>(a.global_scale);
    params.gate_scale = global<float>(weights_->gate_scale());
    params.up_scale = global<float>(weights_->up_scale());
    if (profile_) {
      params.profile = global<machine::u64>(profile_->words.data());
    }
    if (is_fast()) {
      params.row_factors = global<float>(static_cast<const std::uint8_t*>(weights_->packed()) +
                                         device_code::factors_offset(problem().n, problem().k));
      params.token_factors = global<float>(factors(workspace));
    }
    runtime::LaunchConfig launch;
    launch.grid.x = device_code::blocks(config_, params);
    launch.block.x = static_cast<unsigned>(device_code::launch_threads(config_));
    launch.cluster.x = static_cast<unsigned>(config_.split_k);
    launch.dynamic_shared_bytes = static_cast<unsigned>(device_code::shared_bytes(config_));
    launch.dependent_launch = true;
    launch.stream = stream;
    kernel_.launch_with(launch, params);
  }

  std::shared_ptr<const CudaNvfp4Weights> weights_;
  device_code::Extents extents_;
  device_code::Config config_;
  device_code::PreparedTokens prepared_;
  bool prepares_;
  std::shared_ptr<ProfileBuffer> profile_;
  runtime::Kernel kernel_;
  runtime::Kernel prepare_;
};

}  // namespace

CudaNvfp4Weights::CudaNvfp4Weights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics)
    : CudaNvfp4Weights(device, b1_gate, b2_up, numerics,
                       runtime::DeviceBuffer(device.id().ordinal,
                                             device_code::packed_bytes(device_code::path_of(numerics), b1_gate.shape[0],
                                                                       b1_gate.shape[1]),
                                             "the packed weights")) {}

CudaNvfp4Weights::CudaNvfp4Weights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics,
                                   runtime::DeviceBuffer packed)
    : Storage(device, described(b1_gate, packed), described(b2_up, packed), numerics),
      packed_(std::move(packed)),
      gate_scale_(copied_scale(b1_gate, device.id().ordinal)),
      up_scale_(copied_scale(b2_up, device.id().ordinal)) {
  if (packed_.bytes() == 0) {
    return;
  }
  const std::int64_t n = b1_gate.shape[0];
  const std::int64_t k = b1_gate.shape[1];
  const device_code::Path path = device_code::path_of(numerics);
  device_code::PackParams params{};
  params.gate = device_code::matrix_of(b1_gate);
  params.up = device_code::matrix_of(b2_up);
  params.packed = global<machine::u8>(packed_.data());
  params.k_blocks = device_code::weight_k_blocks(path, k);
  const int ordinal = device.id().ordinal;
  runtime::LaunchConfig launch;
  launch.block.x = device_code::threads;
  if (path == device_code::Path::fast) {
    params.row_factors = global<float>(static_cast<std::uint8_t*>(packed_.data()) + device_code::factors_offset(n, k));
    launch.grid.x = device_code::row_factor_blocks(n);
    preparation_kernel(ordinal, device_code::row_factors_kernel_name()).launch_with(launch, params);
  }
  launch.grid.x = device_code::packing_blocks(path, n, k);
  preparation_kernel(
      ordinal, path == device_code::Path::fast ? device_code::pack_fast_kernel_name() : device_code::pack_kernel_name())
      .launch_with(launch, params);
  runtime::synchronize({}, ordinal);
}

CudaNvfp4Weights::CudaNvfp4Weights(const Device& device, const PackedContent& content)
    : CudaNvfp4Weights(device, content,
                       runtime::DeviceBuffer(device.id().ordinal, content.packed.size(), "the packed weights")) {}

CudaNvfp4Weights::CudaNvfp4Weights(const Device& device, const PackedContent& content, runtime::DeviceBuffer packed)
    : Storage(device, described(restored(content, device), packed), described(restored(content, device), packed),
              content.numerics),
      packed_(std::move(packed)),
      gate_scale_(uploaded(content.matrices[0].global_scale, device.id().ordinal)),
      up_scale_(uploaded(content.matrices[1].global_scale, device.id().ordinal)) {
  const std::size_t expected = device_code::packed_bytes(device_code::path_of(content.numerics), content.n, content.k);
  if (packed_.bytes() != expected) {
    throw Error(ErrorCode::invalid_argument, fmt::format("they take {} bytes, expected {} for [{}, {}]",
                                                         packed_.bytes(), expected, content.n, content.k));
  }
  if (packed_.bytes() > 0) {
    runtime::copy(packed_.data(), content.packed.data(), content.packed.size(), device.id().ordinal);
  }
}

PackedContent CudaNvfp4Weights::content() const {
  const int ordinal = device().id().ordinal;
  PackedContent content = outline(layout(numerics()));
  content.packed.resize(packed_.bytes());
  runtime::synchronize({}, ordinal);
  if (packed_.bytes() > 0) {
    runtime::copy(content.packed.data(), packed_.data(), packed_.bytes(), ordinal);
  }
  for (const auto& [scale, matrix] :
       {std::pair{&gate_scale_, &content.matrices[0]}, std::pair{&up_scale_, &content.matrices[1]}}) {
    if (scale->bytes() > 0) {
      matrix->global_scale.resize(1);
      runtime::copy(matrix->global_scale.data(), scale->data(), sizeof(float), ordinal);
    }
  }
  return content;
}

bool runs_packed_nvfp4(const Device& device) {
  return runtime::device_properties(device.id().ordinal).is(Arch::sm_90a);
}

std::shared_ptr<const DualGemm::Backend> make_cuda_nvfp4(const Device& device, const DualGemmProblem& problem,
                                                         std::shared_ptr<const CudaNvfp4Weights> weights,
                                                         const std::string& knobs, const KernelVariant& variant) {
  return std::make_shared<const CudaNvfp4>(device, problem, std::move(weights), knobs, variant);
}

}  // namespace thresher::ops
