#include "strategies/gemm/registry.hpp"

#include <array>
#include <vector>

#include "strategies/registry.hpp"

namespace thresher::strategies::gemm {
namespace {

struct Offer {
  const Strategy<ProductProblem>& strategy;
  std::vector<Product> products;
};

/// In the order of each product's list.
std::vector<Offer> own_offers() {
  const std::vector<Product> dual{Product::dual_gemm};
  const std::vector<Product> dense{Product::dual_gemm, Product::gemm};
  const std::vector<Product> others{Product::gemm, Product::grouped};
  return {
      {packed_strategy(), dual},          {interleaved_strategy(), dense},    {sequential_strategy(), dual},
      {pingpong_strategy(), dense},       {columns_strategy(), dual},         {rows_strategy(), dual},
      {tcgen05_strategy(), dual},         {tcgen05_plain_strategy(), dual},   {two_pass_strategy(), dual},
      {cpu_interleaved_strategy(), dual}, {cpu_two_pass_strategy(), dual},    {columns_strategy(), others},
      {rows_strategy(), others},          {packed_strategy(), others},        {tcgen05_strategy(), others},
      {tcgen05_plain_strategy(), others}, {cpu_by_expert_strategy(), others},
  };
}

/// One list for each product.
class Lists {
 public:
  Lists() {
    for (const Offer& offer : own_offers()) {
      for (const Product product : offer.products) {
        of(product).add(offer.strategy);
      }
    }
  }
  Registry<ProductProblem>& of(Product product) { return lists_.at(static_cast<std::size_t>(product)); }

 private:
  std::array<Registry<ProductProblem>, 3> lists_{
      {{"the dual GEMM", {}, {}}, {"the GEMM", {}, {}}, {"the grouped GEMM", {}, {}}}};
};

Lists& lists() {
  static Lists all;
  return all;
}

}  // namespace

Product product_of(const ProductProblem& problem) noexcept {
  if (!problem.is_dense()) {
    return Product::grouped;
  }
  return problem.matrices() == 2 ? Product::dual_gemm : Product::gemm;
}

Strategies<ProductProblem> strategies_of(Product product, DeviceKind kind) { return lists().of(product).of(kind); }

void register_strategy(const Strategy<ProductProblem>& strategy, std::initializer_list<Product> products) {
  for (const Product product : products) {
    lists().of(product).add(strategy);
  }
}

}  // namespace thresher::strategies::gemm
