#pragma once
/// The TMA on the GPU.
#include "machine/tma.hpp"

namespace thresher::machine::tma {

namespace ptx {

using machine::ptx::policy;

TH_DEVICE u64 address(const TensorMap& map) { return reinterpret_cast<u64>(&map); }

/// The coordinates of a box as asm operands, numbered from `first` by the macros that use them.
#define TH_COORDINATES_1(at) "r"((at).coordinate[0])
#define TH_COORDINATES_2(at) TH_COORDINATES_1(at), "r"((at).coordinate[1])
#define TH_COORDINATES_3(at) TH_COORDINATES_2(at), "r"((at).coordinate[2])
#define TH_COORDINATES_4(at) TH_COORDINATES_3(at), "r"((at).coordinate[3])
#define TH_COORDINATES_5(at) TH_COORDINATES_4(at), "r"((at).coordinate[4])

/// `list` are the operand numbers of the coordinates; the operands after them are %a and %b.
#define TH_TMA_LOAD(rank, list)                                                                                        \
  asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {" list \
               "}], [%2];" ::"r"(destination.address),                                                                 \
               "l"(address(map)), "r"(full.address), TH_COORDINATES_##rank(at)                                         \
               : "memory")
#define TH_TMA_LOAD_HINT(rank, list, a)                                                           \
  asm volatile("cp.async.bulk.tensor." #rank                                                      \
               "d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "      \
               "[%1, {" list "}], [%2], %" #a ";" ::"r"(destination.address),                     \
               "l"(address(map)), "r"(full.address), TH_COORDINATES_##rank(at), "l"(policy(hint)) \
               : "memory")
#define TH_TMA_MULTICAST(rank, list, a)                                                                     \
  asm volatile("cp.async.bulk.tensor." #rank                                                                \
               "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" list \
               "}], [%2], %" #a ";" ::"r"(destination.address),                                             \
               "l"(address(map)), "r"(full.address), TH_COORDINATES_##rank(at), "h"(block_mask)             \
               : "memory")
#define TH_TMA_MULTICAST_HINT(rank, list, a, b)                                                                    \
  asm volatile("cp.async.bulk.tensor." #rank                                                                       \
               "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "          \
               "[%0], [%1, {" list "}], [%2], %" #a ", %" #b ";" ::"r"(destination.address),                       \
               "l"(address(map)), "r"(full.address), TH_COORDINATES_##rank(at), "h"(block_mask), "l"(policy(hint)) \
               : "memory")
/// The same address in the even block of a pair: bit 24 of an address in a cluster's shared memory distinguishes the
/// two.
#define TH_TMA_LOAD_PAIR(rank, list)                                                                  \
  asm volatile("cp.async.bulk.tensor." #rank                                                          \
               "d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {" list \
               "}], [%2];" ::"r"(destination.address),                                                \
               "l"(address(map)), "r"(full.address & 0xFEFFFFFFU), TH_COORDINATES_##rank(at)          \
               : "memory")
#define TH_TMA_PAIR_MULTICAST(rank, list, a)                                                                    \
  asm volatile(                                                                                                 \
      "cp.async.bulk.tensor." #rank                                                                             \
      "d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" list \
      "}], [%2], %" #a ";" ::"r"(destination.address),                                                          \
      "l"(address(map)), "r"(full.address & 0xFEFFFFFFU), TH_COORDINATES_##rank(at), "h"(block_mask)            \
      : "memory")
#define TH_TMA_STORE(rank, list)                                                           \
  asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta.bulk_group [%0, {" list \
               "}], [%1];" ::"l"(address(map)),                                            \
               "r"(source.address), TH_COORDINATES_##rank(at)                              \
               : "memory")

}  // namespace ptx

TH_DEVICE void prefetch(const TensorMap& map, Site) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(ptx::address(map)) : "memory");
}

template <int rank>
TH_DEVICE void load(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, CacheHint hint, Site) {
  using namespace ptx;
  if constexpr (rank == 1) {
    if (hint == CacheHint::none) {
      TH_TMA_LOAD(1, "%3");
    } else {
      TH_TMA_LOAD_HINT(1, "%3", 4);
    }
  } else if constexpr (rank == 2) {
    if (hint == CacheHint::none) {
      TH_TMA_LOAD(2, "%3, %4");
    } else {
      TH_TMA_LOAD_HINT(2, "%3, %4", 5);
    }
  } else if constexpr (rank == 3) {
    if (hint == CacheHint::none) {
      TH_TMA_LOAD(3, "%3, %4, %5");
    } else {
      TH_TMA_LOAD_HINT(3, "%3, %4, %5", 6);
    }
  } else if constexpr (rank == 4) {
    if (hint == CacheHint::none) {
      TH_TMA_LOAD(4, "%3, %4, %5, %6");
    } else {
      TH_TMA_LOAD_HINT(4, "%3, %4, %5, %6", 7);
    }
  } else {
    static_assert(rank == 5);
    if (hint == CacheHint::none) {
      TH_TMA_LOAD(5, "%3, %4, %5, %6, %7");
    } else {
      TH_TMA_LOAD_HINT(5, "%3, %4, %5, %6, %7", 8);
    }
  }
}

