#pragma once
// One product of every shape that the tensor core has: C[rows, columns] = A[rows, k]·B[columns, k]ᵀ with k of 128
// bytes, loaded once, by one block or by a pair. Warps 0 to 3 finish, warp 4 loads, warp 5 multiplies and owns the
// tensor memory. Each `ShapeDefect` is one line that differs.
#include "machine/machine.hpp"
#include "machine/tcgen05.hpp"

namespace planted {

using namespace thresher::machine;

enum class ShapeDefect {
  none,
  second_scales_two_columns_on,  // B's second block of scales lies two columns behind its first, not four
  one_block_of_scales_of_b,      // B's second block of scales is not copied
  loads_lanes_without_rows,      // the finishing warps load the upper lanes, where 64 rows have none
  takes_the_first_column,        // the place is taken to be what it usually is
};

/// A tile. `rows` and `columns` are D's, of both blocks of a pair.
struct TensorTile {
  Group group;
  tcgen05::Kind kind;
  u32 rows;
  u32 columns;
};

struct ShapesParams {
  TensorMap a;  // bytes: boxes of 64 or 128 rows × 128
  TensorMap b;  // boxes of the columns of one block × 128
  Global<u8> a_scales;
  Global<u8> b_scales;
  Global<float> c;  // [rows][columns]
  ShapeDefect defect;
};

template <TensorTile tile, typename Element>
struct TensorShapes {
  const ShapesParams& params;

  static constexpr Group group = tile.group;
  static constexpr u32 blocks = group == Group::pair ? 2 : 1;
  static constexpr bool is_scaled = tile.kind == tcgen05::Kind::nvfp4;
  static constexpr u32 block_rows = tile.rows / blocks;
  static constexpr u32 block_columns = tile.columns / blocks;
  static constexpr bool has_two_lanes_a_row = block_rows == 64 && blocks == 2;
  static constexpr bool has_half_of_the_lanes = block_rows == 64 && blocks == 1;
  static constexpr u32 lane_columns = tile.columns / (has_two_lanes_a_row ? 2 : 1);
  static constexpr u32 k_blocks = 4;  // instructions
  static constexpr u32 a_bytes = block_rows * 128;
  static constexpr u32 b_bytes = block_columns * 128;
  static constexpr u32 b_scale_blocks = (tile.columns + 127) / 128;
  static constexpr u32 a_scale_bytes = is_scaled ? k_blocks * tcgen05::scale_block_bytes : 0;
  static constexpr u32 b_scale_bytes = a_scale_bytes * b_scale_blocks;
  static constexpr u32 operand_bytes = a_bytes + b_bytes + a_scale_bytes + b_scale_bytes;
  static constexpr u32 shared_bytes = operand_bytes + 64;
  static constexpr u32 set_columns = (1 + b_scale_blocks) * tcgen05::scale_block_columns;  // of an instruction
  static constexpr u32 allocated = tile.columns <= 64 ? 128 : 512;
  static_assert(!is_scaled || tile.columns + k_blocks * set_columns <= allocated);
  static_assert(!is_scaled || blocks == 1);

  TH_DEVICE bool is(ShapeDefect wanted) const { return params.defect == wanted; }
  TH_DEVICE static Shared<u8> at(u32 offset) { return launch::shared_memory().offset_bytes(offset); }
  TH_DEVICE static Barrier full() { return Barrier{at(operand_bytes).address}; }
  TH_DEVICE static Barrier done() { return full().offset(1); }
  TH_DEVICE static Shared<u32> place() { return Shared<u32>{at(operand_bytes + 32).address}; }
  TH_DEVICE static u32 rank() { return blocks == 2 ? cluster::rank() : 0; }

  TH_DEVICE static void meet() {
    if constexpr (blocks == 2) {
      cluster::sync();
    } else {
      block::sync();
    }
  }

  TH_DEVICE tensor_memory::Columns prepare() const {
    if (launch::thread_index() == 0) {
      full().init(blocks);
      done().init(1);
      debug::name_barrier(full(), "full", 0);
      debug::name_barrier(done(), "done", 0);
      fence::barrier_init();
    }
    meet();
    if (warp::index() == 5) {
      tensor_memory::allocate<group, allocated>(place());
      tensor_memory::give_up_allocation<group>();
    }
    tensor_memory::before_barrier();
    meet();
    tensor_memory::after_barrier();
    return {is(ShapeDefect::takes_the_first_column) ? 0 : place().load()};
  }

  TH_DEVICE void load() const {
    debug::role("load");
    const At of_a{i32{0}, static_cast<i32>(rank() * block_rows)};
    const At of_b{i32{0}, static_cast<i32>(rank() * block_columns)};
    if constexpr (blocks == 2) {
      cluster::map(full(), 0).arrive_expect_bytes(operand_bytes);
      tma::load_pair(at(0), params.a, full(), of_a);
      tma::load_pair(at(a_bytes), params.b, full(), of_b);
    } else {
      full().arrive_expect_bytes(operand_bytes);
      tma::load(at(0), params.a, full(), of_a);
      tma::load(at(a_bytes), params.b, full(), of_b);
    }
    if constexpr (is_scaled) {
      tma::load_bulk(at(a_bytes + b_bytes), params.a_scales, a_scale_bytes, full());
      tma::load_bulk(at(a_bytes + b_bytes + a_scale_bytes), params.b_scales, b_scale_bytes, full());
    }
  }

