#include "arena/operation/argument.hpp"

#include <algorithm>

namespace thresher::arena {

Argument& Arguments::add(const char* name, ArgumentKind kind, const char* about) {
  Argument& added = all_.emplace_back();
  added.name = name;
  added.kind = kind;
  added.about = about;
  return added;
}

Argument& Arguments::input(const char* name, const char* about, const char* tensor) {
  Argument& added = add(name, ArgumentKind::tensor, about);
  added.tensor = tensor == nullptr ? name : tensor;
  added.value = find_(added.tensor);
  return added;
}

Argument& Arguments::weight(const char* name, const char* about, const char* tensor) {
  Argument& added = input(name, about, tensor);
  added.role = ArgumentRole::weight;
  return added;
}

Argument& Arguments::output(const char* name, const char* about) {
  Argument& added = input(name, about);
  added.role = ArgumentRole::output;
  return added;
}

Argument& Arguments::extent(const char* name, const char* about, std::int64_t value) {
  Argument& added = add(name, ArgumentKind::extent, about);
  added.integer = value;
  return added;
}

Argument& Arguments::integer(const char* name, const char* about, std::int64_t value) {
  Argument& added = add(name, ArgumentKind::integer, about);
  added.integer = value;
  return added;
}

Argument& Arguments::flag(const char* name, const char* about, bool value) {
  Argument& added = add(name, ArgumentKind::flag, about);
  added.integer = value ? 1 : 0;
  added.usual = 0;
  return added;
}

Argument& Arguments::choice(const char* name, const char* about, std::vector<std::string> choices, std::size_t value) {
  Argument& added = add(name, ArgumentKind::choice, about);
  added.integer = static_cast<std::int64_t>(value);
  added.choices = std::move(choices);
  added.usual = 0;
  return added;
}

Argument& Arguments::format(const char* name, const char* about, Format value) {
  Argument& added = add(name, ArgumentKind::format, about);
  added.integer = static_cast<std::int64_t>(value);
  for (const Format format : all_formats) {
    added.choices.emplace_back(thresher::name(format));
  }
  return added;
}

Argument& Arguments::number(const char* name, const char* about, float value) {
  Argument& added = add(name, ArgumentKind::number, about);
  added.number = value;
  return added;
}

void Arguments::order(const std::optional<GateUpOrder>& order) {
  std::vector<std::string> orders{"separate"};
  for (const GateUpOrder one : all_gate_up_orders) {
    orders.emplace_back(thresher::name(one));
  }
  choice("order", "of gate and up", std::move(orders), order ? 1 + static_cast<std::size_t>(*order) : 0);
}

void Arguments::activation(const Activation& activation) {
  std::vector<std::string> kinds;
  for (const ActivationKind kind : all_activation_kinds) {
    kinds.emplace_back(thresher::name(kind));
  }
  const auto* const found = std::find(all_activation_kinds.begin(), all_activation_kinds.end(), activation.kind);
  choice("activation", "of the gate", std::move(kinds), static_cast<std::size_t>(found - all_activation_kinds.begin()));
  number("alpha", "this and the next two: of swiglu_clamped; situ has no up_offset", activation.alpha);
  number("limit", "", activation.limit);
  number("up_offset", "", activation.up_offset);
}

}  // namespace thresher::arena
