#include "runtime/cubin_cache.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "runtime/cache_folder.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

Cubin sample() {
  Cubin cubin;
  for (int i = 0; i < 5000; ++i) {
    cubin.image.push_back(static_cast<std::byte>(i * 7));
  }
  cubin.kernels = {{"demo::f<1>", "_Zf1", {32, 0, 4, 8, 1024, 2}}, {"demo::f<2>", "_Zf2", {}}};
  cubin.arch = "sm_90a";
  cubin.toolchain = "NVRTC 13.0";
  cubin.log = "words\nof the compiler";
  return cubin;
}

void expect_same(const Cubin& found, const Cubin& stored) {
  EXPECT_EQ(found.image, stored.image);
  EXPECT_EQ(found.kernels, stored.kernels);
  EXPECT_EQ(found.arch, stored.arch);
  EXPECT_EQ(found.toolchain, stored.toolchain);
  EXPECT_EQ(found.log, stored.log);
}

TEST(CubinCache, GivesBackWhatWasStored) {
  const ScratchFolder directory;
  const CubinCache cache(directory.path() / "new" / "folder");
  EXPECT_FALSE(cache.find("key").has_value());
  ASSERT_EQ(cache.store("key", sample()), "");
  const std::optional<Cubin> found = cache.find("key");
  ASSERT_TRUE(found.has_value());
  expect_same(*found, sample());
  EXPECT_FALSE(cache.find("other").has_value());
}

TEST(CubinCache, AnEntryWithoutCodeIsOneToo) {
  const std::optional<Cubin> found = deserialise("key", serialise("key", Cubin{}));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->image.empty());
}

TEST(CubinCache, AnEntryUnderAnotherKeyIsNotTaken) {
  EXPECT_TRUE(deserialise("key", serialise("key", sample())).has_value());
  EXPECT_FALSE(deserialise("another", serialise("key", sample())).has_value());
}

TEST(CubinCache, ATruncatedEntryCountsAsAbsent) {
  const std::string whole = serialise("key", sample());
  for (std::size_t length = 0; length < whole.size(); length += length < 200 || length + 200 > whole.size() ? 1 : 97) {
    EXPECT_FALSE(deserialise("key", std::string_view(whole).substr(0, length)).has_value()) << length;
  }
}

TEST(CubinCache, ADamagedByteIsSeenWhereverItIs) {
  const std::string whole = serialise("key", sample());
  for (std::size_t at = 0; at < whole.size(); at += at < 200 ? 1 : 31) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(deserialise("key", damaged).has_value()) << at;
  }
}

TEST(CubinCache, ADamagedEntryOnDiskIsReplaced) {
  const ScratchFolder directory;
  const CubinCache cache(directory.path());
  ASSERT_EQ(cache.store("key", sample()), "");
  fs::resize_file(directory.path() / "key.cubin", 100);
  EXPECT_FALSE(cache.find("key").has_value());
  ASSERT_EQ(cache.store("key", sample()), "");
  EXPECT_TRUE(cache.find("key").has_value());
}

TEST(CubinCache, AFolderThatCannotBeWrittenIsNoError) {
  const ScratchFolder directory;
  std::ofstream(directory.path() / "file") << "not a folder";
  const CubinCache cache(directory.path() / "file" / "cache");
  EXPECT_EQ(cache.store("key", sample()),
            "the cache " + (directory.path() / "file" / "cache").string() + " cannot be written: Not a directory");
  EXPECT_FALSE(cache.find("key").has_value());
  EXPECT_EQ(CubinCache(directory.path() / "file").store("key", sample()),
            "the cache " + (directory.path() / "file").string() + " cannot be written: Not a directory");
}

TEST(CubinCache, AFullDiskIsTold) {
  const ScratchFolder directory;
  const CubinCache cache(directory.path());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // no file of this process may have more than 1 KiB
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1024, 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(cache.store("key", sample()) ==
                  "the cache " + directory.path().string() + " cannot be written: File too large"
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(directory.entries(), 0);
}

TEST(CubinCache, WhatAKilledWriterLeftIsRemovedOnceItIsOld) {
  const ScratchFolder directory;
  const auto leave = [&](const char* name, std::chrono::hours age) {
    std::ofstream(directory.path() / name) << "unfinished";
    fs::last_write_time(directory.path() / name, fs::file_time_type::clock::now() - age);
  };
  leave("old.cubin.17.0.part", std::chrono::hours(2));
  leave("young.cubin.17.1.part", std::chrono::hours(0));
  leave("other.cubin", std::chrono::hours(2));
  ASSERT_EQ(CubinCache(directory.path()).store("key", sample()), "");
  EXPECT_FALSE(fs::exists(directory.path() / "old.cubin.17.0.part"));
  EXPECT_TRUE(fs::exists(directory.path() / "young.cubin.17.1.part")) << "somebody may be writing it";
  EXPECT_TRUE(fs::exists(directory.path() / "other.cubin"));
}

TEST(CubinCacheDeathTest, ThatNothingIsKeptIsSaidOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        warn_not_kept("");
        warn_not_kept("the cache /c cannot be written: No space left on device");
        warn_not_kept("the cache /d cannot be written: No space left on device");
        _exit(0);
      },
      ::testing::ExitedWithCode(0),
      ::testing::Matcher<const std::string&>(
          "warning: what is compiled is not kept: the cache /c cannot be written: No space left on device\n"));
}

