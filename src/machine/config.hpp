#pragma once
/// Selects the vocabulary's body for this translation unit, and defines the few macros that a kernel needs.
///
/// TH_GPU is 1 when a CUDA compiler (NVRTC, or nvcc in either of its passes) reads the source: the bodies are then
/// those of machine/ptx. Any other compiler gets machine/emulator. Kernel sources never test TH_GPU themselves.
#if defined(__CUDACC__)
#define TH_GPU 1
#define TH_DEVICE __device__ __forceinline__
/// A kernel: `template <Config config> TH_KERNEL(config.threads, 1) name(TH_GRID_CONSTANT const Params params)`. On the
/// GPU it is a __global__ function that NVRTC instantiates by name expression. Elsewhere it is an ordinary function
/// that emulator::launch calls once per thread. Parameters are plain structs whose layout is the same in both bodies.
#define TH_KERNEL(max_threads, min_blocks_per_multiprocessor) \
  __global__ void __launch_bounds__(max_threads, min_blocks_per_multiprocessor)
#define TH_GRID_CONSTANT __grid_constant__
#else
#define TH_GPU 0
#define TH_DEVICE inline
#define TH_KERNEL(max_threads, min_blocks_per_multiprocessor) inline void
#define TH_GRID_CONSTANT
#endif

/// Loops that must be unrolled (register arrays indexed by the loop variable) or must stay rolled. The host's compiler
/// decides itself.
#if TH_GPU
#define TH_UNROLL _Pragma("unroll")
#define TH_NO_UNROLL _Pragma("unroll 1")
#else
#define TH_UNROLL
#define TH_NO_UNROLL
#endif
