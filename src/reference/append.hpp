#pragma once
/// THE definition of RoPE and of appending new tokens, in float64; all results are compared with it.
#include <string>
#include <vector>

#include "thresher/append.hpp"

namespace thresher::reference {

/// Rotated rows before any rounding, dense: q is [T,H,D], k [T,Hk,D], v [T,Hk,value_dim].
struct AppendResult {
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
};

/// Reads q, k, v, positions and cos_sin of `tensors`, which must be on the CPU and not have been written yet.
AppendResult append(const AppendProblem& problem, const AppendTensors& tensors);

/// One sentence about the first wrong element of q_out, k_out or a slot; empty when there is none. An element of fp16
/// or bf16 is right within 1 ulp of the definition and 2⁻²⁰ of the pair's magnitudes. An FP8 value is right within one
/// step of e4m3 at value / descale, which is limited to ±448. 16-bit values are copied exactly.
std::string fault_in_append(const AppendProblem& problem, const AppendTensors& tensors, const AppendResult& definition);

}  // namespace thresher::reference
