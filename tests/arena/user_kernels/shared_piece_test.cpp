// Room in what a judge shares with a kernel's process: none is given twice, and what was given back is whole again.
#include "arena/user_kernels/process/shared_piece.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "arena/user_kernels/line/wire.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr std::size_t unit = SharedPiece::alignment;

struct Memory {
  std::array<std::byte, 4 * unit> bytes{};
  SharedPiece piece{7, bytes.data(), bytes.size()};
};

TEST(SharedPiece, IsGivenOutUntilThereIsNoRoom) {
  Memory memory;
  EXPECT_TRUE(memory.piece.is_free());
  EXPECT_EQ(memory.piece.take(5 * unit), nullptr);
  EXPECT_EQ(memory.piece.take(3 * unit), memory.bytes.data());
  EXPECT_FALSE(memory.piece.is_free());
  EXPECT_EQ(memory.piece.take(2 * unit), nullptr);
  EXPECT_EQ(memory.piece.take(unit), memory.bytes.data() + 3 * unit);
  EXPECT_EQ(memory.piece.take(unit), nullptr);
}

TEST(SharedPiece, WhatIsGivenBackJoinsWhatIsFreeBesideIt) {
  for (const std::array<std::size_t, 4> order :
       {std::array<std::size_t, 4>{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}}) {
    Memory memory;
    std::array<void*, 4> taken{};
    for (void*& one : taken) {
      one = memory.piece.take(unit);
    }
    for (const std::size_t one : order) {
      EXPECT_FALSE(memory.piece.is_free());
      memory.piece.give_back(taken.at(one), unit);
    }
    EXPECT_TRUE(memory.piece.is_free());
    EXPECT_EQ(memory.piece.take(4 * unit), memory.bytes.data());
  }
}

TEST(SharedPiece, RoomThatIsNotBesideItStaysApart) {
  Memory memory;
  std::array<void*, 4> taken{};
  for (void*& one : taken) {
    one = memory.piece.take(unit);
  }
  memory.piece.give_back(taken[0], unit);
  memory.piece.give_back(taken[2], unit);
  EXPECT_EQ(memory.piece.take(2 * unit), nullptr);
  EXPECT_EQ(memory.piece.take(unit), taken[0]);
}

TEST(SharedPiece, AnAddressIsSaidAsItsDistanceFromTheBeginning) {
  Memory memory;
  std::byte* const base = memory.bytes.data();
  EXPECT_EQ(memory.piece.place(reinterpret_cast<std::uintptr_t>(base + 300)), place_of(7, 300));
  EXPECT_TRUE(memory.piece.holds(base));
  EXPECT_TRUE(memory.piece.holds(base + 4 * unit - 1));
  EXPECT_FALSE(memory.piece.holds(base + 4 * unit));
  EXPECT_FALSE(memory.piece.holds(base - 1));
}

TEST(SharedPiece, EveryBufferHasAnAddressOfItsOwn) {
  EXPECT_EQ(SharedPiece::rounded(0), unit);
  EXPECT_EQ(SharedPiece::rounded(1), unit);
  EXPECT_EQ(SharedPiece::rounded(unit), unit);
  EXPECT_EQ(SharedPiece::rounded(unit + 1), 2 * unit);
}

}  // namespace
}  // namespace thresher::arena::user_kernels
