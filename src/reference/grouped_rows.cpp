#include "reference/grouped_rows.hpp"

#include <algorithm>

namespace thresher::reference {
namespace {

std::int64_t integer(const Tensor& tensor, std::int64_t index) {
  return static_cast<const std::int32_t*>(tensor.data)[index];
}

std::uint32_t flags_of(std::int64_t value, std::int64_t most) {
  return (value < 0 ? GroupedStatus::negative : 0U) | (value > most ? GroupedStatus::beyond : 0U);
}

void add_slots(const GroupedProblem& problem, const GroupedTensors& tensors, OwnedRows& owned) {
  const std::int64_t capacity = tensors.c.shape[1];
  for (std::int64_t expert = 0; expert < problem.experts; ++expert) {
    const std::int64_t count = integer(tensors.counts, expert);
    owned.status.flags |= flags_of(count, capacity);
    owned.groups.push_back({expert * capacity, std::clamp<std::int64_t>(count, 0, capacity)});
  }
}

/// Without offsets: one expert.
void add_every_row(const GroupedTensors& tensors, OwnedRows& owned) { owned.groups.push_back({0, tensors.c.shape[0]}); }

void add_packed(const GroupedProblem& problem, const GroupedTensors& tensors, OwnedRows& owned) {
  const std::int64_t rows = tensors.c.shape[0];
  std::int64_t start = 0;
  std::int64_t before = 0;
  for (std::int64_t i = 0; i <= problem.experts; ++i) {
    const std::int64_t offset = integer(tensors.offsets, i);
    owned.status.flags |= flags_of(offset, rows) | (i > 0 && offset < before ? GroupedStatus::decreasing : 0U);
    const std::int64_t next = std::max(start, std::clamp<std::int64_t>(offset, 0, rows));
    if (i > 0) {
      owned.groups.push_back({start, next - start});
    }
    start = next;
    before = offset;
  }
}

/// −1 if the id is outside the tokens.
std::int64_t gathered_token(const GroupedProblem& problem, const GroupedTensors& tensors, std::int64_t row) {
  const std::int64_t id = integer(tensors.row_ids, row);
  const std::int64_t token = id / problem.row_ids_divisor;
  return id >= 0 && token < tensors.a.shape[0] ? token : -1;
}

}  // namespace

OwnedRows owned_rows(const GroupedProblem& problem, const GroupedTensors& tensors) {
  OwnedRows owned;
  const bool has_slots = problem.layout == RowLayout::slots;
  if (has_slots) {
    add_slots(problem, tensors, owned);
  } else if (tensors.offsets.rank == 0) {
    add_every_row(tensors, owned);
  } else {
    add_packed(problem, tensors, owned);
  }
  const std::int64_t rows = has_slots ? tensors.c.shape[0] * tensors.c.shape[1] : tensors.c.shape[0];
  owned.tokens.assign(static_cast<std::size_t>(rows), -1);
  for (const GroupRows& group : owned.groups) {
    for (std::int64_t row = group.first; row < group.end(); ++row) {
      const std::int64_t token = problem.layout == RowLayout::gathered ? gathered_token(problem, tensors, row) : row;
      owned.tokens[static_cast<std::size_t>(row)] = token;
      owned.status.flags |= token < 0 ? GroupedStatus::skipped_rows : 0U;
    }
  }
  return owned;
}

}  // namespace thresher::reference
