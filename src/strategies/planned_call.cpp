#include "strategies/planned_call.hpp"

namespace thresher::strategies {
namespace {

constexpr std::size_t piece_alignment = 256;

}  // namespace

std::size_t PlannedCall::workspace_bytes() const {
  return workspace.empty() ? 0 : workspace.back().offset + workspace.back().bytes;
}

std::size_t add_piece(PlannedCall& call, std::string name, std::size_t bytes) {
  const std::size_t offset = (call.workspace_bytes() + piece_alignment - 1) / piece_alignment * piece_alignment;
  call.workspace.push_back({std::move(name), offset, bytes});
  return call.workspace.size() - 1;
}

}  // namespace thresher::strategies
