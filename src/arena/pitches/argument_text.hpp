#pragma once
/// The arguments of kernels, as text for people and for compilers.
#include <string>

namespace thresher::arena::user_kernels {

/// include/thresher/own_calls.h: a structure for each operation.
[[nodiscard]] std::string calls_header();

/// The body of docs/reference/kernel-arguments.md.
[[nodiscard]] std::string arguments_page();

}  // namespace thresher::arena::user_kernels
