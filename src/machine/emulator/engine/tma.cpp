// The TMA: tensor boxes and bulk copies.
#include <cstring>
#include <utility>
#include <vector>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/engine.hpp"
#include "machine/emulator/engine/tensor_map.hpp"

namespace thresher::emulator {
namespace {

using machine::Swizzle;
using machine::TensorMap;
using machine::TensorMapDescription;

/// A copy into one block's shared memory that completes its bytes on a barrier there.
class Delivery : public AsyncWork {
 public:
  Delivery(Engine& engine, Block& block, std::uint32_t offset, Mbarrier& barrier, std::uint32_t bytes)
      : engine_(engine), block_(block), offset_(offset), barrier_(barrier), bytes_(bytes) {}
  void complete() override {
    write(block_.bytes.data(), offset_);
    engine_.statistics.copied_bytes += bytes_;
    engine_.barriers.complete_bytes(barrier_, bytes_);
  }

 protected:
  virtual void write(std::uint8_t* shared, std::uint32_t offset) = 0;
  std::uint32_t bytes() const { return bytes_; }

 private:
  Engine& engine_;
  Block& block_;
  std::uint32_t offset_;
  Mbarrier& barrier_;
  std::uint32_t bytes_;
};

class BoxDelivery final : public Delivery {
 public:
  BoxDelivery(Engine& engine, Block& block, std::uint32_t offset, Mbarrier& barrier, const Box& box, Swizzle swizzle)
      : Delivery(engine, block, offset, barrier, box.bytes()), box_(box), swizzle_(swizzle) {}

 private:
  void write(std::uint8_t* shared, std::uint32_t offset) override {
    std::vector<std::uint8_t> line(box_.row_bytes());
    for (std::uint32_t index = 0; index < box_.rows(); ++index) {
      const BoxRow row = box_.row(index);
      std::memset(line.data(), 0, line.size());
      if (row.bytes != 0) {
        std::memcpy(line.data() + row.first, reinterpret_cast<const void*>(row.address), row.bytes);
      }
      for (std::uint32_t chunk = 0; chunk < line.size(); chunk += 16) {
        std::memcpy(shared + swizzled(offset + row.shared + chunk, swizzle_), line.data() + chunk, 16);
      }
    }
  }
  Box box_;
  Swizzle swizzle_;
};

class BulkDelivery final : public Delivery {
 public:
  BulkDelivery(Engine& engine, Block& block, std::uint32_t offset, Mbarrier& barrier, const std::uint8_t* source,
               std::uint32_t bytes)
      : Delivery(engine, block, offset, barrier, bytes), source_(source) {}

 private:
  void write(std::uint8_t* shared, std::uint32_t offset) override { std::memmove(shared + offset, source_, bytes()); }
  const std::uint8_t* source_;
};

class WordDelivery final : public Delivery {
 public:
  WordDelivery(Engine& engine, Block& block, std::uint32_t offset, Mbarrier& barrier, const void* value,
               std::uint32_t bytes)
      : Delivery(engine, block, offset, barrier, bytes) {
    std::memcpy(value_, value, bytes);
  }

