#include "arena/gemm/arguments.hpp"

#include <fmt/format.h>

namespace thresher::arena {
namespace {

void declare(Argument& argument, ArgumentKind kind, Format format) {
  argument.kind = kind;
  argument.value.format = format;
}

/// C = activation(A·B1ᵀ) ∘ (A·B2ᵀ).
std::vector<Argument> dual_gemm_arguments(const GroupedProblem& p, const FindTensor& find) {
  Arguments all(find);
  all.extent("m", "tokens: rows of A and of C", p.rows);
  all.extent("n", "rows of B1 and B2, columns of C", p.n);
  all.extent("k", "columns of A, B1 and B2", p.k);
  declare(all.input("a", "[m, k]"), ArgumentKind::matrix, p.a);
  declare(all.weight("b1", "the gate [n, k]"), ArgumentKind::matrix, p.b);
  declare(all.weight("b2", "up [n, k]"), ArgumentKind::matrix, p.b);
  declare(all.output("c", "[m, n]"), ArgumentKind::output_matrix, p.out);
  all.activation(*p.activation);
  return std::move(all).all();
}

}  // namespace

std::vector<Argument> product_arguments(const ProductTask& task, const FindTensor& find) {
  return task.is_dual_gemm() ? dual_gemm_arguments(task.problem, find) : std::vector<Argument>{};
}

std::string formats_text(const ProductTask& task) {
  const GroupedProblem& p = task.problem;
  return fmt::format("{}*{}->{}", name(p.a), name(p.b), name(p.out));
}

}  // namespace thresher::arena
