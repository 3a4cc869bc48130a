// The model of Hopper's 8-bit matrix unit against what an H200 computed, bit for bit.
#include "reference/aligned_product.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "reference/panel_product.hpp"

namespace thresher::reference {
namespace {

/// As bench/fp8_unit.py prints one.
struct MeasuredProduct {
  std::string title;
  std::vector<std::vector<double>> a{};
  std::vector<std::vector<double>> b{};
  std::vector<std::vector<float>> c{};
};

std::vector<double> values_of(const std::string& codes) {
  std::vector<double> values;
  for (std::size_t at = 0; at + 1 < codes.size(); at += 2) {
    const auto code = static_cast<std::uint8_t>(std::stoul(codes.substr(at, 2), nullptr, 16));
    values.push_back(static_cast<double>(formats::e4m3_to_float(code)));
  }
  return values;
}

std::vector<float> sums_of(std::istringstream& words) {
  std::vector<float> sums;
  for (std::string word; words >> word;) {
    sums.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16))));
  }
  return sums;
}

std::vector<MeasuredProduct> measured_products() {
  std::ifstream file(THRESHER_SOURCE_DIR "/measurements/fp8_unit_h200_2026-11-23.txt");
  std::vector<MeasuredProduct> found;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "case") {
      found.push_back({.title = line});
    } else if (first == "a" || first == "b") {
      std::string codes;
      words >> codes;
      (first == "a" ? found.back().a : found.back().b).push_back(values_of(codes));
    } else if (first == "c") {
      found.back().c.push_back(sums_of(words));
    }
  }
  return found;
}

/// Of rows [first_row, + panel_rows) and columns [0, panel_columns), padded with zeros.
std::vector<double> panel_sums(const MeasuredProduct& product, std::size_t first_row) {
  const std::size_t k = product.a.front().size();
  std::vector<double> a(k * panel_rows);
  std::vector<double> b(k * panel_columns);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t row = 0; row < panel_rows && first_row + row < product.a.size(); ++row) {
      a[i * panel_rows + row] = product.a[first_row + row][i];
    }
    for (std::size_t column = 0; column < product.b.size(); ++column) {
      b[i * panel_columns + column] = product.b[column][i];
    }
  }
  std::vector<double> sums(panel_rows * panel_columns);
  for (std::size_t i = 0; i < k; i += aligned_elements) {
    add_aligned_product(a.data() + i * panel_rows, b.data() + i * panel_columns, aligned_elements, sums.data());
  }
  return sums;
}

TEST(AlignedProduct, IsWhatAnH200Computes) {
  const std::vector<MeasuredProduct> products = measured_products();
  ASSERT_EQ(products.size(), 12U);
  for (const MeasuredProduct& product : products) {
    SCOPED_TRACE(product.title);
    ASSERT_EQ(product.c.size(), product.a.size());
    for (std::size_t row = 0; row < product.a.size(); ++row) {
      const std::vector<double> sums = panel_sums(product, row);
      ASSERT_EQ(product.c[row].size(), product.b.size());
      for (std::size_t column = 0; column < product.b.size(); ++column) {
        EXPECT_EQ(static_cast<float>(sums[column]), product.c[row][column]) << row << ", " << column;
      }
    }
  }
}

TEST(AlignedProduct, NotANumberStays) {
  std::vector<double> a(aligned_elements * panel_rows, 1.0);
  std::vector<double> b(aligned_elements * panel_columns, 1.0);
  a[3 * panel_rows + 2] = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sums(panel_rows * panel_columns);
  add_aligned_product(a.data(), b.data(), aligned_elements, sums.data());
  for (std::int64_t row = 0; row < panel_rows; ++row) {
    for (std::int64_t column = 0; column < panel_columns; ++column) {
      EXPECT_EQ(std::isnan(sums[static_cast<std::size_t>(row * panel_columns + column)]), row == 2);
    }
  }
}

}  // namespace
}  // namespace thresher::reference
