#pragma once
/// cp.async on the GPU.
#include "machine/async_copy.hpp"

namespace thresher::machine::async_copy {

TH_DEVICE void copy16(Shared<u8> destination, Global<u8> source, bool valid, Site) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination.address), "l"(source.address),
               "r"(valid ? 16 : 0)
               : "memory");
}

TH_DEVICE void copy4(Shared<u8> destination, Global<u8> source, bool valid, Site) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination.address), "l"(source.address),
               "r"(valid ? 4 : 0)
               : "memory");
}

TH_DEVICE void commit(Site) { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int pending>
TH_DEVICE void wait(Site) {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

TH_DEVICE void arrive_when_done(Barrier barrier, Site) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier.address) : "memory");
}

}  // namespace thresher::machine::async_copy
