#include "strategies/planned_call.hpp"

namespace thresher::strategies {
namespace {

constexpr std::size_t piece_alignment = 256;

}  // namespace

std::size_t total_bytes(const std::vector<WorkspacePiece>& pieces) {
  return pieces.empty() ? 0 : pieces.back().offset + pieces.back().bytes;
}

std::size_t PlannedCall::workspace_bytes() const { return total_bytes(workspace); }
std::size_t PlannedCall::packed_bytes() const { return total_bytes(packed); }

std::size_t add_piece(std::vector<WorkspacePiece>& pieces, std::string name, std::size_t bytes) {
  const std::size_t offset = (total_bytes(pieces) + piece_alignment - 1) / piece_alignment * piece_alignment;
  pieces.push_back({std::move(name), offset, bytes});
  return pieces.size() - 1;
}

}  // namespace thresher::strategies
