// A profile as JSON and as a table.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "arena/profile/profile.hpp"

namespace thresher::arena {
namespace {

nlohmann::json to_json_value(const Timeline& timeline) {
  nlohmann::json roles = nlohmann::json::array();
  for (const RoleTimeline& role : timeline.roles) {
    nlohmann::json segments = nlohmann::json::array();
    for (const Segment& segment : role.segments) {
      segments.push_back({{"name", segment.name}, {"begin_us", segment.begin_us}, {"end_us", segment.end_us}});
    }
    roles.push_back({{"role", role.role}, {"segments", segments}});
  }
  nlohmann::json blocks = nlohmann::json::array();
  for (const BlockSpan& block : timeline.blocks) {
    blocks.push_back({block.begin_us, block.end_us});
  }
  return {{"roles", roles}, {"blocks_us", blocks}, {"clock_ghz", timeline.clock_ghz}, {"span_us", timeline.span_us}};
}

}  // namespace

std::string to_json(const Profile& profile, int indent) {
  nlohmann::json parts = nlohmann::json::array();
  for (const PartCost& part : profile.parts) {
    parts.push_back({{"part", part.part},
                     {"variant", part.variant},
                     {"us", part.us},
                     {"share", {{"value", part.share.value}, {"low", part.share.low}, {"high", part.share.high}}}});
  }
  return nlohmann::json{{"contestant", profile.contestant},
                        {"problem", profile.problem},
                        {"machine", profile.machine},
                        {"us", profile.us},
                        {"parts", parts},
                        {"timeline", to_json_value(profile.timeline)}}
      .dump(indent);
}

std::string to_text(const Profile& profile) {
  const Timeline& timeline = profile.timeline;
  std::string text = fmt::format("{} on {}, {}: {:.1f} us a call with cold inputs\n\n", profile.contestant,
                                 profile.problem, profile.machine, profile.us);
  text += fmt::format("{} blocks on the GPU for {:.1f} us at {:.2f} GHz; the median block's roles, in us:\n",
                      timeline.blocks.size(), timeline.span_us, timeline.clock_ghz);
  for (const RoleTimeline& role : timeline.roles) {
    text += fmt::format("  {:8}", role.role);
    for (const Segment& segment : role.segments) {
      text += fmt::format("  {} {:.2f}", segment.name, segment.end_us - segment.begin_us);
    }
    text += "\n";
  }
  text += "\n  part      variant     us a call  of the whole\n";
  for (const PartCost& part : profile.parts) {
    const bool left_out = part.variant == "left out";
    text += fmt::format("  {:8}  {:10}  {:>9.1f}  {} {:.1f} % [{:.1f}, {:.1f}]\n", part.part, part.variant, part.us,
                        left_out ? "could give back at most" : "costs again", 100 * part.share.value,
                        100 * part.share.low, 100 * part.share.high);
  }
  return text;
}

}  // namespace thresher::arena
