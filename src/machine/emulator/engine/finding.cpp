#include "machine/emulator/engine/finding.hpp"

namespace thresher::emulator {

std::string_view name(FindingKind kind) noexcept {
  switch (kind) {
    case FindingKind::deadlock: return "deadlock";
    case FindingKind::byte_count: return "wrong byte count";
    case FindingKind::arrival_count: return "wrong arrival count";
    case FindingKind::barrier_misuse: return "barrier misused";
    case FindingKind::refilled_while_read: return "written while it is read";
    case FindingKind::read_before_full: return "read before it is full";
    case FindingKind::accumulator_in_flight: return "registers touched in flight";
    case FindingKind::tensor_in_flight: return "tensor memory in flight";
    case FindingKind::missing_tensor_fence: return "missing tensor memory fence";
    case FindingKind::tensor_allocation: return "tensor memory misallocated";
    case FindingKind::wrong_lanes: return "another quarter's lanes";
    case FindingKind::missing_wgmma_fence: return "missing wgmma fence";
    case FindingKind::missing_proxy_fence: return "missing proxy fence";
    case FindingKind::race: return "race";
    case FindingKind::out_of_bounds: return "out of bounds";
    case FindingKind::misaligned: return "misaligned";
    case FindingKind::uninitialised: return "uninitialised read";
    case FindingKind::divergent: return "divergent collective";
    case FindingKind::register_budget: return "register budget";
    case FindingKind::left_cluster_early: return "block of the cluster not there";
    case FindingKind::unfinished_work: return "unfinished work at exit";
    case FindingKind::earlier_grid: return "earlier grid not awaited";
    case FindingKind::bad_argument: return "illegal argument";
    case FindingKind::bad_launch: return "illegal launch";
    case FindingKind::failed_expectation: return "expectation failed";
    case FindingKind::kernel_exception: return "exception in the kernel";
  }
  return "?";
}

std::string to_string(const Finding& finding) {
  std::string text{name(finding.kind)};
  text += ": " + finding.sentence + "\n";
  for (const std::string& detail : finding.details) {
    text += "  " + detail + "\n";
  }
  text += "  replay: seed " + std::to_string(finding.seed) + "\n";
  return text;
}

}  // namespace thresher::emulator
