#include "machine/emulator/engine/shadow.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace thresher::emulator {
namespace {

bool known(const Access& earlier, const Observer& observer, const ConflictSink& sink) {
  if (earlier.cluster != observer.self.cluster) {
    return sink.ordered_across_clusters(earlier, *observer.seen);
  }
  return observer.seen->at(earlier.lane) >= earlier.clock;
}

/// Two asynchronous writes with one clock are not ordered, though any agent that knows one knows both.
bool same_async_group(const Access& earlier, const Access& later) {
  return earlier.lane == later.lane && earlier.clock == later.clock && earlier.cluster == later.cluster;
}

bool lacks_fence(const Access& earlier, const Observer& observer) {
  return is_async(observer.self.kind) && !is_async(earlier.kind) && earlier.cluster == observer.self.cluster &&
         (observer.fenced == nullptr || observer.fenced->at(earlier.lane) < earlier.clock);
}

/// An agent's reads are ordered, so the latest replaces earlier ones. Reads through the read-only path are only
/// replaced by reads of the same kind.
void keep_latest_of_each_lane(std::vector<Access>& readers) {
  const auto agent = [](const Access& reader) {
    return std::tuple(reader.cluster, reader.lane, reader.kind == AccessKind::read_only);
  };
  std::reverse(readers.begin(), readers.end());
  std::stable_sort(readers.begin(), readers.end(),
                   [&](const Access& one, const Access& other) { return agent(one) < agent(other); });
  readers.erase(std::unique(readers.begin(), readers.end(),
                            [&](const Access& one, const Access& other) { return agent(one) == agent(other); }),
                readers.end());
}

}  // namespace

void Shadow::reset(std::uint64_t bytes, bool initialised) {
  for (auto& page : pages_) {
    if (page) {
      spare_pages_.push_back(std::move(page));
    }
  }
  pages_.clear();
  pages_.resize((bytes + granule_bytes * page_granules - 1) / (granule_bytes * page_granules));
  initialised_ = initialised;
  free_pieces_.clear();
  for (std::uint32_t i = 0; i < pieces_.size(); ++i) {
    free_pieces_.push_back(i);
  }
  read_lists_.assign(1, {});  // index 0 means none
  free_read_lists_.clear();
}

Shadow::Granule& Shadow::granule(std::uint64_t index) {
  auto& page = pages_[index / page_granules];
  if (!page) {
    if (spare_pages_.empty()) {
      page = std::make_unique<Page>();
    } else {
      page = std::move(spare_pages_.back());
      spare_pages_.pop_back();
      page->fill(Granule{});
    }
    if (initialised_) {
      for (auto& fresh : *page) {
        fresh.written = 0xFFFF;
      }
    }
  }
  return (*page)[index % page_granules];
}

void Shadow::access(std::uint64_t offset, std::uint64_t bytes, const Observer& observer, ConflictSink& sink) {
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t index = at / granule_bytes;
    const std::uint64_t base = index * granule_bytes;
    const std::uint64_t stop = std::min(end, base + granule_bytes);
    access_granule(granule(index), base, static_cast<std::uint32_t>(at - base), static_cast<std::uint32_t>(stop - base),
                   observer, sink);
    at = stop;
  }
}

void Shadow::access_granule(Granule& granule, std::uint64_t base, std::uint32_t first, std::uint32_t end,
                            const Observer& observer, ConflictSink& sink) {
  const std::uint32_t bytes = end - first;
  const auto mask = static_cast<std::uint16_t>(((1U << bytes) - 1U) << first);
  const AccessKind kind = observer.self.kind;
  const bool writes = is_write(kind);
  const bool reads = !writes || is_atomic(kind);
  if (reads && observer.checks_initialised && (granule.written & mask) != mask) {
    sink.conflict({ConflictKind::uninitialised, {}, observer.self, base + first, bytes});
    granule.written |= mask;  // report it once
  }
  if (granule.barriers != 0) {
    const std::uint32_t halves = (first < 8 ? 1U : 0U) | (end > 8 ? 2U : 0U);
    if ((granule.barriers & halves) != 0) {
      sink.conflict({ConflictKind::barrier_bytes, {}, observer.self, base + first, bytes});
    }
  }
  const bool whole = bytes == granule_bytes;
  if (whole && granule.unit == granule_bytes) {
    writes ? write(granule.whole, observer, base, bytes, sink) : read(granule.whole, observer, base, bytes, sink);
  } else {
    if (!whole) {
      split(granule, (first % 4 == 0 && end % 4 == 0) ? 4 : 1);
    }
    const std::uint32_t unit = granule.unit;
    Pieces& pieces = *pieces_[granule.pieces];
    for (std::uint32_t at = first; at < end; at += unit) {
      writes ? write(pieces[at / unit], observer, base + first, bytes, sink)
             : read(pieces[at / unit], observer, base + first, bytes, sink);
    }
    if (whole && writes) {
      join(granule);
    }
  }
  if (writes) {
    granule.written |= mask;
  }
}

