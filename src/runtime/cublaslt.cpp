#include "runtime/cublaslt.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <type_traits>

#include "runtime/cublaslt_api.hpp"
#include "runtime/driver.hpp"
#include "runtime/shared_library.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

using cublaslt::Api;

struct Library {
  CublasLtStatus status;
  Api api;
};

Library load_cublaslt() {
  Library loaded;
  const std::string_view remedy =
      "install cuBLAS 12 or newer (a CUDA toolkit, or pip install nvidia-cublas), or point THRESHER_LIBRARY_PATH to "
      "its folder";
  Api& api = loaded.api;
  const SharedLibrary library = SharedLibrary::open({"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, remedy},
                                                    {{"cublasLtGetVersion", api.version},
                                                     {"cublasLtGetStatusString", api.status_text},
                                                     {"cublasLtCreate", api.create},
                                                     {"cublasLtMatmulDescCreate", api.descriptor_create},
                                                     {"cublasLtMatmulDescDestroy", api.descriptor_destroy},
                                                     {"cublasLtMatmulDescSetAttribute", api.descriptor_set},
                                                     {"cublasLtMatrixLayoutInit_internal", api.layout_init},
                                                     {"cublasLtMatmulPreferenceCreate", api.preference_create},
                                                     {"cublasLtMatmulPreferenceDestroy", api.preference_destroy},
                                                     {"cublasLtMatmulPreferenceSetAttribute", api.preference_set},
                                                     {"cublasLtMatmulAlgoGetHeuristic", api.heuristic},
                                                     {"cublasLtMatmul", api.matmul}});
  loaded.status.library_path = library.path();
  loaded.status.problem = library.problem();
  if (loaded.api.version != nullptr) {
    loaded.status.version = loaded.api.version();
  }
  return loaded;
}

const Library& loaded_library() {
  static const Library* library = new Library(load_cublaslt());  // never destroyed: used by threads that outlive main
  return *library;
}

const Api& api() {
  const Library& library = loaded_library();
  if (!library.status.problem.empty()) {
    throw Error(ErrorCode::unsupported, library.status.problem);
  }
  return library.api;
}

void check(cublaslt::Status status, const char* doing) {
  if (status != cublaslt::success) {
    throw Error(ErrorCode::device, std::string("cuBLASLt failed to ") + doing + " (" + api().status_text(status) + ")");
  }
}

/// One handle per GPU, created once: several threads may use it in cublasLtMatmul at once.
cublaslt::Handle handle_of(int ordinal) {
  static std::array<std::once_flag, 64> once;
  static std::array<cublaslt::Handle, 64> handles{};
  const auto slot = static_cast<std::size_t>(ordinal);
  std::call_once(once.at(slot), [&] {
    const ContextGuard guard(ordinal);
    check(api().create(&handles[slot]), "create a handle");
  });
  return handles[slot];
}

cublaslt::DataType data_type(Format format) {
  switch (format) {
    case Format::fp16: return cublaslt::real_16f;
    case Format::bf16: return cublaslt::real_16bf;
    case Format::fp32: return cublaslt::real_32f;
    default: break;
  }
  throw Error(ErrorCode::internal, "cuBLASLt products take fp16, bf16 or fp32, not " + std::string(name(format)));
}

/// A descriptor with the function that destroys it.
template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, cublaslt::Status (*)(Pointer)>;

std::string text(const MatmulShape& shape) {
  return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) + " in " +
         std::string(name(shape.input));
}

}  // namespace

const CublasLtStatus& cublaslt_status() noexcept { return loaded_library().status; }

