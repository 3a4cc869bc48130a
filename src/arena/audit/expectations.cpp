#include "arena/audit/expectations.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

constexpr int max_mma_columns = 256;

int mma_k(MatrixType type) {
  switch (type) {
    case MatrixType::bits16: return 16;
    case MatrixType::fp8: return 32;
    case MatrixType::nvfp4: return 64;
  }
  return 16;
}

std::string_view matrix_opcode(MatrixType type, MatrixUnit unit) {
  if (unit == MatrixUnit::wgmma) {
    return type == MatrixType::fp8 ? "QGMMA" : "HGMMA";
  }
  switch (type) {
    case MatrixType::bits16: return "UTCHMMA";
    case MatrixType::fp8: return "UTCQMMA";
    case MatrixType::nvfp4: return "UTCOMMA";
  }
  return "UTCHMMA";
}

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

AuditExpectations expected_of(const DualGemmProblem& problem, const planner::DualGemmConfig& config,
                              const DeviceSpec& device) {
  AuditExpectations out;
  if (config.strategy == planner::Strategy::two_pass) {
    out.uses_shared_memory = false;  // its own kernels only convert and activate; the products are a library's
    return out;
  }
  const MatrixType type = planner::matrix_type(problem, config, device);
  const bool hopper = device.matrix_unit == MatrixUnit::wgmma;
  const int rows_an_instruction = hopper ? 64 : 128;
  const int warpgroups = config.strategy == planner::Strategy::pingpong || !hopper ? 1 : config.math_warpgroups;
  const int row_blocks = std::max(1, config.mma_row_count() / rows_an_instruction / warpgroups);
  const int column_blocks = (config.mma_column_count() + max_mma_columns - 1) / max_mma_columns;
  out.matrix_kind = std::string(matrix_opcode(type, device.matrix_unit));
  out.min_matrix_instructions = row_blocks * column_blocks * (config.tile.k / mma_k(type));
  out.min_tma_loads = 1;
  out.min_tma_stores = config.epilogue == planner::Epilogue::tma ? 1 : 0;
  return out;
}

AuditExpectations expected_of(const AttentionProblem& problem, const planner::AttentionConfig& config,
                              const DeviceSpec& device) {
  AuditExpectations out;
  out.matrix_kind = std::string(matrix_opcode(MatrixType::bits16, device.matrix_unit));
  // Q·Kᵀ walks over the head, P·V over the keys.
  const bool hopper = device.matrix_unit == MatrixUnit::wgmma;
  const int row_blocks = std::max(1, config.query_rows / (hopper ? 64 * config.math_warpgroups : 128));
  out.min_matrix_instructions = row_blocks * (static_cast<int>(problem.head_dim) + config.key_step) / 16;
  out.min_tma_loads = 1;
  return out;
}

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
  } else {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("audit expectation \"{}\" is not known: use matrix, min_matrix_instructions, shared_memory, "
                    "max_registers, max_branches, max_code_bytes, min_wide_share, min_tma_loads, "
                    "min_tma_stores, max_local_bytes or max_spill_bytes",
                    key));
  }
}

}  // namespace thresher::arena
