#include "formats/checkpoint.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

namespace fs = std::filesystem;

class CheckpointFiles : public testing::Test {
 protected:
  const ScratchFolder folder;

  /// A file of one-byte tensors.
  void write(const fs::path& path, const std::vector<std::string>& names) const {
    const std::byte content{7};
    std::vector<TensorToWrite> tensors;
    for (const std::string& name : names) {
      tensors.push_back({name, Dtype::u8, {1}, std::span(&content, 1)});
    }
    write_safetensors(path, tensors);
  }

  void write_index(const std::string& weight_map) const {
    std::ofstream(folder / "model.safetensors.index.json") << "{\"weight_map\":" << weight_map << "}";
  }

  [[nodiscard]] static std::string refusal(const std::vector<fs::path>& paths, const std::string& name) {
    try {
      (void)Checkpoint(paths).find(name);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return error.what();
    }
    return "";
  }
};

TEST_F(CheckpointFiles, SeveralFilesAreOne) {
  write(folder / "one", {"a", "b"});
  write(folder / "other", {"c"});
  const Checkpoint both(std::vector<fs::path>{folder / "one", folder / "other"});
  EXPECT_EQ(described(both.find("b")), "tensor 'b' of " + (folder / "one").string());
  EXPECT_EQ(described(both.find("c")), "tensor 'c' of " + (folder / "other").string());
  EXPECT_EQ(both.find("c").read(), std::vector<std::byte>{std::byte{7}});
  EXPECT_FALSE(both.has("d"));
  EXPECT_EQ(both.title(), (folder / "one").string() + " (and 1 more)");
  EXPECT_EQ(both.listing("c"), "'c', 'a', 'b'");
}

TEST_F(CheckpointFiles, ATensorIsInOneFileOnly) {
  write(folder / "one", {"a", "b"});
  write(folder / "other", {"b"});
  EXPECT_EQ(refusal({folder / "one", folder / "other"}, "a"), "tensor 'b' is in " + (folder / "one").string() +
                                                                  " and in " + (folder / "other").string() +
                                                                  ", but only one of them may have it");
  EXPECT_NE(refusal({folder / "one", folder / "one"}, "a"), "");
}

TEST_F(CheckpointFiles, AFolderIsReadByItsIndex) {
  write(folder / "1.safetensors", {"x"});
  write(folder / "2.safetensors", {"y", "z"});
  write_index(R"({"x":"1.safetensors","y":"2.safetensors","z":"2.safetensors"})");
  for (const fs::path& path : {folder.path(), folder / "model.safetensors.index.json"}) {
    const Checkpoint model(path);
    EXPECT_EQ(described(model.find("z")), "tensor 'z' of " + (folder / "2.safetensors").string());
    EXPECT_EQ(model.names_from("x"), std::vector<std::string>{"x"});
    EXPECT_EQ(model.paths(), (std::vector<fs::path>{folder / "model.safetensors.index.json", folder / "1.safetensors",
                                                    folder / "2.safetensors"}));
  }
}

TEST_F(CheckpointFiles, AnIndexInTheWorkingFolderNeedsNoFolder) {
  write(folder / "1.safetensors", {"x"});
  write_index(R"({"x":"1.safetensors"})");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  EXPECT_EQ(described(Checkpoint(fs::path("model.safetensors.index.json")).find("x")), "tensor 'x' of 1.safetensors");
  fs::current_path(before);
}

TEST_F(CheckpointFiles, AFolderWithOneFileNeedsNoIndex) {
  write(folder / "model.safetensors", {"x"});
  EXPECT_TRUE(Checkpoint(folder.path()).has("x"));
  write_index(R"({"x":"model.safetensors"})");
  EXPECT_NE(refusal({folder.path()}, "x").find("has both model.safetensors.index.json and model.safetensors"),
            std::string::npos);
}

TEST_F(CheckpointFiles, AFolderWithoutAModelIsNamed) {
  EXPECT_EQ(refusal({folder.path()}, "x"),
            "the folder " + folder.path().string() +
                " has neither model.safetensors.index.json nor model.safetensors: name the files that are to be read");
}

TEST_F(CheckpointFiles, AMissingFileMattersWhenItIsRead) {
  write(folder / "1.safetensors", {"x"});
  write_index(R"({"x":"1.safetensors","y":"2.safetensors"})");
  EXPECT_EQ(refusal({folder.path()}, "x"), "");
  EXPECT_EQ(refusal({folder.path()}, "y"), (folder / "2.safetensors").string() + " is missing, where " +
                                               (folder / "model.safetensors.index.json").string() +
                                               " has the tensor 'y'");
}

/// Whether the file is opened before or after what it belongs to.
TEST_F(CheckpointFiles, WhatAnIndexLeavesOutOfALayerIsRefused) {
  write(folder / "1.safetensors", {"l.q.weight", "l.q.bias", "free.inv_freq"});
  write(folder / "2.safetensors", {"l.k.weight", "l.q_g_idx", "l.v.weight"});
  write_index(R"({"l.q.weight":"1.safetensors","l.k.weight":"2.safetensors"})");
  const std::string index = (folder / "model.safetensors.index.json").string();
  EXPECT_EQ(refusal({folder.path()}, "l.q.weight"),
            (folder / "1.safetensors").string() + " has the tensor 'l.q.bias', which " + index + " does not list");
  EXPECT_EQ(refusal({folder.path()}, "l.k.weight"), "");
  write(folder / "1.safetensors", {"l.q.weight", "free.inv_freq"});
  const Checkpoint model(folder.path());
  EXPECT_EQ(described(model.find("l.q.weight")), "tensor 'l.q.weight' of " + (folder / "1.safetensors").string());
  EXPECT_THROW((void)model.find("l.k.weight"), Error);
  EXPECT_THROW(model.refuse_unlisted("l."), Error);
  EXPECT_NO_THROW(model.refuse_unlisted("m."));
}

TEST_F(CheckpointFiles, OneTensorInTwoFilesOfAnIndexIsRefused) {
  write(folder / "1.safetensors", {"x"});
  write(folder / "2.safetensors", {"x", "y"});
  write_index(R"({"x":"1.safetensors","y":"2.safetensors"})");
  const Checkpoint model(folder.path());
  (void)model.find("x");
  EXPECT_THROW((void)model.find("y"), Error);
}

TEST_F(CheckpointFiles, AnIndexThatLiesIsRefused) {
  write(folder / "1.safetensors", {"x"});
  write_index(R"({"y":"1.safetensors"})");
  EXPECT_EQ(refusal({folder.path()}, "y"), (folder / "1.safetensors").string() + " has no tensor 'y', which " +
                                               (folder / "model.safetensors.index.json").string() + " places there");
  write_index(R"({"y":"../1.safetensors"})");
  EXPECT_NE(refusal({folder.path()}, "y").find("a file's own name is expected"), std::string::npos);
  fs::create_directory(folder / "3.safetensors");
  write_index(R"({"y":"3.safetensors"})");
  EXPECT_NE(refusal({folder.path()}, "y").find("it is not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace thresher::formats
