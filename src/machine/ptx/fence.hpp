#pragma once
/// Fences on the GPU.
#include "machine/fence.hpp"

namespace thresher::machine::fence {

TH_DEVICE void async_shared(Site) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TH_DEVICE void async_all(Site) { asm volatile("fence.proxy.async;" ::: "memory"); }
TH_DEVICE void barrier_init(Site) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TH_DEVICE void block(Site) { asm volatile("fence.acq_rel.cta;" ::: "memory"); }
TH_DEVICE void cluster(Site) { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }
TH_DEVICE void gpu(Site) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

}  // namespace thresher::machine::fence
