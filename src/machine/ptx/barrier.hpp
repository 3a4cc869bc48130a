#pragma once
/// mbarrier on the GPU. Each wait loop is one block of PTX: a loop in C++ would make the compiler serialise wgmma
/// around it.
#include "machine/barrier.hpp"

namespace thresher::machine {

TH_DEVICE void RemoteBarrier::arrive(Site) const {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}

TH_DEVICE void RemoteBarrier::arrive_expect_bytes(u32 bytes, Site) const {
  asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
}

TH_DEVICE void Barrier::init(u32 arrivals, Site) const {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals) : "memory");
}

TH_DEVICE void Barrier::arrive(u32 count, Site) const {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(count) : "memory");
}

TH_DEVICE void Barrier::expect_bytes(u32 count, Site) const {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(count) : "memory");
}

TH_DEVICE void Barrier::arrive_expect_bytes(u32 count, Site) const {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(count) : "memory");
}

TH_DEVICE void Barrier::wait(Phase phase, Site) const {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(address),
      "r"(phase.parity)
      : "memory");
}

TH_DEVICE void Barrier::wait_cluster(Phase phase, Site) const {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(address),
      "r"(phase.parity)
      : "memory");
}

}  // namespace thresher::machine
