#pragma once
// Small operations of the tensor memory skeleton: one in order, and with BAD_OPERATIONS others that each have one thing
// wrong.
#include "pipeline/tcgen05_skeleton.hpp"

namespace thresher::pipeline::test {

using namespace machine;

/// What every operation has.
struct Common {
  static constexpr TensorShape shape{.stages = 2, .slot_bytes = 1024, .sum_columns = 64, .scale_columns = 32};
  struct Tile {};
  struct Ahead {};

  TH_DEVICE u32 tiles() const { return 1; }
  TH_DEVICE Tile tile(u32, u32) const { return {}; }
  TH_DEVICE u32 k_steps() const { return 1; }
  TH_DEVICE u32 slot_load_bytes(const Tile&) const { return 1024; }
  TH_DEVICE void prefetch() const {}
  TH_DEVICE Global<u64> profile() const { return {}; }
};

struct Plain : Common {
  TH_DEVICE void load_weights(const LoadSlot&, const Tile&, u32, u32) const {}
  TH_DEVICE void load_tokens(const LoadSlot&, const Tile&, u32, u32) const {}
  TH_DEVICE void multiply(Shared<u8>, tensor_memory::Columns, tensor_memory::Columns, u32, bool) const {}
  TH_DEVICE Ahead ahead(const Tile&, const BlockPlace&, Shared<u32>) const { return {}; }
  template <class Sums>
  TH_DEVICE void finish(const Sums&, const Tile&, u32, const BlockPlace&, Shared<u8>, const Ahead&) const {}
};

#ifndef BAD_OPERATIONS
TH_KERNEL(192, 1)
kernel() { run_tcgen05(Plain{}); }
#else
struct MisspeltLoad : Plain {
  TH_DEVICE void load_tokens(const LoadSlot&, const Tile&) const {}
};
struct MistypedMultiply : Plain {
  TH_DEVICE void multiply(Shared<u8>, tensor_memory::Columns, bool) const {}
};
struct MistypedAhead : Plain {
  TH_DEVICE Ahead ahead(const Tile&) const { return {}; }
};
struct MistypedFinish : Plain {
  template <class Sums>
  TH_DEVICE void finish(const Sums&, const Tile&, Shared<u8>, const Ahead&) const {}
};
struct TooManyColumns : Plain {
  static constexpr TensorShape shape{.stages = 9, .slot_bytes = 1024, .sum_columns = 256, .scale_columns = 32};
};
struct TooManyBytes : Plain {
  static constexpr TensorShape shape{.stages = 8, .slot_bytes = 30 * 1024, .sum_columns = 64, .scale_columns = 32};
};
struct SlotsBetweenAtoms : Plain {
  static constexpr TensorShape shape{.stages = 2, .slot_bytes = 1536, .sum_columns = 64, .scale_columns = 32};
};
struct OneAccumulatorOfAPersistentBlock : Plain {
  static constexpr TensorShape shape{
      .stages = 2, .slot_bytes = 1024, .sum_columns = 64, .scale_columns = 32, .persistent = true};
};
struct SplitOfAPersistentBlock : Plain {
  static constexpr TensorShape shape{.stages = 2,
                                     .slot_bytes = 32768,
                                     .sums = 2,
                                     .sum_columns = 64,
                                     .scale_columns = 32,
                                     .split_groups = 2,
                                     .persistent = true};
};
/// It does not even say what it loads.
struct Unshaped {};

TH_KERNEL(192, 1)
kernel() {
  run_tcgen05(MisspeltLoad{});
  run_tcgen05(MistypedMultiply{});
  run_tcgen05(MistypedAhead{});
  run_tcgen05(MistypedFinish{});
  run_tcgen05(TooManyColumns{});
  run_tcgen05(TooManyBytes{});
  run_tcgen05(SlotsBetweenAtoms{});
  run_tcgen05(OneAccumulatorOfAPersistentBlock{});
  run_tcgen05(SplitOfAPersistentBlock{});
  run_tcgen05(Unshaped{});
}
#endif

}  // namespace thresher::pipeline::test