 private:
  void write(std::uint8_t* shared, std::uint32_t offset) override { std::memcpy(shared + offset, value_, bytes()); }
  std::uint8_t value_[16] = {};
};

/// The agent of a copy that completes on `barrier`: all copies of one phase are one agent.
Access delivery_access(const Engine& engine, const Mbarrier& barrier, AccessKind kind, std::uint32_t site) {
  return {barrier.phase + 1, site, engine.cluster.serial, barrier.lane, kind};
}

/// Checks that `bytes` may be delivered to `offset` of `block` on its barrier, and records the write.
void announce(Engine& engine, Thread& thread, Block& block, Mbarrier& barrier, std::uint32_t offset,
              std::uint32_t bytes, AccessKind kind, const char* call, std::uint32_t site) {
  engine.barriers.check_published(thread, barrier, kind == AccessKind::async_write || &block != thread.block, call,
                                  site);
  const Access self = delivery_access(engine, barrier, kind, site);
  barrier.in_flight_bytes += bytes;
  barrier.in_flight_site = site;
  barrier.in_flight_call = call;
  barrier.in_flight_thread = &thread;
  engine.memory.check_shared(block, offset, bytes, {self, &thread.knowledge.seen, &thread.knowledge.fenced_shared});
  if (&block != thread.block) {
    engine.memory.require_started(thread, block, call, site);
    engine.memory.note_remote(block, self);
  }
}

TensorMapDescription described(Engine& engine, const void* map, int rank, const char* call, std::uint32_t site) {
  TensorMapDescription description;
  if (!decode_tensor_map(*static_cast<const TensorMap*>(map), description)) {
    engine.findings.fatal(FindingKind::bad_argument,
                          std::string(call) + engine.words.at(site) + " with a tensor map nobody encoded");
  }
  if (description.rank != static_cast<std::uint32_t>(rank)) {
    engine.findings.fatal(FindingKind::bad_argument,
                          std::string(call) + engine.words.at(site) + " with " + std::to_string(rank) +
                              " coordinates for a tensor map of rank " + std::to_string(description.rank));
  }
  return description;
}

std::uint32_t tile_alignment(Swizzle swizzle) { return 128U << static_cast<std::uint32_t>(swizzle); }

/// Checks that every in-bounds row is in a buffer of the launch and allows the access.
void check_rows(Engine& engine, const Box& box, const Observer& observer, const char* call, std::uint32_t site) {
  for (std::uint32_t index = 0; index < box.rows(); ++index) {
    const BoxRow row = box.row(index);
    if (row.bytes != 0) {
      GlobalBuffer* buffer = engine.memory.global_buffer(row.address, row.bytes, 1, call, site);
      engine.memory.check_global(*buffer, row.address, row.bytes, observer);
    }
  }
}

std::vector<Block*> targets(Engine& engine, std::uint16_t mask, const char* call, std::uint32_t site) {
  if (mask == 0) {
    engine.findings.fatal(FindingKind::bad_argument, std::string(call) + engine.words.at(site) + " to no block at all");
  }
  std::vector<Block*> found;
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    if ((mask >> rank & 1U) == 0) {
      continue;
    }
    if (rank >= engine.cluster.blocks.size()) {
      engine.findings.fatal(FindingKind::bad_argument, std::string(call) + engine.words.at(site) + " to block " +
                                                           std::to_string(rank) + " of a cluster of " +
                                                           std::to_string(engine.cluster.blocks.size()));
    }
    found.push_back(engine.cluster.blocks[rank].get());
  }
  return found;
}

std::uint32_t in_block(const Block& block, std::uint32_t address) { return (address & 0xFFFFFFU) | block.rank << 24; }

TmaStores& stores_of(Engine& engine, Thread& thread) {
  if (!thread.stores) {
    thread.stores = std::make_unique<TmaStores>();
    thread.stores->read_lane = engine.ordering.new_lane({LaneOwner::What::stores_read, &thread});
    thread.stores->written_lane = engine.ordering.new_lane({LaneOwner::What::stores_written, &thread});
  }
  return *thread.stores;
}

/// The two halves of a store: bytes are read from shared memory, and written later.
struct StoreData {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> rows;  // address and bytes
  std::vector<std::uint8_t> bytes;
};

class StoreRead final : public AsyncWork {
 public:
  StoreRead(Engine& engine, Thread& thread, std::vector<std::pair<std::uint32_t, std::uint32_t>> pieces,
            std::shared_ptr<StoreData> data)
      : engine_(engine), thread_(thread), pieces_(std::move(pieces)), data_(std::move(data)) {}
  void complete() override {
    for (const auto& [offset, bytes] : pieces_) {
      const std::uint8_t* from = thread_.block->bytes.data() + offset;
      data_->bytes.insert(data_->bytes.end(), from, from + bytes);
    }
    ++thread_.stores->groups.done;
    if (thread_.wait.what == Wait::What::stores_read) {
      engine_.scheduler.wake(thread_);
    }
  }

