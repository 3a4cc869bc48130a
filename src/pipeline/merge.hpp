#pragma once
/// Adds up the partial sums of the blocks with split K, through distributed shared memory.
///
/// `ready`: 1 arrival by each consumer warp of every OTHER block that receives sums, when its stages are drained and
/// may be overwritten. `landed`: armed once, before the block's products, with the bytes that the other blocks will
/// send; their asynchronous stores complete it. Each block ends with the sums of some of the columns, so that all have
/// the same work afterwards. With fewer groups of 8 columns than blocks, the last blocks receive none. It can run once
/// per launch: a persistent block would refill the stages that receive the partial sums.
#include "machine/barrier.hpp"
#include "machine/cluster.hpp"
#include "machine/debug.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"
#include "pipeline/accumulator_tiles.hpp"
#include "pipeline/shape.hpp"

namespace thresher::pipeline {

/// `Tiles` are AccumulatorTiles whose elements are `pieces` equal ranges of whole groups of 8 columns.
template <Shape shape, class Tiles, int pieces>
class Merge {
 public:
  static constexpr int blocks = shape.split_blocks;
  static constexpr int piece = Tiles::elements / pieces;
  static constexpr int kept = static_cast<int>(kept_columns(shape, piece * 2)) / 2;  ///< elements of a piece
  static constexpr int keepers = piece / kept;
  static constexpr int kept_quads = Tiles::count * pieces * kept / 4;
  static constexpr u32 received_bytes = static_cast<u32>((blocks - 1) * math_threads(shape) * kept_quads * 16);
  static_assert(!shape.persistent, "partial sums land in the slots");
  static_assert(piece % kept == 0 && kept % 4 == 0,
                "each block that keeps any keeps as many whole groups of 8 columns");
  static_assert(received_bytes <= static_cast<u32>(slots_bytes(shape)), "the partial sums fit in the slots");

  /// `part` is this block's part of the k range, and of the columns.
  TH_DEVICE Merge(Shared<u8> slots, Barrier barriers, u32 part, u32 member)
      : buffer_(slots.as<Quad>()), ready_(barriers), landed_(barriers.offset(1)), part_(part), member_(member) {}

  /// One thread calls it before the first cluster barrier.
  TH_DEVICE void init() const {
    const u32 others = is_keeper() ? keepers - 1 : keepers;
    ready_.init(4 * shape.math_warpgroups * (others > 0 ? others : 1));
    landed_.init(1);
    debug::name_barrier(ready_, "merge ready");
    debug::name_barrier(landed_, "merge landed");
  }
  /// The same thread, then, where the block has a tile.
  TH_DEVICE void expect() const {
    if (is_keeper()) {
      landed_.arrive_expect_bytes(received_bytes);
    }
  }

  /// All consumer threads call it once their products have retired. Afterwards the first columns of each piece of
  /// `tiles` hold the sums of the columns that this block keeps.
  TH_DEVICE void run(Tiles& tiles) const {
    if (is_keeper() && warp::lane() == 0) {
      TH_UNROLL
      for (u32 other = 0; other < blocks; ++other) {
        if (other != part_) {
          cluster::map(ready_, block(other)).arrive();
        }
      }
    }
    if (keepers > 1 || !is_keeper()) {
      ready_.wait_cluster(Phase{0});
    }
    deal(tiles);
    if (is_keeper()) {
      landed_.wait_cluster(Phase{0});
      add(tiles);
    }
  }

 private:
  using Quad = Vector<float, 4>;

  TH_DEVICE bool is_keeper() const { return keepers == blocks || part_ < keepers; }
  /// The block of a part, among those of the cluster.
  TH_DEVICE u32 block(u32 part) const { return part * shape.multicast_blocks + member_; }
  /// Each thread's words are math_threads apart, so that a warp's accesses are contiguous.
  static TH_DEVICE u32 place(int quad) { return quad * math_threads(shape) + launch::thread_index(); }

  /// Calls `use(tile, element, quad)` for the first element of each four that a block keeps.
  template <int part, class Use>
  static TH_DEVICE void each_quad(const Use& use) {
    int quad = 0;
    TH_UNROLL
    for (int t = 0; t < Tiles::count; ++t) {
      TH_UNROLL
      for (int first = 0; first < Tiles::elements; first += piece) {
        TH_UNROLL
        for (int i = 0; i < kept; i += 4) {
          use(t, first + part * kept + i, quad);
          ++quad;
        }
      }
    }
  }

  /// The columns of each part, in their order: those that were sent make room for the block's own.
  template <int part = 0>
  TH_DEVICE void deal(Tiles& tiles) const {
    if (part_ == static_cast<u32>(part)) {
      keep<part>(tiles);
    } else {
      send<part>(tiles);
    }
    if constexpr (part + 1 < keepers) {
      deal<part + 1>(tiles);
    }
  }

  template <int part>
  static TH_DEVICE void keep(Tiles& tiles) {
    each_quad<part>([&](int t, int i, int) {
      TH_UNROLL
      for (int e = 0; e < 4; ++e) {
        tiles.tile[t].set(i - part * kept + e, tiles.tile[t].get(i + e));
      }
    });
  }

  /// A receiver has a place for each other block's sums, in the order of the parts.
  template <int part>
  TH_DEVICE void send(const Tiles& tiles) const {
    const u32 source = part_ > static_cast<u32>(part) ? part_ - 1 : part_;
    const Remote<Quad> destination =
        cluster::map(buffer_.offset(source * kept_quads * math_threads(shape)), block(part));
    const RemoteBarrier landed = cluster::map(landed_, block(part));
    each_quad<part>([&](int t, int i, int quad) {
      Quad sent;
      TH_UNROLL
      for (int e = 0; e < 4; ++e) {
        sent.at[e] = tiles.tile[t].get(i + e);
      }
      cluster::store_async(destination.offset(place(quad)), sent, landed);
    });
  }

  TH_DEVICE void add(Tiles& tiles) const {
    TH_UNROLL
    for (int source = 0; source < blocks - 1; ++source) {
      each_quad<0>([&](int t, int i, int quad) {
        const Quad received = buffer_.load(place(source * kept_quads + quad));
        TH_UNROLL
        for (int e = 0; e < 4; ++e) {
          tiles.tile[t].set(i + e, tiles.tile[t].get(i + e) + received.at[e]);
        }
      });
    }
  }

  Shared<Quad> buffer_;
  Barrier ready_;
  Barrier landed_;
  u32 part_;
  u32 member_;
};

}  // namespace thresher::pipeline
