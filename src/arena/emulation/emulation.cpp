#include "arena/emulation/emulation.hpp"

#include <array>

#include "arena/emulation/attention.hpp"
#include "arena/emulation/dual_gemm.hpp"

namespace thresher::arena {
namespace {

std::array<const EmulatedOperation*, 2> operations() { return {&emulated_dual_gemm(), &emulated_attention()}; }

}  // namespace

const EmulatedOperation* find_emulated_operation(std::string_view name) {
  for (const EmulatedOperation* operation : operations()) {
    if (operation->name() == name) {
      return operation;
    }
  }
  return nullptr;
}

std::vector<std::string> emulated_operations() {
  std::vector<std::string> names;
  for (const EmulatedOperation* operation : operations()) {
    names.emplace_back(operation->name());
  }
  return names;
}

}  // namespace thresher::arena
