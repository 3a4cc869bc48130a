#include "formats/atomic_file.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/scratch_folder.hpp"

namespace thresher::formats {
namespace {

TEST(AtomicFile, WhatIsHalfWrittenCanBeRemovedAtOnce) {
  const ScratchFolder folder;
  const std::string text = "text";
  AtomicFile one(folder / "one");
  AtomicFile other(folder / "other");
  other.write_at(0, std::as_bytes(std::span(text)));
  EXPECT_EQ(folder.entries(), 2);
  remove_temporary_files();
  EXPECT_EQ(folder.entries(), 0);
}

TEST(AtomicFile, WhatIsCommittedStays) {
  const ScratchFolder folder;
  for (int i = 0; i < 200; ++i) {  // more files than are remembered at a time
    AtomicFile file(folder / "file");
    i % 2 == 0 ? file.commit() : void();
  }
  remove_temporary_files();
  EXPECT_EQ(folder.entries(), 1);
  const AtomicFile last(folder / "last");
  EXPECT_EQ(folder.entries(), 2);
  remove_temporary_files();
  EXPECT_EQ(folder.entries(), 1);
}

}  // namespace
}  // namespace thresher::formats
