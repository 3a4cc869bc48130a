// JSON as a ledger stores it, which may have been changed since. The first byte chooses the reader.
#include "arena/results/evidence_json.hpp"
#include "arena/results/record_json.hpp"
#include "arena/results/recorded_json.hpp"
#include "arena/results/shard_json.hpp"
#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const std::uint8_t kind = fuzz::take_byte(rest);
  const std::string text(rest);
  fuzz::understood([&] {
    switch (kind % 8) {
      case 0: {
        const arena::ClockSummary clocks = arena::clocks_from_json(text);
        fuzz::require(arena::clocks_from_json(arena::to_json(clocks)).clock == clocks.clock);
        break;
      }
      case 1: (void)arena::claim_from_json(text); break;
      case 2: (void)arena::panel_from_json(text); break;
      case 3: (void)arena::suites_from_json(text); break;
      case 4: (void)arena::speedups_of(arena::RecordedEvidence{text}); break;
      case 5:
        if (const auto shard = arena::shard_from_json(text)) {
          (void)arena::matches_held(shard->matches, shard->shard.number);
          fuzz::require(arena::differing_argument(text, text).empty());
        }
        break;
      case 6: (void)arena::merge_from_json(text); break;
      default:
        fuzz::require(
            !arena::parse_recorded(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).empty());
    }
  });
  return 0;
}
