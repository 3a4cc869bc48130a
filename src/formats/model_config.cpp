#include "formats/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "formats/config_words.hpp"
#include "formats/reject.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

using nlohmann::json;

constexpr std::uint64_t max_config_bytes = std::uint64_t{4} << 20;
constexpr std::size_t deepest = 64;

/// Python's json writes Infinity and NaN, which are not JSON: they become strings, which are rejected as numbers.
std::string with_quoted_numbers(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (!in_string) {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (rest.starts_with(word)) {
          quoted += fmt::format("\"{}\"", word);
          at += word.size();
          break;
        }
      }
      if (at >= text.size()) {
        break;
      }
    }
    if (in_string && text[at] == '\\' && at + 1 < text.size()) {
      quoted += text[at++];
    } else if (text[at] == '"') {
      in_string = !in_string;
    }
    quoted += text[at];
  }
  return quoted;
}

/// Detects what the document's tree would hide: duplicate keys, of which readers take either, and depth.
class StructureReader : public nlohmann::json_sax<json> {
 public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return start(); }
  bool start_array(std::size_t) override { return start(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    return keys_.back().insert(name).second || fail(fmt::format("has {} twice, expected once", quoted_name(name)));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const bool is_beyond = dynamic_cast<const json::out_of_range*>(&error) != nullptr;
    return fail(is_beyond ? "has a number beyond what 64 bits hold"
                          : fmt::format("is not JSON near byte {}", position));
  }

 private:
  bool start() {
    keys_.emplace_back();
    return keys_.size() <= deepest || fail(fmt::format("is nested deeper than {}", deepest));
  }
  bool end() {
    keys_.pop_back();
    return true;
  }
  bool fail(std::string reason) {
    problem = std::move(reason);
    return false;
  }

  std::vector<std::set<std::string>> keys_;  ///< of the open containers; lists have none
};

json parsed(std::string_view text, const std::string& file) {
  // The parser takes a NUL for the end of its input, and would ignore the rest.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    reject(fmt::format("{} has a NUL at byte {}, where JSON has none", file, nul));
  }
  const std::string numbers_quoted = with_quoted_numbers(text);
  StructureReader structure;
  if (!json::sax_parse(numbers_quoted, &structure)) {
    reject(fmt::format("{} {}", file, structure.problem));
  }
  return json::parse(numbers_quoted);
}

std::string shown(const json& value) {
  if (value.is_string()) {
    return quoted_name(value.get<std::string>());
  }
  return value.is_object() ? "an object" : value.is_array() ? "a list" : value.dump();
}

/// null, false, 0 and lists of only these.
bool says_nothing(const json& value) {
  if (value.is_array()) {
    return std::all_of(value.begin(), value.end(), says_nothing);
  }
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) || (value.is_number() && value == 0);
}

/// Models' names of the supported activations. gelu_new and similar names are other spellings of gelu_pytorch_tanh.
struct Named {
  std::string_view name;
  ActivationKind kind;
};
constexpr std::array names_of_activations{
    Named{"silu", ActivationKind::silu},
    Named{"swish", ActivationKind::silu},
    Named{"swiglu", ActivationKind::silu},
    Named{"gelu_pytorch_tanh", ActivationKind::gelu_tanh},
    Named{"gelu_tanh", ActivationKind::gelu_tanh},
    Named{"gelu_python_tanh", ActivationKind::gelu_tanh},
    Named{"gelu_new", ActivationKind::gelu_tanh},
    Named{"gelu_fast", ActivationKind::gelu_tanh},
    Named{"swigluoai", ActivationKind::swiglu_clamped},
    Named{"swigluoai_uninterleave", ActivationKind::swiglu_clamped},
    Named{"situ", ActivationKind::situ},
    Named{"relu2", ActivationKind::relu2},
};

std::optional<ActivationKind> kind_named(std::string_view name) {
  const auto* const known = std::find_if(names_of_activations.begin(), names_of_activations.end(),
                                         [&](const Named& one) { return one.name == name; });
  return known == names_of_activations.end() ? std::nullopt : std::optional(known->kind);
}

