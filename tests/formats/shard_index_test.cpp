#include "formats/shard_index.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/scratch_folder.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

std::string refusal(const std::string& json) {
  try {
    (void)parse_shard_index(json, "model.safetensors.index.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(std::string(error.what()).rfind("model.safetensors.index.json is not a valid index of a checkpoint: ", 0),
              0U)
        << error.what();
    EXPECT_LT(std::string(error.what()).size(), 500U);
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& json, const std::string& part) {
  const std::string sentence = refusal(json);
  EXPECT_NE(sentence.find(part), std::string::npos) << json.substr(0, 200) << "\n" << sentence;
}

TEST(ShardIndex, SaysWhichFileHasATensor) {
  const WeightMap map = parse_shard_index(
      R"({"metadata":{"total_size":3,"more":{"a":[1,{"b":null}],"weight_map":{"c":1}}},"weight_map":{"x":"1.safetensors",)"
      R"("y":"2.safetensors","z":"1.safetensors"},"other":[true,1.5,-1,"text"]})",
      "f");
  EXPECT_EQ(map, (WeightMap{{"x", "1.safetensors"}, {"y", "2.safetensors"}, {"z", "1.safetensors"}}));
  EXPECT_TRUE(parse_shard_index(R"({"weight_map":{}})", "f").empty());
}

TEST(ShardIndex, AFileIsNamedWithoutAFolder) {
  for (const char* name : {"../x", "/etc/passwd", "a/b", "..", ".", "", "a\\\\b", "a\\nb", "a\\u0000", "\\u202ex"}) {
    expect_refused(R"({"weight_map":{"x":")" + std::string(name) + "\"}}", "it places the tensor 'x' in '");
  }
  expect_refused(R"({"weight_map":{"x":")" + std::string(256, 'a') + "\"}}", "but a file's own name is expected");
}

TEST(ShardIndex, WhatIsNoIndexIsRefused) {
  expect_refused("", "not JSON");
  expect_refused("{", "not JSON");
  expect_refused("{}x", "not JSON");
  expect_refused("[]", "it is an array, not an object");
  expect_refused("3", "it is a number, not an object");
  expect_refused("{}", "it has no weight_map");
  expect_refused(R"({"weight_map":3})",
                 "it has a number at 'weight_map', where its weight_map needs the names of files");
  expect_refused(R"({"weight_map":[]})", "it has an array at 'weight_map'");
  expect_refused(R"({"weight_map":"x"})", "it has a string at 'weight_map'");
  expect_refused(R"({"weight_map":{"x":3}})", "it has a number at 'x'");
  expect_refused(R"({"weight_map":{"x":{"y":"z"}}})", "it has an object at 'x'");
  expect_refused(R"({"weight_map":{"x":["z"]}})", "it has an array at 'x'");
  expect_refused(R"({"weight_map":{},"weight_map":{}})", "'weight_map' appears twice");
  expect_refused(R"({"weight_map":{"x":"a","x":"a"}})", "'x' appears twice in its weight_map");
  expect_refused(std::string("{\"weight_map\":{}}\0", 18), "it has a NUL at byte 17");
}

TEST(ShardIndex, DeepNestingIsRefusedAtOnce) {
  expect_refused("{\"metadata\":" + std::string(1'000'000, '['), "nested deeper than 16");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"a\":";
  }
  expect_refused(objects, "nested deeper than 16");
}

TEST(ShardIndex, OnlyARegularFileOfABoundedSizeIsRead) {
  const ScratchFolder scratch;
  const auto refused = [](const std::filesystem::path& path) -> std::string {
    try {
      (void)read_shard_index(path);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refused(scratch / "missing").find("No such file"), std::string::npos);
  EXPECT_NE(refused(scratch.path()).find("not a regular file"), std::string::npos);
  EXPECT_NE(refused("/dev/zero").find("not a regular file"), std::string::npos);
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refused(scratch / "pipe").find("not a regular file"), std::string::npos);
  std::ofstream(scratch / "large") << "{";
  std::filesystem::resize_file(scratch / "large", 200'000'000);  // a hole, which takes no space
  EXPECT_NE(refused(scratch / "large").find("more than the 100000000 bytes"), std::string::npos);
}

}  // namespace
}  // namespace thresher::formats
