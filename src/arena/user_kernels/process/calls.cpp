#include "arena/user_kernels/process/calls.hpp"

#include <cstring>

#include "arena/operation/operation.hpp"
#include "arena/user_kernels/line/strategy_call.hpp"

namespace thresher::arena::user_kernels {

Calls::Calls(const Problem& problem, Memory& memory, const std::vector<DeviceSet>& sets, std::size_t workspace_bytes,
             Receiver receiver) {
  if (workspace_bytes > 0) {
    workspace_ = std::make_unique<GuardedBuffer>(memory, workspace_bytes);
  }
  for (const DeviceSet& set : sets) {
    const std::vector<Argument> arguments = problem.operation().arguments(problem, find_in(set));
    CallStructure structure = call_structure(arguments, receiver, workspace_ ? workspace_->data() : nullptr,
                                             static_cast<std::int64_t>(workspace_bytes));
    layout_ = {static_cast<std::uint32_t>(structure.bytes.size()), std::move(structure.addresses)};
    calls_.push_back(std::move(structure.bytes));
    add_memories(set, arguments);
  }
}

Calls::Calls(const Problem& problem, const std::vector<DeviceSet>& sets) {
  about_.put(std::string(problem.operation().name())).put(problem.operation().bytes(problem));
  const std::vector<Argument> arguments = arguments_of(problem);
  for (const DeviceSet& set : sets) {
    layout_ = layout_of_tensors(set.tensors());
    calls_.push_back(bytes_of_tensors(set.tensors()));
    add_memories(set, arguments);
  }
  put_names(about_, sets.front().tensors());
}

void Calls::add_memories(const DeviceSet& set, const std::vector<Argument>& arguments) {
  Memories& activations = activations_.emplace_back();
  Memories& outputs = outputs_.emplace_back();
  for (const Argument& argument : arguments) {
    if (argument.is_tensor() && argument.role != ArgumentRole::weight && set.find(argument.tensor) != nullptr) {
      Memories& kind = argument.role == ArgumentRole::output ? outputs : activations;
      const Memories places = set.places_of(argument.tensor);
      kind.insert(kind.end(), places.begin(), places.end());
    }
  }
}

std::vector<std::string> Calls::guard_damage() const {
  const auto damage = workspace_ ? workspace_->damage() : std::nullopt;
  return damage ? std::vector{describe(*damage, "its workspace")} : std::vector<std::string>{};
}

}  // namespace thresher::arena::user_kernels
