#include "arena/results/audit_report.hpp"

namespace thresher::arena {

int AuditReport::matrix_count() const { return matrix_count(""); }

int AuditReport::matrix_count(std::string_view kind) const {
  int total = 0;
  for (const auto& [mnemonic, times] : matrix_instructions) {
    total += mnemonic.starts_with(kind) ? times : 0;
  }
  return total;
}

double AuditReport::wide_share() const {
  return global_accesses == 0 ? 1.0 : static_cast<double>(wide_global_accesses) / global_accesses;
}

}  // namespace thresher::arena
