#include "core/fingerprint.hpp"

#include <gtest/gtest.h>

namespace thresher {
namespace {

TEST(Fingerprint, OfNothingIsTheOffsetBasis) { EXPECT_EQ(Fingerprint().hex(), "6c62272e07bb014262b821756295c58d"); }

// FNV-1a of the 8 length bytes and the text, computed with Python's integers.
TEST(Fingerprint, MatchesTheDefinition) {
  EXPECT_EQ(Fingerprint().add("").hex(), "9d30c1f78465995be47dda5e4e4e77ed");
  EXPECT_EQ(Fingerprint().add("thresher").hex(), "784cd13795812ab5d25eccce43e78ab4");
}

TEST(Fingerprint, SeesWhereFieldsEnd) {
  EXPECT_NE(Fingerprint().add("ab").add("c").hex(), Fingerprint().add("a").add("bc").hex());
  EXPECT_NE(Fingerprint().add("a").hex(), Fingerprint().add("a").add("").hex());
}

}  // namespace
}  // namespace thresher
