#include "arena/audit/expectations.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr std::string_view unknown = "is not known";
constexpr std::string_view known_expectations =
    "matrix, min_matrix_instructions, shared_memory, max_registers, max_branches, max_code_bytes, min_wide_share, "
    "min_tma_loads, min_tma_stores, max_local_bytes, max_spill_bytes, tensor_products, scale_copies, pair, min_commits "
    "or tensor_loaded_bytes";

/// Both return the fault; empty where there is none.
template <class Value>
std::string set_number(Value& value, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // The comparison also rejects NaN and infinity.
  const bool is_one = error == std::errc{} && end == text.data() + text.size() && value >= Value{} &&
                      value <= std::numeric_limits<Value>::max();
  return is_one ? "" : fmt::format("is \"{}\": use a number that is not negative", text);
}

template <class Value>
std::string set_number(std::optional<Value>& value, std::string_view text) {
  return set_number(value.emplace(), text);
}

template <class Value>
std::string set_truth(Value& value, std::string_view text) {
  value = text == "true";
  return text == "true" || text == "false" ? "" : fmt::format("is \"{}\": use true or false", text);
}

}  // namespace

AuditExpectations expected_of_any_kernel() { return {}; }

std::string try_expectation(AuditExpectations& expectations, std::string_view key, std::string_view value) {
  if (key == "matrix") {
    expectations.matrix_kind = std::string(value);
    return "";
  }
  if (key == "min_matrix_instructions") {
    return set_number(expectations.min_matrix_instructions, value);
  }
  if (key == "shared_memory") {
    return set_truth(expectations.uses_shared_memory, value);
  }
  if (key == "max_registers") {
    return set_number(expectations.max_registers, value);
  }
  if (key == "max_branches") {
    return set_number(expectations.max_branches, value);
  }
  if (key == "max_code_bytes") {
    return set_number(expectations.max_code_bytes, value);
  }
  if (key == "min_wide_share") {
    return set_number(expectations.min_wide_share, value);
  }
  if (key == "min_tma_loads") {
    return set_number(expectations.min_tma_loads, value);
  }
  if (key == "min_tma_stores") {
    return set_number(expectations.min_tma_stores, value);
  }
  if (key == "max_local_bytes") {
    return set_number(expectations.max_local_bytes, value);
  }
  if (key == "max_spill_bytes") {
    return set_number(expectations.max_spill_bytes, value);
  }
  if (key == "tensor_products") {
    return set_number(expectations.tensor.products, value);
  }
  if (key == "scale_copies") {
    return set_number(expectations.tensor.scale_copies, value);
  }
  if (key == "pair") {
    return set_truth(expectations.tensor.is_pair, value);
  }
  if (key == "min_commits") {
    return set_number(expectations.tensor.min_commits, value);
  }
  if (key == "tensor_loaded_bytes") {
    return set_number(expectations.tensor.loaded_bytes, value);
  }
  return fmt::format("{}: use {}", unknown, known_expectations);
}

void set_expectation(AuditExpectations& expectations, std::string_view key, std::string_view value) {
  if (const std::string fault = try_expectation(expectations, key, value); !fault.empty()) {
    const bool is_known = !fault.starts_with(unknown);
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("audit expectation {} {}", is_known ? std::string(key) : fmt::format("\"{}\"", key), fault));
  }
}

}  // namespace thresher::arena
