#include "formats/sound_scales.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "formats/numbers.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

template <class Value, class IsSound>
void check(const LocatedTensor& scales, std::span<const Value> values, const IsSound& is_sound, const char* expected) {
  const auto odd = std::find_if_not(values.begin(), values.end(), is_sound);
  if (odd == values.end()) {
    return;
  }
  float value;
  if constexpr (std::is_same_v<Value, std::byte>) {
    value = e4m3_to_float(std::to_integer<std::uint8_t>(*odd));
  } else {
    value = *odd;
  }
  const std::vector<std::int64_t>& shape = scales.tensor->shape;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is {}{}, expected {}", described(scales), value,
                          shape.empty() ? "" : " at " + place(static_cast<std::size_t>(odd - values.begin()), shape),
                          expected));
}

constexpr const char* finite = "finite scales";

}  // namespace

std::string place(std::size_t at, const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> indices(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    indices[i] = at % static_cast<std::size_t>(shape[i]);
    at /= static_cast<std::size_t>(shape[i]);
  }
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

void check_fp8_scales(const LocatedTensor& scales, std::span<const float> values) {
  check(scales, values, [](float value) { return std::isfinite(value); }, finite);
}

void check_e4m3_scales(const LocatedTensor& scales, std::span<const std::byte> codes) {
  check(scales, codes, [](std::byte code) { return !is_e4m3_nan(std::to_integer<std::uint8_t>(code)); }, finite);
}

void check_global_scales(const LocatedTensor& scales, std::span<const float> values) {
  check(
      scales, values, [](float value) { return value > 0.0F && std::isfinite(value); },
      "finite scales above 0, which multiply whole matrices");
}

}  // namespace thresher::formats
