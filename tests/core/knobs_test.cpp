#include "thresher/knobs.hpp"

#include <gtest/gtest.h>

#include "thresher/error.hpp"

namespace thresher {
namespace {

TEST(Knobs, TextIsWhatParseReads) {
  const Knobs knobs = Knobs::parse(" stages=4\tpersistent  epilogue=tma ");
  EXPECT_EQ(knobs, (Knobs{{"stages", "4"}, {"persistent", "true"}, {"epilogue", "tma"}}));
  EXPECT_EQ(knobs.text(), "epilogue=tma persistent=true stages=4");
  EXPECT_EQ(Knobs::parse(knobs.text()), knobs);
  EXPECT_TRUE(Knobs::parse(" ").empty());
  EXPECT_EQ(Knobs().text(), "");
}

TEST(Knobs, AreFoundSetAndErased) {
  Knobs knobs{{"stages", "4"}};
  ASSERT_NE(knobs.find("stages"), nullptr);
  EXPECT_EQ(*knobs.find("stages"), "4");
  EXPECT_EQ(knobs.find("cluster"), nullptr);
  knobs.set("stages", "5");
  knobs.set("cluster", "2");
  EXPECT_EQ(knobs.text(), "cluster=2 stages=5");
  knobs.erase("stages");
  EXPECT_EQ(knobs.size(), 1U);
}

TEST(Knobs, AWordWithoutANameOrGivenTwiceIsRefused) {
  const auto refusal = [](std::string_view text) -> std::string {
    try {
      (void)Knobs::parse(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("=4"), "'=4' is no knob: write name=value, or a name alone for name=true");
  EXPECT_EQ(refusal("stages="), "'stages=' is no knob: write name=value, or a name alone for name=true");
  EXPECT_EQ(refusal("stages=4 stages=4"), "the knob stages is given twice");
}

}  // namespace
}  // namespace thresher