/// The first key that is present counts: Gemma's hidden_act is ignored where hidden_activation is present.
constexpr std::array activation_keys{"hidden_activation", "hidden_act", "mlp_hidden_act", "activation_function"};
constexpr const char* hidden_act = "hidden_act";

/// Keys of lists of layers that are not quantized.
constexpr std::array lists_of_unquantised{"ignore",          "ignored_layers",        "modules_to_not_convert",
                                          "exclude_modules", "llm_int8_skip_modules", "dynamic"};

/// Keys of constants that are read in a layer's parts beside the activation.
constexpr std::array keys_of_constants{"swiglu_limit",
                                       "swiglu_limits",
                                       "swiglu_limits_shared",
                                       "swiglu_alpha",
                                       "activation_sparsity_pattern",
                                       "activation_situ_beta",
                                       "activation_situ_linear_beta"};

template <class Keys>
bool is_among(const Keys& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// "text_config.hidden_act", "block_configs[0]".
std::string inside(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

/// "gated-silu" is T5's spelling of silu.
std::optional<ActivationKind> kind_written(std::string_view text) {
  constexpr std::string_view gated = "gated-";
  return kind_named(text.starts_with(gated) ? text.substr(gated.size()) : text);
}

}  // namespace

struct ModelConfig::Parsed {
  json root;
  std::string file;

  /// A layer's part of the file, inner first.
  struct Section {
    const Parsed& config;
    LayerWords words;
    std::vector<const json*> parts;

    [[nodiscard]] const json* find(std::string_view key) const {
      for (const json* const part : parts) {
        const auto found = part->find(key);
        if (found != part->end() && !found->is_null()) {
          return &*found;
        }
      }
      return nullptr;
    }
    /// The innermost part that has one of these keys; other parts are ignored.
    template <class Keys>
    [[nodiscard]] Section first_part_with(const Keys& keys) const {
      for (const json* const part : parts) {
        const Section one{config, words, {part}};
        if (std::any_of(keys.begin(), keys.end(), [&](const char* key) { return one.find(key) != nullptr; })) {
          return one;
        }
      }
      return {config, words, {}};
    }
    [[noreturn]] void refuse(std::string_view key, const json& value, std::string_view expected) const {
      reject(fmt::format("{}: {} is {}, expected {}", config.file, key, shown(value), expected));
    }
    [[nodiscard]] std::optional<std::string> text(std::string_view key) const {
      const json* const value = find(key);
      if (value != nullptr && !value->is_string()) {
        refuse(key, *value, "a text");
      }
      return value == nullptr ? std::nullopt : std::optional(value->get<std::string>());
    }
    /// Above 0; empty where it is 0.
    [[nodiscard]] std::optional<float> number(std::string_view key) const {
      const json* const value = find(key);
      if (value == nullptr || (value->is_number() && *value == 0)) {
        return std::nullopt;
      }
      const float number = value->is_number() ? value->get<float>() : -1.0F;
      if (!(number > 0.0F) || !std::isfinite(number)) {
        refuse(key, *value, "a finite number above 0, or --activation");
      }
      return number;
    }
    /// Checks `part`, whose path is `path`.
    void refuse_rotations(const json& part, const std::string& path) const {
      for (const auto& [key, value] : part.items()) {
        if (speaks_of_rotation(key) && !says_nothing(value) && !value.empty()) {
          refuse(inside(path, key), value, "none: nothing is rotated here");
        }
      }
    }
    /// If it is a number, it must be `wanted`, the value of `what`.
    void expect_number(std::string_view key, std::int64_t wanted, std::string_view what) const {
      const json* const value = find(key);
      if (value != nullptr && value->is_number() && *value != wanted) {
        refuse(key, *value, fmt::format("{}, as many as {}", wanted, what));
      }
    }
    [[nodiscard]] bool is_true(std::string_view key) const {
      const json* const value = find(key);
      if (value != nullptr && !value->is_boolean()) {
        refuse(key, *value, "true or false");
      }
      return value != nullptr && value->get<bool>();
    }
  };

  [[nodiscard]] Section section(const FeedForwardNames& layer) const {
    Section section{*this, LayerWords(layer), {}};
    add_parts(root, !section.words.sees_or_hears(), section);
    return section;
  }

 private:
  /// `part` and its own parts, inner first; of other models' towers only those of vision and audio.
  static void add_parts(const json& part, bool counts, Section& section) {
    for (const auto& [key, value] : part.items()) {
      if (value.is_object() && section.words.is_own_part(key)) {
        add_parts(value, counts || section.words.is_of_tower(key), section);
      }
    }
    if (counts) {
      section.parts.push_back(&part);
    }
  }
};

namespace {

/// All other keys that describe an activation of this layer, or may: they must agree, or are rejected.
template <class Section>
class UnusedKeys {
 public:
  UnusedKeys(const Section& section, ActivationKind kind)
      : section_(section), kind_(kind), used_(section.first_part_with(activation_keys)) {}

  void refuse() const { visit_part(section_.config.root, ""); }

 private:
  void visit_part(const json& part, const std::string& path) const {
    for (const auto& [key, value] : part.items()) {
      const std::string at = inside(path, key);
      if (section_.words.is_of_another(key) || is_used(part, key)) {
        continue;
      }
      if (speaks_of_activation(key)) {
        if (section_.words.is_of_absent_experts(key) && !used_.parts.empty()) {
          continue;  // dense layers have their own
        }
        expect_same(value, key, at);
      } else {
        visit_below(value, at);
      }
    }
  }

  void visit_below(const json& value, const std::string& path) const {
    if (value.is_object()) {
      visit_part(value, path);
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        visit_below(value[i], fmt::format("{}[{}]", path, i));
      }
    }
  }

  /// The reader reads these of the layer's parts. No other name counts in the part that is used and those around it.
  [[nodiscard]] bool is_used(const json& part, const std::string& key) const {
    const auto at = std::find(section_.parts.begin(), section_.parts.end(), &part);
    if (is_among(keys_of_constants, key)) {
      return at != section_.parts.end();
    }
    return is_among(activation_keys, key) && !used_.parts.empty() && is_around_used(part);
  }

  [[nodiscard]] bool is_around_used(const json& part) const {
    return &part == used_.parts.front() || std::any_of(part.begin(), part.end(), [&](const json& value) {
      return value.is_object() && is_around_used(value);
    });
  }

  /// Names, also in lists and objects. A value that is neither a name nor empty is unknown.
  void expect_same(const json& value, const std::string& key, const std::string& path) const {
    if (value.is_object()) {
      for (const auto& [inner, of_inner] : value.items()) {
        expect_same(of_inner, inner, inside(path, inner));
      }
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        expect_same(value[i], key, fmt::format("{}[{}]", path, i));
      }
    } else if (value.is_string()) {
      if (kind_written(value.get<std::string>()) != kind_) {
        section_.refuse(quoted_name(path), value, fmt::format("{}, or --activation", name(kind_)));
      }
    } else if (!says_nothing(value) && !(value.is_boolean() && agrees(key))) {
      section_.refuse(quoted_name(path), value, "none: what it does is not known here; or --activation");
    } else if (value == false && is_swiglu() && ends_in_swiglu(key)) {
      section_.refuse(quoted_name(path), value, fmt::format("true, as it is {}, or --activation", name(kind_)));
    }
  }

  [[nodiscard]] bool is_swiglu() const {
    return kind_ == ActivationKind::silu || kind_ == ActivationKind::swiglu_clamped;
  }

  /// "use_swiglu", not "use_swiglu_limit".
  [[nodiscard]] static bool ends_in_swiglu(const std::string& key) {
    const std::vector<std::string> words = words_of(key);
    return !words.empty() && words.back() == "swiglu";
  }

  /// "use_swiglu": true, "is_gated_act": true.
  [[nodiscard]] bool agrees(const std::string& key) const {
    const std::vector<std::string> words = words_of(key);
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return kind_named(word) == kind_ || ((word == "gated" || word == "glu") && kind_ != ActivationKind::relu2);
    });
  }

  const Section& section_;
  ActivationKind kind_;
  Section used_;
};