TEST(CubinCache, WithoutAFolderKeepsNothing) {
  const CubinCache cache{fs::path{}};
  EXPECT_EQ(cache.store("key", sample()),
            "there is no cache, because THRESHER_CACHE, XDG_CACHE_HOME and HOME are not set");
  EXPECT_FALSE(cache.find("key").has_value());
}

// Processes write and read one key at once: every read finds nothing or a whole entry, and no unfinished file stays.
TEST(CubinCache, ProcessesMayFillItTogether) {
  const ScratchFolder directory;
  const CubinCache cache(directory.path());
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const Cubin cubin = sample();
      bool good = true;
      for (int round = 0; round < 50 && good; ++round) {
        good = cache.store("key", cubin).empty() && cache.find("key").has_value();
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator{}), 1);
}

TEST(CubinCache, LivesWhereTheEnvironmentSays) {
  const auto with = [](const char* own, const char* xdg, const char* home) {
    setenv("THRESHER_CACHE", own, 1);
    setenv("XDG_CACHE_HOME", xdg, 1);
    setenv("HOME", home, 1);
    return CubinCache::default_directory();
  };
  EXPECT_EQ(with("/own", "/xdg", "/home/u"), "/own");
  EXPECT_EQ(with("", "/xdg", "/home/u"), "/xdg/thresher");
  EXPECT_EQ(with("", "", "/home/u"), "/home/u/.cache/thresher");
  EXPECT_EQ(with("", "", ""), "");
}

TEST(CacheKey, DependsOnEverythingThatEntersTheCompiler) {
  const EmbeddedFile header{"a.hpp", "int a;"};
  const Program base{
      .title = "t", .text = "x", .headers = {header}, .kernels = {"k"}, .options = {"-o"}, .arch = "sm_90a"};
  const std::string key = cache_key(base, "NVRTC 13.0");
  EXPECT_EQ(key, cache_key(base, "NVRTC 13.0"));
  EXPECT_NE(key, cache_key(base, "NVRTC 12.8"));
  const auto changed = [&](auto change) {
    Program program = base;
    change(program);
    return cache_key(program, "NVRTC 13.0");
  };
  EXPECT_NE(key, changed([](Program& p) { p.text = "y"; }));
  EXPECT_NE(key, changed([](Program& p) { p.headers[0].text = "int b;"; }));
  EXPECT_NE(key, changed([](Program& p) { p.headers[0].name = "b.hpp"; }));
  EXPECT_NE(key, changed([](Program& p) { p.kernels[0] = "l"; }));
  EXPECT_NE(key, changed([](Program& p) { p.options[0] = "-p"; }));
  EXPECT_NE(key, changed([](Program& p) { p.arch = "sm_100a"; }));
  EXPECT_NE(key, changed([](Program& p) { std::swap(p.kernels, p.options); }));
}

TEST(CompileCached, CompilesOnceAndAgainWhenTheEntryIsDamaged) {
  if (!nvrtc_status().problem.empty()) {
    GTEST_SKIP() << nvrtc_status().problem;
  }
  const ScratchFolder directory;
  const CubinCache cache(directory.path());
  const Program program{.title = "twice",
                        .text = "__global__ void twice(int* p) { *p *= 2; }",
                        .headers = {},
                        .kernels = {"twice"},
                        .options = {}};
  const CachedCompilation first = compile_cached(program, cache);
  EXPECT_FALSE(first.was_cached);
  EXPECT_EQ(first.not_kept, "");
  const CachedCompilation again = compile_cached(program, cache);
  EXPECT_TRUE(again.was_cached);
  expect_same(again.cubin, first.cubin);
  const fs::path entry = directory.path() / (cache_key(program, nvrtc_toolchain()) + ".cubin");
  ASSERT_TRUE(fs::exists(entry));
  fs::resize_file(entry, fs::file_size(entry) / 2);
  EXPECT_FALSE(find_cached(program, cache));
  EXPECT_FALSE(compile_cached(program, cache).was_cached);
  EXPECT_TRUE(compile_cached(program, cache).was_cached);
  EXPECT_TRUE(find_cached(program, cache));
}

