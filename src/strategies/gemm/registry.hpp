#pragma once
/// Every strategy of the products.
#include <cstdint>
#include <initializer_list>

#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

/// A strategy is offered for some of these products.
enum class Product : std::uint8_t {
  dual_gemm,
  gemm,
  grouped,  ///< of one matrix and of two
};

/// Tells which product `problem` is.
[[nodiscard]] Product product_of(const ProductProblem& problem) noexcept;

/// Those that a kind of device offers for a product. The first is what a reader should know first, not what is always
/// chosen.
[[nodiscard]] Strategies<ProductProblem> strategies_of(Product product, DeviceKind kind);

/// Adds one behind the others, for the life of the process; `strategy` must live as long. Not while another thread asks
/// for strategies. Throws Error(invalid_argument) for a name that its kind of device already has for that product.
void register_strategy(const Strategy<ProductProblem>& strategy, std::initializer_list<Product> products);

}  // namespace thresher::strategies::gemm
