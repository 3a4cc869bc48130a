#include "arena/operation.hpp"

#include "arena/dual_gemm_operation.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {

const Operation& find_operation(std::string_view name) {
  static const DualGemmOperation dual_gemm;
  if (name != dual_gemm.name()) {
    throw Error(ErrorCode::internal, "the arena knows no operation " + std::string(name));
  }
  return dual_gemm;
}

}  // namespace thresher::arena
