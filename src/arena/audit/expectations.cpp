#include "arena/audit/expectations.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

template <class T>
T number(std::string_view key, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < T{}) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("audit expectation {} is \"{}\": use a number that is not negative", key, text));
  }
  return value;
}

bool truth(std::string_view key, std::string_view text) {
  if (text != "true" && text != "false") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("audit expectation {} is \"{}\": use true or false", key, text));
  }
  return text == "true";
}

}  // namespace

AuditExpectations expected_of_any_kernel() { return {}; }

void set_expectation(AuditExpectations& expectations, std::string_view key, std::string_view value) {
  if (key == "matrix") {
    expectations.matrix_kind = std::string(value);
  } else if (key == "min_matrix_instructions") {
    expectations.min_matrix_instructions = number<int>(key, value);
  } else if (key == "shared_memory") {
    expectations.uses_shared_memory = truth(key, value);
  } else if (key == "max_registers") {
    expectations.max_registers = number<int>(key, value);
  } else if (key == "max_branches") {
    expectations.max_branches = number<int>(key, value);
  } else if (key == "max_code_bytes") {
    expectations.max_code_bytes = number<std::int64_t>(key, value);
  } else if (key == "min_wide_share") {
    expectations.min_wide_share = number<double>(key, value);
  } else if (key == "min_tma_loads") {
    expectations.min_tma_loads = number<int>(key, value);
  } else if (key == "min_tma_stores") {
    expectations.min_tma_stores = number<int>(key, value);
  } else if (key == "max_local_bytes") {
    expectations.max_local_bytes = number<int>(key, value);
  } else if (key == "max_spill_bytes") {
    expectations.max_spill_bytes = number<int>(key, value);
  } else if (key == "tensor_products") {
    expectations.tensor.products = number<int>(key, value);
  } else if (key == "scale_copies") {
    expectations.tensor.scale_copies = number<int>(key, value);
  } else if (key == "pair") {
    expectations.tensor.is_pair = truth(key, value);
  } else if (key == "min_commits") {
    expectations.tensor.min_commits = number<int>(key, value);
  } else if (key == "tensor_loaded_bytes") {
    expectations.tensor.loaded_bytes = number<std::int64_t>(key, value);
  } else {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "audit expectation \"{}\" is not known: use matrix, min_matrix_instructions, shared_memory, "
            "max_registers, max_branches, max_code_bytes, min_wide_share, min_tma_loads, "
            "min_tma_stores, max_local_bytes, max_spill_bytes, tensor_products, scale_copies, pair, min_commits or "
            "tensor_loaded_bytes",
            key));
  }
}

}  // namespace thresher::arena