/// Checks one layer's section for its activation.
template <class Section>
class ActivationReader {
 public:
  ActivationReader(const Section& section, const FeedForwardNames& layer, std::int64_t number)
      : section_(section), layer_(layer), number_(number) {}

  [[nodiscard]] SourcedActivation read() {
    refuse_lists();
    Activation activation;
    activation.kind = kind();
    UnusedKeys(section_, activation.kind).refuse();
    refuse_other_matrices(activation.kind);
    read_situ(activation);
    if (is_gpt_oss(activation.kind)) {
      activation.kind = ActivationKind::swiglu_clamped;
      read_constants(activation);
    } else if (const std::optional<float> limit = number("swiglu_limit")) {
      if (activation.kind != ActivationKind::silu) {
        section_.refuse("swiglu_limit", *section_.find("swiglu_limit"),
                        fmt::format("none beside {}, or --activation", name(activation.kind)));
      }
      activation = {.kind = ActivationKind::swiglu_clamped, .alpha = 1, .limit = *limit, .up_offset = 0};
    }
    if (const json* const alpha = section_.find("swiglu_alpha");
        alpha != nullptr && std::find(used_.begin(), used_.end(), "swiglu_alpha") == used_.end()) {
      section_.refuse("swiglu_alpha", *alpha, "none but of gpt-oss's activation, or --activation");
    }
    return {activation, source()};
  }

