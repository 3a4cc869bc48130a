#pragma once
/// Describes calls to a kernel's process before they are made.
#include <algorithm>

#include "arena/user_kernels/process/calls.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"

namespace thresher::arena::user_kernels {

/// Describes the calls to the process as `binding`, and waits for its answer; `about` is common to all of them. `place`
/// translates an address into the process's form.
template <class Place>
void tell_calls(KernelProcess& process, std::uint32_t binding, Writer about, const Calls& calls, Place place) {
  process.ask_later(std::move(about));
  for (std::size_t first = 0; first < calls.size(); first += calls_per_message) {
    Writer some(Ask::add_calls);
    some.put(binding);
    for (std::size_t set = first; set < std::min(first + calls_per_message, calls.size()); ++set) {
      thresher_own_dual_gemm call = calls[set];
      translate_addresses(call, place);
      some.put(call);
    }
    process.ask_later(std::move(some));
  }
  // A strategy of Thresher's own packs weights here, or fails.
  (void)process.ask(Writer(Ask::complete).put(binding));
}

}  // namespace thresher::arena::user_kernels
