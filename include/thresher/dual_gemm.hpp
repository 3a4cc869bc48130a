#pragma once
/// The gated-MLP dual GEMM: C = activation(A·B1ᵀ) ∘ (A·B2ᵀ), plan once and run many times.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/device.hpp"
#include "thresher/knobs.hpp"
#include "thresher/tensor.hpp"

namespace thresher::ops {
class PackedProduct;
class ProductPlan;
}  // namespace thresher::ops

namespace thresher {

/// The function of gate g and up u, in float32 (float64 in the reference).
enum class ActivationKind : std::uint8_t {
  silu,            ///< g·σ(g) · u
  gelu_tanh,       ///< ½g(1 + tanh(√(2/π)(g + 0.044715 g³))) · u
  swiglu_clamped,  ///< g' = min(g, limit), u' = clamp(u, ±limit): g'·σ(alpha·g')·(u' + up_offset)
  /// SiTU-GLU: alpha·tanh(g / alpha)·σ(g) · limit·tanh(u / limit), with Kimi-K3's alpha 4 and limit 25. They are β and
  /// linear β of SituAndMul in that model's modeling_kimi_linear.py, and of github.com/flashinfer-ai/flashinfer#4460.
  situ,
  /// max(g, 0)², where there is no up: one matrix instead of two, as in Nemotron-3.
  relu2,
};

inline constexpr std::array all_activation_kinds{ActivationKind::silu, ActivationKind::gelu_tanh,
                                                 ActivationKind::swiglu_clamped, ActivationKind::situ,
                                                 ActivationKind::relu2};
/// Those of gate and up.
inline constexpr std::array gated_activation_kinds{ActivationKind::silu, ActivationKind::gelu_tanh,
                                                   ActivationKind::swiglu_clamped, ActivationKind::situ};

struct Activation {
  ActivationKind kind = ActivationKind::silu;
  float alpha = 1.702F;    ///< swiglu_clamped; situ, > 0
  float limit = 7.0F;      ///< swiglu_clamped and situ, > 0
  float up_offset = 1.0F;  ///< swiglu_clamped only
  bool operator==(const Activation&) const = default;
};

/// Whether it is of gate and up: neither none nor relu2.
[[nodiscard]] constexpr bool is_gated(const std::optional<Activation>& activation) noexcept {
  return activation && activation->kind != ActivationKind::relu2;
}

/// The activation of that kind with the constants of the model that made it known.
[[nodiscard]] constexpr Activation usual_activation(ActivationKind kind) noexcept {
  return kind == ActivationKind::situ ? Activation{.kind = kind, .alpha = 4.0F, .limit = 25.0F}
                                      : Activation{.kind = kind};
}

[[nodiscard]] std::string_view name(ActivationKind kind) noexcept;
/// The kind of that name; empty when there is none.
[[nodiscard]] std::optional<ActivationKind> parse_activation_kind(std::string_view text) noexcept;

/// The accuracy that a product may give up for speed.
enum class Numerics : std::uint8_t {
  /// Every product is exact; only the order of float32 additions differs from the definition. FP8 tensor cores
  /// accumulate in less than float32: there, FP32 accumulation happens every 128 along K.
  exact,
  /// Opt-in. NVFP4 weights on Hopper: value × scale is rounded once to e4m3. FP8 on Hopper: the tensor cores alone
  /// accumulate.
  fast,
};

inline constexpr std::array all_numerics{Numerics::exact, Numerics::fast};

[[nodiscard]] std::string_view name(Numerics numerics) noexcept;
[[nodiscard]] std::optional<Numerics> parse_numerics(std::string_view text) noexcept;

/// C[m,n] from A[m,k], B1[n,k] (the GATE, to which the activation is applied) and B2[n,k] (UP).
struct DualGemmProblem {
  std::int64_t m = 0;         ///< the maximum number of rows of a call
  std::int64_t n = 0;         ///< for outputs in nvfp4 a multiple of 16, in fp8_block of 128
  std::int64_t k = 0;         ///< a multiple of 8 for operands in 16 bits, of 16 for FP8 and nvfp4
  Format a = Format::fp16;    ///< fp16, bf16, nvfp4 or one of FP8
  Format b = Format::fp16;    ///< fp16, bf16, nvfp4 or one of FP8; of both B1 and B2
  Format out = Format::fp16;  ///< fp16, bf16, fp32, or quantized: one of FP8, or nvfp4
  Activation activation{};    ///< of gate and up
  bool operator==(const DualGemmProblem&) const = default;
};

struct PackOptions {
  Numerics numerics = Numerics::exact;
};

/// Prepacked weights for one device; cheap to copy. A plan shares their memory, so this object may be destroyed once
/// plans are made. On the CPU packing is the identity: object and plans refer to the caller's B1 and B2, which must
/// outlive them. On a GPU they are a copy.
class PackedWeights {
 public:
  using Storage = ops::PackedProduct;
  explicit PackedWeights(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}
  [[nodiscard]] std::int64_t n() const noexcept;  ///< rows of B1 and of B2: problem.n must equal it
  [[nodiscard]] std::int64_t k() const noexcept;
  [[nodiscard]] Format format() const noexcept;  ///< their format before packing: problem.b must equal it
  [[nodiscard]] Numerics numerics() const noexcept;
  [[nodiscard]] const Device& device() const noexcept;

