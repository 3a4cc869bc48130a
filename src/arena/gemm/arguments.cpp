#include "arena/gemm/arguments.hpp"

#include <fmt/format.h>

#include "arena/gemm/inputs.hpp"
#include "arena/operation/fields.hpp"

namespace thresher::arena {
namespace {

void declare(Argument& argument, ArgumentKind kind, Format format) {
  argument.kind = kind;
  argument.value.format = format;
}

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

std::vector<Argument> gemm_arguments(const GroupedProblem& p, const FindTensor& find) {
  Arguments all(find);
  all.extent("m", "rows of A and of C", p.rows);
  all.extent("n", "rows of B, columns of C", p.n);
  all.extent("k", "columns of A and B", p.k);
  all.input("a", "[m, k]");
  all.weight("b", "[n, k]", "b1").value = only_matrix(find("b1"));
  Argument& bias = all.weight("bias", "[n]", "bias1");
  bias.value = only_matrix(find("bias1"));
  make_optional(bias);
  all.output("c", "[m, n]");
  return std::move(all).all();
}

void add_weights(const GroupedProblem& p, Arguments& all) {
  if (!p.activation) {
    all.weight("b", "[experts, n, k]", "b1");
    make_optional(all.weight("bias", "[experts, n]", "bias1"));
    return;
  }
  all.weight("b1", "the gate [experts, n, k]; with an order gate and up [experts, 2 n, k]");
  all.weight("b2", "up [experts, n, k]; none with an order");
  make_optional(all.weight("bias1", "of b1 [experts, n] or [experts, 2 n]"));
  make_optional(all.weight("bias2", "of b2 [experts, n]"));
  make_optional(all.weight("up_global_scales", "of up [experts], with an order; that of b1 is the gate's"));
}

void add_rows(Arguments& all) {
  make_optional(all.input("offsets", "int32 [experts + 1]: expert e owns rows offsets[e] to offsets[e + 1]"));
  make_optional(all.input("counts", "int32 [experts], of slots: expert e owns the first counts[e] rows of its slot"));
  make_optional(all.input("row_ids", "int32 [rows], of gathered: row r takes row row_ids[r] / row_ids_divisor of A"));
  make_optional(all.input("row_weights", "float32, one for each row of C"));
  make_optional(all.input("c_scale", "float32 [1], of slots [experts]: the scale that C in fp8_tensor is divided by"));
}

std::vector<Argument> grouped_arguments(const ProductTask& task, const FindTensor& find) {
  const GroupedProblem& p = task.problem;
  Arguments all(find);
  all.extent("experts", "groups of rows, each with weights of its own", p.experts);
  all.extent("rows", "rows of C; of slots the rows of each", p.rows);
  all.extent("n", "columns of C", p.n);
  all.extent("k", "columns of A", p.k);
  all.extent("tokens", "rows of A where rows are gathered", p.tokens);
  all.input("a", "[rows, k]; of slots [experts, rows, k]; of gathered [tokens, k]");
  add_weights(p, all);
  add_rows(all);
  all.output("c", "[rows, n]; of slots [experts, rows, n]. A row that no expert owns stays unwritten");
  make_optional(all.output("c_scales", "float32, of C in fp8_row and fp8_block: its values are divided by them"));
  all.choice("layout", "of rows", names_of(all_row_layouts), static_cast<std::size_t>(p.layout));
  all.integer("row_ids_divisor", "ids outside [0, tokens row_ids_divisor) own no row", p.row_ids_divisor).usual = 1;
  if (p.activation) {
    all.order(task.order);
    all.activation(*p.activation);
  }
  return std::move(all).all();
}

}  // namespace

std::vector<Argument> product_arguments(const ProductTask& task, const FindTensor& find) {
  return !task.is_dense        ? grouped_arguments(task, find)
         : task.is_dual_gemm() ? dual_gemm_arguments(task.problem, find)
                               : gemm_arguments(task.problem, find);
}

std::string formats_text(const ProductTask& task) {
  const GroupedProblem& p = task.problem;
  return fmt::format("{}*{}->{}", name(p.a), name(p.b), name(p.out));
}

}  // namespace thresher::arena
