#include "core/printable.hpp"

#include <gtest/gtest.h>

namespace thresher {
namespace {

TEST(Printable, TextStaysAsItIs) {
  for (const char* text : {"", "model.layers.0.mlp.gate_proj.weight", "K = 2·N, größer", "重み", "𝄞", "a b"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatATerminalObeysIsNotShown) {
  EXPECT_EQ(printable("\x1b]0;title\x07\x1b[2J\n\t\x7f"), "?]0;title??[2J???");
  EXPECT_EQ(printable("\u009b31mred"), "?31mred");
  EXPECT_EQ(printable("\u202Eevil\u2066\u200b\u2028\ufeff\u061c"), "?evil?????");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("\U000E0041"), "?");
}

TEST(Printable, BytesThatAreNotUtf8AreNotShown) {
  EXPECT_EQ(printable("a\xff\xfe z"), "a?? z");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m");                                 // C1 in Latin-1
  EXPECT_EQ(printable("\xc0\x9b"), "??");            // overlong
  EXPECT_EQ(printable("\xe0\x80\x9b"), "???");       // overlong
  EXPECT_EQ(printable("\xf0\x80\x80\x9b"), "????");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");       // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????");  // beyond the last character
  EXPECT_EQ(printable("\xe4\xba"), "??");            // cut off
  EXPECT_EQ(printable("\xc3("), "?(");
}

TEST(Printable, ANameIsQuotedAndStaysShort) {
  EXPECT_EQ(quoted_name("b1"), "'b1'");
  EXPECT_EQ(quoted_name("a\nb"), "'a?b'");
  EXPECT_EQ(quoted_name(std::string(120, 'n')), "'" + std::string(120, 'n') + "'");
  EXPECT_EQ(quoted_name(std::string(1'000'000, 'n')), "'" + std::string(120, 'n') + "…'");
  std::string wide;
  for (int i = 0; i < 200; ++i) {
    wide += "重";
  }
  EXPECT_EQ(quoted_name(wide), "'" + wide.substr(0, 360) + "…'");
}

TEST(Printable, LinesAreKeptWhereTheyMayBe) {
  EXPECT_EQ(printable_lines("two\n\tlines\r\x1b\n"), "two\n\tlines??\n");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(Printable, WhatIsNoUtf8IsTold) {
  EXPECT_TRUE(is_utf8("größer 重 \x1b\n"));
  for (const char* text : {"\xff", "a\x80", "\xc3", "\xc0\x80", "\xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

}  // namespace
}  // namespace thresher