 private:
  [[nodiscard]] std::optional<float> number(const char* key) {
    const std::optional<float> found = section_.number(key);
    if (found) {
      used_.emplace_back(key);
    }
    return found;
  }

  /// Layers without a gate have no default: a name has to say what they are.
  void refuse_other_matrices(ActivationKind kind) const {
    const bool is_of_one = kind == ActivationKind::relu2;
    if (is_of_one != layer_.is_gated()) {
      return;
    }
    const char* const key = used_.empty() ? hidden_act : used_.front().c_str();
    const json* const value = section_.find(key);
    section_.refuse(key, value == nullptr ? json() : *value,
                    is_of_one ? "another for a layer with a gate, or --activation"
                              : "'relu2' for a layer without a gate, or --activation relu2");
  }

  /// β of the gate and of up, beside "situ" alone.
  void read_situ(Activation& activation) {
    const bool is_situ = activation.kind == ActivationKind::situ;
    for (const auto& [key, member] : {std::pair{"activation_situ_beta", &Activation::alpha},
                                      std::pair{"activation_situ_linear_beta", &Activation::limit}}) {
      const std::optional<float> found = is_situ ? number(key) : section_.number(key);
      if (found.has_value() != is_situ) {
        section_.refuse(
            key, found ? *section_.find(key) : json(),
            is_situ ? "a number beside 'situ', or --activation" : "none but beside 'situ', or --activation");
      }
      if (found) {
        activation.*member = *found;
      }
    }
  }

  void read_constants(Activation& activation) {
    activation.limit = number("swiglu_limit").value_or(activation.limit);
    activation.alpha = number("swiglu_alpha").value_or(activation.alpha);
  }

  /// gpt-oss writes hidden_act "silu", but applies another activation.
  [[nodiscard]] bool is_gpt_oss(ActivationKind kind) {
    const std::optional<std::string> type = section_.text("model_type");
    const bool has_its_names = layer_.is_gpt_oss;
    if (kind == ActivationKind::swiglu_clamped) {
      return true;
    }
    if (type != "gpt_oss" && !(has_its_names && !type)) {
      if (has_its_names) {
        section_.refuse("model_type", *type, "gpt_oss, whose names the layer has, or --activation");
      }
      return false;
    }
    if (kind != ActivationKind::silu) {
      section_.refuse(used_.front(), *section_.find(used_.front()), "'silu' of gpt-oss, or --activation");
    }
    if (type) {
      used_.insert(used_.begin(), "model_type");
    }
    return true;
  }