template <int rank>
TH_DEVICE void load_pair(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, Site) {
  using namespace ptx;
  if constexpr (rank == 1) {
    TH_TMA_LOAD_PAIR(1, "%3");
  } else if constexpr (rank == 2) {
    TH_TMA_LOAD_PAIR(2, "%3, %4");
  } else if constexpr (rank == 3) {
    TH_TMA_LOAD_PAIR(3, "%3, %4, %5");
  } else if constexpr (rank == 4) {
    TH_TMA_LOAD_PAIR(4, "%3, %4, %5, %6");
  } else {
    static_assert(rank == 5);
    TH_TMA_LOAD_PAIR(5, "%3, %4, %5, %6, %7");
  }
}

template <int rank>
TH_DEVICE void load_pair_multicast(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at,
                                   u16 block_mask, Site) {
  using namespace ptx;
  if constexpr (rank == 1) {
    TH_TMA_PAIR_MULTICAST(1, "%3", 4);
  } else if constexpr (rank == 2) {
    TH_TMA_PAIR_MULTICAST(2, "%3, %4", 5);
  } else if constexpr (rank == 3) {
    TH_TMA_PAIR_MULTICAST(3, "%3, %4, %5", 6);
  } else if constexpr (rank == 4) {
    TH_TMA_PAIR_MULTICAST(4, "%3, %4, %5, %6", 7);
  } else {
    static_assert(rank == 5);
    TH_TMA_PAIR_MULTICAST(5, "%3, %4, %5, %6, %7", 8);
  }
}

template <int rank>
TH_DEVICE void load_multicast(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, u16 block_mask,
                              CacheHint hint, Site) {
  using namespace ptx;
  if constexpr (rank == 1) {
    if (hint == CacheHint::none) {
      TH_TMA_MULTICAST(1, "%3", 4);
    } else {
      TH_TMA_MULTICAST_HINT(1, "%3", 4, 5);
    }
  } else if constexpr (rank == 2) {
    if (hint == CacheHint::none) {
      TH_TMA_MULTICAST(2, "%3, %4", 5);
    } else {
      TH_TMA_MULTICAST_HINT(2, "%3, %4", 5, 6);
    }
  } else if constexpr (rank == 3) {
    if (hint == CacheHint::none) {
      TH_TMA_MULTICAST(3, "%3, %4, %5", 6);
    } else {
      TH_TMA_MULTICAST_HINT(3, "%3, %4, %5", 6, 7);
    }
  } else if constexpr (rank == 4) {
    if (hint == CacheHint::none) {
      TH_TMA_MULTICAST(4, "%3, %4, %5, %6", 7);
    } else {
      TH_TMA_MULTICAST_HINT(4, "%3, %4, %5, %6", 7, 8);
    }
  } else {
    static_assert(rank == 5);
    if (hint == CacheHint::none) {
      TH_TMA_MULTICAST(5, "%3, %4, %5, %6, %7", 8);
    } else {
      TH_TMA_MULTICAST_HINT(5, "%3, %4, %5, %6, %7", 8, 9);
    }
  }
}

template <int rank>
TH_DEVICE void store(const TensorMap& map, Shared<u8> source, At<rank> at, Site) {
  using namespace ptx;
  if constexpr (rank == 1) {
    TH_TMA_STORE(1, "%2");
  } else if constexpr (rank == 2) {
    TH_TMA_STORE(2, "%2, %3");
  } else if constexpr (rank == 3) {
    TH_TMA_STORE(3, "%2, %3, %4");
  } else if constexpr (rank == 4) {
    TH_TMA_STORE(4, "%2, %3, %4, %5");
  } else {
    static_assert(rank == 5);
    TH_TMA_STORE(5, "%2, %3, %4, %5, %6");
  }
}

#undef TH_TMA_LOAD
#undef TH_TMA_LOAD_HINT
#undef TH_TMA_MULTICAST
#undef TH_TMA_MULTICAST_HINT
#undef TH_TMA_LOAD_PAIR
#undef TH_TMA_PAIR_MULTICAST
#undef TH_TMA_STORE
#undef TH_COORDINATES_1
#undef TH_COORDINATES_2
#undef TH_COORDINATES_3
#undef TH_COORDINATES_4
#undef TH_COORDINATES_5

TH_DEVICE void load_bulk(Shared<u8> destination, Global<u8> source, u32 bytes, Barrier full, CacheHint hint, Site) {
  if (hint == CacheHint::none) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     destination.address),
                 "l"(source.address), "r"(bytes), "r"(full.address)
                 : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(destination.address),
        "l"(source.address), "r"(bytes), "r"(full.address), "l"(ptx::policy(hint))
        : "memory");
  }
}

TH_DEVICE void load_bulk_multicast(Shared<u8> destination, Global<u8> source, u32 bytes, Barrier full, u16 block_mask,
                                   Site) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(destination.address),
      "l"(source.address), "r"(bytes), "r"(full.address), "h"(block_mask)
      : "memory");
}

TH_DEVICE void prefetch_bulk(Global<u8> source, u32 bytes, Site) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source.address), "r"(bytes) : "memory");
}

TH_DEVICE void commit(Site) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

template <int pending>
TH_DEVICE void wait_read(Site) {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

template <int pending>
TH_DEVICE void wait(Site) {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace thresher::machine::tma
