#pragma once
/// Copies rows of tokens to the rows of their assignments. Where a piece goes is known after it was asked for: its
/// token is, before the assignments are permuted.
#include "machine/launch.hpp"
#include "machine/shared.hpp"
#include "strategies/moe_layer/params.hpp"

namespace thresher::strategies::moe_layer {

using namespace machine;

inline constexpr u32 no_row = 0xFFFF'FFFF;  ///< of a skipped assignment: −1 in the inverse

/// Neighbouring assignments, which a block places.
struct OwnChoices {
  u32 first = 0;
  u32 end = 0;
};

/// Pieces of 16 bytes, or of 2, from piece `first` on: `count` of each token that has any of the assignments. They are
/// dealt to the block's threads token by token. A piece is read once for all of its token's assignments. A thread has
/// `together` of them on their way at once.
template <class Piece, u32 together>
class TokenPieces {
 public:
  TH_DEVICE TokenPieces(const gemm::GatherParams& params, OwnChoices own, u32 first, u32 count)
      : params_(params),
        own_(own),
        end_token_((own.end - 1) / params.divisor + 1),
        first_(first),
        count_(count),
        next_{own.first / params.divisor, launch::thread_index()},
        step_{0, route_threads} {
    if (count == 0) {
      next_.token = end_token_;
      return;
    }
    next_ = {next_.token + next_.piece / count, next_.piece % count};
    step_ = {route_threads / count, route_threads % count};
  }

  /// Asks for the thread's next pieces.
  TH_DEVICE void load() {
    Place at = next_;
    TH_UNROLL
    for (u32 i = 0; i < together; ++i, advance(at)) {
      if (at.token < end_token_) {
        const Global<u8> row = params_.from.offset(static_cast<i64>(at.token * params_.from_stride));
        pieces_[i] = row.template as<Piece>().load(first_ + at.piece);
      }
    }
  }

  /// Stores what load() asked for. `rows` has the row of each assignment, or no_row.
  TH_DEVICE void store(Shared<u32> rows) {
    TH_UNROLL
    for (u32 i = 0; i < together; ++i, advance(next_)) {
      if (has_next()) {
        store_for_token(next_, pieces_[i], rows);
      }
    }
  }

  TH_DEVICE bool has_next() const { return next_.token < end_token_; }

 protected:
  struct Place {
    u32 token;
    u32 piece;
  };

  TH_DEVICE void advance(Place& at) const {
    at.token += step_.token;
    at.piece += step_.piece;
    if (at.piece >= count_) {
      at.piece -= count_;
      ++at.token;
    }
  }

  /// A piece that was converted may be smaller.
  template <class Stored>
  TH_DEVICE void store_for_token(Place at, const Stored& piece, Shared<u32> rows) const {
    const u32 begin = at.token * params_.divisor;
    const u32 end = begin + params_.divisor;
    TH_NO_UNROLL
    for (u32 choice = begin > own_.first ? begin : own_.first; choice < end && choice < own_.end; ++choice) {
      if (const u32 row = rows.load(choice - own_.first); row != no_row) {
        const Global<u8> to = params_.to.offset(static_cast<i64>(row * params_.to_stride));
        to.template as<Stored>().store(first_ + at.piece, piece);
      }
    }
  }

  const gemm::GatherParams& params_;
  OwnChoices own_;
  u32 end_token_;
  u32 first_;
  u32 count_;
  Place next_;
  Place step_;  ///< to the thread's next piece
  Piece pieces_[together];
};

/// Copies the pieces of which the first are loaded.
template <class Pieces>
TH_DEVICE void store_all(Pieces& pieces, Shared<u32> rows) {
  TH_NO_UNROLL
  while (pieces.has_next()) {
    pieces.store(rows);
    pieces.load();
  }
}

}  // namespace thresher::strategies::moe_layer
