#pragma once
/// Describes calls to a kernel's process before they are made.
#include <algorithm>

#include "arena/user_kernels/process/calls.hpp"
#include "arena/user_kernels/process/kernel_process.hpp"

namespace thresher::arena::user_kernels {

/// Describes the calls to the process as `binding`, and waits for its answer. `place` translates an address into the
/// process's form, and `launch` goes with the binding.
template <class Place>
void tell_calls(KernelProcess& process, std::uint32_t binding, const Calls& calls, const Place& place,
                const Writer& launch = {}) {
  Writer about(Ask::bind);
  about.put(binding);
  put(about, calls.layout());
  process.ask_later(std::move(about.put_bytes(calls.about().bytes()).put_bytes(launch.bytes())));
  const std::size_t calls_per_message = std::max<std::size_t>(max_calls_bytes / calls.layout().bytes, 1);
  for (std::size_t first = 0; first < calls.size(); first += calls_per_message) {
    Writer some(Ask::add_calls);
    some.put(binding);
    for (std::size_t set = first; set < std::min(first + calls_per_message, calls.size()); ++set) {
      std::vector<std::byte> call = calls[set];
      translate_addresses(call, calls.layout().addresses, place);
      some.put_bytes(call);
    }
    process.ask_later(std::move(some));
  }
  // A strategy of Thresher's own packs weights here, or fails.
  (void)process.ask(Writer(Ask::complete).put(binding));
}

}  // namespace thresher::arena::user_kernels
