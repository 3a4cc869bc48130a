#pragma once
/// The checks that every attention backend relies on. Each throws Error(invalid_argument) with one sentence.
#include <array>
#include <cstddef>

#include "thresher/attention.hpp"

namespace thresher::ops {

inline constexpr std::array<std::int64_t, 5> head_dims{64, 128, 192, 256, 576};
inline constexpr std::array<std::int64_t, 5> value_dims{64, 128, 192, 256, 512};

/// Shapes, formats and options of the problem itself.
void validate(const AttentionProblem& problem);
/// A descale that has an extent of 1 where sequences or heads share it, as [B,Hk] with strides of 0.
[[nodiscard]] Tensor expanded_descale(Tensor descale, const AttentionProblem& problem);
/// The tensors and the workspace of one run: formats, shapes, strides, alignment, memory; on the CPU the contents of
/// cu_seqlens, block_table, seqused_k and the descales too.
void validate_run(const AttentionProblem& problem, const AttentionTensors& tensors, const void* workspace,
                  std::size_t workspace_bytes, DeviceId device);

}  // namespace thresher::ops
