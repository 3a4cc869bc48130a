#pragma once
/// Adds up the partial sums of the two blocks with split K, through distributed shared memory.
///
/// `ready`: 1 arrival by each consumer warp of the OTHER block, when its stages are drained and may be overwritten.
/// `landed`: armed once, at the start, with the bytes that the other block will send; its asynchronous stores complete
/// it. Each block ends with the sums of one half of the columns, so that both have the same work afterwards. It can run
/// once per launch: a persistent block would refill the stages that receive the partial sums.
#include "machine/barrier.hpp"
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

/// `Tiles` are AccumulatorTiles whose elements are `pieces` equal ranges, each split in two halves of whole groups of 8
/// columns.
template <Shape shape, class Tiles, int pieces>
class Merge {
 public:
  static constexpr int half_piece = Tiles::elements / pieces / 2;
  static constexpr int sent_quads = Tiles::count * Tiles::elements / 2 / 4;
  static constexpr u32 sent_bytes = math_threads(shape) * sent_quads * 16;
  static_assert(!shape.persistent, "partial sums land in the slots");
  static_assert(half_piece % 4 == 0, "a half is whole groups of 8 columns");
  static_assert(sent_bytes <= static_cast<u32>(shape.stages * shape.slot_bytes), "the partial sums fit in the slots");

  /// `half` is the half of the columns that this block keeps: its rank among the two.
  TH_DEVICE Merge(Shared<u8> slots, Barrier barriers, u32 half, u32 other_block)
      : buffer_(slots.as<Quad>()),
        ready_(barriers),
        landed_(barriers.offset(1)),
        half_(half),
        other_block_(other_block) {}

  /// One thread calls it before the first cluster barrier.
  TH_DEVICE void init() const {
    ready_.init(4 * shape.math_warpgroups);
    landed_.init(1);
    landed_.arrive_expect_bytes(sent_bytes);
    debug::name_barrier(ready_, "merge ready");
    debug::name_barrier(landed_, "merge landed");
  }

  /// All consumer threads call it once their products have retired. Afterwards the first half of each piece of `tiles`
  /// holds the sums of the half of the columns that this block keeps.
  TH_DEVICE void run(Tiles& tiles) const {
    if (warp::lane() == 0) {
      cluster::map(ready_, other_block_).arrive();
    }
    ready_.wait_cluster(Phase{0});
    send(tiles);
    landed_.wait_cluster(Phase{0});
    add(tiles);
  }

 private:
  using Quad = Vector<float, 4>;

  /// Each thread's words are math_threads apart, so that a warp's accesses are contiguous.
  static TH_DEVICE u32 place(int quad) { return quad * math_threads(shape) + launch::thread_index(); }

  TH_DEVICE void send(Tiles& tiles) const {
    const Remote<Quad> destination = cluster::map(buffer_, other_block_);
    const RemoteBarrier landed = cluster::map(landed_, other_block_);
    int quad = 0;
    TH_UNROLL
    for (int t = 0; t < Tiles::count; ++t) {
      TH_UNROLL
      for (int first = 0; first < Tiles::elements; first += 2 * half_piece) {
        TH_UNROLL
        for (int i = first; i < first + half_piece; i += 4) {
          Quad sent;
          TH_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float low = tiles.tile[t].get(i + e);
            const float high = tiles.tile[t].get(i + half_piece + e);
            sent.at[e] = half_ == 0 ? high : low;
            tiles.tile[t].set(i + e, half_ == 0 ? low : high);
          }
          cluster::store_async(destination.offset(place(quad)), sent, landed);
          ++quad;
        }
      }
    }
  }

  TH_DEVICE void add(Tiles& tiles) const {
    int quad = 0;
    TH_UNROLL
    for (int t = 0; t < Tiles::count; ++t) {
      TH_UNROLL
      for (int first = 0; first < Tiles::elements; first += 2 * half_piece) {
        TH_UNROLL
        for (int i = first; i < first + half_piece; i += 4) {
          const Quad received = buffer_.load(place(quad));
          TH_UNROLL
          for (int e = 0; e < 4; ++e) {
            tiles.tile[t].set(i + e, tiles.tile[t].get(i + e) + received.at[e]);
          }
          ++quad;
        }
      }
    }
  }

  Shared<Quad> buffer_;
  Barrier ready_;
  Barrier landed_;
  u32 half_;
  u32 other_block_;
};

}  // namespace thresher::pipeline
