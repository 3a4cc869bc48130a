#pragma once
/// Fences on the GPU.
#include "machine/fence.hpp"

namespace thresher::machine::fence {

TH_DEVICE void async_shared(Site) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TH_DEVICE void barrier_init(Site) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TH_DEVICE void block(Site) { asm volatile("fence.acq_rel.cta;" ::: "memory"); }

}  // namespace thresher::machine::fence
