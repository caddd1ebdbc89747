// Outputs appear whole or not at all.
#include "base/files/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files/output_claim.h"

namespace tacho {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tacho-output-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const char* name) const { return folder_ + "/" + name; }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string folder_;
};

TEST_F(OutputFileTest, AppearsOnCommitOnly) {
  auto made = OutputFile::create(file("a"), false);
  ASSERT_TRUE(made);
  std::string big;
  for (int i = 0; i < 3'000'000; ++i) big += std::to_string(i);  // longer than without a thread
  made->write(big);
  made->write("end");
  EXPECT_EQ(made->size(), big.size() + 3);
  EXPECT_FALSE(fs::exists(file("a")));
  ASSERT_TRUE(made->commit());
  EXPECT_EQ(read(file("a")), big + "end");
  EXPECT_EQ(entries(), 1u);
  struct stat status {};
  ASSERT_EQ(stat(file("a").c_str(), &status), 0);
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask) << "as any other file of the user, not 0600";
}

// Around the place where a thread takes over and whole blocks go past the page cache: outputs of every length, in
// pieces that fit no block, are written byte for byte.
TEST_F(OutputFileTest, LongOutputsOfAnyLength) {
  constexpr size_t kFrom = 8u << 20, kBlock = 4096;
  std::string bytes(kFrom + (3u << 20) + 12345, '\0');
  uint64_t state = 1;
  for (char& byte : bytes)
    byte = static_cast<char>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
  for (const size_t length :
       {kFrom - 1, kFrom, kFrom + 1, kFrom + kBlock, kFrom + (1u << 20) - 1, kFrom + (1u << 20), bytes.size()})
    for (const size_t piece : {size_t{1021}, size_t{65536}, length}) {
      auto made = OutputFile::create(file("long"), true);
      ASSERT_TRUE(made);
      for (size_t at = 0; at < length; at += piece) {
        const size_t now = std::min(piece, length - at);
        if (piece == 1021) {  // as formatters do it
          std::memcpy(made->reserve(2 * now), bytes.data() + at, now);
          made->advance(now);
        } else {
          made->write(std::string_view(bytes).substr(at, now));
        }
        ASSERT_EQ(made->size(), at + now);
      }
      const Status done = made->commit();
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_TRUE(read(file("long")) == std::string_view(bytes).substr(0, length))
          << length << " in pieces of " << piece;
    }
}

TEST_F(OutputFileTest, NothingIsLeftWithoutCommit) {
  {
    auto made = OutputFile::create(file("a"), false);
    ASSERT_TRUE(made);
    made->write(std::string(1'000'000, 'x'));
  }
  EXPECT_EQ(entries(), 0u);
  {
    auto made = OutputFile::create(file("a"), false);
    ASSERT_TRUE(made);
    made->write(std::string(20'000'000, 'x'));  // beside a thread
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputFileTest, ExistingFiles) {
  std::ofstream(file("a")) << "old";
  const auto refused = OutputFile::create(file("a"), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, file("a") + " exists; give another name, or --overwrite to replace it");
  auto made = OutputFile::create(file("a"), true);
  ASSERT_TRUE(made);
  made->write("new");
  EXPECT_EQ(read(file("a")), "old");
  ASSERT_TRUE(made->commit());
  EXPECT_EQ(read(file("a")), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, AFileThatAppearsMeanwhileIsLeft) {
  auto made = OutputFile::create(file("a"), false);
  ASSERT_TRUE(made);
  made->write("new");
  std::ofstream(file("a")) << "somebody's";
  const Status done = made->commit();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("has appeared meanwhile"), std::string::npos);
  EXPECT_EQ(read(file("a")), "somebody's");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, MovedIntoPlaceOrLeft) {
  std::ofstream(file("made")) << "new";
  std::ofstream(file("a")) << "somebody's";
  EXPECT_EQ(move_into_place(file("made"), file("a"), false), EEXIST);
  EXPECT_EQ(read(file("a")), "somebody's");
  EXPECT_EQ(read(file("made")), "new");
  EXPECT_EQ(move_into_place(file("made"), file("b"), false), 0);
  EXPECT_EQ(move_into_place(file("b"), file("a"), true), 0);
  EXPECT_EQ(read(file("a")), "new");
  EXPECT_EQ(move_into_place(file("made"), file("a"), true), ENOENT);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, LinksAreFollowed) {
  std::ofstream(file("real")) << "old";
  fs::create_symlink("real", file("link"));
  auto made = OutputFile::create(file("link"), true);
  ASSERT_TRUE(made);
  made->write("new");
  ASSERT_TRUE(made->commit());
  EXPECT_TRUE(fs::is_symlink(file("link")));
  EXPECT_EQ(read(file("real")), "new");
}

TEST_F(OutputFileTest, BadPlaces) {
  const auto none = OutputFile::create(file("no/such/folder/a"), false);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("does not exist"), std::string::npos) << none.error().message;
  const auto folder = OutputFile::create(folder_, true);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("is a folder"), std::string::npos);
  EXPECT_FALSE(OutputFile::create("", false));
  std::ofstream(file("plain")) << "";
  const Status blocked = create_folders(file("plain/below"));
  ASSERT_FALSE(blocked);
  EXPECT_NE(blocked.error().message.find("plain is not a folder"), std::string::npos) << blocked.error().message;
  EXPECT_TRUE(create_folders(file("x/y/z")));
  EXPECT_TRUE(fs::is_directory(file("x/y/z")));
}

TEST_F(OutputFileTest, DevicesAreWrittenToDirectly) {
  auto made = OutputFile::create("/dev/null", false);
  ASSERT_TRUE(made);
  made->write("gone");
  EXPECT_TRUE(made->commit());
  auto full = OutputFile::create("/dev/full", false);
  ASSERT_TRUE(full);
  full->write("no room");
  const Status done = full->commit();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("No space left"), std::string::npos) << done.error().message;
}

TEST_F(OutputFileTest, FileSizeLimit) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, limit{};
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  Status done;
  for (const rlim_t size : {100'000, 12'000'000}) {  // written at once, and by the thread
    limit.rlim_cur = size;
    setrlimit(RLIMIT_FSIZE, &limit);
    auto made = OutputFile::create(file("a"), false);
    ASSERT_TRUE(made);
    for (int i = 0; i < 20; ++i) made->write(std::string(1'000'000, 'x'));
    EXPECT_TRUE(made->failed());
    done = made->commit();
    if (done) break;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("ulimit -f"), std::string::npos) << done.error().message;
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputFileTest, SeveralTogether) {
  std::vector<OutputFile> files;
  for (const char* name : {"a", "b", "c"}) {
    auto made = OutputFile::create(file(name), false);
    ASSERT_TRUE(made);
    made->write(name);
    files.push_back(std::move(*made));
  }
  EXPECT_EQ(entries(), 0u);
  ASSERT_TRUE(OutputFile::commit_all(files));
  EXPECT_EQ(read(file("a")), "a");
  EXPECT_EQ(read(file("c")), "c");
}

}  // namespace
}  // namespace tacho