TEST(CompileCached, EqualCodeHasEqualEntries) {
  if (!nvrtc_status().problem.empty()) {
    GTEST_SKIP() << nvrtc_status().problem;
  }
  const Program program{.title = "twice",
                        .text = "__global__ void twice(int* p) { *p *= 2; }",
                        .headers = {},
                        .kernels = {"twice"},
                        .options = {"--no-cache"}};
  const std::string first = serialise("key", compile(program));
  EXPECT_EQ(first.find("Compile time"), std::string::npos);
  EXPECT_EQ(serialise("key", compile(program)), first);
}

/// Compiles nothing: leaves one byte in `count` each time it is asked.
Compiler counting(const fs::path& count, const std::function<void()>& meanwhile = [] {}) {
  return {"a toolchain", [=](const Program&) {
            std::ofstream(count, std::ios::app | std::ios::binary) << 'x';
            meanwhile();
            return sample();
          }};
}

constexpr std::chrono::minutes long_enough{5};
constexpr std::chrono::milliseconds no_patience{0};
const Program any_program{.title = "t", .text = "x", .headers = {}, .kernels = {}, .options = {}};

/// The exit statuses of so many children, each of which runs `act`.
void run_children(int children, const std::function<bool()>& act) {
  std::vector<pid_t> started;
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      _exit(act() ? 0 : 1);
    }
    started.push_back(child);
  }
  for (const pid_t child : started) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

TEST(CompileCached, OneOfSeveralProcessesCompilesForAll) {
  const ScratchFolder directory;
  const fs::path count = directory / "count";
  const CubinCache cache(directory / "cache");
  run_children(4, [&] {
    const Compiler compiler = counting(count, [] { usleep(200'000); });
    const CachedCompilation made = compile_cached(any_program, cache, compiler, long_enough);
    return made.not_kept.empty() && made.cubin.image == sample().image;
  });
  EXPECT_EQ(fs::file_size(count), 1U);
}

TEST(CompileCached, SeveralThreadsOfOneProcessDoSoToo) {
  const ScratchFolder directory;
  const fs::path count = directory / "count";
  const CubinCache cache(directory / "cache");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back(
          [&] { (void)compile_cached(any_program, cache, counting(count, [] { usleep(100'000); }), long_enough); });
    }
  }
  EXPECT_EQ(fs::file_size(count), 1U);
}

TEST(CompileCached, WhoeverIsKilledWhileCompilingGivesTheLockBack) {
  const ScratchFolder directory;
  const CubinCache cache(directory / "cache");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)compile_cached(any_program, cache, counting(directory / "count", [] { raise(SIGKILL); }), long_enough);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(EntryLock(cache.directory(), cache_key(any_program, "a toolchain"), no_patience).held());
  EXPECT_FALSE(compile_cached(any_program, cache, counting(directory / "count"), no_patience).was_cached);
  EXPECT_EQ(fs::file_size(directory / "count"), 2U);
}

TEST(CompileCached, OneThatHoldsTheLockForTooLongIsNotWaitedFor) {
  const ScratchFolder directory;
  const CubinCache cache(directory / "cache");
  const EntryLock held(cache.directory(), cache_key(any_program, "a toolchain"), no_patience);
  ASSERT_TRUE(held.held());
  EXPECT_FALSE(EntryLock(cache.directory(), cache_key(any_program, "a toolchain"), no_patience).held());
  EXPECT_TRUE(EntryLock(cache.directory(), "another entry", no_patience).held());
  const CachedCompilation made = compile_cached(any_program, cache, counting(directory / "count"), no_patience);
  EXPECT_EQ(made.not_kept, "");
  EXPECT_TRUE(compile_cached(any_program, cache, counting(directory / "count"), no_patience).was_cached);
  EXPECT_EQ(fs::file_size(directory / "count"), 1U);
}

TEST(CompileCached, WhereThereAreNoLocksEveryProcessCompiles) {
  const ScratchFolder directory;
  fs::create_directories(directory / "cache" / "locks");  // which cannot be opened as a file
  const CubinCache cache(directory / "cache");
  EXPECT_FALSE(EntryLock(cache.directory(), "entry", long_enough).held());
  EXPECT_EQ(compile_cached(any_program, cache, counting(directory / "count"), long_enough).not_kept, "");
  EXPECT_TRUE(compile_cached(any_program, cache, counting(directory / "count"), long_enough).was_cached);
}

TEST(CompileCached, SaysWhyNothingIsKept) {
  const ScratchFolder directory;
  std::ofstream(directory / "file") << "not a folder";
  const CachedCompilation made =
      compile_cached(any_program, CubinCache(directory / "file"), counting(directory / "count"), long_enough);
  EXPECT_FALSE(made.was_cached);
  EXPECT_EQ(made.cubin.image, sample().image);
  EXPECT_EQ(made.not_kept, "the cache " + (directory / "file").string() + " cannot be written: Not a directory");
}

}  // namespace
}  // namespace thresher::runtime
