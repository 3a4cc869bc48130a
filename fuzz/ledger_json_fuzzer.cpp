// JSON as a ledger keeps it, which somebody may have changed since.
#include "arena/results/evidence_json.hpp"
#include "arena/results/record_json.hpp"
#include "arena/results/recorded_json.hpp"
#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  fuzz::understood([&] {
    const arena::ClockSummary clocks = arena::clocks_from_json(text);
    if (!clocks.clock.empty() && is_utf8(clocks.clock)) {
      fuzz::require(arena::clocks_from_json(arena::to_json(clocks)).clock == clocks.clock);
    }
  });
  fuzz::understood([&] { (void)arena::claim_from_json(text); });
  fuzz::understood([&] { (void)arena::panel_from_json(text); });
  fuzz::understood([&] { (void)arena::suites_from_json(text); });
  fuzz::understood([&] { (void)arena::speedups_of(arena::RecordedEvidence{text}); });
  fuzz::understood([&] {
    const nlohmann::json json = arena::parse_recorded(text);
    fuzz::require(!json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).empty());
  });
  return 0;
}
