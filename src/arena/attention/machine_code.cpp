#include "arena/attention/machine_code.hpp"

#include "ops/attention_launch.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::arena {
namespace {

/// The products of one block of keys by one warpgroup: queries times keys along the head, weights times values along
/// the keys; one instruction covers 16 of either and all columns.
AuditExpectations expected_of(const AttentionProblem& problem, const ops::AttentionChoice& choice) {
  AuditExpectations out;
  const bool is_pipelined = choice.strategy == "pipelined";
  if (is_pipelined || choice.strategy == "split") {
    const int keys = is_pipelined ? choice.stream.keys : pipeline::attention::SplitConfig::chunk;
    out.matrix_kind = "HGMMA";
    out.min_matrix_instructions = (static_cast<int>(problem.head_dim) + keys) / 16;
    out.min_tma_loads = 3;  // queries, keys, values
    return out;
  }
  out.uses_shared_memory = choice.strategy != "simple" && choice.staging != strategies::attention::Staging::none;
  return out;
}

}  // namespace

MachineCode attention_machine_code(const AttentionProblem& problem, const AttentionOptions& options,
                                   int multiprocessors, const std::string& arch) {
  const ops::AttentionChoice choice = ops::choose_attention(problem, options, multiprocessors);
  const ops::CompiledProgram compiled = ops::compile_program(ops::attention_program(problem, choice), arch);
  const runtime::CompiledKernel& kernel = compiled.cubin.kernels.front();
  const auto shared_bytes = static_cast<int>(ops::attention_geometry(choice).shared_bytes);
  return {{{"attention " + choice.strategy, kernel.lowered_name, compiled.cubin.image, compiled.cubin.toolchain,
            kernel.resources, shared_bytes, expected_of(problem, choice)}},
          ""};
}

}  // namespace thresher::arena
