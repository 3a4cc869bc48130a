#pragma once
// Runs small kernels on many schedules and says what was found.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/tensor_map.hpp"

namespace thresher::emulator::test {

/// What the issue grants: a defect must show within so many schedules.
inline constexpr std::uint64_t schedules = 64;

struct Subject {
  LaunchShape shape;
  GlobalMemory memory;
  std::function<void()> kernel;
  /// Whether the outputs are right; run after every clean launch. Empty: nothing to check.
  std::function<bool()> correct;
  Options options = {};
};

/// What one schedule finds.
std::vector<Finding> findings_of(const Subject& subject, std::uint64_t seed);

/// All findings as text, for failure messages and for looking for words.
std::string text_of(const std::vector<Finding>& findings);

/// Fails the test unless one of the findings within 64 schedules has `kind` and mentions every one of `words`.
void expect_found(const Subject& subject, FindingKind kind, const std::vector<std::string>& words = {});
/// Fails the test when any schedule finds anything or computes something wrong.
void expect_clean(const Subject& subject, std::uint64_t schedule_count = schedules);

/// A row-major 2-D map with boxes of box_columns × box_rows.
machine::TensorMap map_2d(const void* data, machine::ElementType element, std::uint64_t rows, std::uint64_t columns,
                          std::uint32_t box_rows, std::uint32_t box_columns, machine::Swizzle swizzle);

/// Small integers, exact in every format and in every order of float32 additions.
std::vector<std::uint16_t> small_halves(std::size_t count, std::uint64_t seed);

template <typename T>
std::uint64_t address_of(const std::vector<T>& data) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data.data()));
}

template <typename T>
void add(GlobalMemory& memory, const std::string& name, const std::vector<T>& data, Use use) {
  memory.add(name, data.data(), data.size() * sizeof(T), use);
}

}  // namespace thresher::emulator::test
