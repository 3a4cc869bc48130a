#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "embedded/embed_test_files.hpp"

namespace thresher {
namespace {

TEST(Embed, KeepsNamesAndEveryByte) {
  const std::span<const EmbeddedFile> files = embedded::embed_test_files();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "core/embedded_file.hpp");
  EXPECT_EQ(files[1].name, "core/fingerprint.cpp");
  for (const EmbeddedFile& file : files) {
    std::ifstream source(std::string(THRESHER_SOURCE_DIR "/src/") + std::string(file.name), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(source), {}};
    ASSERT_FALSE(text.empty());
    EXPECT_EQ(file.text, text);
  }
}

}  // namespace
}  // namespace thresher
