// The calls of a batch are made one by one: a process finds the inputs of a call when the one before is done, and is
// done with it when its outputs are there.
#include "arena/user_kernels/process/kernel_process.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "arena/user_kernels/process/shared_memory.hpp"
#include "runtime/host_compiler.hpp"
#include "runtime/process.hpp"
#include "thresher/error.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {
namespace {

constexpr std::size_t sets = 6;
constexpr std::size_t bytes = 4096;

/// A process with a kernel that is called on some sets, each with an input and an output of so many bytes. It is told
/// in `m` which set it is called on, in `n` how many there are and in `k` how many bytes.
class CalledOneByOne : public ::testing::Test {
 protected:
  void begin(const std::string& body, std::shared_ptr<MatchTime> time = nullptr) {
    std::ofstream(folder_.path() / "mine.cpp")
        << "#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n#include "
           "\"thresher/own_kernel.h\"\nextern \"C\" void mine(const "
           "thresher_own_dual_gemm* call) {\n"
        << body << "\n}\n";
    const auto built = runtime::run_process(
        runtime::find_host_compiler().path,
        {"-O1", "-shared", "-fPIC", "-pthread", std::string("-I") + THRESHER_SOURCE_DIR + "/include", "-o",
         (folder_.path() / "mine.so").string(), (folder_.path() / "mine.cpp").string()});
    ASSERT_TRUE(built.succeeded()) << built.text;
    ProcessOptions options{{THRESHER_BINARY, "serve-calls"}, "the kernel's process", 5};
    options.readable = folder_.path();
    options.match_time = std::move(time);
    options.is_contestants = true;
    options.max_memory_bytes = max_memory_bytes_;
    process_ = std::make_unique<KernelProcess>(
        options, Writer(Ask::load_library).put((folder_.path() / "mine.so").string()).put(std::string("mine")));
    memory_ = std::make_unique<SharedMemory>(*process_);
    bind();
  }

  void bind() {
    binding_ = process_->next_number();
    const CallLayout layout{sizeof(thresher_own_dual_gemm),
                            {offsetof(thresher_own_dual_gemm, a) + offsetof(thresher_own_matrix, values),
                             offsetof(thresher_own_dual_gemm, c)}};
    Writer about(Ask::bind);
    about.put(binding_);
    put(about, layout);
    process_->ask_later(std::move(about));
    Writer calls(Ask::add_calls);
    calls.put(binding_);
    for (std::size_t set = 0; set < sets; ++set) {
      inputs_.push_back(static_cast<std::byte*>(memory_->allocate(bytes)));
      outputs_.push_back(static_cast<std::byte*>(memory_->allocate(bytes)));
      memory_->fill(inputs_.back(), 0, bytes);
      memory_->fill(outputs_.back(), 0, bytes);
      sets_.inputs.push_back({&memory_->delay_input({inputs_.back(), bytes})});
      sets_.outputs.push_back({{outputs_.back(), bytes}});
      thresher_own_dual_gemm call{};
      call.m = static_cast<long long>(set);
      call.n = sets;
      call.k = bytes;
      call.a.values = inputs_.back();
      call.c = outputs_.back();
      translate_addresses(std::as_writable_bytes(std::span(&call, 1)), layout.addresses,
                          [&](std::uintptr_t address) { return memory_->place(address); });
      calls.put(call);
    }
    process_->ask_later(std::move(calls));
    (void)process_->ask(Writer(Ask::complete).put(binding_));
  }

  double call(const Batch& batch) { return process_->call(binding_, batch, sets_); }
  void upload_everywhere(std::uint8_t value) {
    for (std::byte* const input : inputs_) {
      memory_->upload(input, std::vector(bytes, std::byte{value}).data(), bytes);
    }
  }

  std::uint64_t max_memory_bytes_ = 0;
  runtime::TemporaryFolder folder_;
  std::unique_ptr<KernelProcess> process_;
  std::unique_ptr<SharedMemory> memory_;
  std::uint32_t binding_ = 0;
  std::vector<std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  KernelProcess::Sets sets_;
};

/// Remembers where inputs lie, and says of each call how many it finds there.
constexpr const char* looks_at_all = R"(
  static const char* known[64];
  known[call->m] = (const char*)call->a.values;
  for (int set = 0; set < call->n; ++set)
    ((char*)call->c)[set] = known[set] == nullptr ? 9 : known[set][0] + known[set][call->k - 1];)";

