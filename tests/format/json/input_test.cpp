// The window over a file's text.
#include "format/json/input.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

namespace tacho::test {
namespace {

using format::json::InputWindow;

std::string gzip_member(const std::string& text) {
  z_stream zip{};
  deflateInit2(&zip, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(text.size() + 128, '\0');
  zip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zip.avail_in = static_cast<uInt>(text.size());
  zip.next_out = reinterpret_cast<Bytef*>(packed.data());
  zip.avail_out = static_cast<uInt>(packed.size());
  deflate(&zip, Z_FINISH);
  packed.resize(packed.size() - zip.avail_out);
  deflateEnd(&zip);
  return packed;
}

TEST(InputWindow, FillsItsRoomFromTinyGzipMembers) {
  const std::string path = testing::TempDir() + "tacho_input_test.json.gz", member = gzip_member("a");
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 5000; ++i) file << member;
  file.close();
  auto input = InputWindow::open(path);
  ASSERT_TRUE(input);
  ASSERT_TRUE((*input)->more());
  EXPECT_EQ((*input)->end() - (*input)->begin(), 5000);
  EXPECT_FALSE((*input)->at_end());
  EXPECT_FALSE((*input)->more());
  EXPECT_TRUE((*input)->at_end());
  EXPECT_TRUE((*input)->status());
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tacho::test
