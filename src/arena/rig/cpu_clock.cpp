#include "arena/rig/cpu_clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace thresher::arena {
namespace {

constexpr int multiplications = 1 << 20;
constexpr double clocks_each = 3;  // of a 64-bit integer multiplication, on every x86-64 core of the last fifteen years

/// Squares an odd number again and again: each product needs the one before, and the result stays odd.
std::uint64_t square_often(std::uint64_t value) {
  for (int step = 0; step < multiplications; ++step) {
    value *= value;
  }
  return value;
}

}  // namespace

double measure_cpu_clock_mhz() {
  double least_us = 1e9;
  volatile std::uint64_t value = 0x9E3779B97F4A7C15U;
  for (int attempt = 0; attempt < 30; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    value = square_often(value) ^ 2U;
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    least_us = std::min(least_us, took.count());
  }
  return clocks_each * multiplications / least_us;
}

}  // namespace thresher::arena
