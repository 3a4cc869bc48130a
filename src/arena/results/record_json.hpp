#pragma once
/// Parts of records as the ledger and the wire keep them, and what is read of them where they come back.
#include <optional>
#include <string>
#include <vector>

#include "arena/results/record.hpp"
#include "arena/rig/machine_info.hpp"

namespace thresher::arena {

/// JSON objects.
[[nodiscard]] std::string to_json(const Toolchain& toolchain);
[[nodiscard]] std::string to_json(const Machine& machine);
[[nodiscard]] std::string to_json(const ClockSummary& clocks);

/// What to_json wrote.
[[nodiscard]] ClockSummary clocks_from_json(const std::string& clocks);
/// Of a pitch as to_json(const Pitch&) writes it; nothing of an empty text.
[[nodiscard]] std::optional<ClaimRecord> claim_from_json(const std::string& pitch);
/// Of an opinion as opinion_json writes it; nothing of an empty text and without a prediction.
[[nodiscard]] std::optional<PanelRecord> panel_from_json(const std::string& opinion);
/// What tells a machine from others.
struct MachineLabel {
  std::string name;   ///< of the host; empty: it was not recorded
  std::string model;  ///< of the GPU, or else of the CPU
};

/// Of what to_json(const Machine&) wrote.
[[nodiscard]] MachineLabel machine_from_json(const std::string& machine);
/// The names of a run's suites, of its arguments.
[[nodiscard]] std::vector<std::string> suites_from_json(const std::string& arguments);

}  // namespace thresher::arena
