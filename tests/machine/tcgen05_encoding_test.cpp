// The words of tcgen05 against a decoder that is written from the PTX ISA's tables alone: a list of fields by their
// first and last bit, and what each may hold.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "machine/tcgen05.hpp"

namespace thresher::machine {
namespace {

struct Field {
  const char* name;
  unsigned first;
  unsigned last;
};
using Fields = std::map<std::string, std::uint64_t>;

/// The table "instruction descriptor" for .kind::f16 and .kind::f8f6f4.
const std::vector<Field> plain_instruction = {
    {"sparsity selector", 0, 1}, {"sparse", 2, 2},        {"saturate", 3, 3},      {"D format", 4, 5},
    {"reserved 6", 6, 6},        {"A format", 7, 9},      {"B format", 10, 12},    {"negate A", 13, 13},
    {"negate B", 14, 14},        {"transpose A", 15, 15}, {"transpose B", 16, 16}, {"N >> 3", 17, 22},
    {"reserved 23", 23, 23},     {"M >> 4", 24, 28},      {"reserved 29", 29, 29}, {"maximum shift", 30, 31}};
/// And for .kind::mxf4nvf4.
const std::vector<Field> scaled_instruction = {{"reserved 0", 0, 1}, {"sparse", 2, 2},         {"reserved 3", 3, 3},
                                               {"B scale id", 4, 5}, {"reserved 6", 6, 6},     {"A format", 7, 9},
                                               {"B format", 10, 11}, {"reserved 12", 12, 12},  {"negate A", 13, 13},
                                               {"negate B", 14, 14}, {"transpose A", 15, 15},  {"transpose B", 16, 16},
                                               {"N >> 3", 17, 22},   {"scale format", 23, 23}, {"reserved 24", 24, 26},
                                               {"M >> 7", 27, 28},   {"A scale id", 29, 30},   {"K", 31, 31}};
/// The table "shared memory descriptor".
const std::vector<Field> shared_memory = {{"start >> 4", 0, 13},   {"reserved 14", 14, 15},  {"leading >> 4", 16, 29},
                                          {"reserved 30", 30, 31}, {"stride >> 4", 32, 45},  {"constant", 46, 48},
                                          {"base offset", 49, 51}, {"leading mode", 52, 52}, {"reserved 53", 53, 60},
                                          {"swizzle", 61, 63}};

/// Every field that is not zero. The table covers each bit once.
Fields decode(std::uint64_t bits, const std::vector<Field>& table, unsigned width) {
  Fields found;
  unsigned next = 0;
  for (const Field& field : table) {
    EXPECT_EQ(field.first, next) << field.name;
    next = field.last + 1;
    const std::uint64_t value = bits >> field.first & ((std::uint64_t{1} << (next - field.first)) - 1);
    if (value != 0) {
      found[field.name] = value;
    }
  }
  EXPECT_EQ(next, width);
  return found;
}

TEST(Tcgen05Encoding, InstructionsOfNvfp4) {
  for (const unsigned rows : {128U, 256U}) {
    for (unsigned columns = 8; columns <= 256; columns += 8) {
      const auto word = tcgen05::instruction<tcgen05::Kind::nvfp4>(rows, columns);
      const Fields wanted = {{"A format", 1}, {"B format", 1}, {"N >> 3", columns / 8}, {"M >> 7", rows / 128}};
      EXPECT_EQ(decode(word.bits, scaled_instruction, 32), wanted) << rows << " × " << columns;
      EXPECT_EQ(tcgen05::instruction<tcgen05::Kind::nvfp4>(rows, 8).with_columns(columns).bits, word.bits);
    }
  }
}

TEST(Tcgen05Encoding, InstructionsWithoutScales) {
  constexpr auto f16 = tcgen05::Kind::f16;
  constexpr std::uint64_t float32 = 1;
  Fields wanted = {{"D format", float32}, {"N >> 3", 24}, {"M >> 4", 16}};
  EXPECT_EQ(decode(tcgen05::instruction<f16, Half>(256, 192).bits, plain_instruction, 32), wanted);
  EXPECT_EQ(decode(tcgen05::instruction<tcgen05::Kind::f8f6f4, E4M3>(256, 192).bits, plain_instruction, 32), wanted);
  wanted["A format"] = wanted["B format"] = 1;
  EXPECT_EQ(decode(tcgen05::instruction<f16, BFloat16>(256, 192).bits, plain_instruction, 32), wanted);
}

TEST(Tcgen05Encoding, DescriptorsOfSharedMemory) {
  const Fields plain = {{"start >> 4", 0x1234}, {"leading >> 4", 8}, {"stride >> 4", 64}, {"constant", 1}};
  EXPECT_EQ(decode(tcgen05::descriptor<Swizzle::none>({0x12340}, 128, 1024).bits, shared_memory, 64), plain);
  Fields swizzled = plain;
  swizzled.erase("leading >> 4");
  const auto check = [&](std::uint64_t bits, std::uint64_t code) {
    swizzled["swizzle"] = code;
    EXPECT_EQ(decode(bits, shared_memory, 64), swizzled);
  };
  check(tcgen05::descriptor<Swizzle::b128>({0x12340}, 0, 1024).bits, 2);
  check(tcgen05::descriptor<Swizzle::b64>({0x12340}, 0, 1024).bits, 4);
  check(tcgen05::descriptor<Swizzle::b32>({0x12340}, 0, 1024).bits, 6);
}

TEST(Tcgen05Encoding, AStepAlongKIsThirtyTwoBytesOfTheStart) {
  const auto first = tcgen05::descriptor<Swizzle::b128>({1024}, 0, 1024);
  EXPECT_EQ(first.advance(96).bits, tcgen05::descriptor<Swizzle::b128>({1024 + 96}, 0, 1024).bits);
}

TEST(Tcgen05Encoding, BlocksOfScalesAreDense) {
  const Fields wanted = {{"start >> 4", 32}, {"stride >> 4", 8}, {"constant", 1}};
  EXPECT_EQ(decode(tcgen05::scale_block({512}).bits, shared_memory, 64), wanted);
}

}  // namespace
}  // namespace thresher::machine
