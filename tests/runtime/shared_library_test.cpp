#include "runtime/shared_library.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "runtime/driver.hpp"
#include "runtime/nvidia_wheels.hpp"
#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

TEST(SharedLibrary, AMissingOneSaysWhatToDo) {
  const SharedLibrary library =
      SharedLibrary::open({"the Nothing library", {"libthresher_no_such.so.1"}, "install nothing"});
  EXPECT_FALSE(library.loaded());
  EXPECT_EQ(library.path(), "");
  EXPECT_EQ(library.symbol("anything"), nullptr);
  EXPECT_TRUE(library.problem().starts_with("the Nothing library could not be loaded")) << library.problem();
  EXPECT_TRUE(library.problem().ends_with(": install nothing")) << library.problem();
}

TEST(SharedLibrary, OneThatTheLoaderKnowsIsFound) {
  const SharedLibrary library = SharedLibrary::open({"the C library", {"libnot_this_one.so", "libc.so.6"}, ""});
  ASSERT_TRUE(library.loaded()) << library.problem();
  EXPECT_TRUE(library.path().ends_with("libc.so.6")) << library.path();
  EXPECT_NE(library.symbol("strlen"), nullptr);
  EXPECT_EQ(library.symbol("thresher_no_such_function"), nullptr);
}

TEST(SharedLibrary, ATableOfSymbolsIsFilledAndTheFirstThatIsMissingIsNamed) {
  std::size_t (*length)(const char*) = nullptr;
  void (*none)() = [] {};
  void (*neither)() = [] {};
  const SharedLibrary whole = SharedLibrary::open({"the C library", {"libc.so.6"}, ""}, {{"strlen", length}});
  EXPECT_EQ(whole.problem(), "");
  ASSERT_NE(length, nullptr);
  EXPECT_EQ(length("four"), 4U);

  const SharedLibrary old = SharedLibrary::open({"the C library", {"libc.so.6"}, "install it", "update it"},
                                                {{"thresher_none", none}, {"strlen", length}, {"neither", neither}});
  EXPECT_TRUE(old.loaded());
  EXPECT_EQ(old.problem(), "the C library (" + old.path() + ") has no function thresher_none: update it");
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(neither, nullptr);
  EXPECT_NE(length, nullptr);
  const SharedLibrary missing =
      SharedLibrary::open({"Nothing", {"libthresher_no_such.so.1"}, "install it"}, {{"strlen", length}});
  EXPECT_TRUE(missing.problem().ends_with(": install it")) << missing.problem();
  EXPECT_EQ(length, nullptr);
}

TEST(SharedLibrary, TheNamedFolderComesFirst) {
  const ScratchFolder directory;
  const SharedLibrary known = SharedLibrary::open({"the C++ library", {"libstdc++.so.6"}, ""});
  ASSERT_TRUE(known.loaded());
  fs::copy_file(known.path(), directory.path() / "libthresher_copy.so.6");
  setenv("THRESHER_LIBRARY_PATH", ("/does/not/exist:" + directory.path().string()).c_str(), 1);
  const SharedLibrary copy = SharedLibrary::open({"a copy", {"libthresher_copy.so.6"}, ""});
  unsetenv("THRESHER_LIBRARY_PATH");
  ASSERT_TRUE(copy.loaded()) << copy.problem();
  EXPECT_EQ(fs::path(copy.path()).parent_path(), directory.path());
}

/// One that cannot be loaded and one that lacks a function both leave the search to go on.
TEST(SharedLibrary, ABadOneDoesNotEndTheSearch) {
  const ScratchFolder text_file;
  std::ofstream(text_file.path() / "libstdc++.so.6") << "not a library";
  const ScratchFolder other_library;
  const SharedLibrary math = SharedLibrary::open({"the math library", {"libm.so.6"}, ""});
  ASSERT_TRUE(math.loaded());
  fs::copy_file(math.path(), other_library.path() / "libstdc++.so.6");
  setenv("THRESHER_LIBRARY_PATH", (text_file.path().string() + ":" + other_library.path().string()).c_str(), 1);
  void (*terminate)() = nullptr;
  const SharedLibrary found =
      SharedLibrary::open({"the C++ library", {"libstdc++.so.6"}, ""}, {{"_ZSt9terminatev", terminate}});
  void (*none)() = nullptr;
  const SharedLibrary lacking =
      SharedLibrary::open({"the C++ library", {"libstdc++.so.6"}, "update it"}, {{"thresher_none", none}});
  unsetenv("THRESHER_LIBRARY_PATH");
  EXPECT_EQ(found.problem(), "");
  EXPECT_NE(fs::path(found.path()).parent_path(), other_library.path());
  EXPECT_NE(terminate, nullptr);
  EXPECT_EQ(lacking.problem(), "the C++ library (" + lacking.path() + ") has no function thresher_none: update it");
  EXPECT_EQ(fs::path(lacking.path()).parent_path(), other_library.path()) << "the first that was opened is named";
}

