#pragma once
/// One transaction, and one prepared statement, of SQLite.
#include <sqlite3.h>

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "arena/ledger/ledger.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

/// Takes the write lock at once, so that two tournaments wait for each other instead of failing. Rolls back unless
/// committed.
class Transaction {
 public:
  explicit Transaction(const Ledger& ledger) : ledger_(ledger) { ledger_.execute("BEGIN IMMEDIATE"); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (!committed_) {
      sqlite3_exec(ledger_.database_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  void commit() {
    ledger_.execute("COMMIT");
    committed_ = true;
  }

 private:
  const Ledger& ledger_;
  bool committed_ = false;
};

/// Binds from the first parameter on, reads from the first column on.
class Ledger::Statement {
 public:
  Statement(const Ledger& ledger, const char* sql) : ledger_(ledger) {
    check(sqlite3_prepare_v2(ledger.database_, sql, -1, &statement_, nullptr));
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  Statement& bind(const std::string& text) {
    check(sqlite3_bind_text(statement_, ++parameter_, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
    return *this;
  }
  Statement& bind(std::int64_t value) {
    check(sqlite3_bind_int64(statement_, ++parameter_, value));
    return *this;
  }
  Statement& bind(double value) {
    check(sqlite3_bind_double(statement_, ++parameter_, value));
    return *this;
  }
  Statement& bind(const std::optional<double>& value) {
    return value ? bind(*value) : (check(sqlite3_bind_null(statement_, ++parameter_)), *this);
  }
  Statement& bind(const Estimate& estimate) { return bind(estimate.value).bind(estimate.low).bind(estimate.high); }

  /// Whether there is another row.
  bool step() {
    const int code = sqlite3_step(statement_);
    column_ = 0;
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
      check(code);
    }
    return code == SQLITE_ROW;
  }

  std::string text() {
    const int column = column_++;
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes == nullptr ? std::string()
                            : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::int64_t integer() { return sqlite3_column_int64(statement_, column_++); }
  double real() { return sqlite3_column_double(statement_, column_++); }
  std::optional<double> optional_real() {
    const bool is_null = sqlite3_column_type(statement_, column_) == SQLITE_NULL;
    const double value = real();
    return is_null ? std::nullopt : std::optional(value);
  }

  /// Every column of the row with its type and length: different rows have different texts.
  [[nodiscard]] std::string whole_row() const {
    std::string row;
    for (int column = 0; column < sqlite3_column_count(statement_); ++column) {
      const int type = sqlite3_column_type(statement_, column);
      std::string value;
      if (type == SQLITE_FLOAT) {
        value = fmt::format("{}", sqlite3_column_double(statement_, column));
      } else if (const void* bytes = sqlite3_column_blob(statement_, column)) {
        value.assign(static_cast<const char*>(bytes),
                     static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
      }
      row += fmt::format("{}:{}:{},", type, value.size(), value);
    }
    return row;
  }

  Estimate estimate() {
    const double value = real();
    const double low = real();
    return {value, low, real()};
  }

 private:
  void check(int code) const {
    if (code != SQLITE_OK) {
      ledger_.fail(code, "used");
    }
  }
  const Ledger& ledger_;
  sqlite3_stmt* statement_ = nullptr;
  int parameter_ = 0;
  int column_ = 0;
};

}  // namespace thresher::arena