// cuBLASLt is column-major: row-major D[m,n] = A·Bᵀ is the column-major product D'[n,m] = op(B')·A'. B' and A' are k×n
// and k×m with the row strides as leading dimensions, and op transposes.
struct Matmul::Plan {
  Plan(int gpu, const MatmulShape& what) : ordinal(gpu), shape(what), handle(handle_of(gpu)) {
    const bool single = shape.input == Format::fp32;
    cublaslt::Descriptor made = nullptr;
    check(api().descriptor_create(&made, single ? cublaslt::compute_32f_pedantic : cublaslt::compute_32f,
                                  cublaslt::real_32f),
          "describe a product");
    descriptor = {made, api().descriptor_destroy};
    const cublaslt::Operation transpose = cublaslt::transposed;
    check(api().descriptor_set(made, cublaslt::descriptor_trans_a, &transpose, sizeof transpose), "describe a product");
    b_layout = layout(data_type(shape.input), shape.k, shape.n, shape.b_row_stride);
    choose();
  }

  static cublaslt::Layout layout(cublaslt::DataType type, std::int64_t rows, std::int64_t columns,
                                 std::int64_t leading_dimension) {
    cublaslt::Layout made{};
    check(api().layout_init(&made, sizeof made, type, static_cast<std::uint64_t>(rows),
                            static_cast<std::uint64_t>(columns), leading_dimension),
          "describe a matrix");
    return made;
  }

  [[nodiscard]] cublaslt::Layout a_layout(std::int64_t rows, std::int64_t row_stride) const {
    return layout(data_type(shape.input), shape.k, rows, row_stride);
  }
  [[nodiscard]] cublaslt::Layout d_layout(std::int64_t rows) const {
    return layout(cublaslt::real_32f, shape.n, rows, shape.d_row_stride);
  }

  void choose() {
    cublaslt::Preference made = nullptr;
    check(api().preference_create(&made), "make a preference");
    const Owned<cublaslt::Preference> preference(made, api().preference_destroy);
    const auto prefer = [&](cublaslt::PreferenceAttribute attribute, const auto& value) {
      check(api().preference_set(made, attribute, &value, sizeof value), "set a preference");
    };
    prefer(cublaslt::max_workspace_bytes, std::uint64_t{workspace_limit_bytes});
    // Split-K sums are added in the workspace in float32, in a fixed order.
    prefer(cublaslt::reduction_scheme_mask, std::uint32_t{cublaslt::reduction_none | cublaslt::reduction_compute_type});
    for (const auto attribute :
         {cublaslt::min_alignment_a, cublaslt::min_alignment_b, cublaslt::min_alignment_c, cublaslt::min_alignment_d}) {
      prefer(attribute, std::uint32_t{16});
    }
    const ContextGuard guard(ordinal);
    cublaslt::Layout a = a_layout(shape.m, shape.a_row_stride);
    cublaslt::Layout d = d_layout(shape.m);
    cublaslt::Heuristic result{};
    int found = 0;
    const cublaslt::Status status =
        api().heuristic(handle, descriptor.get(), &b_layout, &a, &d, &d, made, 1, &result, &found);
    if (status != cublaslt::success || found == 0) {
      throw Error(ErrorCode::unsupported, "cuBLASLt has no algorithm for a product of " + text(shape) + " on GPU " +
                                              std::to_string(ordinal) + " (" + api().status_text(status) + ")");
    }
    algorithm = result.algorithm;
    workspace_bytes = result.workspace_bytes;
  }

  int ordinal;
  MatmulShape shape;
  cublaslt::Handle handle;
  Owned<cublaslt::Descriptor> descriptor{nullptr, nullptr};
  mutable cublaslt::Layout b_layout{};  // cublasLtMatmul only reads it, though its signature is not const
  cublaslt::Algorithm algorithm{};
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
  cublaslt::Layout a_layout = plan_->a_layout(rows, a_row_stride);
  cublaslt::Layout d_layout = plan_->d_layout(rows);
  const float one = 1.0F;
  const float zero = 0.0F;
  check(api().matmul(plan_->handle, plan_->descriptor.get(), &one, b, &plan_->b_layout, a, &a_layout, &zero, d,
                     &d_layout, d, &d_layout, &plan_->algorithm, workspace, plan_->workspace_bytes, stream.handle),
        "run a product");
}

}  // namespace thresher::runtime
