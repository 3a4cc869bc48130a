// Pitches, also those with a kernel: its source is a file beside the target, or missing.
#include <nlohmann/json.hpp>

#include "arena/pitches/pitch.hpp"
#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  arena::Pitch pitch;
  if (fuzz::understood([&] { pitch = arena::parse_pitch(fuzz::text_of(data, size), "fuzzed/pitch.toml"); })) {
    fuzz::require(pitch.claim.speedup_low > 0 && pitch.claim.speedup_low <= pitch.claim.speedup_high);
    fuzz::require(nlohmann::json::parse(to_json(pitch)).at("title") == pitch.title);
  }
  return 0;
}
