#pragma once
/// Gate "audited": compares a kernel's machine code with its expectations.
#include <string>
#include <string_view>
#include <vector>

#include "arena/audit/sass.hpp"
#include "arena/results/audit_report.hpp"
#include "arena/results/gate.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/expectations.hpp"

namespace thresher::arena {

using AuditExpectations = strategies::Expectations;
using strategies::TensorExpectations;

struct AuditFinding {
  bool ok = true;
  std::string sentence;
};

struct [[nodiscard]] AuditVerdict {
  std::vector<AuditFinding> findings;  ///< one for every expectation that could be checked
  std::string not_judged;              ///< why the machine code was not checked; empty when it was

  [[nodiscard]] bool failed() const;
  /// Failed, passed, or not judged where nothing failed but the machine code was not seen.
  [[nodiscard]] GateResult gate(const AuditReport& report) const;
};

/// `function` null: no disassembler here. `dynamic_shared_bytes` is what the launch asks for.
[[nodiscard]] AuditReport audit(std::string_view kernel, const runtime::ResourceReport* resources,
                                const SassFunction* function, int dynamic_shared_bytes);

/// The verdict gives `why_no_code` when the report has no machine code.
AuditVerdict judge_audit(const AuditReport& report, const AuditExpectations& expected,
                         std::string_view why_no_code = "no disassembler was found");

}  // namespace thresher::arena