TEST_F(CalledOneByOne, NothingOfLaterCallsIsThere) {
  begin(looks_at_all);
  const Batch all{sets, 0, sets};
  (void)call(all);
  for (const std::size_t first : {std::size_t{0}, std::size_t{4}}) {
    upload_everywhere(0);
    (void)call(all);
    upload_everywhere(1);
    const Batch batch{sets, first, sets};
    (void)call(batch);
    for (std::size_t made = 0; made < sets; ++made) {
      for (std::size_t other = 0; other < sets; ++other) {
        EXPECT_EQ(static_cast<int>(outputs_[batch.set_of(made)][batch.set_of(other)]), other <= made ? 2 : 0)
            << "call " << made << " finds the inputs of call " << other;
      }
    }
  }
}

// The call that warms a sample up is not timed: what it finds would cost nothing.
TEST_F(CalledOneByOne, NothingOfLaterBatchesIsThere) {
  begin(looks_at_all);
  (void)call({sets, 0, sets});
  upload_everywhere(1);
  (void)call({1, sets - 1, sets});
  for (std::size_t set = 0; set + 1 < sets; ++set) {
    EXPECT_EQ(static_cast<int>(outputs_.back()[set]), 0);
  }
  (void)call({1, 0, sets});
  EXPECT_EQ(static_cast<int>(outputs_[0][0]), 2);
  EXPECT_EQ(static_cast<int>(outputs_[0][1]), 0);
}

/// Makes every call of a batch in its last.
constexpr const char* puts_off = R"(
  static thresher_own_dual_gemm asked[64];
  static int waiting;
  asked[waiting++] = *call;
  if (waiting == call->n)
    for (; waiting > 0; --waiting) memset(asked[waiting - 1].c, 7, asked[waiting - 1].k);)";

TEST_F(CalledOneByOne, OutputsAreThereWhenACallIsSaidToBeDone) {
  begin(puts_off);
  try {
    (void)call({sets, 0, sets});
    FAIL() << "calls were put off";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("went on writing outputs"), std::string::npos) << error.what();
  }
}

/// A clock of which each look takes a second, so that who waits long sees much of it pass.
struct CountedSeconds {
  double now_s = 0;
  double operator()() { return ++now_s; }
};

TEST_F(CalledOneByOne, ACallThatHasNoEndEndsWithItsMatch) {
  const auto clock = std::make_shared<CountedSeconds>();
  const auto time = std::make_shared<MatchTime>([clock] { return (*clock)(); });
  begin("  for (volatile int forever = 1; forever != 0;) {}", time);
  time->begin(30);
  try {
    (void)call({1, 0, sets});
    FAIL() << "the call ended";
  } catch (const MatchOver& over) {
    EXPECT_TRUE(over.is_contestants()) << over.what();
    EXPECT_NE(std::string(over.what()).find("longer than the 30 s that it may"), std::string::npos) << over.what();
  }
  EXPECT_EQ(process_->pid(), -1) << "it goes on";
  EXPECT_THROW((void)call({1, 1, sets}), MatchOver);
  time->begin(0);
  EXPECT_THROW((void)call({1, 1, sets}), Error);
}

TEST_F(CalledOneByOne, NothingIsAskedWhenTheMatchIsOver) {
  double now_s = 0;
  const auto time = std::make_shared<MatchTime>([&now_s] { return now_s; });
  begin("  memset(call->c, 1, call->k);", time);
  time->begin(10);
  EXPECT_GT(call({1, 0, sets}), 0);
  now_s = 10;
  EXPECT_THROW((void)call({1, 1, sets}), MatchOver);
  EXPECT_EQ(outputs_[1][0], std::byte{0});
  time->begin(10);
  EXPECT_GT(call({1, 1, sets}), 0) << "the process is there for the next match";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Memory that cannot be written counts as nobody's data, though it was written before.
constexpr const char* hoards = R"(
  for (int piece = 0; piece < 16; ++piece) {
    const size_t much = size_t{32} << 20;
    void* const memory = mmap(nullptr, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) break;
    memset(memory, 1, much);
    mprotect(memory, much, PROT_READ);
  })";

TEST_F(CalledOneByOne, MemoryThatNoLimitCountsIsSeen) {
  max_memory_bytes_ = std::uint64_t{256} << 20;
  begin(std::string(hoards) + "\n  for (;;) pause();");
  try {
    (void)call({1, 0, sets});
    FAIL() << "it may take as much as it likes";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("of the 256 MiB that it may, and was ended"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(process_->pid(), -1);
}
#endif

// Calls of a long batch come to the same sets again, and what they write there is no afterthought.
TEST_F(CalledOneByOne, ASetThatIsCalledAgainMayChange) {
  begin("  static int calls;\n  memset(call->c, ++calls, call->k);");
  EXPECT_GT(call({3 * sets + 1, 2, sets}), 0);
}

}  // namespace
}  // namespace thresher::arena::user_kernels
