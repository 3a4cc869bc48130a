#include "formats/stack_layout.hpp"

#include <array>
#include <string>

namespace thresher::formats {
namespace {

/// The layer's own name without .weight, "…experts.down_proj".
std::string_view without_weight(std::string_view name) {
  constexpr std::string_view weight = ".weight";
  return name.ends_with(weight) ? name.substr(0, name.size() - weight.size()) : name;
}

struct Name {
  std::string parent;  ///< with its dot, or empty
  std::string own;
};

Name split(std::string_view name) {
  name = without_weight(name);
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? Name{"", std::string(name)}
                                       : Name{std::string(name.substr(0, dot + 1)), std::string(name.substr(dot + 1))};
}

const StoredTensor* find(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* const found = file.find(name);
  return found != nullptr ? found : file.find(name + ".weight");
}

/// Names in public checkpoints for fused gate and up and for the down projection beside it.
struct Pair {
  std::string_view fused;
  std::string_view down;
};
constexpr std::array pairs{Pair{"gate_up_proj", "down_proj"}, Pair{"input_linear", "output_linear"}, Pair{"w13", "w2"},
                           Pair{"w13_weight", "w2_weight"}, Pair{"linear_fc1", "linear_fc2"}};

bool is_down(std::string_view own) {
  for (const Pair& pair : pairs) {
    if (own == pair.down) {
      return true;
    }
  }
  return false;
}

/// Compares [E, 2N, K] beside [E, K, N] with [E, K, 2N] beside [E, N, K].
StackLayout of_pair(const StoredTensor& fused, const StoredTensor& down) {
  if (fused.shape.size() != 3 || down.shape.size() != 3) {
    return StackLayout::unknown;
  }
  if (fused.shape[2] == down.shape[1] && fused.shape[1] == 2 * down.shape[2]) {
    return StackLayout::rows_first;
  }
  return fused.shape[1] == down.shape[2] && fused.shape[2] == 2 * down.shape[1] ? StackLayout::k_first
                                                                                : StackLayout::unknown;
}

/// Decides if `k` is one of the two extents and not the other.
StackLayout of_extents(std::int64_t k, const StoredTensor& stack) {
  const bool is_last = stack.shape[2] == k;
  return is_last == (stack.shape[1] == k) ? StackLayout::unknown
         : is_last                        ? StackLayout::rows_first
                                          : StackLayout::k_first;
}

/// A router [E, K] beside the experts or beside their folder. The rows of the down projection are the router's K.
StackLayout of_router(const SafetensorsFile& file, const StoredTensor& stack, const Name& name) {
  std::string place = name.parent;
  for (int level = 0; level < 2 && !place.empty(); ++level) {
    for (const char* const router : {"gate", "router", "router.layer"}) {
      const StoredTensor* const found = find(file, place + router);
      if (found != nullptr && found->shape.size() == 2 && found->shape[0] == stack.shape[0]) {
        const StackLayout of_up = of_extents(found->shape[1], stack);
        return !is_down(name.own) || of_up == StackLayout::unknown ? of_up
               : of_up == StackLayout::rows_first                  ? StackLayout::k_first
                                                                   : StackLayout::rows_first;
      }
    }
    place.pop_back();
    const std::size_t dot = place.rfind('.');
    place = dot == std::string::npos ? "" : place.substr(0, dot + 1);
  }
  return StackLayout::unknown;
}

StackLayout of_bias(const SafetensorsFile& file, const StoredTensor& stack, const Name& name) {
  for (const char* const ending : {"_bias", ".bias"}) {
    const StoredTensor* const bias = file.find(name.parent + name.own + ending);
    if (bias != nullptr && bias->shape.size() == 2 && bias->shape[0] == stack.shape[0]) {
      const StackLayout of_k = of_extents(bias->shape[1], stack);
      return of_k == StackLayout::rows_first ? StackLayout::k_first
             : of_k == StackLayout::k_first  ? StackLayout::rows_first
                                             : of_k;
    }
  }
  return StackLayout::unknown;
}

}  // namespace

StackLayout stack_layout(const SafetensorsFile& file, const StoredTensor& stack) {
  const Name name = split(stack.name);
  for (const Pair& pair : pairs) {
    if (name.own == pair.fused || name.own == pair.down) {
      const StoredTensor* const fused = find(file, name.parent + std::string(pair.fused));
      const StoredTensor* const down = find(file, name.parent + std::string(pair.down));
      const StackLayout layout = fused != nullptr && down != nullptr ? of_pair(*fused, *down) : StackLayout::unknown;
      if (layout != StackLayout::unknown) {
        return layout;
      }
    }
  }
  const StackLayout by_bias = of_bias(file, stack, name);
  return by_bias != StackLayout::unknown ? by_bias : of_router(file, stack, name);
}

}  // namespace thresher::formats
