#pragma once
/// The part of a consumer warpgroup where tokens are rows of the matrix instruction.
#include "pipeline/accumulator_tiles.hpp"
#include "strategies/gemm/device/finish_rows.hpp"
#include "strategies/gemm/device/token_row_scales.hpp"
#include "strategies/gemm/wgmma/device/operation.hpp"

namespace thresher::strategies::gemm::wgmma {

template <Config config>
class RowsOperation : public Operation<config> {
 public:
  using Engine = typename Operation<config>::Engine;
  using Slots = typename Operation<config>::Slots;
  static constexpr SlotLayout slots = Operation<config>::slots;

  using Operation<config>::Operation;

  /// A consumer warpgroup's work on tiles of so many rows.
  template <u32 rows>
  class Part {
   public:
    static constexpr int count = rows / sum_rows / tile_warpgroups(config);
    static constexpr int columns = 2 * config.block_outputs;
    static constexpr int pieces = count * column_pieces(config);
    using Sums = pipeline::AccumulatorTiles<Engine, columns, count>;
    using Fresh =
        pipeline::AccumulatorTiles<Engine, columns / column_pieces(config), column_pieces(config) == 1 ? count : 1>;
    using Finishing = FinishRows<finish_knobs(config), count, columns>;
    using Scales = TokenRowScales<scaling_knobs(config), config.matrices, count, columns>;
    using Factors = typename Scales::Factors;
    struct Ahead {
      typename Finishing::Ahead finishing;
      typename Scales::Ahead scales;
    };

    TH_DEVICE Part(const RowsOperation& operation, u32 warpgroup)
        : params_(operation.params_), first_row_(config.by_turns ? 0 : warpgroup * count * sum_rows) {}

    /// Whether any of the tile's rows are this warpgroup's.
    TH_DEVICE bool has_rows(const pipeline::GroupTile& tile) const { return first_row_ < tile.rows; }

    TH_DEVICE Ahead ahead(const pipeline::GroupTile& tile, const pipeline::GroupTile&) const {
      return {finishing(tile).ahead(own(tile)), scales(tile).ahead(own(tile))};
    }

    TH_DEVICE void multiply(Sums& sums, Shared<u8> slot) const {
      TH_UNROLL
      for (int panel = 0; panel < slots.panels(); ++panel) {
        TH_UNROLL
        for (int at = 0; at < slots.row_bytes(); at += product_row_bytes) {
          TH_UNROLL
          for (int t = 0; t < count; ++t) {
            multiply(sums.tile[t], slot, panel, at, t, 0, true);
          }
        }
      }
    }

    TH_DEVICE Factors factors(const Ahead& ahead, u32 step) const {
      return scales({}).factors(ahead.scales, step * config.block_k / scale_block);
    }
    TH_DEVICE void multiply_piece(Fresh& fresh, Shared<u8> slot, int piece) const {
      const int t = piece / column_pieces(config);
      TH_UNROLL
      for (int at = 0; at < slots.row_bytes(); at += product_row_bytes) {
        multiply(fresh.tile[piece % Fresh::count], slot, 0, at, t, first_column(piece), at != 0);
      }
    }
    TH_DEVICE const Factors& spread(const Factors& factors) const { return factors; }
    TH_DEVICE void promote(Sums& sums, const Fresh& fresh, const Ahead& ahead, const Factors& factors,
                           int piece) const {
      const int t = piece / column_pieces(config);
      scales({}).promote(sums.tile[t], fresh.tile[piece % Fresh::count], first_column(piece), ahead.scales, factors, t);
    }

    TH_DEVICE void finish(Sums& sums, const pipeline::GroupTile& tile, Shared<u8>, const Ahead& ahead) const {
      scales(tile).scale(sums, own(tile), ahead.scales);
      finishing(tile).write(sums, own(tile), ahead.finishing);
    }

   private:
    using Element = typename NumberType<config.operand>::type;

    /// The products of 32 bytes along K, `at` of a panel, of one tile's rows with the columns from the first on.
    template <class Products>
    TH_DEVICE void multiply(Products& products, Shared<u8> slot, int panel, int at, int t, int first,
                            bool accumulate) const {
      const auto tokens = Slots::tokens(slot, panel, first_row_);
      const auto weights = Slots::weights(slot, panel, 0);
      Engine::template multiply<Element>(products, tokens.advance(t * sum_rows * slots.row_bytes() + at),
                                         weights.advance(first * slots.row_bytes() + at), accumulate);
    }

    /// Returns the first of a tile's columns that the piece has.
    static TH_DEVICE constexpr int first_column(int piece) { return piece % column_pieces(config) * Fresh::columns; }

    /// The rows of the tile from this warpgroup's first on.
    TH_DEVICE pipeline::GroupTile own(pipeline::GroupTile tile) const {
      tile.row += first_row_;
      tile.rows -= first_row_;
      return tile;
    }
    TH_DEVICE Finishing finishing(const pipeline::GroupTile& tile) const {
      return {params_.finish, tile.column * tile_outputs(config)};
    }
    TH_DEVICE Scales scales(const pipeline::GroupTile& tile) const {
      return {params_, tile.column * tile_outputs(config)};
    }

    const PlainParams& params_;
    u32 first_row_;  ///< of the tile's, of this warpgroup
  };
};

/// The entry point: instantiated for each Config, by NVRTC for the GPU and by the host's compiler for the emulator.
template <Config config>
TH_KERNEL(pipeline::threads(shape_of(config)), 1)
rows_kernel(TH_GRID_CONSTANT const PlainParams params) {
  pipeline::run_grouped(RowsOperation<config>(params));
}

}  // namespace thresher::strategies::gemm::wgmma
