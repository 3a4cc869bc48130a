#pragma once
/// The arguments of user kernels for products.
#include <string>
#include <vector>

#include "arena/gemm/task.hpp"
#include "arena/operation/argument.hpp"

namespace thresher::arena {

[[nodiscard]] std::vector<Argument> product_arguments(const ProductTask& task, const FindTensor& find);

/// "fp16*nvfp4->fp16": of A, of the weights and of C.
[[nodiscard]] std::string formats_text(const ProductTask& task);

}  // namespace thresher::arena
