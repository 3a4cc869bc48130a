// The tcgen05 instructions of a thread: copies of scales, products, commits. Descriptors and instruction words are
// decoded here from their bits, by the PTX ISA's tables and independently of the code that made them.
#include <array>
#include <cstring>
#include <vector>

#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/engine/operand.hpp"
#include "machine/emulator/engine/tensor_arithmetic.hpp"
#include "machine/emulator/engine/tensor_calls.hpp"
#include "machine/emulator/engine/tensor_uses.hpp"

namespace thresher::emulator {
namespace {

constexpr std::uint32_t scale_rows = 32;  // of a block of scales in shared memory, 16 bytes each
constexpr std::uint32_t scale_columns = 4;

std::uint32_t field(std::uint64_t bits, std::uint32_t first, std::uint32_t count) {
  return static_cast<std::uint32_t>(bits >> first & ((std::uint64_t{1} << count) - 1U));
}

TensorPipe& pipe_of(Engine& engine, Thread& thread) {
  if (!thread.tensor_pipe) {
    thread.tensor_pipe = std::make_unique<TensorPipe>();
    thread.tensor_pipe->lane = engine.ordering.new_lane({LaneOwner::What::tensor_pipe, &thread});
  }
  return *thread.tensor_pipe;
}

/// One instruction as it is issued.
struct Issue {
  Engine& engine;
  Thread& thread;
  const char* call;
  std::uint32_t site;
  bool pair;

  [[nodiscard]] std::string sentence() const { return call + engine.words.at(site) + " by " + engine.words.of(thread); }
  void refuse(const std::string& why) const {
    engine.findings.fatal(FindingKind::bad_argument, sentence() + ": " + why);
  }
  [[nodiscard]] TensorUse use(TensorUse::What what, std::uint64_t shape = 0) const {
    const TensorPipe& pipe = *thread.tensor_pipe;
    return {what, 1, pipe.lane, pipe.issued, site, shape, &thread, thread.clock()};
  }
  bool touch(Block& block, const TensorPlace& place, TensorTouch how, const TensorUse& self) const {
    return touch_tensor_memory(engine, block, place, how, {self, &thread.knowledge.seen, &thread.tensor_seen, call});
  }
  /// The fixed bits of a descriptor.
  void check_descriptor(std::uint64_t bits, const char* operand) const {
    const std::uint32_t layout = field(bits, 61, 3);
    if (field(bits, 46, 3) != 1 || field(bits, 49, 3) != 0 || field(bits, 52, 9) != 0 || field(bits, 14, 2) != 0 ||
        field(bits, 30, 2) != 0) {
      refuse(std::string("the descriptor of ") + operand + " has bits that a tcgen05 descriptor does not have");
    }
    if (layout % 2 != 0) {
      refuse(std::string("the descriptor of ") + operand + " has no legal swizzle");
    }
  }
  /// Checks shared memory that is about to be read asynchronously, 16 bytes at a time.
  void check_bytes(Block& block, std::uint32_t offset, const char* operand) const {
    if (offset + 16 > block.bytes.size()) {
      engine.findings.fatal(FindingKind::out_of_bounds, sentence() + ": " + operand + " reaches shared bytes " +
                                                            std::to_string(offset) + "-" + std::to_string(offset + 15) +
                                                            ", but the block has " +
                                                            std::to_string(block.bytes.size()));
    }
    const Access self{thread.tensor_pipe->issued, site, engine.cluster.serial, thread.tensor_pipe->lane,
                      AccessKind::async_read};
    engine.memory.check_shared(block, offset, 16, {self, &thread.knowledge.seen, &thread.knowledge.fenced_shared});
    if (&block != thread.block) {
      Memory::note_remote(block, self);
    }
  }
};

/// A new instruction of this thread; its clock is the pipe's.
Issue issue(const char* call, bool pair, machine::Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  check_tensor_group(engine, thread, pair, call, site);
  TensorPipe& pipe = pipe_of(engine, thread);
  ++pipe.issued;
  pipe.last_site = site;
  if (pair) {
    engine.memory.require_started(thread, *engine.cluster.blocks[thread.block->rank ^ 1U], call, site);
  }
  return {engine, thread, call, site, pair};
}

// --- copies ----------------------------------------------------------------------------------------------------------

/// Rows of 16 bytes: 8 are dense, the stride leads to the next 8.
std::uint32_t scale_row_offset(std::uint64_t descriptor, std::uint32_t row) {
  return (field(descriptor, 0, 14) << 4U) + row / 8 * (field(descriptor, 32, 14) << 4U) + row % 8 * 16;
}

class ScaleCopy final : public AsyncWork {
 public:
  ScaleCopy(TensorBlocks blocks, std::uint32_t to, std::uint64_t descriptor)
      : blocks_(blocks), to_(to), descriptor_(descriptor) {}

