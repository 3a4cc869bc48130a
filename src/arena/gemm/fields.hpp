#pragma once
/// The parts of a product's problems.
#include "arena/gemm/task.hpp"
#include "arena/operation/fields.hpp"

namespace thresher::arena {

/// Those that a product of this kind has.
[[nodiscard]] Fields<ProductTask> product_fields(bool is_dense, bool is_dual);

/// The activation, which `place(task)` refers to. A command line names its kind alone.
template <class Task, class Place>
Field<Task> activation_field(const Place& place) {
  return {
      .key = "activation",
      .help = "what is applied to the gate; silu when left out",
      .allowed = names_of(gated_activation_kinds),
      .set = [=](Task& task, const std::string& text) { place(task).kind = value_of(gated_activation_kinds, text); },
      .text = [=](const Task& task) { return std::string(name(place(task).kind)); }};
}

}  // namespace thresher::arena
