#pragma once
/// One prepared statement of SQLite.
#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <string>

#include "arena/ledger.hpp"
#include "arena/statistics.hpp"

namespace thresher::arena {

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
