// The names of the public enumerations, and the enumerators of names.
#include <algorithm>

#include "core/arch.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher {
namespace {

template <class Enum, std::size_t count>
std::optional<Enum> of_name(const std::array<Enum, count>& all, std::string_view text) noexcept {
  const auto found = std::find_if(all.begin(), all.end(), [&](Enum one) { return name(one) == text; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::optional<Format> parse_format(std::string_view text) noexcept { return of_name(all_formats, text); }

std::string_view name(ScaleLayout layout) noexcept {
  switch (layout) {
    case ScaleLayout::row_major: return "row-major";
    case ScaleLayout::blocked: return "blocked";
    case ScaleLayout::column_major: return "column-major";
  }
  return "unknown";
}

std::optional<ScaleLayout> parse_scale_layout(std::string_view text) noexcept {
  return of_name(all_scale_layouts, text);
}

std::string_view name(ActivationKind kind) noexcept {
  switch (kind) {
    case ActivationKind::silu: return "silu";
    case ActivationKind::gelu_tanh: return "gelu_tanh";
    case ActivationKind::swiglu_clamped: return "swiglu_clamped";
    case ActivationKind::situ: return "situ";
    case ActivationKind::relu2: return "relu2";
  }
  return "unknown";
}

std::optional<ActivationKind> parse_activation_kind(std::string_view text) noexcept {
  return of_name(all_activation_kinds, text);
}

std::string_view name(Numerics numerics) noexcept { return numerics == Numerics::exact ? "exact" : "fast"; }

std::optional<Numerics> parse_numerics(std::string_view text) noexcept { return of_name(all_numerics, text); }

std::string_view name(RowLayout layout) noexcept {
  switch (layout) {
    case RowLayout::packed: return "packed";
    case RowLayout::slots: return "slots";
    case RowLayout::gathered: return "gathered";
  }
  return "unknown";
}

std::optional<RowLayout> parse_row_layout(std::string_view text) noexcept { return of_name(all_row_layouts, text); }

std::string_view name(GateUpOrder order) noexcept {
  switch (order) {
    case GateUpOrder::gate_first: return "gate-first";
    case GateUpOrder::up_first: return "up-first";
    case GateUpOrder::interleaved: return "interleaved";
  }
  return "unknown";
}

std::optional<GateUpOrder> parse_gate_up_order(std::string_view text) noexcept {
  return of_name(all_gate_up_orders, text);
}

std::string_view name(Arch arch) noexcept {
  switch (arch) {
    case Arch::cpu: return "cpu";
    case Arch::sm_90a: return "sm_90a";
    case Arch::sm_100a: return "sm_100a";
    case Arch::sm_100f: return "sm_100f";
    case Arch::sm_103a: return "sm_103a";
  }
  return "unknown";
}

std::optional<Arch> parse_arch(std::string_view text) noexcept { return of_name(all_archs, text); }

bool runs_on(Arch code, Arch card) noexcept {
  return code == card || (code == Arch::sm_100f && (card == Arch::sm_100a || card == Arch::sm_103a));
}

}  // namespace thresher
