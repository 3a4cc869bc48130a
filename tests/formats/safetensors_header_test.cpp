#include "formats/safetensors_header.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

/// What is wrong with a header of `json` before `data_bytes` of data, or "" if nothing is.
std::string refusal(const std::string& json, std::uint64_t data_bytes) {
  try {
    (void)parse_safetensors_header(json, data_bytes, "model.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(std::string(error.what()).rfind("model.safetensors is not a valid safetensors file: ", 0), 0U);
    return error.what();
  }
  return "";
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

struct Bad {
  const char* what;
  std::string json;
  std::uint64_t data_bytes;
  const char* part;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.what; }

class BadHeader : public testing::TestWithParam<Bad> {};

TEST_P(BadHeader, IsRefusedWithItsReason) {
  const Bad& bad = GetParam();
  EXPECT_NE(refusal(bad.json, bad.data_bytes).find(bad.part), std::string::npos) << bad.json << "\n"
                                                                                 << refusal(bad.json, bad.data_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Headers, BadHeader,
    testing::Values(
        Bad{"nothing", "", 0, "does not begin with {"}, Bad{"array", "[]", 0, "does not begin with {"},
        Bad{"leading_space", " {}", 0, "does not begin with {"}, Bad{"truncated", "{\"a\":", 0, "not JSON"},
        Bad{"trailing", "{}x", 0, "not JSON"}, Bad{"two_objects", "{}{}", 0, "not JSON"},
        Bad{"bad_utf8", "{\"\xFF\":{}}", 0, "not JSON"}, Bad{"not_an_object", "{\"a\":3}", 0, "the number 3 at 'a'"},
        Bad{"null", "{\"a\":null}", 0, "null at 'a'"}, Bad{"empty_tensor", "{\"a\":{}}", 0, "tensor 'a' has no dtype"},
        Bad{"no_shape", R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0, "tensor 'a' has no shape"},
        Bad{"no_offsets", R"({"a":{"dtype":"U8","shape":[0]}})", 0, "tensor 'a' has no data_offsets"},
        Bad{"extra_field", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":"y"}})", 0,
            "the string 'y' at 'x'"},
        Bad{"extra_number", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0, "the number 1 at 'x'"},
        Bad{"extra_object", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":{}}})", 0, "an object at 'x'"},
        Bad{"unknown_type", "{" + tensor("a", "Q9", "[0]", "[0,0]") + "}", 0, "unknown type 'Q9'"},
        Bad{"dtype_number", R"({"a":{"dtype":1}})", 0, "the number 1 at 'dtype' in tensor 'a'"},
        Bad{"shape_string", R"({"a":{"shape":"x"}})", 0, "the string 'x' at 'shape'"},
        Bad{"negative_extent", "{" + tensor("a", "U8", "[-1]", "[0,0]") + "}", 0, "the number -1 at 'shape'"},
        Bad{"fractional_extent", "{" + tensor("a", "U8", "[1.5]", "[0,1]") + "}", 1, "'1.5' at 'shape'"},
        Bad{"nested_shape", "{" + tensor("a", "U8", "[[1]]", "[0,1]") + "}", 1, "an array at 'shape'"},
        Bad{"huge_extent", "{" + tensor("a", "U8", "[9223372036854775808]", "[0,1]") + "}", 1, "too large"},
        Bad{"beyond_64_bits", "{" + tensor("a", "U8", "[99999999999999999999]", "[0,1]") + "}", 1, "at 'shape'"},
        Bad{"overflow", "{" + tensor("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0, "too large"},
        Bad{"overflow_to_zero", "{" + tensor("a", "U8", "[4611686018427387904,4]", "[0,0]") + "}", 0, "too large"},
        Bad{"half_a_byte", "{" + tensor("a", "F4", "[3]", "[0,1]") + "}", 1, "do not fill whole bytes"},
        Bad{"offsets_reversed", "{" + tensor("a", "U8", "[0]", "[1,0]") + "}", 1, "begin not above end"},
        Bad{"offsets_alone", "{" + tensor("a", "U8", "[0]", "[0]") + "}", 0, "needs data_offsets [begin, end]"},
        Bad{"offsets_three", "{" + tensor("a", "U8", "[0]", "[0,0,0]") + "}", 0, "needs data_offsets [begin, end]"},
        Bad{"size_disagrees", "{" + tensor("a", "F16", "[2, 3]", "[0,10]") + "}", 10,
            "tensor 'a' has 10 bytes of data, but F16 [2, 3] needs 12"},
        Bad{"size_too_large", "{" + tensor("a", "F16", "[2, 3]", "[0,14]") + "}", 14, "needs 12"},
        Bad{"beyond_the_end", "{" + tensor("a", "U8", "[8]", "[0,8]") + "}", 7, "may be truncated"},
        Bad{"gap_before", "{" + tensor("a", "U8", "[4]", "[4,8]") + "}", 8, "begin at byte 4, but must begin at 0"},
        Bad{"gap_between", "{" + tensor("a", "U8", "[2]", "[0,2]") + "," + tensor("b", "U8", "[2]", "[4,6]") + "}", 6,
            "tensor 'b' begin at byte 4, but must begin at 2"},
        Bad{"overlap", "{" + tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("b", "U8", "[4]", "[2,6]") + "}", 6,
            "tensor 'b' begin at byte 2, but must begin at 4"},
        Bad{"left_over", "{" + tensor("a", "U8", "[4]", "[0,4]") + "}", 5,
            "has 5 bytes of data, but its tensors cover 4"},
        Bad{"data_without_tensors", "{}", 5, "its tensors cover 0"},
        Bad{"same_name", "{" + tensor("a", "U8", "[0]", "[0,0]") + "," + tensor("a", "U8", "[0]", "[0,0]") + "}", 0,
            "'a' appears twice"},
        Bad{"same_field", R"({"a":{"dtype":"U8","dtype":"U8"}})", 0, "'dtype' appears twice in tensor 'a'"},
        Bad{"same_metadata", R"({"__metadata__":{"k":"1","k":"2"}})", 0, "'k' appears twice in its metadata"},
        Bad{"metadata_number", R"({"__metadata__":{"k":1}})", 0, "the number 1 at 'k' in its metadata"},
        Bad{"metadata_nested", R"({"__metadata__":{"k":{}}})", 0, "an object at 'k' in its metadata"},
        Bad{"metadata_string", R"({"__metadata__":"k"})", 0, "the string 'k' at '__metadata__'"},
        Bad{"control_characters", "{\"a\\nb\":3}", 0, "'a?b'"},
        Bad{"escapes_of_a_terminal", "{\"\u009b31m\u202e\":3}", 0, "'?31m?'"},
        Bad{"trailing_nul", std::string("{}\0\0\0", 5), 0, "has a NUL at byte 10"},
        Bad{"hidden_after_a_nul", std::string("{}\0{\"a\":3}", 10), 0, "has a NUL at byte 10"}),
    [](const auto& bad) { return bad.param.what; });

TEST(SafetensorsHeader, DeepNestingIsRefusedAtOnce) {
  EXPECT_NE(refusal("{\"a\":" + std::string(1'000'000, '['), 0).find("an array at 'a'"), std::string::npos);
  std::string objects = "{";
  for (int i = 0; i < 100'000; ++i) {
    objects += "\"a\":{";
  }
  EXPECT_NE(refusal(objects, 0).find("an object at 'a'"), std::string::npos);
}

TEST(SafetensorsHeader, AnErrorOfALongNameStaysShort) {
  EXPECT_LT(refusal("{\"" + std::string(100'000, 'n') + "\":3}", 0).size(), 400U);
}

TEST(SafetensorsHeader, AnErrorOfAShapeWithManyExtentsStaysShort) {
  std::string shape = "[2";
  for (int i = 1; i < 100'000; ++i) {
    shape += ",1";
  }
  const std::string sentence = refusal("{" + tensor("a", "U8", shape + "]", "[0,1]") + "}", 1);
  EXPECT_LT(sentence.size(), 400U);
  EXPECT_NE(sentence.find("U8 [2, 1, 1, 1, 1, 1, 1, 1, … 100000 dimensions in all] needs 2"), std::string::npos)
      << sentence;
}

TEST(SafetensorsHeader, AcceptsWhatTheFormatAllows) {
  const std::string json = "{" + tensor("late", "F16", "[2,3]", "[4,16]") + "," +
                           R"("__metadata__":{"format":"pt","":""},)" + tensor("scalar", "F32", "[]", "[0,4]") + "," +
                           tensor("empty", "F64", "[0,7]", "[4,4]") + "," + tensor("codes", "F4", "[2,1]", "[16,17]") +
                           "}   ";
  const SafetensorsHeader header = parse_safetensors_header(json, 17, "f");
  ASSERT_EQ(header.tensors.size(), 4U);
  EXPECT_EQ(header.tensors[0], (StoredTensor{"scalar", Dtype::f32, {}, 0, 4}));
  EXPECT_EQ(header.tensors[1], (StoredTensor{"empty", Dtype::f64, {0, 7}, 4, 4}));
  EXPECT_EQ(header.tensors[2], (StoredTensor{"late", Dtype::f16, {2, 3}, 4, 16}));
  EXPECT_EQ(header.tensors[3], (StoredTensor{"codes", Dtype::f4, {2, 1}, 16, 17}));
  EXPECT_EQ(header.metadata, (Metadata{{"format", "pt"}, {"", ""}}));
  EXPECT_TRUE(parse_safetensors_header("{}", 0, "f").tensors.empty());
}

TEST(SafetensorsHeader, WhatIsMadeIsWhatIsRead) {
  SafetensorsHeader header;
  header.metadata = {{"by", "a \"test\"\n"}};
  std::uint64_t position = 0;
  for (const Dtype dtype :
       {Dtype::boolean, Dtype::u8, Dtype::i8, Dtype::u16, Dtype::i16, Dtype::u32, Dtype::i32, Dtype::u64, Dtype::i64,
        Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::f8_e4m3, Dtype::f8_e5m2, Dtype::f8_e8m0, Dtype::f4}) {
    const std::uint64_t bytes = 6 * bits(dtype) / 8;
    header.tensors.push_back({"tensor/" + std::string(name(dtype)), dtype, {3, 2}, position, position + bytes});
    position += bytes;
  }
  const std::string made = make_safetensors_header(header);
  EXPECT_EQ(made.size() % 8, 0U);
  const std::uint64_t length = safetensors_header_length(std::as_bytes(std::span(made)), made.size(), "f");
  EXPECT_EQ(length, made.size() - 8);
  EXPECT_EQ(parse_safetensors_header(made.substr(8), position, "f"), header);
}

TEST(SafetensorsHeader, TheLengthIsCheckedAgainstTheFile) {
  const auto refused = [](std::vector<unsigned char> bytes, std::uint64_t file_bytes) -> std::string {
    try {
      (void)safetensors_header_length(std::as_bytes(std::span(bytes)), file_bytes, "f");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({2, 0, 0, 0, 0, 0, 0, 0}, 10), "");
  EXPECT_NE(refused({3, 0, 0, 0, 0, 0, 0, 0}, 10).find("claims 3 bytes, but only 2 follow"), std::string::npos);
  EXPECT_NE(refused({0, 0, 0, 0, 0, 0, 0, 1}, 10).find("not believed"), std::string::npos);
  EXPECT_NE(refused({255, 255, 255, 255, 255, 255, 255, 255}, 10).find("not believed"), std::string::npos);
  EXPECT_NE(refused({2, 0, 0}, 3).find("has 3 bytes, not even the 8"), std::string::npos);
  EXPECT_NE(refused({}, 0).find("has 0 bytes"), std::string::npos);
}

}  // namespace
}  // namespace thresher::formats
