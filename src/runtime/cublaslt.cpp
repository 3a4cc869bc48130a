#include "runtime/cublaslt.hpp"

#include <cublasLt.h>

#include <array>
#include <mutex>

#include "runtime/driver.hpp"
#include "runtime/shared_library.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

// member, function as cublasLt.h declares it (its name in the library as well)
#define THRESHER_CUBLASLT_FUNCTIONS(X)                      \
  X(version, cublasLtGetVersion)                            \
  X(status_text, cublasLtGetStatusString)                   \
  X(create, cublasLtCreate)                                 \
  X(descriptor_init, cublasLtMatmulDescInit_internal)       \
  X(descriptor_set, cublasLtMatmulDescSetAttribute)         \
  X(layout_init, cublasLtMatrixLayoutInit_internal)         \
  X(preference_init, cublasLtMatmulPreferenceInit_internal) \
  X(preference_set, cublasLtMatmulPreferenceSetAttribute)   \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic)              \
  X(matmul, cublasLtMatmul)

struct Api {
#define THRESHER_DECLARE(member, function) decltype(&::function) member = nullptr;
  THRESHER_CUBLASLT_FUNCTIONS(THRESHER_DECLARE)
#undef THRESHER_DECLARE
};

struct Library {
  CublasLtStatus status;
  Api api;
};

Library load() {
  Library loaded;
  const std::string_view remedy =
      "install cuBLAS 12 or newer (a CUDA toolkit, or pip install nvidia-cublas), or point THRESHER_LIBRARY_PATH to "
      "its folder";
#define THRESHER_SYMBOL(member, function) Symbol(#function, loaded.api.member),
  const SharedLibrary library = SharedLibrary::open({"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, remedy},
                                                    {THRESHER_CUBLASLT_FUNCTIONS(THRESHER_SYMBOL)});
#undef THRESHER_SYMBOL
  loaded.status.library_path = library.path();
  loaded.status.problem = library.problem();
  if (loaded.api.version != nullptr) {
    loaded.status.version = loaded.api.version();
  }
  return loaded;
}

const Library& loaded_library() {
  static const Library* library = new Library(load());  // never destroyed: used by threads that outlive main
  return *library;
}

const Api& api() {
  const Library& library = loaded_library();
  if (!library.status.problem.empty()) {
    throw Error(ErrorCode::unsupported, library.status.problem);
  }
  return library.api;
}

void check(cublasStatus_t status, const char* doing) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw Error(ErrorCode::device, std::string("cuBLASLt failed to ") + doing + " (" + api().status_text(status) + ")");
  }
}

/// One handle a GPU, made once and kept: cublasLtMatmul may use it from several threads at a time.
cublasLtHandle_t handle_of(int ordinal) {
  static std::array<std::once_flag, 64> once;
  static std::array<cublasLtHandle_t, 64> handles{};
  const auto slot = static_cast<std::size_t>(ordinal);
  std::call_once(once.at(slot), [&] {
    const ContextGuard guard(ordinal);
    check(api().create(&handles[slot]), "create a handle");
  });
  return handles[slot];
}

cudaDataType data_type(Format format) {
  switch (format) {
    case Format::fp16: return CUDA_R_16F;
    case Format::bf16: return CUDA_R_16BF;
    case Format::fp32: return CUDA_R_32F;
    default: break;
  }
  throw Error(ErrorCode::internal, "cuBLASLt products take fp16, bf16 or fp32, not " + std::string(name(format)));
}

std::string text(const MatmulShape& shape) {
  return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) + " in " +
         std::string(name(shape.input));
}

}  // namespace

const CublasLtStatus& cublaslt_status() noexcept { return loaded_library().status; }