  [[nodiscard]] const Storage& storage() const noexcept { return *storage_; }
  [[nodiscard]] const std::shared_ptr<const Storage>& shared() const noexcept { return storage_; }

 private:
  std::shared_ptr<const Storage> storage_;
};

struct DualGemmOptions {
  /// Empty: the strategy that a tournament on such a device measured fastest (docs/design/planner.md), otherwise the
  /// planner's choice. If given: one of `dual_gemm_strategies(device)`.
  std::string strategy{};
  /// Knobs of a strategy that override the planner, as `thresher plan` prints them. The knob `numerics` says how `plan`
  /// packs raw weights, {{"numerics", "fast"}}; packed weights have numerics of their own.
  Knobs knobs{};
  /// CPU: threads to use, 0 for all.
  int threads = 0;
  /// "batch": a row's bits do not depend on the other rows of a call, nor on how many there are, nor on the problem's
  /// m. Empty: they may (docs/reference/numerics.md). The knob `deterministic` says the same.
  std::string deterministic{};
  bool operator==(const DualGemmOptions&) const = default;
};

/// A planned dual GEMM, bound to its weights. It serves every number of tokens up to the problem's m; planning made
/// everything that this needs. Several threads may call `run`, each with its own workspace. The plan, the workspace and
/// the tensors must outlive every run that is still pending, and every replay of a graph that captured one.
class DualGemm {
 public:
  using Backend = ops::ProductPlan;
  DualGemm(const DualGemmProblem& problem, std::shared_ptr<const Backend> backend)
      : problem_(problem), backend_(std::move(backend)) {}

  /// Writes C. `a` is [rows,k] in the problem's format, `c` [rows,n], with 0 to problem.m rows. Row strides may exceed
  /// the row length. `c` must not overlap `a`, B1 or B2. `workspace` has at least `workspace_bytes()` on the plan's
  /// device (null when that is 0). It starts at a multiple of 256 bytes, as a Workspace does, and concurrent runs must
  /// not share it. Asynchronous on a GPU: no allocation, no synchronisation, graph-capturable. Synchronous on the CPU.
  ///
  /// On a GPU `a` and `c` start at multiples of 16 bytes. Kernels that read `a` in place also need a row stride of a
  /// multiple of 16 bytes, which contiguous rows in FP8 and 16 bits have. On the CPU `a` and `c` start at multiples of
  /// 4 bytes for fp32 outputs, otherwise of 2. FormatTraits has the multiples of K and N.
  ///
  /// Throws Error(invalid_argument) before anything is written to C, and Error(device) if the driver cannot launch. A
  /// fault of a kernel is reported by a later CUDA call, at the latest by one that waits for the stream.
  void run(Stream stream, const Tensor& a, const Tensor& c, void* workspace = nullptr) const;

  /// `run` in two parts, for callers who have the tokens before they want the product, or use them more than once.
  /// `prepare` puts into `workspace` what the strategy derives from `a`: NVFP4 tokens dequantized to 16 bits, or
  /// quantized to e4m3 with numerics fast. It writes nothing if the strategy takes `a` as it is.
  void prepare(Stream stream, const Tensor& a, void* workspace = nullptr) const;
  /// The second part, once or several times after `prepare` with the same `a` and `workspace`. The memory of `a` must
  /// still be valid.
  void run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace = nullptr) const;

  /// Enough for every number of rows.
  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] const std::string& strategy() const;
  [[nodiscard]] const DualGemmProblem& problem() const noexcept { return problem_; }

 private:
  DualGemmProblem problem_;
  std::shared_ptr<const Backend> backend_;
};

/// Packs B1 (gate) and B2 (up), both [n,k] of one format, for `device`. They start at a multiple of an element's bytes.
/// A GPU reads them in the legacy default stream and has finished on return. Work of other streams that writes them
/// must be complete, or be ordered before that stream.
PackedWeights pack(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, const PackOptions& options = {});

/// Chooses a strategy; may compile, allocate and synchronize, so call it outside graph captures. Throws Error with a
/// sentence that names argument, value and limit.
DualGemm plan(const Device& device, const DualGemmProblem& problem, const PackedWeights& weights,
              const DualGemmOptions& options = {});
/// The same from raw weights, which must outlive the plan.
DualGemm plan(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up,
              const DualGemmOptions& options = {});

/// Names of the strategies `device` offers, the default first.
std::vector<std::string> dual_gemm_strategies(const Device& device);

}  // namespace thresher

// So that a hash map can keep plans by problem.
template <>
struct std::hash<thresher::DualGemmProblem> {
  std::size_t operator()(const thresher::DualGemmProblem& problem) const noexcept;
};
template <>
struct std::hash<thresher::DualGemmOptions> {
  std::size_t operator()(const thresher::DualGemmOptions& options) const noexcept;
};
