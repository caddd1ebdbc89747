// Records of the spool: whole, cut off, and hostile.
#include "counter/spool.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <random>

namespace tacho::counter {
namespace {

std::string record(const std::string& name, const std::vector<double>& values, uint64_t index) {
  spool::SpoolRecord head{};
  head.magic = spool::kSpoolMagic;
  head.index = index;
  head.selected = 1;
  head.name_bytes = static_cast<uint32_t>(name.size());
  head.values = static_cast<uint32_t>(values.size());
  const size_t space = (name.size() + 7) / 8 * 8;
  head.bytes = static_cast<uint32_t>(sizeof head + space + values.size() * 8);
  std::string out(head.bytes, '\0');
  std::memcpy(out.data(), &head, sizeof head);
  std::memcpy(out.data() + sizeof head, name.data(), name.size());
  if (!values.empty()) std::memcpy(out.data() + sizeof head + space, values.data(), values.size() * 8);
  return out;
}

TEST(Spool, TheSharedStateHasItsPlaceOnDisk) {
  // The target writes into it: where the disk is full by then, a hole would kill it.
  const auto spool = SpoolFolder::create(std::filesystem::temp_directory_path().string(), {}, {});
  ASSERT_TRUE(spool.has_value()) << spool.error().message;
  struct stat status {};
  ASSERT_EQ(stat((spool->folder() + "/state").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 4096);
  EXPECT_GE(status.st_blocks, 8);  // of 512 bytes
}

TEST(Spool, ReadsWhatWasWritten) {
  std::vector<SpooledDispatch> out;
  ASSERT_TRUE(parse_records(record("copy", {1, 2.5}, 4) + record("", {}, 5), out));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].dispatch.kernel, "copy");
  EXPECT_EQ(out[0].values, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(out[1].dispatch.index, 5u);
}

TEST(Spool, KeepsWhatIsWholeOfACutFile) {
  const std::string whole = record("first", {1}, 0), text = whole + record("second", {2}, 1);
  for (size_t size = whole.size() + 1; size < text.size(); ++size) {
    std::vector<SpooledDispatch> out;
    EXPECT_FALSE(parse_records(std::string_view(text).substr(0, size), out)) << size;
    EXPECT_EQ(out.size(), 1u) << size;
  }
}

TEST(Spool, HostileBytesEndTheReading) {
  std::mt19937 random(7);
  const std::string good = record("kernel", {1, 2, 3}, 0);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good + good;
    for (int i = 0; i < 4; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    std::vector<SpooledDispatch> out;
    parse_records(bad, out);
    EXPECT_LE(out.size(), 2u);
  }
  // Lengths that overflow.
  spool::SpoolRecord head{};
  head.magic = spool::kSpoolMagic;
  head.bytes = sizeof head;
  head.values = 0xFFFFFFFF;
  head.name_bytes = 0xFFFFFFFF;
  std::vector<SpooledDispatch> out;
  EXPECT_FALSE(parse_records({reinterpret_cast<const char*>(&head), sizeof head}, out));
}

}  // namespace
}  // namespace tacho::counter
