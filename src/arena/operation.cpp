#include "arena/operation.hpp"

#include <array>

#include "arena/attention/operation.hpp"
#include "arena/dual_gemm/operation.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {

const Operation& find_operation(std::string_view name) {
  static const DualGemmOperation dual_gemm;
  static const AttentionOperation attention;
  static const std::array<const Operation*, 2> operations{&dual_gemm, &attention};
  for (const Operation* operation : operations) {
    if (operation->name() == name) {
      return *operation;
    }
  }
  throw Error(ErrorCode::internal, "the arena knows no operation " + std::string(name));
}

}  // namespace thresher::arena
