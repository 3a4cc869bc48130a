#include "formats/kept_names.hpp"

#include <algorithm>
#include <array>

#include "formats/glob.hpp"

namespace thresher::formats {
namespace {

constexpr std::string_view embedding = "an embedding";
constexpr std::string_view head = "the head";
constexpr std::string_view norm = "a norm";
constexpr std::string_view bias = "a bias";
constexpr std::string_view router = "a router";
constexpr std::string_view indexer = "the weights of a sparse indexer";
constexpr std::string_view compressor = "a compressor of keys";
constexpr std::string_view mixing = "a mix of residuals";
constexpr std::string_view convolution = "a convolution";
constexpr std::string_view decay = "a state's decay";
constexpr std::string_view senses = "of images or sound";

/// A gate is a router if it is a separate part of the name, "mlp.gate.weight" or "gate.wg.weight", not in "gate_proj".
constexpr std::array table{Kept{embedding, "*embed*"},
                           Kept{embedding, "*embd*"},
                           Kept{embedding, "*pos_emb*"},
                           Kept{embedding, "wte.*"},
                           Kept{embedding, "*.wte.*"},
                           Kept{embedding, "wpe.*"},
                           Kept{embedding, "*.wpe.*"},
                           Kept{head, "*lm_head*"},
                           Kept{head, "*_head.*"},
                           Kept{head, "head.*"},
                           Kept{head, "*.head.*"},
                           Kept{head, "*output_layer*"},
                           Kept{head, "output.*"},
                           Kept{head, "model.output.*"},
                           Kept{head, "proj_out.*"},
                           Kept{head, "score.*"},
                           Kept{head, "*.score.*"},
                           Kept{head, "*classifier*"},
                           Kept{norm, "*norm*"},
                           Kept{bias, "*bias*"},
                           Kept{router, "*router*"},
                           Kept{router, "gate.*"},
                           Kept{router, "*.gate.*"},
                           Kept{router, "*.gate"},
                           Kept{router, "*expert_gate*"},
                           Kept{router, "*gate_inp*"},
                           Kept{indexer, "*weights_proj*"},
                           Kept{compressor, "*.compressor.*"},
                           Kept{mixing, "hc_*"},
                           Kept{mixing, "*.hc_*"},
                           Kept{convolution, "*conv?d*"},
                           Kept{convolution, "*conv.weight"},
                           Kept{decay, "*A_log"},
                           Kept{senses, "*vision*"},
                           Kept{senses, "*visual*"},
                           Kept{senses, "*audio*"},
                           Kept{senses, "*multi_modal_projector*"},
                           Kept{senses, "*mm_projector*"}};

/// Whether one of the include patterns that match the name also matches a pattern of the same kind.
bool is_asked_for(const Kept& kept, std::string_view name, std::span<const std::string> include) {
  return std::any_of(table.begin(), table.end(), [&](const Kept& of) {
    return of.what == kept.what && matches(of.pattern, name) &&
           std::any_of(include.begin(), include.end(),
                       [&](const std::string& asked) { return matches(of.pattern, asked) && matches(asked, name); });
  });
}

}  // namespace

std::optional<Kept> kept(std::string_view name, std::span<const std::string> include) {
  const auto* const found = std::find_if(table.begin(), table.end(), [&](const Kept& of) {
    return matches(of.pattern, name) && !is_asked_for(of, name, include);
  });
  return found == table.end() ? std::nullopt : std::optional(*found);
}

}  // namespace thresher::formats