  TH_DEVICE void copy_scales(tensor_memory::Columns set, u32 k) const {
    const Shared<u8> of_a = at(a_bytes + b_bytes + k * tcgen05::scale_block_bytes);
    tcgen05::copy_scales<group>(set, tcgen05::scale_block(of_a));
    const u32 copied = is(ShapeDefect::one_block_of_scales_of_b) ? 1 : b_scale_blocks;
    const u32 distance = is(ShapeDefect::second_scales_two_columns_on) ? 2 : tcgen05::scale_block_columns;
    for (u32 i = 0; i < copied; ++i) {
      const Shared<u8> of_b = at(a_bytes + b_bytes + a_scale_bytes + (i * k_blocks + k) * tcgen05::scale_block_bytes);
      tcgen05::copy_scales<group>(set.plus(tcgen05::scale_block_columns + i * distance), tcgen05::scale_block(of_b));
    }
  }

  TH_DEVICE void multiply(tensor_memory::Columns sums) const {
    debug::role("multiply");
    if constexpr (blocks == 2) {
      full().wait_cluster(Phase{0});
    } else {
      full().wait(Phase{0});
    }
    const auto a = tcgen05::descriptor<Swizzle::b128>(at(0), 0, 1024);
    const auto b = tcgen05::descriptor<Swizzle::b128>(at(a_bytes), 0, 1024);
    for (u32 k = 0; k < k_blocks; ++k) {
      if constexpr (is_scaled) {
        constexpr auto word = tcgen05::instruction<tile.kind>(tile.rows, tile.columns);
        const auto set = sums.plus(tile.columns + k * set_columns);
        copy_scales(set, k);
        tcgen05::multiply_scaled<group>(sums, a.advance(k * 32), b.advance(k * 32), word, set,
                                        set.plus(tcgen05::scale_block_columns), k != 0);
      } else {
        constexpr auto word = tcgen05::instruction<tile.kind, Element>(tile.rows, tile.columns);
        tcgen05::multiply<group, tile.kind>(sums, a.advance(k * 32), b.advance(k * 32), word, k != 0);
      }
    }
    if constexpr (blocks == 2) {
      tcgen05::commit_multicast<group>(done(), 3);
    } else {
      tcgen05::commit<group>(done());
    }
  }

  /// 16 lanes of this warp's quarter, 16 columns at a time.
  TH_DEVICE void store_slab(tensor_memory::Columns sums, u32 slab) const {
    const u32 warp = warp::index();
    const u32 first_lane = warp * 32 + slab * 16;
    const u32 first_row = has_half_of_the_lanes ? warp * 16 : first_lane % block_rows;
    const u32 first_column = has_two_lanes_a_row ? first_lane / 64 * lane_columns : 0;
    for (u32 column = 0; column < lane_columns; column += 16) {
      auto words = tensor_memory::load_fragments<16>(sums.plus(column), slab);
      tensor_memory::wait_loads(words);
      for (u32 i = 0; i < 8; ++i) {
        const u32 row = rank() * block_rows + first_row + warp::lane() / 4 + i / 2 % 2 * 8;
        const u32 n = first_column + column + i / 4 * 8 + warp::lane() % 4 * 2 + i % 2;
        params.c.store(row * tile.columns + n, words.get_float(static_cast<int>(i)));
      }
    }
  }

  TH_DEVICE void finish(tensor_memory::Columns sums) const {
    debug::role("finish");
    done().wait(Phase{0});
    tensor_memory::after_barrier();
    if constexpr (has_half_of_the_lanes) {
      store_slab(sums, is(ShapeDefect::loads_lanes_without_rows) ? 1 : 0);
    } else {
      store_slab(sums, 0);
      store_slab(sums, 1);
    }
  }

  TH_DEVICE void run() const {
    const tensor_memory::Columns sums = prepare();
    const u32 warp = warp::index();
    if (warp < 4) {
      finish(sums);
    } else if (warp == 4) {
      if (warp::elect()) {
        load();
      }
    } else if (rank() == 0) {
      if (warp::elect()) {
        multiply(sums);
      }
    }
    tensor_memory::before_barrier();
    meet();
    tensor_memory::after_barrier();
    if (warp == 5) {
      tensor_memory::deallocate<group, allocated>({place().load()});
    }
  }
};

template <TensorTile tile, typename Element = void>
TH_KERNEL(192, 1)
tensor_shapes(TH_GRID_CONSTANT const ShapesParams params) {
  TensorShapes<tile, Element>{params}.run();
}

}  // namespace planted