 private:
  Engine& engine_;
  Thread& thread_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pieces_;  // shared offset and bytes
  std::shared_ptr<StoreData> data_;
};

class StoreWrite final : public AsyncWork {
 public:
  StoreWrite(Engine& engine, Thread& thread, std::shared_ptr<StoreData> data)
      : engine_(engine), thread_(thread), data_(std::move(data)) {}
  void complete() override {
    const std::uint8_t* from = data_->bytes.data();
    for (const auto& [address, bytes] : data_->rows) {
      std::memcpy(reinterpret_cast<void*>(address), from, bytes);
      from += bytes;
    }
    engine_.statistics.copied_bytes += data_->bytes.size();
    ++thread_.stores->written;
    if (thread_.wait.what == Wait::What::stores_written) {
      engine_.scheduler.wake(thread_);
    }
  }

 private:
  Engine& engine_;
  Thread& thread_;
  std::shared_ptr<StoreData> data_;
};

void submit_store(Engine& engine, Thread& thread, std::vector<std::pair<std::uint32_t, std::uint32_t>> pieces,
                  std::shared_ptr<StoreData> data) {
  TmaStores& stores = *thread.stores;
  ++stores.groups.issued;
  engine.scheduler.submit(std::make_unique<StoreRead>(engine, thread, std::move(pieces), data), &stores.queue);
  engine.scheduler.submit(std::make_unique<StoreWrite>(engine, thread, std::move(data)), &stores.queue);
}

/// Along its rows a box begins at a multiple of 16 bytes; on the GPU anything else is an illegal instruction.
void check_alignment(Engine& engine, const TensorMapDescription& description, const std::int32_t* at, const char* call,
                     std::uint32_t site) {
  const std::int64_t first_byte = std::int64_t{at[0]} * element_bytes(description.element);
  if (first_byte % 16 != 0) {
    engine.findings.fatal(FindingKind::misaligned, std::string(call) + engine.words.at(site) +
                                                       " of a box that begins at byte " + std::to_string(first_byte) +
                                                       " of its rows, expected a multiple of 16");
  }
}

/// The barrier on which a copy into a block completes.
enum class Completes : std::uint8_t { on_its_own, on_the_even_one };

void load_box(const std::vector<Block*>& blocks, const char* call, std::uint32_t destination, const void* map,
              std::uint32_t barrier_address, const std::int32_t* at, int rank, std::uint32_t site,
              Completes completes = Completes::on_its_own) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const TensorMapDescription description = described(engine, map, rank, call, site);
  check_alignment(engine, description, at, call, site);
  const Box box(description, at);
  for (Block* block : blocks) {
    engine.memory.shared_bytes(in_block(*block, destination), box.bytes(), tile_alignment(description.swizzle), call,
                               site);
    Block& at_block =
        completes == Completes::on_its_own ? *block : *engine.cluster.blocks[block->rank & ~std::uint32_t{1}];
    engine.memory.require_started(thread, at_block, call, site);
    Mbarrier& barrier = engine.barriers.at(in_block(at_block, barrier_address), call, site);
    const Observer reader{delivery_access(engine, barrier, AccessKind::async_read, site), &thread.knowledge.seen,
                          nullptr};
    check_rows(engine, box, reader, call, site);
    announce(engine, thread, *block, barrier, destination & 0xFFFFFFU, box.bytes(), AccessKind::async_write, call,
             site);
    if (&at_block != block) {
      Memory::note_remote(at_block, delivery_access(engine, barrier, AccessKind::async_write, site));
    }
    engine.scheduler.submit(
        std::make_unique<BoxDelivery>(engine, *block, destination & 0xFFFFFFU, barrier, box, description.swizzle));
  }
}

void require_whole_pieces(Engine& engine, const char* call, std::uint32_t bytes, std::uint32_t site) {
  if (bytes == 0 || bytes % 16 != 0) {
    engine.findings.fatal(FindingKind::bad_argument, std::string(call) + engine.words.at(site) + " of " +
                                                         std::to_string(bytes) + " bytes, not a multiple of 16");
  }
}

