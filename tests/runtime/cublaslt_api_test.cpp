#include "runtime/cublaslt_api.hpp"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <type_traits>

namespace thresher::runtime::cublaslt {
namespace {

static_assert(success == CUBLAS_STATUS_SUCCESS);
static_assert(int{real_32f} == CUDA_R_32F && int{real_16f} == CUDA_R_16F && int{real_16bf} == CUDA_R_16BF);
static_assert(int{compute_32f} == CUBLAS_COMPUTE_32F && int{compute_32f_pedantic} == CUBLAS_COMPUTE_32F_PEDANTIC);
static_assert(int{transposed} == CUBLAS_OP_T && int{descriptor_trans_a} == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(std::uint32_t{reduction_none} == CUBLASLT_REDUCTION_SCHEME_NONE);
static_assert(std::uint32_t{reduction_compute_type} == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(int{max_workspace_bytes} == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(int{reduction_scheme_mask} == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(int{min_alignment_a} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(int{min_alignment_b} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(int{min_alignment_c} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(int{min_alignment_d} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

template <class Own, class Theirs>
constexpr bool is_same_value = sizeof(Own) == sizeof(Theirs) && std::is_pointer_v<Own> == std::is_pointer_v<Theirs>;

/// Whether two functions take as many arguments, each of the same size and kind.
template <class Own, class Theirs>
constexpr bool is_same_call = false;
template <class R, class... A, class S, class... B>
constexpr bool is_same_call<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) == sizeof...(B)) {
    return is_same_value<R, S> && (is_same_value<A, B> && ...);
  }
  return false;
}();

TEST(CublasLtInterface, IsThatOfTheHeader) {
  static_assert(sizeof(Layout) == sizeof(cublasLtMatrixLayoutOpaque_t));
  static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
  static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
  static_assert(offsetof(Heuristic, algorithm) == offsetof(cublasLtMatmulHeuristicResult_t, algo));
  static_assert(offsetof(Heuristic, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
#define THRESHER_EXPECT(member, function) \
  EXPECT_TRUE((is_same_call<decltype(Api::member), decltype(&::function)>)) << #function
  THRESHER_EXPECT(version, cublasLtGetVersion);
  THRESHER_EXPECT(status_text, cublasLtGetStatusString);
  THRESHER_EXPECT(create, cublasLtCreate);
  THRESHER_EXPECT(descriptor_create, cublasLtMatmulDescCreate);
  THRESHER_EXPECT(descriptor_destroy, cublasLtMatmulDescDestroy);
  THRESHER_EXPECT(descriptor_set, cublasLtMatmulDescSetAttribute);
  THRESHER_EXPECT(layout_init, cublasLtMatrixLayoutInit_internal);
  THRESHER_EXPECT(preference_create, cublasLtMatmulPreferenceCreate);
  THRESHER_EXPECT(preference_destroy, cublasLtMatmulPreferenceDestroy);
  THRESHER_EXPECT(preference_set, cublasLtMatmulPreferenceSetAttribute);
  THRESHER_EXPECT(heuristic, cublasLtMatmulAlgoGetHeuristic);
  THRESHER_EXPECT(matmul, cublasLtMatmul);
#undef THRESHER_EXPECT
}

}  // namespace
}  // namespace thresher::runtime::cublaslt
