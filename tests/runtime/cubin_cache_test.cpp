#include "runtime/cubin_cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

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
  ASSERT_TRUE(cache.store("key", sample()));
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
  ASSERT_TRUE(cache.store("key", sample()));
  fs::resize_file(directory.path() / "key.cubin", 100);
  EXPECT_FALSE(cache.find("key").has_value());
  ASSERT_TRUE(cache.store("key", sample()));
  EXPECT_TRUE(cache.find("key").has_value());
}

TEST(CubinCache, AFolderThatCannotBeWrittenIsNoError) {
  const ScratchFolder directory;
  std::ofstream(directory.path() / "file") << "not a folder";
  const CubinCache cache(directory.path() / "file" / "cache");
  EXPECT_FALSE(cache.store("key", sample()));
  EXPECT_FALSE(cache.find("key").has_value());
}

TEST(CubinCache, WithoutAFolderKeepsNothing) {
  const CubinCache cache{fs::path{}};
  EXPECT_FALSE(cache.store("key", sample()));
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
        good = cache.store("key", cubin) && cache.find("key").has_value();
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
  bool was_cached = true;
  const Cubin first = compile_cached(program, cache, &was_cached);
  EXPECT_FALSE(was_cached);
  expect_same(compile_cached(program, cache, &was_cached), first);
  EXPECT_TRUE(was_cached);
  const fs::path entry = directory.path() / (cache_key(program, nvrtc_toolchain()) + ".cubin");
  ASSERT_TRUE(fs::exists(entry));
  fs::resize_file(entry, fs::file_size(entry) / 2);
  compile_cached(program, cache, &was_cached);
  EXPECT_FALSE(was_cached);
  compile_cached(program, cache, &was_cached);
  EXPECT_TRUE(was_cached);
}

}  // namespace
}  // namespace thresher::runtime