TEST(SharedLibrary, OneThatIsNotAcceptedIsTakenWhereThereIsNoOther) {
  int asked = 0;
  const SharedLibrary refused =
      SharedLibrary::open({"the C library", {"libc.so.6"}, ""}, {}, [&](const SharedLibrary&) {
        ++asked;
        return false;
      });
  EXPECT_TRUE(refused.loaded());
  EXPECT_GE(asked, 1);
  const SharedLibrary second = SharedLibrary::open(
      {"a library", {"libm.so.6", "libc.so.6"}, ""}, {},
      [](const SharedLibrary& library) { return fs::path(library.path()).filename() == "libc.so.6"; });
  EXPECT_EQ(fs::path(second.path()).filename(), "libc.so.6");
}

TEST(SearchDirectories, FindTheWheelsOfAVirtualEnvironment) {
  const ScratchFolder directory;
  const fs::path wheel = directory.path() / "lib" / "python3.11" / "site-packages" / "nvidia" / "cuda_nvrtc" / "lib";
  fs::create_directories(wheel);
  setenv("VIRTUAL_ENV", directory.path().c_str(), 1);
  const std::vector<fs::path> directories = search_directories();
  unsetenv("VIRTUAL_ENV");
  EXPECT_NE(std::find(directories.begin(), directories.end(), wheel), directories.end());
}

TEST(NvidiaWheels, WhatRunFetchedIsFound) {
  const ScratchFolder cache;
  const fs::path packages = cache.path() / "thresher/python/cuda-0123/lib/python3.12/site-packages/nvidia/cu13";
  const fs::path others = cache.path() / "thresher/python/torch-0123/lib/python3.12/site-packages/nvidia/cu13";
  for (const fs::path& folder : {packages / "bin", packages / "lib", others / "bin"}) {
    fs::create_directories(folder);
  }
  const fs::path complete = cache.path() / "thresher/python/cuda-0123/complete";
  const std::string home = cache.path().string();
  const auto environment = [&](const char* name) {
    return std::string_view(name) == "XDG_CACHE_HOME" ? home.c_str() : nullptr;
  };
  const auto half_fetched = nvidia_wheel_folders("bin", environment);
  EXPECT_EQ(std::find(half_fetched.begin(), half_fetched.end(), packages / "bin"), half_fetched.end());
  std::ofstream(complete) << "";
  const auto found = nvidia_wheel_folders("bin", environment);
  EXPECT_NE(std::find(found.begin(), found.end(), packages / "bin"), found.end());
  EXPECT_EQ(std::find(found.begin(), found.end(), others / "bin"), found.end());
}

TEST(DriverStatus, NamesTheProblemOrThereIsAGpu) {
  const DriverStatus& status = driver_status();
  if (status.problem.empty()) {
    EXPECT_GT(status.devices, 0);
    EXPECT_FALSE(status.library_path.empty());
    EXPECT_GE(status.version, 12000);
    return;
  }
  EXPECT_NE(status.problem.find(": "), std::string::npos) << "no remedy in: " << status.problem;
  try {
    device_properties(0);
    FAIL() << "a GPU was opened although: " << status.problem;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), status.built_with_cuda ? ErrorCode::device : ErrorCode::unsupported);
    EXPECT_EQ(error.what(), status.problem);
  }
}

TEST(VersionText, IsMajorAndMinor) {
  EXPECT_EQ(version_text(13000), "13.0");
  EXPECT_EQ(version_text(12080), "12.8");
}

}  // namespace
}  // namespace thresher::runtime