  void complete() override {
    for (std::uint32_t b = 0; b < blocks_.count; ++b) {
      Block& block = *blocks_.of[b];
      for (std::uint32_t lane = 0; lane < tensor_lanes; ++lane) {
        std::memcpy(&block.tensor_memory->words[std::size_t{lane} * tensor_columns + to_],
                    &block.bytes[scale_row_offset(descriptor_, lane % scale_rows)], 16);
      }
    }
  }

 private:
  TensorBlocks blocks_;
  std::uint32_t to_;
  std::uint64_t descriptor_;
};

// --- products --------------------------------------------------------------------------------------------------------

struct Shape {
  std::uint32_t rows;  ///< of D, of both blocks
  std::uint32_t columns;
  std::uint32_t blocks;

  [[nodiscard]] std::uint32_t rows_of_block() const { return rows / blocks; }
  /// The lanes of a block's rows (PTX ISA, tcgen05: data path layouts A, B, D and F). 128 rows have a lane each. 64
  /// rows of one block leave the upper 16 lanes of each quarter unused. Those of a block of a pair have two lanes each,
  /// 64 lanes from each other, for half of the columns.
  [[nodiscard]] bool fills_half_of_a_quarter() const { return rows == 64; }
  [[nodiscard]] std::uint32_t lanes_of_row() const { return rows_of_block() == 64 && blocks == 2 ? 2 : 1; }
  [[nodiscard]] std::uint32_t columns_of_lane() const { return columns / lanes_of_row(); }
  [[nodiscard]] std::uint32_t lane(std::uint32_t row, std::uint32_t part) const {
    return fills_half_of_a_quarter() ? row / 16 * 32 + row % 16 : row + 64 * part;
  }
  [[nodiscard]] TensorPlace sums(std::uint32_t first) const {
    return {.slabs = fills_half_of_a_quarter() ? lower_slab : both_slabs, .first = first, .columns = columns_of_lane()};
  }
};

/// Decodes the instruction word and checks it against the supported shapes.
Shape decoded(const Issue& of, const TensorProductCall& call) {
  const std::uint32_t word = call.instruction;
  const Shape shape{field(word, 24, 5) << 4U, field(word, 17, 6) << 3U, call.pair ? 2U : 1U};
  const bool is_nvfp4 = call.kind == TensorKind::nvfp4;
  const std::uint32_t a_format = field(word, 7, 3);
  const std::uint32_t b_format = field(word, 10, is_nvfp4 ? 2 : 3);
  const std::uint32_t used = is_nvfp4 ? 0x1F000000U | 0x7E0000U | 0xC00U | 0x380U : 0x1F000000U | 0x7E0000U | 0x1FB0U;
  const bool formats_are_legal = call.kind == TensorKind::nvfp4  ? a_format == 1 && b_format == 1
                                 : call.kind == TensorKind::e4m3 ? a_format == 0 && b_format == 0
                                                                 : a_format <= 1 && a_format == b_format;
  if ((word & ~used) != 0 || !formats_are_legal || (!is_nvfp4 && field(word, 4, 2) != 1)) {
    of.refuse("the word of the instruction has formats or bits that this kind does not have here");
  }
  const std::uint32_t rows = shape.rows_of_block();
  if (!(rows == 128 || (rows == 64 && !is_nvfp4)) || shape.columns == 0 || shape.columns > 256 ||
      shape.columns % (8 * shape.blocks) != 0) {
    of.refuse("the word of the instruction gives " + std::to_string(shape.rows) + " rows and " +
              std::to_string(shape.columns) + " columns");
  }
  return shape;
}

class TensorProduct final : public AsyncWork {
 public:
  TensorProduct(Engine& engine, TensorBlocks blocks, const TensorProductCall& call, Shape shape)
      : engine_(engine),
        blocks_(blocks),
        call_(call),
        shape_(shape),
        arithmetic_(tensor_arithmetic(engine.options.tensor_sums)) {}

