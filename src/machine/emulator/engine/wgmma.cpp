// Matrix products of a warpgroup.
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "formats/numbers.hpp"
#include "machine/emulator/engine/deadlock.hpp"
#include "machine/emulator/engine/engine.hpp"
#include "machine/emulator/engine/hand_over.hpp"
#include "machine/emulator/engine/operand.hpp"
#include "machine/emulator/engine/product.hpp"
#include "machine/emulator/engine/simd.hpp"
#include "machine/emulator/fragment_shadow.hpp"

namespace thresher::emulator {
namespace {

constexpr std::uint32_t group_threads = 128;

std::uint32_t depth_of(ProductElement element) { return element == ProductElement::e4m3 ? 32 : 16; }

/// Buffers for one product, kept by each host thread.
struct Scratch {
  std::array<float, 64 * 256> d;
  std::array<float, 64 * 32> a;
  std::array<float, 256 * 32> b;  // [k][n]
  std::array<std::uint16_t, 256 * 32> raw;
  std::array<float, 256 * 32> wide;
};

Scratch& scratch() {
  thread_local std::unique_ptr<Scratch> room;
  if (!room) {
    room = std::make_unique<Scratch>();
  }
  return *room;
}

/// Converts `count` elements at `raw` to float32.
void widen(ProductElement element, const void* raw, float* to, std::uint32_t count) {
  if (element == ProductElement::e4m3) {
    const auto* codes = static_cast<const std::uint8_t*>(raw);
    for (std::uint32_t i = 0; i < count; ++i) {
      to[i] = formats::e4m3_values[codes[i]];
    }
  } else if (element == ProductElement::fp16) {
    simd::widen_fp16(to, static_cast<const std::uint16_t*>(raw), count);
  } else {
    simd::widen_bf16(to, static_cast<const std::uint16_t*>(raw), count);
  }
}

/// One wgmma instruction: the threads of the warpgroup issue it one by one, then it is in flight.
class Product final : public AsyncWork {
 public:
  Product(Engine& engine, Warpgroup& group, const ProductCall& call, std::uint32_t clock, std::uint32_t site)
      : engine_(engine), group_(group), call_(call), clock_(clock), site_(site) {}

  [[nodiscard]] bool same(const ProductCall& call, std::uint32_t clock, std::uint32_t site) const {
    return call.element == call_.element && call.columns == call_.columns && call.accumulate == call_.accumulate &&
           call.a == call_.a && call.b == call_.b && call.a_mn_major == call_.a_mn_major &&
           call.b_mn_major == call_.b_mn_major && (call.a_words != nullptr) == (call_.a_words != nullptr) &&
           clock == clock_ && site == site_;
  }
  /// True when the last thread has joined.
  bool join(std::uint32_t thread, const ProductCall& call) {
    values_[thread] = call.values;
    shadows_[thread] = call.shadow;
    if (call.a_words != nullptr) {
      std::memcpy(a_words_[thread].data(), call.a_words, sizeof a_words_[thread]);
    }
    return ++joined_ == group_threads;
  }
  [[nodiscard]] std::uint32_t joined() const { return joined_; }
  [[nodiscard]] bool has(std::uint32_t thread) const { return values_[thread] != nullptr; }
  [[nodiscard]] std::uint32_t site() const { return site_; }
  /// The accumulators are destroyed: their results are discarded.
  void forget(const machine::AccumulatorShadow* shadow) {
    for (std::uint32_t t = 0; t < group_threads; ++t) {
      if (shadows_[t] == shadow) {
        shadows_[t] = nullptr;
        values_[t] = lost_.data();
      }
    }
  }
  /// The shared memory that it will read must be full, fenced and in range.
  void check_operands() const;
  void complete() override;

 private:
  void load_a(float* a) const;
  void load_b(float* b) const;
  void gather(const Operand& operand, std::uint32_t extent, bool mn_major, float* wide) const;

