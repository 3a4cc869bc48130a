// The activation of layers in a model's config.json.
#include "formats/model_config.hpp"

#include <cmath>

#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool has_experts : {false, true}) {
    for (const char* const prefix : {"model.", "vision_model."}) {
      formats::FeedForwardNames layer;
      layer.prefix = prefix;
      layer.has_experts = layer.is_gpt_oss = has_experts;
      formats::SourcedActivation found;
      if (fuzz::understood([&] {
            const formats::ModelConfig config(fuzz::text_of(data, size), "fuzzed");
            config.refuse_what_is_not_computed(layer);
            found = config.activation(layer, 1);
          })) {
        const Activation& activation = found.activation;
        fuzz::require(activation.limit > 0 && std::isfinite(activation.limit) && std::isfinite(activation.alpha) &&
                      printable(found.source) == found.source);
      }
    }
  }
  return 0;
}
