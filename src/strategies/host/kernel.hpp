#pragma once
/// Kernels as functions of the host, for the emulator. Kernels that are compiled on request include this too.
namespace thresher::strategies {

/// Does what one GPU thread does; `params` is the kernel's one parameter.
using HostKernel = void (*)(const void* params);

template <class Params>
void call(void (*kernel)(Params), const void* params) {
  kernel(*static_cast<const Params*>(params));
}

/// A kernel of any operation as a HostKernel.
template <auto kernel>
void host_kernel(const void* params) {
  call(kernel, params);
}

}  // namespace thresher::strategies