  Engine& engine_;
  Warpgroup& group_;
  ProductCall call_;
  std::uint32_t clock_;
  std::uint32_t site_;
  std::uint32_t joined_ = 0;
  std::array<float*, group_threads> values_{};
  std::array<machine::AccumulatorShadow*, group_threads> shadows_{};
  std::array<std::array<std::uint32_t, 4>, group_threads> a_words_{};
  std::array<float, 128> lost_{};
};

void Product::check_operands() const {
  Block& block = *group_.block;
  const Access self{clock_, site_, engine_.cluster.serial, group_.lane, AccessKind::async_read};
  const auto check = [&](const char* name, const Operand& operand, const auto& knowledge_of) {
    if (!operand.aligned()) {
      engine_.findings.fatal(FindingKind::misaligned, std::string("wgmma::multiply") + engine_.words.at(site_) +
                                                          " by " + engine_.words.of(group_) + ": the descriptor of " +
                                                          name + " does not start at a swizzle atom");
    }
    for (std::uint32_t chunk = 0; chunk < operand.chunks(); ++chunk) {
      const std::uint32_t address = operand.address(chunk);
      if (address + 16 > block.bytes.size()) {
        engine_.findings.fatal(FindingKind::out_of_bounds,
                               std::string("wgmma::multiply") + engine_.words.at(site_) + " by " +
                                   engine_.words.of(group_) + ": operand " + name + " reaches shared bytes " +
                                   std::to_string(address) + "-" + std::to_string(address + 15) +
                                   ", but the block has " + std::to_string(block.bytes.size()));
        return;
      }
      const Knowledge& knowledge = knowledge_of(chunk);
      engine_.memory.check_shared(block, address, 16, {self, &knowledge.seen, &knowledge.fenced_shared});
    }
  };
  const auto everyone = [&](std::uint32_t) -> const Knowledge& { return group_.common; };
  if (call_.a_words == nullptr) {
    // Each warp multiplies its own 16 rows of A.
    if (call_.a_mn_major) {
      check("A", Operand(call_.a, true, 64),
            [&](std::uint32_t chunk) -> const Knowledge& { return group_.warp_knowledge[chunk % 8 / 2]; });
    } else {
      check("A", Operand(call_.a, false, 64),
            [&](std::uint32_t chunk) -> const Knowledge& { return group_.warp_knowledge[chunk / 32]; });
    }
  }
  check("B", Operand(call_.b, call_.b_mn_major, call_.columns), everyone);
}

/// K-major: wide[row][k]; MN-major: wide[k][row].
void Product::gather(const Operand& operand, std::uint32_t extent, bool, float* wide) const {
  auto* raw = reinterpret_cast<std::uint8_t*>(scratch().raw.data());
  const std::uint8_t* shared = group_.block->bytes.data();
  for (std::uint32_t chunk = 0; chunk < operand.chunks(); ++chunk) {
    std::memcpy(raw + chunk * 16, shared + operand.address(chunk), 16);
  }
  widen(call_.element, raw, wide, extent * depth_of(call_.element));
}

void Product::load_a(float* a) const {
  const std::uint32_t depth = depth_of(call_.element);
  if (call_.a_words == nullptr) {
    float* wide = scratch().wide.data();
    gather(Operand(call_.a, call_.a_mn_major, 64), 64, call_.a_mn_major, call_.a_mn_major ? wide : a);
    if (call_.a_mn_major) {
      for (std::uint32_t k = 0; k < depth; ++k) {
        for (std::uint32_t row = 0; row < 64; ++row) {
          a[row * depth + k] = wide[k * 64 + row];
        }
      }
    }
    return;
  }
  const std::uint32_t word_elements = depth / 8;
  for (std::uint32_t thread = 0; thread < group_threads; ++thread) {
    const std::uint32_t row = thread / 32 * 16 + thread % 32 / 4;
    const std::uint32_t column = thread % 4 * word_elements;
    for (std::uint32_t word = 0; word < 4; ++word) {
      float* to = a + (row + word % 2 * 8) * depth + word / 2 * (depth / 2) + column;
      widen(call_.element, &a_words_[thread][word], to, word_elements);
    }
  }
}

/// b[k][n]
void Product::load_b(float* b) const {
  const std::uint32_t depth = depth_of(call_.element);
  const std::uint32_t columns = call_.columns;
  const Operand operand(call_.b, call_.b_mn_major, columns);
  if (call_.b_mn_major) {
    gather(operand, columns, true, b);
    return;
  }
  float* wide = scratch().wide.data();
  gather(operand, columns, false, wide);
  simd::transpose(b, wide, columns, depth);
}

void Product::complete() {
  Scratch& room = scratch();
  const std::uint32_t columns = call_.columns;
  const std::uint32_t depth = depth_of(call_.element);
  load_a(room.a.data());
  load_b(room.b.data());
  // d in fragment order: the row of thread quad q holds, for each 8 columns, the pairs of its four threads.
  for (std::uint32_t thread = 0; thread < group_threads; ++thread) {
    const std::uint32_t row = thread / 32 * 16 + thread % 32 / 4;
    float* upper = room.d.data() + row * columns + thread % 4 * 2;
    float* lower = upper + 8 * columns;
    const float* values = values_[thread];
    for (std::uint32_t j = 0; j < columns / 8; ++j) {
      std::memcpy(upper + j * 8, values + j * 4, 8);
      std::memcpy(lower + j * 8, values + j * 4 + 2, 8);
    }
  }
  if (!call_.accumulate) {
    std::memset(room.d.data(), 0, std::size_t{64} * columns * sizeof(float));
  }
  simd::multiply_add_64(room.d.data(), room.a.data(), room.b.data(), columns, depth);
  for (std::uint32_t thread = 0; thread < group_threads; ++thread) {
    const std::uint32_t row = thread / 32 * 16 + thread % 32 / 4;
    const float* upper = room.d.data() + row * columns + thread % 4 * 2;
    const float* lower = upper + 8 * columns;
    float* values = values_[thread];
    for (std::uint32_t j = 0; j < columns / 8; ++j) {
      std::memcpy(values + j * 4, upper + j * 8, 8);
      std::memcpy(values + j * 4 + 2, lower + j * 8, 8);
    }
  }
  ++engine_.statistics.products;
  engine_.statistics.product_flops += std::uint64_t{2} * 64 * columns * depth;
  ++group_.groups.done;
  std::vector<Thread*> waiters;
  waiters.swap(group_.waiters);
  for (Thread* waiter : waiters) {
    engine_.scheduler.wake(*waiter);
  }
}

/// Checks that the registers of one thread may be used by a multiply.
void check_registers(Engine& engine, Thread& thread, const ProductCall& call, std::uint32_t site) {
  machine::AccumulatorShadow::State& state = call.shadow->state;
  const bool chained = state.group > thread.products_waited;  // products on the same accumulators are ordered
  if (!chained && (state.set_unsettled || state.fences_at_touch >= thread.product_fences) &&
      engine.findings.first_time(FindingKind::missing_wgmma_fence, site, 0)) {
    engine.findings.report(FindingKind::missing_wgmma_fence,
                           "wgmma::multiply" + engine.words.at(site) + " by " + engine.words.of(thread) +
                               " uses accumulators that were touched since the last wgmma::fence",
                           {state.set_unsettled ? "set() needs wgmma::settle and then wgmma::fence before the multiply"
                                                : "wgmma::fence must come between"});
  }
  const std::uint32_t elements = call.columns / 2;
  const auto all = [](std::uint32_t count) { return count >= 64 ? ~0ULL : (1ULL << count) - 1ULL; };
  const std::uint64_t wanted[2] = {all(elements), elements > 64 ? all(elements - 64) : 0};
  if (call.accumulate && ((state.defined[0] & wanted[0]) != wanted[0] || (state.defined[1] & wanted[1]) != wanted[1]) &&
      engine.findings.first_time(FindingKind::uninitialised, site, 0)) {
    engine.findings.report(FindingKind::uninitialised,
                           "wgmma::multiply" + engine.words.at(site) + " by " + engine.words.of(thread) +
                               " adds to accumulators that hold nothing",
                           {"start from zero (accumulate false) or set() every element before"});
  }
  state.defined[0] |= wanted[0];
  state.defined[1] |= wanted[1];
  state.group = thread.products_closed + 1;
  state.retired_unsettled = true;
  state.set_unsettled = false;
}

/// Adds the thread's knowledge at the start of the product: to its warp's, and to that common to all.
void learn_issuer(Warpgroup& group, Thread& thread) {
  if (thread.news_at_product != thread.news) {
    thread.news_at_product = thread.news;
    group.warp_knowledge[thread.in_block % group_threads / 32].join(thread.knowledge);
    group.common_is_stale = true;
  }
}

void refresh_common(Warpgroup& group) {
  if (group.common_is_stale) {
    group.common_is_stale = false;
    group.common = group.warp_knowledge[0];
    for (std::size_t w = 1; w < 4; ++w) {
      group.common.meet(group.warp_knowledge[w]);
    }
  }
}

void require_whole_group(Engine& engine, Thread& thread, const char* call, std::uint32_t site) {
  if ((thread.group->index + 1) * group_threads > engine.shape.block) {
    engine.findings.fatal(FindingKind::divergent, std::string(call) + engine.words.at(site) + " by " +
                                                      engine.words.of(thread) +
                                                      ", whose warpgroup does not have 128 threads");
  }
}

}  // namespace

bool describe_partial_product(const Cluster& cluster, const Warpgroup& group, const Words& words,
                              std::vector<std::string>& details) {
  if (group.forming.empty()) {
    return false;
  }
  const auto& product = static_cast<const Product&>(*group.forming.front());
  std::vector<const Thread*> missing;
  for (std::uint32_t t = 0; t < group_threads; ++t) {
    if (!product.has(t)) {
      missing.push_back(cluster.threads[group.block->first_thread + group.index * group_threads + t].get());
    }
  }
  details.push_back("wgmma::multiply" + words.at(product.site()) + " was issued by " +
                    std::to_string(product.joined()) + " of 128 threads; not by " + words.of(missing));
  return true;
}

namespace calls {

void product(const ProductCall& call, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  require_whole_group(engine, thread, "wgmma::multiply", site);
  Warpgroup& group = *thread.group;
  if (group.lane == 0) {
    group.lane = engine.ordering.new_lane({LaneOwner::What::products, &group});
  }
  check_registers(engine, thread, call, site);
  learn_issuer(group, thread);
  const std::uint32_t ahead = thread.products_issued++ - group.groups.issued;
  const std::uint32_t clock = thread.products_closed + 1;
  if (ahead == group.forming.size()) {
    group.forming.push_back(std::make_unique<Product>(engine, group, call, clock, site));
  }
  auto& product = static_cast<Product&>(*group.forming[ahead]);
  if (!product.same(call, clock, site)) {
    engine.findings.fatal(
        FindingKind::divergent,
        "wgmma::multiply" + engine.words.at(site) + " by " + engine.words.of(thread) +
            " differs from what other threads of the warpgroup issued" + engine.words.at(product.site()),
        {"all 128 threads must issue the same multiplies with the same arguments in the same groups"});
  }
  if (product.join(thread.in_block % group_threads, call)) {
    refresh_common(group);
    if (group.groups.issued == 0) {
      check_hand_over_before_product(group, site, engine.words, engine.findings);
    }
    product.check_operands();
    auto work = std::move(group.forming.front());
    group.forming.pop_front();
    ++group.groups.issued;
    engine.scheduler.submit(std::move(work), &group.queue);
  }
}

void product_fence(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  require_whole_group(engine, thread, "wgmma::fence", engine.sites.number(where));
  ++thread.product_fences;
}

void product_commit(Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  require_whole_group(engine, thread, "wgmma::commit", site);
  auto& ends = thread.group->groups.ends;
  if (ends.size() == thread.products_closed) {
    ends.push_back(thread.products_issued);
  } else if (ends[thread.products_closed] != thread.products_issued) {
    engine.findings.fatal(FindingKind::divergent,
                          "wgmma::commit" + engine.words.at(site) + " by " + engine.words.of(thread) +
                              " closes a group of other multiplies than other threads of the warpgroup did");
  }
  ++thread.products_closed;
}

void product_wait(std::uint32_t pending, Site where) {
  Engine& engine = Engine::current();
  Thread& thread = Engine::self();
  const std::uint32_t site = engine.sites.number(where);
  engine.scheduler.pause(thread);
  require_whole_group(engine, thread, "wgmma::wait", site);
  Warpgroup& group = *thread.group;
  const std::uint32_t target = thread.products_closed > pending ? thread.products_closed - pending : 0;
  while (group.groups.done < group.groups.needed(target)) {
    group.waiters.push_back(&thread);
    engine.scheduler.block(thread, {Wait::What::products, site, target, nullptr});
  }
  std::erase_if(thread.fragments, [&](const auto* fragment) { return fragment->on_wait(target); });
  thread.products_waited = std::max(thread.products_waited, target);
  if (group.lane != 0) {
    Ordering::learn(thread, group.lane, target);
  }
}

}  // namespace calls

/// Products in flight discard their results from now on.
void forget_accumulators(Warpgroup& group, const machine::AccumulatorShadow* shadow) {
  for (AsyncQueue* queue : {&group.forming, &group.queue}) {
    for (auto& work : *queue) {
      static_cast<Product&>(*work).forget(shadow);
    }
  }
}

}  // namespace thresher::emulator