void Shadow::split(Granule& granule, std::uint8_t unit) {
  if (granule.unit <= unit) {
    return;
  }
  const auto copy = [this](const Cell& from) {
    Cell to = from;
    if (from.more_reads != 0) {
      to.more_reads = static_cast<std::uint32_t>(read_lists_.size());
      Readers readers = read_lists_[from.more_reads];
      read_lists_.push_back(std::move(readers));
    }
    return to;
  };
  if (granule.unit == granule_bytes) {
    if (free_pieces_.empty()) {
      free_pieces_.push_back(static_cast<std::uint32_t>(pieces_.size()));
      pieces_.push_back(std::make_unique<Pieces>());
    }
    granule.pieces = free_pieces_.back();
    free_pieces_.pop_back();
    Pieces& pieces = *pieces_[granule.pieces];
    for (std::uint32_t i = 0; i < granule_bytes / unit; ++i) {
      pieces[i] = copy(granule.whole);
    }
    drop_readers(granule.whole);
  } else {
    Pieces& pieces = *pieces_[granule.pieces];
    const Pieces coarse = pieces;
    for (std::uint32_t i = 0; i < granule_bytes; ++i) {
      pieces[i] = copy(coarse[i / 4]);
    }
    for (std::uint32_t i = 0; i < 4; ++i) {
      Cell old = coarse[i];
      drop_readers(old);
    }
  }
  granule.unit = unit;
}

/// After a write of all 16 bytes every piece holds only that write.
void Shadow::join(Granule& granule) {
  granule.whole = (*pieces_[granule.pieces])[0];
  free_pieces_.push_back(granule.pieces);
  granule.unit = granule_bytes;
}

void Shadow::read(Cell& cell, const Observer& observer, std::uint64_t offset, std::uint32_t bytes, ConflictSink& sink) {
  if (cell.write.kind != AccessKind::none && !(is_atomic(cell.write.kind) && is_atomic(observer.self.kind))) {
    if (observer.self.kind == AccessKind::read_only || !known(cell.write, observer, sink)) {
      sink.conflict({ConflictKind::unordered, cell.write, observer.self, offset, bytes});
    } else if (lacks_fence(cell.write, observer)) {
      sink.conflict({ConflictKind::not_fenced, cell.write, observer.self, offset, bytes});
    }
  }
  add_reader(cell, observer, sink);
}

void Shadow::write(Cell& cell, const Observer& observer, std::uint64_t offset, std::uint32_t bytes,
                   ConflictSink& sink) {
  const Access& self = observer.self;
  if (cell.write.kind != AccessKind::none && !(is_atomic(cell.write.kind) && is_atomic(self.kind))) {
    if (!known(cell.write, observer, sink) || (is_async(self.kind) && same_async_group(cell.write, self))) {
      sink.conflict({ConflictKind::unordered, cell.write, self, offset, bytes});
    } else if (lacks_fence(cell.write, observer)) {
      sink.conflict({ConflictKind::not_fenced, cell.write, self, offset, bytes});
    }
  }
  const auto check_reader = [&](const Access& reader) {
    if (is_atomic(reader.kind) && is_atomic(self.kind)) {
      return;
    }
    if (reader.kind == AccessKind::read_only || !known(reader, observer, sink)) {
      sink.conflict({ConflictKind::unordered, reader, self, offset, bytes});
    }
  };
  if (cell.read.kind != AccessKind::none) {
    check_reader(cell.read);
    if (cell.more_reads != 0) {
      for (const Access& reader : read_lists_[cell.more_reads].list) {
        check_reader(reader);
      }
    }
    drop_readers(cell);
    cell.read = {};
  }
  cell.write = self;
}

/// A reader replaces those that it is ordered after: a write that is ordered after it is ordered after them.
void Shadow::add_reader(Cell& cell, const Observer& observer, const ConflictSink& sink) {
  const auto replaceable = [&](const Access& reader) {
    return (reader.kind != AccessKind::read_only || observer.self.kind == AccessKind::read_only) &&
           (reader.lane == observer.self.lane ? reader.cluster == observer.self.cluster
                                              : known(reader, observer, sink));
  };
  if (cell.read.kind == AccessKind::none || (cell.more_reads == 0 && replaceable(cell.read))) {
    cell.read = observer.self;
    return;
  }
  if (cell.read.lane == observer.self.lane && replaceable(cell.read)) {
    cell.read = observer.self;
    return;
  }
  if (cell.more_reads == 0) {
    if (free_read_lists_.empty()) {
      cell.more_reads = static_cast<std::uint32_t>(read_lists_.size());
      read_lists_.emplace_back();
    } else {
      cell.more_reads = free_read_lists_.back();
      free_read_lists_.pop_back();
    }
  }
  Readers& readers = read_lists_[cell.more_reads];
  if (readers.list.size() >= readers.tidy_at) {
    std::erase_if(readers.list, replaceable);
    keep_latest_of_each_lane(readers.list);
    readers.tidy_at = std::max<std::size_t>(16, readers.list.size() * 2);
  }
  readers.list.push_back(cell.read);
  cell.read = observer.self;
}

void Shadow::drop_readers(Cell& cell) {
  if (cell.more_reads != 0) {
    read_lists_[cell.more_reads].list.clear();
    read_lists_[cell.more_reads].tidy_at = 16;
    free_read_lists_.push_back(cell.more_reads);
    cell.more_reads = 0;
  }
}

void Shadow::set_barrier(std::uint64_t offset, bool live) {
  Granule& holder = granule(offset / granule_bytes);
  const auto half = static_cast<std::uint8_t>(offset % granule_bytes < 8 ? 1U : 2U);
  holder.barriers = static_cast<std::uint8_t>(live ? holder.barriers | half : holder.barriers & ~half);
}

}  // namespace thresher::emulator
