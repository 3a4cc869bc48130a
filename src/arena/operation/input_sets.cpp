#include "arena/operation/input_sets.hpp"

#include <algorithm>

#include "arena/operation/operation.hpp"

namespace thresher::arena {
namespace {

/// The bytes that one set reads and writes, and its memory with guard zones.
struct SetSize {
  std::size_t bytes = 0;
  std::size_t footprint_bytes = 0;
};

SetSize size_of_set(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs) {
  SetSize size;
  for (const auto* tensors : {&inputs, &outputs}) {
    for (const HostTensor& tensor : *tensors) {
      size.bytes += tensor.bytes();
      size.footprint_bytes += guarded_bytes(tensor);
    }
  }
  return size;
}

}  // namespace

InputSets make_input_sets(Rig& rig, const Problem& problem, Distribution distribution, std::uint64_t seed,
                          std::size_t most) {
  const Operation& operation = problem.operation();
  Memory& memory = rig.memory();
  const std::vector<HostTensor> inputs = operation.inputs(problem, distribution, seed);
  const std::vector<HostTensor> outputs = operation.outputs(problem);
  const auto limit = static_cast<std::size_t>(sets_memory_share * static_cast<double>(memory.available_bytes()));
  const SetSize size = size_of_set(inputs, outputs);
  InputSets made;
  made.rotation = plan_rotation(size.bytes, size.footprint_bytes, rig.last_level_cache_bytes(), limit);
  made.rotation.num_sets = std::min(made.rotation.num_sets, most);
  made.sets.reserve(made.rotation.num_sets);
  made.sets.emplace_back(memory, inputs, outputs);
  for (std::size_t index = 1; index < made.rotation.num_sets; ++index) {
    made.sets.emplace_back(memory, operation.variation(inputs, index), outputs);
  }
  return made;
}

}  // namespace thresher::arena
