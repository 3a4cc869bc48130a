#include "arena/predictions/predicted_pitches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <vector>

#include "planner/deviation.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::TensorKernel;
using strategies::WorkModel;
using strategies::gemm::Product;

/// A difference that no knob can say.
using Change = void (*)(TensorKernel&);

void nothing(TensorKernel&) {}

void store_with_copy_engine(TensorKernel& kernel) {
  for (strategies::TensorTiles& tiles : kernel.tiles) {
    tiles.epilogue.tma_stores = true;
  }
}

/// A tile has as many rows of weights, first those of the gate, then those of the up: of twice as many outputs, in
/// twice as many steps.
void walk_twice(TensorKernel& kernel) {
  for (strategies::TensorTiles& tiles : kernel.tiles) {
    tiles.count = (tiles.count + 1) / 2;
    tiles.steps *= 2;
    tiles.tensor_memory_bytes *= 2;
    tiles.epilogue.instructions *= 2;
    tiles.epilogue.specials *= 2;
    tiles.epilogue.store_bytes *= 2;
  }
}

/// Knobs that are left out are the planner's choice. Token scales have no signs, as in the contest.
struct Translation {
  std::string_view file;  ///< without its folder
  const char* here;
  const char* strategy;
  const char* contestant;
  const char* baseline;
  Change change = nothing;
};

constexpr std::array translations{
    Translation{"pipeline_stages.toml", "five slots of the ring instead of three", "tcgen05",
                "block_tokens=128 stages=5 unsigned_scales=true", "block_tokens=128 stages=3 unsigned_scales=true"},
    Translation{
        "warp_specialisation.toml",
        "roles are warps of their own whatever the knobs, and sums lie in tensor memory: there are no registers "
        "to hand over, so both are one kernel",
        "tcgen05", "unsigned_scales=true", "unsigned_scales=true"},
    Translation{"tile_tuning.toml", "the planner's tile for each problem instead of 128 x 128 for all", "tcgen05",
                "unsigned_scales=true", "block_tokens=128 blocks=2 split_k=1 persistent=false unsigned_scales=true"},
    Translation{"tma_store_epilogue.toml", "outputs leave by TMA instead of through threads", "tcgen05",
                "unsigned_scales=true", "unsigned_scales=true", store_with_copy_engine},
    Translation{"tma_store_epilogue_revised.toml", "outputs leave by TMA instead of through threads", "tcgen05",
                "unsigned_scales=true", "unsigned_scales=true", store_with_copy_engine},
    Translation{"interleaved.toml", "gate and up in one product with three slots, against the planner's choice",
                "tcgen05", "block_tokens=128 stages=3 unsigned_scales=true", "unsigned_scales=true"},
    Translation{"sequential.toml", "the gate's products before the up's, so that the tokens are read twice", "tcgen05",
                "unsigned_scales=true", "unsigned_scales=true", walk_twice},
    Translation{"two_pass.toml",
                "the library's products of weights converted in every call; its time has no interval, so only that of "
                "the kernel it is compared with counts",
                "two_pass", "", "unsigned_scales=true"}};

/// Two contestants and what the first does otherwise.
struct Idea {
  std::string here;
  planner::Request contestant;
  planner::Request baseline;
  Change change = nothing;
};

const Translation& translation_of(const Pitch& pitch) {
  const std::string file = std::filesystem::path(pitch.file).filename().string();
  const auto found =
      std::find_if(translations.begin(), translations.end(), [&](const Translation& one) { return one.file == file; });
  if (found == translations.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("predict: what the pitch {} is on such a card was not written down", pitch.file));
  }
  return *found;
}

WorkModel changed(WorkModel work, Change change) {
  for (auto& part : work.parts) {
    if (auto* const kernel = std::get_if<TensorKernel>(&part)) {
      change(*kernel);
    }
  }
  return work;
}

struct Pair {
  WorkModel contestant;
  WorkModel baseline;
};

/// The mean of the logarithms of the speed-ups.
double mean_log(std::span<const Pair> pairs, const DeviceSpec& device) {
  double sum = 0;
  for (const Pair& pair : pairs) {
    sum += std::log(planner::predict(pair.baseline, device).us() / planner::predict(pair.contestant, device).us());
  }
  return sum / static_cast<double>(pairs.size());
}

std::string words(const planner::Request& request) {
  return request.knobs.empty() ? request.strategy : fmt::format("{} {}", request.strategy, request.knobs.text());
}

Idea idea_of(const Pitch& pitch, std::span<const DualGemmProblem> problems, const DeviceSpec& device) {
  if (runs_as_it_stands(pitch, problems, device)) {
    return {"as it stands", request_of(pitch.contestant), request_of(pitch.baseline)};
  }
  const Translation& found = translation_of(pitch);
  return {found.here,
          {found.strategy, Knobs::parse(found.contestant)},
          {"tcgen05", Knobs::parse(found.baseline)},
          found.change};
}

}  // namespace

planner::Request request_of(const ContestantSpec& spec) {
  planner::Request request{.strategy = spec.strategy};
  for (const auto& [knob, value] : spec.knobs) {
    request.knobs.set(knob, value);
  }
  return request;
}

planner::Choice best_choice(const DualGemmProblem& problem, const planner::Request& request, const DeviceSpec& device) {
  planner::Choices choices = planner::choose<strategies::gemm::ProductProblem>(
      strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda), problem, request, device);
  if (choices.ranked.empty()) {
    throw Error(ErrorCode::unsupported, fmt::format("predict: {} cannot run on {}", words(request), device.name));
  }
  return choices.ranked.front();
}

bool runs_as_it_stands(const Pitch& pitch, std::span<const DualGemmProblem> problems, const DeviceSpec& device) {
  return std::all_of(problems.begin(), problems.end(), [&](const DualGemmProblem& problem) {
    for (const ContestantSpec* spec : {&pitch.contestant, &pitch.baseline}) {
      const auto choices = planner::choose<strategies::gemm::ProductProblem>(
          strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda), problem, request_of(*spec), device);
      if (choices.ranked.empty()) {
        return false;
      }
    }
    return true;
  });
}

PredictedPitch predict_pitch(const Pitch& pitch, std::span<const DualGemmProblem> problems, const DeviceSpec& device) {
  const Idea idea = idea_of(pitch, problems, device);
  std::vector<Pair> pairs;
  for (const DualGemmProblem& problem : problems) {
    pairs.push_back({changed(best_choice(problem, idea.contestant, device).work, idea.change),
                     best_choice(problem, idea.baseline, device).work});
  }
  const double middle = mean_log(pairs, device);
  const planner::Deviation deviation =
      planner::deviation_of(device, middle, [&](const DeviceSpec& other) { return mean_log(pairs, other); });
  PredictedPitch out;
  out.here = idea.here;
  out.contestant = words(idea.contestant);
  out.baseline = words(idea.baseline);
  out.speedup = std::exp(middle);
  out.low = std::exp(middle - deviation.down);
  out.high = std::exp(middle + deviation.up);
  out.bound = planner::predict(pairs.front().baseline, device).bound;
  return out;
}

}  // namespace thresher::arena
