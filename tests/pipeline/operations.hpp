#pragma once
// Small operations: two in order, and with BAD_OPERATIONS others that each have one hook wrong.
#include "pipeline/wgmma_skeleton.hpp"

namespace thresher::pipeline::test {

using namespace machine;

/// What every operation has.
struct Common {
  static constexpr Shape shape{.stages = 2, .slot_bytes = 1024, .math_warpgroups = 1};
  static constexpr int merge_pieces = 1;
  static constexpr u32 slot_load_bytes = 1024;
  using Engine = EngineOf<Arch::sm_90a>;
  using Sums = AccumulatorTiles<Engine, 8, 1>;
  struct Tile {};

  TH_DEVICE u32 tiles() const { return 1; }
  TH_DEVICE Tile tile(u32, u32) const { return {}; }
  TH_DEVICE u32 k_steps() const { return 1; }
  TH_DEVICE void prefetch() const {}
  TH_DEVICE void drain() const {}
  TH_DEVICE Global<u64> profile() const { return {}; }
};

/// Nothing but what is required.
struct Plain : Common {
  static constexpr Hooks hooks{};
  template <int pass>
  TH_DEVICE void load(const LoadSlot&, const Tile&, u32, u32) const {}
  template <int pass>
  TH_DEVICE void math(Sums&, Shared<u8>, u32) const {}
  TH_DEVICE void finish(Sums&, const Tile&, u32, u32, Shared<u8>) const {}
};

/// Every hook.
struct Hooked : Common {
  static constexpr Hooks hooks{.ahead = true, .prepare = true, .load_constant = true, .makes_operand = true};
  static constexpr int blocks_per_slot = 2;
  static constexpr int steps_per_block = 1;
  static constexpr int slots_together = 1;
  static constexpr Overlap overlap = Overlap::block;
  using Element = Half;
  struct Packed {};
  struct Ahead {};

  TH_DEVICE void load_constant(const LoadSlot&, const Tile&, u32) const {}
  TH_DEVICE void load_fresh(const LoadSlot&, const Tile&, u32) const {}
  TH_DEVICE bool prepare(Shared<u8>, u32) const { return false; }
  TH_DEVICE Packed fetch(Shared<u8>, int, u32) const { return {}; }
  TH_DEVICE Engine::Fragment expand(const Packed&, int) const { return {}; }
  TH_DEVICE Engine::Descriptor<Swizzle::b128> other(Shared<u8> slot, int) const {
    return Engine::descriptor<Swizzle::b128>(slot, 0, 1024);
  }
  static TH_DEVICE Engine::Descriptor<Swizzle::b128> step(Engine::Descriptor<Swizzle::b128> block, int) {
    return block;
  }
  TH_DEVICE Ahead ahead(const Tile&, u32, u32) const { return {}; }
  TH_DEVICE void finish(Sums&, const Tile&, u32, u32, Shared<u8>, const Ahead&) const {}
};

#ifndef BAD_OPERATIONS
TH_KERNEL(160, 1)
kernel() {
  run(Plain{});
  run(Hooked{});
}
#else
struct MisspeltPrepare : Plain {
  static constexpr Hooks hooks{.prepare = true};
  TH_DEVICE bool prepair(Shared<u8>, u32) const { return true; }
};
struct MistypedPrepare : Plain {
  static constexpr Hooks hooks{.prepare = true};
  TH_DEVICE void prepare(Shared<u8>, u32) const {}
};
struct UnlistedPrepare : Plain {
  TH_DEVICE bool prepare(Shared<u8>, u32) const { return true; }
};
struct MisspeltAhead : Plain {
  static constexpr Hooks hooks{.ahead = true};
  struct Ahead {};
  TH_DEVICE Ahead look_ahead(const Tile&, u32, u32) const { return {}; }
  TH_DEVICE void finish(Sums&, const Tile&, u32, u32, Shared<u8>, const Ahead&) const {}
};
struct UnlistedAhead : Plain {
  TH_DEVICE int ahead(const Tile&, u32, u32) const { return 0; }
};
struct UnusedAhead : Plain {
  static constexpr Hooks hooks{.ahead = true};
  struct Ahead {};
  TH_DEVICE Ahead ahead(const Tile&, u32, u32) const { return {}; }
};
struct MisspeltLoadConstant : Plain {
  static constexpr Hooks hooks{.load_constant = true};
  TH_DEVICE void load_constants(const LoadSlot&, const Tile&, u32) const {}
  TH_DEVICE void load_fresh(const LoadSlot&, const Tile&, u32) const {}
};
struct UnlistedLoadConstant : Plain {
  TH_DEVICE void load_constant(const LoadSlot&, const Tile&, u32) const {}
};
struct MisspeltLoad : Common {
  static constexpr Hooks hooks{};
  template <int pass>
  TH_DEVICE void lode(const LoadSlot&, const Tile&, u32, u32) const {}
  template <int pass>
  TH_DEVICE void math(Sums&, Shared<u8>, u32) const {}
  TH_DEVICE void finish(Sums&, const Tile&, u32, u32, Shared<u8>) const {}
};
struct MistypedFinish : Plain {
  TH_DEVICE void finish(Sums&, const Tile&, u32, Shared<u8>, u32) const {}
};
struct MistypedExpand : Hooked {
  TH_DEVICE Engine::Fragment expand(const Packed&) const { return {}; }
};
struct UnlistedSlotsTogether : Plain {
  static constexpr int slots_together = 2;
};
/// It does not even say that it has none.
struct Unhooked : Common {};

TH_KERNEL(160, 1)
kernel() {
#ifdef BAD_OPERATION
  run(BAD_OPERATION{});
#else
  run(MisspeltPrepare{});
  run(MistypedPrepare{});
  run(UnlistedPrepare{});
  run(MisspeltAhead{});
  run(UnlistedAhead{});
  run(UnusedAhead{});
  run(MisspeltLoadConstant{});
  run(UnlistedLoadConstant{});
  run(MisspeltLoad{});
  run(MistypedFinish{});
  run(MistypedExpand{});
  run(UnlistedSlotsTogether{});
  run(Unhooked{});
#endif
}
#endif

}  // namespace thresher::pipeline::test