  [[nodiscard]] ActivationKind kind() {
    std::optional<ActivationKind> kind;
    const Section part = section_.first_part_with(activation_keys);
    for (const char* const key : activation_keys) {
      const std::optional<std::string> text = part.text(key);
      if (!text || (kind && key == std::string_view(hidden_act))) {
        continue;
      }
      const std::optional<ActivationKind> named = kind_named(*text);
      if (!named) {
        section_.refuse(key, *text, "'silu', 'gelu_pytorch_tanh', 'swigluoai', 'situ' or 'relu2', or --activation");
      }
      if (kind && kind != named) {
        section_.refuse(key, *text, fmt::format("what {} says, or --activation", used_.front()));
      }
      if (!kind) {
        kind = named;
        used_.emplace_back(key);
      }
    }
    return kind.value_or(ActivationKind::silu);
  }

  /// Per-layer limits that clamp the result of silu and not its input (Step 3.5), and sparse activations.
  void refuse_lists() const {
    for (const char* const key :
         {layer_.has_experts ? "swiglu_limits" : "swiglu_limits_shared", "activation_sparsity_pattern"}) {
      const json* const list = section_.find(key);
      if (list == nullptr) {
        continue;
      }
      if (!list->is_array()) {
        section_.refuse(key, *list, "a list of numbers, or --activation");
      }
      const auto at = static_cast<std::size_t>(number_);
      if (at < list->size() && !says_nothing((*list)[at])) {
        section_.refuse(fmt::format("{}[{}]", key, at), (*list)[at], "0: it is not computed; or --activation");
      }
    }
  }

  [[nodiscard]] std::string source() const {
    if (used_.empty()) {
      return layer_.is_gpt_oss ? "gpt-oss's; config.json names none" : "config.json names none";
    }
    std::string keys;
    for (const std::string& key : used_) {
      keys += (keys.empty() ? "" : ", ") + key;
    }
    return "config.json: " + keys;
  }

  const Section& section_;
  const FeedForwardNames& layer_;
  std::int64_t number_;
  std::vector<std::string> used_;
};

}  // namespace

ModelConfig::ModelConfig() = default;
ModelConfig::~ModelConfig() = default;
ModelConfig::ModelConfig(ModelConfig&&) noexcept = default;
ModelConfig& ModelConfig::operator=(ModelConfig&&) noexcept = default;

ModelConfig::ModelConfig(std::string_view json_text, std::string file)
    : parsed_(std::make_unique<Parsed>(Parsed{parsed(json_text, file), file})) {
  if (!parsed_->root.is_object()) {
    reject(fmt::format("{} is {}, expected an object", file, shown(parsed_->root)));
  }
}

ModelConfig ModelConfig::beside(const std::filesystem::path& weights) {
  std::error_code ignored;
  const std::filesystem::path folder =
      std::filesystem::is_directory(weights, ignored) ? weights : weights.parent_path();
  const std::filesystem::path path = folder / "config.json";
  if (std::filesystem::symlink_status(path, ignored).type() == std::filesystem::file_type::not_found) {
    return {};
  }
  const InputFile file = read_input_file(path, max_config_bytes);
  if (!file.bytes) {
    throw Error(ErrorCode::io, fmt::format("{}: {}", path.string(), file.obstacle));
  }
  return {*file.bytes, path.string()};
}

bool ModelConfig::is_there() const noexcept { return parsed_ != nullptr; }

SourcedActivation ModelConfig::activation(const FeedForwardNames& layer, std::int64_t number) const {
  if (!is_there()) {
    const bool is_gpt_oss = layer.is_gpt_oss;
    if (!layer.is_gated()) {
      reject(fmt::format("{} has no gate, and no config.json says what is done to up, expected --activation relu2",
                         layer.block));
    }
    return {{.kind = is_gpt_oss ? ActivationKind::swiglu_clamped : ActivationKind::silu},
            is_gpt_oss ? "gpt-oss's; no config.json" : "no config.json"};
  }
  const Parsed::Section section = parsed_->section(layer);
  return ActivationReader(section, layer, number).read();
}

