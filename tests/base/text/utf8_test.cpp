// Replacing what is no UTF-8.
#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace tacho {
namespace {

TEST(ValidUtf8, ReplacesWhatIsNot) {
  EXPECT_EQ(valid_utf8("plain"), "plain");
  EXPECT_EQ(valid_utf8("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(valid_utf8(std::string_view("a\0b", 3)), "a\xef\xbf\xbd"
                                                     "b");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(valid_utf8("\xc3"), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace tacho
