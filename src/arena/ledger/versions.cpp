// The tables of each version of the ledger, and the upgrade from one version to the next.
#include <fmt/format.h>

#include "arena/ledger/ledger.hpp"
#include "arena/ledger/schema.hpp"
#include "arena/ledger/statement.hpp"

namespace thresher::arena {

void Ledger::forbid_changes(std::span<const char* const> tables) const {
  for (const char* table : tables) {
    for (const char* change : {"UPDATE", "DELETE"}) {
      execute(fmt::format("CREATE TRIGGER {0}_no_{1} BEFORE {1} ON {0} BEGIN "
                          "SELECT RAISE(ABORT, 'the ledger is append-only'); END",
                          table, change)
                  .c_str());
    }
  }
}

void Ledger::add_version_2() const {
  execute(ledger_schema_2);
  forbid_changes(ledger_tables_2);
  execute(fmt::format("PRAGMA user_version = {}", ledger_version).c_str());
}

void Ledger::refuse_tables_of_version_2() const {
  for (const char* table : ledger_tables_2) {
    Statement known(*this, "SELECT count(*) FROM sqlite_master WHERE name = ?");
    known.bind(std::string(table)).step();
    if (known.integer() != 0) {
      fail_as_damaged(fmt::format("it says version 1 and has the table {} of version 2", table));
    }
  }
}

/// Upgrades version 1 to version 2: links the existing rows into the chain as they are now.
void Ledger::upgrade() {
  Transaction transaction(*this);
  Statement version(*this, "PRAGMA user_version");
  version.step();
  if (version.integer() == 1) {  // no other process was first
    refuse_tables_of_version_2();
    add_version_2();
    link_all_rows();
  }
  transaction.commit();
}

}  // namespace thresher::arena