// cuBLASLt is column-major: row-major D[m,n] = A·Bᵀ is the column-major product D'[n,m] = op(B')·A', where B' and A'
// are k×n and k×m with the row strides as leading dimensions, and op transposes.
struct Matmul::Plan {
  Plan(int gpu, const MatmulShape& what) : ordinal(gpu), shape(what), handle(handle_of(gpu)) {
    const bool single = shape.input == Format::fp32;
    check(api().descriptor_init(&descriptor, sizeof descriptor,
                                single ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "describe a product");
    const cublasOperation_t transpose = CUBLAS_OP_T;
    check(api().descriptor_set(&descriptor, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose),
          "describe a product");
    b_layout = layout(data_type(shape.input), shape.k, shape.n, shape.b_row_stride);
    choose();
  }

  static cublasLtMatrixLayoutOpaque_t layout(cudaDataType type, std::int64_t rows, std::int64_t columns,
                                             std::int64_t leading_dimension) {
    cublasLtMatrixLayoutOpaque_t made{};
    check(api().layout_init(&made, sizeof made, type, static_cast<std::uint64_t>(rows),
                            static_cast<std::uint64_t>(columns), leading_dimension),
          "describe a matrix");
    return made;
  }

  [[nodiscard]] cublasLtMatrixLayoutOpaque_t a_layout(std::int64_t rows, std::int64_t row_stride) const {
    return layout(data_type(shape.input), shape.k, rows, row_stride);
  }
  [[nodiscard]] cublasLtMatrixLayoutOpaque_t d_layout(std::int64_t rows) const {
    return layout(CUDA_R_32F, shape.n, rows, shape.d_row_stride);
  }

  void choose() {
    cublasLtMatmulPreferenceOpaque_t preference{};
    check(api().preference_init(&preference, sizeof preference), "make a preference");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(api().preference_set(&preference, attribute, &value, sizeof value), "set a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_limit_bytes});
    // Split-K sums go through the workspace in float32, in a fixed order.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(attribute, std::uint32_t{16});
    }
    const ContextGuard guard(ordinal);
    cublasLtMatrixLayoutOpaque_t a = a_layout(shape.m, shape.a_row_stride);
    cublasLtMatrixLayoutOpaque_t d = d_layout(shape.m);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        api().heuristic(handle, &descriptor, &b_layout, &a, &d, &d, &preference, 1, &result, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
      throw Error(ErrorCode::unsupported, "cuBLASLt has no algorithm for a product of " + text(shape) + " on GPU " +
                                              std::to_string(ordinal) + " (" + api().status_text(status) + ")");
    }
    algorithm = result.algo;
    workspace_bytes = result.workspaceSize;
  }

  int ordinal;
  MatmulShape shape;
  cublasLtHandle_t handle;
  // Opaque structs that cublasLtMatmul only reads; its signature is not const-correct.
  mutable cublasLtMatmulDescOpaque_t descriptor{};
  mutable cublasLtMatrixLayoutOpaque_t b_layout{};
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
};

Matmul::Matmul(int ordinal, const MatmulShape& shape) : plan_(std::make_unique<const Plan>(ordinal, shape)) {}
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;
Matmul::~Matmul() = default;

std::size_t Matmul::workspace_bytes() const noexcept { return plan_->workspace_bytes; }

void Matmul::run(Stream stream, std::int64_t rows, const void* a, std::int64_t a_row_stride, const void* b, void* d,
                 void* workspace) const {
  const ContextGuard guard(plan_->ordinal);
  cublasLtMatrixLayoutOpaque_t a_layout = plan_->a_layout(rows, a_row_stride);
  cublasLtMatrixLayoutOpaque_t d_layout = plan_->d_layout(rows);
  const float one = 1.0F;
  const float zero = 0.0F;
  check(api().matmul(plan_->handle, &plan_->descriptor, &one, b, &plan_->b_layout, a, &a_layout, &zero, d, &d_layout, d,
                     &d_layout, &plan_->algorithm, workspace, plan_->workspace_bytes,
                     static_cast<cudaStream_t>(stream.handle)),
        "run a product");
}

}  // namespace thresher::runtime
