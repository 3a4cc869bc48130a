#pragma once
/// Encoded tensor maps by their descriptions, so that calls with the same tensors do not encode them again.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "machine/tensor_map.hpp"

namespace thresher::ops {

/// For one thread. Two descriptions with the same place replace each other.
class TensorMapMemo {
 public:
  /// The map of a legal description, by `encode` where it is not known.
  template <class Encode>
  const machine::TensorMap& get(const machine::TensorMapDescription& description, const Encode& encode) {
    Entry& entry = entries_[place_of(description)];
    if (!are_equal(entry.description, description)) {
      entry.map = encode();
      entry.description = description;
    }
    return entry.map;
  }

 private:
  /// At first of rank 0, which no legal description has.
  struct Entry {
    machine::TensorMap map{};
    machine::TensorMapDescription description;
  };
  static constexpr unsigned place_bits = 7;

  /// Addresses differ in any of their bits, the maps of one tensor in their boxes.
  static std::size_t place_of(const machine::TensorMapDescription& description) {
    constexpr machine::u64 golden_ratio = 0x9E3779B97F4A7C15U;
    return static_cast<std::size_t>(((description.address ^ description.box[1]) * golden_ratio) >> (64U - place_bits));
  }

  static bool are_equal(const machine::TensorMapDescription& one, const machine::TensorMapDescription& other) {
    return one.address == other.address && one.rank == other.rank && one.element == other.element &&
           one.swizzle == other.swizzle && one.promotion == other.promotion &&
           std::equal(std::begin(one.extent), std::end(one.extent), std::begin(other.extent)) &&
           std::equal(std::begin(one.stride_bytes), std::end(one.stride_bytes), std::begin(other.stride_bytes)) &&
           std::equal(std::begin(one.box), std::end(one.box), std::begin(other.box));
  }

  std::array<Entry, std::size_t{1} << place_bits> entries_{};
};

}  // namespace thresher::ops