void load_bytes(const std::vector<Block*>& blocks, const char* call, std::uint32_t destination, std::uint64_t source,
                std::uint32_t bytes, std::uint32_t barrier_address, std::uint32_t site) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  require_whole_pieces(engine, call, bytes, site);
  for (Block* block : blocks) {
    engine.memory.shared_bytes(in_block(*block, destination), bytes, 16, call, site);
    Mbarrier& barrier = engine.barriers.at(in_block(*block, barrier_address), call, site);
    GlobalBuffer* buffer = engine.memory.global_buffer(source, bytes, 16, call, site);
    engine.memory.check_global(
        *buffer, source, bytes,
        {delivery_access(engine, barrier, AccessKind::async_read, site), &thread.knowledge.seen, nullptr});
    announce(engine, thread, *block, barrier, destination & 0xFFFFFFU, bytes, AccessKind::async_write, call, site);
    engine.scheduler.submit(std::make_unique<BulkDelivery>(engine, *block, destination & 0xFFFFFFU, barrier,
                                                           reinterpret_cast<const std::uint8_t*>(source), bytes));
  }
}

}  // namespace

namespace calls {

void tma_load(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at, int rank,
              Site where) {
  Engine& engine = Engine::current();
  engine.scheduler.pause(Engine::self());
  load_box({Engine::self().block}, "tma::load", destination, map, barrier, at, rank, engine.sites.number(where));
}

void tma_load_multicast(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at,
                        int rank, std::uint16_t mask, Site where) {
  Engine& engine = Engine::current();
  engine.scheduler.pause(Engine::self());
  const std::uint32_t site = engine.sites.number(where);
  const char* call = "tma::load_multicast";
  load_box(targets(engine, mask, call, site), call, destination, map, barrier, at, rank, site);
}

void tma_load_pair(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at, int rank,
                   Site where) {
  Engine& engine = Engine::current();
  engine.scheduler.pause(Engine::self());
  load_box({Engine::self().block}, "tma::load_pair", destination, map, barrier, at, rank, engine.sites.number(where),
           Completes::on_the_even_one);
}

void tma_load_pair_multicast(std::uint32_t destination, const void* map, std::uint32_t barrier, const std::int32_t* at,
                             int rank, std::uint16_t mask, Site where) {
  Engine& engine = Engine::current();
  engine.scheduler.pause(Engine::self());
  const std::uint32_t site = engine.sites.number(where);
  const char* call = "tma::load_pair_multicast";
  load_box(targets(engine, mask, call, site), call, destination, map, barrier, at, rank, site,
           Completes::on_the_even_one);
}

void bulk_load(std::uint32_t destination, std::uint64_t source, std::uint32_t bytes, std::uint32_t barrier,
               Site where) {
  Engine& engine = Engine::current();
  engine.scheduler.pause(Engine::self());
  load_bytes({Engine::self().block}, "tma::load_bulk", destination, source, bytes, barrier, engine.sites.number(where));
}

void bulk_load_multicast(std::uint32_t destination, std::uint64_t source, std::uint32_t bytes, std::uint32_t barrier,
                         std::uint16_t mask, Site where) {
  Engine& engine = Engine::current();
  engine.scheduler.pause(Engine::self());
  const std::uint32_t site = engine.sites.number(where);
  const char* call = "tma::load_bulk_multicast";
  load_bytes(targets(engine, mask, call, site), call, destination, source, bytes, barrier, site);
}

void bulk_prefetch(std::uint64_t source, std::uint32_t bytes, Site where) {
  Engine& engine = Engine::current();
  const char* call = "tma::prefetch_bulk";
  const std::uint32_t site = engine.sites.number(where);
  require_whole_pieces(engine, call, bytes, site);
  engine.memory.global_buffer(source, bytes, 16, call, site);
}

void store_async(std::uint32_t address, const void* value, std::uint32_t bytes, std::uint32_t barrier_address,
                 Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  const char* call = "cluster::store_async";
  if (address >> 24 != barrier_address >> 24) {
    engine.findings.fatal(
        FindingKind::bad_argument,
        std::string(call) + engine.words.at(site) + " completes on a barrier of another block than the destination's");
  }
  engine.memory.shared_bytes(address, bytes, bytes, call, site);
  Block& block = engine.memory.block_of(address);
  Mbarrier& barrier = engine.barriers.at(barrier_address, call, site);
  announce(engine, thread, block, barrier, address & 0xFFFFFFU, bytes, AccessKind::copy_write, call, site);
  engine.scheduler.submit(std::make_unique<WordDelivery>(engine, block, address & 0xFFFFFFU, barrier, value, bytes));
}

void tma_store(const void* map, std::uint32_t source, const std::int32_t* at, int rank, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  const char* call = "tma::store";
  const TensorMapDescription description = described(engine, map, rank, call, site);
  check_alignment(engine, description, at, call, site);
  for (int d = 0; d < rank; ++d) {
    if (at[d] < 0) {
      engine.findings.fatal(FindingKind::bad_argument,
                            std::string(call) + engine.words.at(site) + " of a box that begins at coordinate " +
                                std::to_string(at[d]) + " of dimension " + std::to_string(d) +
                                ": a store may reach beyond the tensor's end, not begin before it");
    }
  }
  const Box box(description, at);
  engine.memory.shared_bytes(source, box.bytes(), tile_alignment(description.swizzle), call, site);
  TmaStores& stores = stores_of(engine, thread);
  const std::uint32_t clock = stores.groups.open_clock();
  const Observer reader{{clock, site, engine.cluster.serial, stores.read_lane, AccessKind::async_read},
                        &thread.knowledge.seen,
                        &thread.knowledge.fenced_shared};
  const Observer writer{{clock, site, engine.cluster.serial, stores.written_lane, AccessKind::async_write},
                        &thread.knowledge.seen,
                        nullptr};
  auto data = std::make_shared<StoreData>();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pieces;
  for (std::uint32_t index = 0; index < box.rows(); ++index) {
    const BoxRow row = box.row(index);
    if (row.bytes == 0) {
      continue;
    }
    GlobalBuffer* buffer = engine.memory.global_buffer(row.address, row.bytes, 1, call, site);
    engine.memory.check_global(*buffer, row.address, row.bytes, writer);
    if (!buffer->shadow) {
      return;
    }
    data->rows.emplace_back(row.address, row.bytes);
    for (std::uint32_t done = 0; done < row.bytes;) {
      const std::uint32_t byte = row.first + done;
      const std::uint32_t bytes = std::min(row.bytes - done, 16 - byte % 16);
      const std::uint32_t offset = swizzled((source & 0xFFFFFFU) + row.shared + byte, description.swizzle);
      engine.memory.check_shared(*thread.block, offset, bytes, reader);
      pieces.emplace_back(offset, bytes);
      done += bytes;
    }
  }
  submit_store(engine, thread, std::move(pieces), std::move(data));
}

void tma_commit(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  static_cast<void>(engine.sites.number(where));
  TmaStores& stores = stores_of(engine, thread);
  stores.groups.ends.push_back(stores.groups.issued);
}

void tma_wait(std::uint32_t pending, bool written, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  TmaStores& stores = stores_of(engine, thread);
  const std::uint32_t closed = stores.groups.closed();
  const std::uint32_t target = closed > pending ? closed - pending : 0;
  const std::uint32_t needed = stores.groups.needed(target);
  while ((written ? stores.written : stores.groups.done) < needed) {
    engine.scheduler.block(thread,
                           {written ? Wait::What::stores_written : Wait::What::stores_read, site, target, nullptr});
  }
  stores.waited = std::max(stores.waited, target);
  Ordering::learn(thread, stores.read_lane, target);
  if (written) {
    Ordering::learn(thread, stores.written_lane, target);
  }
}

}  // namespace calls
}  // namespace thresher::emulator
