#pragma once
/// Parts of a layer's Operation (operation.cpp), in files of their own.
#include "arena/moe_layer/task.hpp"
#include "arena/operation/operation.hpp"

namespace thresher::arena {

// arguments.cpp
[[nodiscard]] std::vector<Argument> layer_arguments(const LayerTask& task, const FindTensor& find);
/// "bf16*bf16->bf16*nvfp4->fp16": of x, of gate and up, of the intermediate, of down and of out.
[[nodiscard]] std::string layer_formats(const LayerTask& task);

// fields.cpp
void add_layer_problems(bool is_dense, const ProblemTable& tables, std::vector<Problem>& problems);
/// Ragged beside every tile; some choices are skipped, and some tokens have an expert twice.
[[nodiscard]] LayerTask layer_example(bool is_dense);

// emulated.cpp
[[nodiscard]] const EmulatedOperation* layer_emulation(bool is_dense);

}  // namespace thresher::arena