  void complete() override {
    for (std::uint32_t b = 0; b < blocks_.count; ++b) {
      if (call_.kind == TensorKind::nvfp4) {
        multiply_nvfp4(*blocks_.of[b]);
      } else {
        multiply_plain(*blocks_.of[b]);
      }
    }
    ++engine_.statistics.products;
  }

 private:
  static constexpr std::uint32_t row_bytes = 32;
  using Row = std::array<std::uint8_t, row_bytes>;

  static std::vector<Row> rows_of(const Block& block, std::uint64_t descriptor, std::uint32_t count) {
    const Operand operand(descriptor, false, count);
    std::vector<Row> rows(count);
    for (std::uint32_t chunk = 0; chunk < operand.chunks(); ++chunk) {
      std::memcpy(&rows[chunk / 2][chunk % 2 * 16], &block.bytes[operand.address(chunk)], 16);
    }
    return rows;
  }
  /// B's rows of all blocks, the even one's first.
  [[nodiscard]] std::vector<Row> b_rows() const {
    std::vector<Row> all;
    for (std::uint32_t b = 0; b < blocks_.count; ++b) {
      const std::vector<Row> part = rows_of(*blocks_.of[b], call_.b, shape_.columns / blocks_.count);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  /// The four scales of a row, from the quarter that computes with them.
  static std::array<std::uint8_t, 4> scales_of(const Block& block, std::uint32_t first, std::uint32_t row,
                                               std::uint32_t quarter) {
    const std::size_t lane = quarter * scale_rows + row % scale_rows;
    std::array<std::uint8_t, 4> scales{};
    std::memcpy(scales.data(), &block.tensor_memory->words[lane * tensor_columns + first + row / scale_rows], 4);
    return scales;
  }
  /// Calls `sum` with the word of each column of a row, and the column.
  template <typename Sum>
  void for_sums(Block& block, std::uint32_t row, const Sum& sum) const {
    for (std::uint32_t part = 0; part < shape_.lanes_of_row(); ++part) {
      const std::size_t lane = shape_.lane(row, part);
      std::uint32_t* const words = &block.tensor_memory->words[lane * tensor_columns + call_.sums];
      const std::uint32_t first = part * shape_.columns_of_lane();
      for (std::uint32_t i = 0; i < shape_.columns_of_lane(); ++i) {
        sum(words[i], first + i);
      }
    }
  }

  void multiply_nvfp4(Block& block) const {
    const std::vector<Row> a = rows_of(block, call_.a, shape_.rows_of_block());
    const std::vector<Row> b = b_rows();
    std::vector<Nvfp4Row> columns(shape_.columns);
    for (std::uint32_t quarter = 0; quarter < tensor_quarters; ++quarter) {
      for (std::uint32_t n = 0; n < shape_.columns; ++n) {
        columns[n] = nvfp4_row(b[n].data(), scales_of(block, call_.b_scales, n, quarter).data());
      }
      for (std::uint32_t row = quarter * scale_rows; row < (quarter + 1) * scale_rows; ++row) {
        const Nvfp4Row of_a = nvfp4_row(a[row].data(), scales_of(block, call_.a_scales, row, quarter).data());
        for_sums(block, row, [&](std::uint32_t& sum, std::uint32_t n) {
          sum = arithmetic_.scaled_dot(of_a, columns[n], call_.accumulate ? sum : 0);
        });
      }
    }
  }

  [[nodiscard]] TensorFormat format() const {
    if (call_.kind == TensorKind::e4m3) {
      return tensor_e4m3();
    }
    return field(call_.instruction, 7, 3) == 1 ? tensor_bf16() : tensor_fp16();
  }
  [[nodiscard]] std::vector<TensorElement> elements(const std::vector<Row>& rows, const TensorFormat& format) const {
    const std::uint32_t bytes = call_.kind == TensorKind::e4m3 ? 1 : 2;
    std::vector<TensorElement> all;
    all.reserve(rows.size() * row_bytes / bytes);
    for (const Row& row : rows) {
      for (std::uint32_t at = 0; at < row_bytes; at += bytes) {
        std::uint16_t code = 0;
        std::memcpy(&code, &row[at], bytes);
        all.push_back(format.decode(code));
      }
    }
    return all;
  }

  void multiply_plain(Block& block) const {
    const TensorFormat of = format();
    const std::uint32_t k = row_bytes / (call_.kind == TensorKind::e4m3 ? 1 : 2);
    const std::vector<TensorElement> a = elements(rows_of(block, call_.a, shape_.rows_of_block()), of);
    const std::vector<TensorElement> b = elements(b_rows(), of);
    for (std::uint32_t row = 0; row < shape_.rows_of_block(); ++row) {
      for_sums(block, row, [&](std::uint32_t& sum, std::uint32_t n) {
        sum = arithmetic_.dot(&a[std::size_t{row} * k], &b[std::size_t{n} * k], k, of.fraction_bits,
                              call_.accumulate ? sum : 0);
      });
    }
  }

  Engine& engine_;
  TensorBlocks blocks_;
  TensorProductCall call_;
  Shape shape_;
  TensorArithmetic arithmetic_;
};

void check_operand(const Issue& of, Block& block, std::uint64_t descriptor, std::uint32_t rows, const char* name) {
  const Operand operand(descriptor, false, rows);
  if (!operand.aligned()) {
    of.engine.findings.fatal(FindingKind::misaligned,
                             of.sentence() + ": the descriptor of " + name + " does not start at a swizzle atom");
  }
  for (std::uint32_t chunk = 0; chunk < operand.chunks(); ++chunk) {
    of.check_bytes(block, operand.address(chunk), name);
  }
}

// --- commits ---------------------------------------------------------------------------------------------------------

class Commit final : public AsyncWork {
 public:
  Commit(Engine& engine, const Thread& thread, std::vector<Mbarrier*> barriers, Knowledge carried, std::uint32_t site)
      : engine_(engine), thread_(thread), barriers_(std::move(barriers)), carried_(std::move(carried)), site_(site) {}

  void complete() override {
    for (Mbarrier* barrier : barriers_) {
      barrier->arriving.join(carried_);
      engine_.barriers.arrive(*barrier, 1, thread_, "tcgen05::commit of ", site_);
    }
    engine_.scheduler.progress();
  }

 private:
  Engine& engine_;
  const Thread& thread_;
  std::vector<Mbarrier*> barriers_;
  Knowledge carried_;
  std::uint32_t site_;
};

/// A commit signals that the pipe's earlier work is done, with the knowledge that that work waited for. It does not
/// release the thread's ordinary accesses.
Knowledge carried_by_commit(const Engine& engine, const Thread& thread) {
  Knowledge carried;
  for (std::size_t lane = engine.cluster.threads.size(); lane < engine.ordering.lanes(); ++lane) {
    const auto of = static_cast<Lane>(lane);
    if (engine.ordering.owner(of).what == LaneOwner::What::barrier) {
      carried.seen.raise(of, thread.knowledge.seen.at(of));
    }
  }
  carried.seen.raise(thread.tensor_pipe->lane, thread.tensor_pipe->issued);
  if (thread.warp->tensor_lane != 0) {
    carried.seen.raise(static_cast<Lane>(thread.warp->tensor_lane + thread.in_block % 32), thread.tensor_arrived);
  }
  return carried;
}

}  // namespace

namespace calls {

void tensor_copy_scales(std::uint32_t to, std::uint64_t descriptor, bool pair, Site where) {
  const Issue of = issue("tcgen05::copy_scales", pair, where);
  of.check_descriptor(descriptor, "the scales");
  if (field(descriptor, 61, 3) != 0 || to >> 16U != 0) {
    of.refuse("scales are not swizzled, and go to all lanes");
  }
  const TensorBlocks blocks = tensor_blocks(of.engine, of.thread, pair);
  for (std::uint32_t b = 0; b < blocks.count; ++b) {
    for (std::uint32_t row = 0; row < scale_rows; ++row) {
      of.check_bytes(*blocks.of[b], scale_row_offset(descriptor, row), "the block of scales");
    }
    if (!of.touch(*blocks.of[b], {.first = to, .columns = scale_columns}, TensorTouch::copy,
                  of.use(TensorUse::What::copy))) {
      return;
    }
  }
  of.engine.scheduler.submit(std::make_unique<ScaleCopy>(blocks, to, descriptor), &of.thread.tensor_pipe->queue);
}

void tensor_multiply(const TensorProductCall& call, Site where) {
  const Issue of = issue("tcgen05::multiply", call.pair, where);
  of.check_descriptor(call.a, "A");
  of.check_descriptor(call.b, "B");
  const Shape shape = decoded(of, call);
  if (call.sums >> 16U != 0) {
    of.refuse("sums are of all lanes");
  }
  const TensorBlocks blocks = tensor_blocks(of.engine, of.thread, call.pair);
  const std::uint64_t same_sums = std::uint64_t{shape.rows} << 40U | std::uint64_t{shape.columns} << 20U | call.sums;
  for (std::uint32_t b = 0; b < blocks.count; ++b) {
    Block& block = *blocks.of[b];
    check_operand(of, block, call.a, shape.rows_of_block(), "A");
    check_operand(of, block, call.b, shape.columns / blocks.count, "B");
    if (call.kind == TensorKind::nvfp4) {
      const TensorUse reads = of.use(TensorUse::What::scales_of_a_product);
      const std::uint32_t b_columns = (shape.columns + scale_rows - 1) / scale_rows;
      if (!of.touch(block, {.first = call.a_scales, .columns = scale_columns}, TensorTouch::scales, reads) ||
          !of.touch(block, {.first = call.b_scales, .columns = b_columns}, TensorTouch::scales, reads)) {
        return;
      }
    }
    if (!of.touch(block, shape.sums(call.sums), call.accumulate ? TensorTouch::added_sums : TensorTouch::sums,
                  of.use(TensorUse::What::product, same_sums))) {
      return;
    }
  }
  of.engine.scheduler.submit(std::make_unique<TensorProduct>(of.engine, blocks, call, shape),
                             &of.thread.tensor_pipe->queue);
}

void tensor_commit(std::uint32_t address, std::uint16_t mask, bool pair, Site where) {
  constexpr const char* call = "tcgen05::commit";
  const Issue of = issue(call, pair, where);
  Engine& engine = of.engine;
  std::vector<Mbarrier*> barriers;
  for (std::uint32_t rank = 0; rank < engine.cluster.blocks.size(); ++rank) {
    const bool is_own = rank == address >> 24U;
    if (mask == 0 ? !is_own : (mask >> rank & 1U) == 0) {
      continue;
    }
    Block& target = *engine.cluster.blocks[rank];
    engine.memory.require_started(of.thread, target, call, of.site);
    Mbarrier& barrier = engine.barriers.at((address & 0xFFFFFFU) | rank << 24U, call, of.site);
    engine.barriers.check_published(of.thread, barrier, true, call, of.site);
    if (&target != of.thread.block) {
      Memory::note_remote(target, {of.thread.tensor_pipe->issued, of.site, engine.cluster.serial,
                                   of.thread.tensor_pipe->lane, AccessKind::atomic});
    }
    barriers.push_back(&barrier);
  }
  if (barriers.empty() || (mask >> engine.cluster.blocks.size()) != 0) {
    of.refuse("the mask names blocks that the cluster does not have");
  }
  engine.scheduler.submit(
      std::make_unique<Commit>(engine, of.thread, std::move(barriers), carried_by_commit(engine, of.thread), of.site),
      &of.thread.tensor_pipe->queue);
}

}  // namespace calls
}  // namespace thresher::emulator