void ModelConfig::refuse_changed_products(const FeedForwardNames& layer, bool adds_bias) const {
  if (!is_there()) {
    return;
  }
  const Parsed::Section section = parsed_->section(layer);
  if (section.is_true("mlp_bias") && !adds_bias) {
    section.refuse("mlp_bias", true, "false: no bias is added here");
  }
  if (const json* const factors = section.find("mlp_multipliers")) {
    const bool are_ones = factors->is_array() && std::all_of(factors->begin(), factors->end(), [](const json& one) {
                            return one.is_number() && one == 1;
                          });
    if (!are_ones) {
      section.refuse("mlp_multipliers", *factors, "none but 1: nothing is multiplied here");
    }
  }
  for (const json* const part : section.parts) {
    section.refuse_rotations(*part, "");
    for (const char* const key : {"quantization_config", "compression_config"}) {
      if (const auto found = part->find(key); found != part->end() && found->is_object()) {
        section.refuse_rotations(*found, key);
      }
    }
  }
}

void ModelConfig::refuse_what_is_not_computed(const FeedForwardNames& layer) const {
  refuse_changed_products(layer);
  if (!is_there() || !layer.has_experts) {
    return;
  }
  const Parsed::Section section = parsed_->section(layer);
  for (const char* const key : {"zero_expert_num", "zero_expert_type"}) {
    if (const json* const value = section.find(key); value != nullptr && !says_nothing(*value)) {
      section.refuse(key, *value, "none: experts without matrices are not computed here");
    }
  }
  for (const char* const key : {"apply_router_weight_on_input", "moe_apply_router_weight_on_input"}) {
    if (section.is_true(key)) {
      section.refuse(key, true, "false: the router's weights multiply what experts make");
    }
  }
  if (const std::optional<std::string> type = section.text("model_type"); type && type->starts_with("llama4")) {
    section.refuse("model_type", *type, "another with experts: its router's weights multiply what enters them");
  }
}

std::string ModelConfig::doubt(const FeedForwardNames& layer, Format weights) const {
  const json* const found = is_there() ? parsed_->section(layer).find("quantization_config") : nullptr;
  if (found == nullptr || !found->is_object()) {
    return "";
  }
  const auto text_of = [&](const char* key) { return found->value(key, json()); };
  if (const json block = text_of("weight_block_size");
      weights == Format::fp8_block && block.is_array() && block != json{128, 128}) {
    reject(fmt::format("{}: quantization_config.weight_block_size is {}, expected [128,128], as the scales are read",
                       parsed_->file, block.dump()));
  }
  const bool leaves_some = std::any_of(lists_of_unquantised.begin(), lists_of_unquantised.end(), [&](const char* key) {
    const json list = text_of(key);
    return !list.is_null() && !list.empty();
  });
  const json method = text_of("quant_method");
  const bool is_plain = weights == Format::fp16 || weights == Format::bf16;
  return is_plain && method.is_string() && !leaves_some
             ? fmt::format("{}: quantization_config.quant_method is {}, but the layer is {}", parsed_->file,
                           shown(method), thresher::name(weights))
             : "";
}

void ModelConfig::check_sizes(const FeedForwardNames& layer, std::int64_t experts, std::int64_t hidden_size) const {
  if (!is_there() || LayerWords(layer).sees_or_hears()) {
    return;
  }
  const Parsed::Section section = parsed_->section(layer);
  section.expect_number("hidden_size", hidden_size, "the columns of the layer's gate");
  if (layer.has_experts) {
    for (const char* const key : {"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"}) {
      section.expect_number(key, experts, "the layer has experts");
    }
  }
}

}  // namespace thresher::formats
