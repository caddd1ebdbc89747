// Links to libtacho.so: made where its path cannot be in a list, shared by runs, and removed by the last of them.
#include "launch/library_names.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/files/temporary.h"

namespace tacho::launch {
namespace {

namespace fs = std::filesystem;

class LibraryLinksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::create((fs::temp_directory_path() / "tacho-links-").string());
    ASSERT_TRUE(made) << made.error().message;
    folder_ = std::move(*made);
    fs::create_directories(links());
    temporary_ = ::getenv("TMPDIR");
    ::unsetenv("XDG_RUNTIME_DIR");
    ::setenv("TMPDIR", links().c_str(), 1);
  }
  void TearDown() override { ::setenv("TMPDIR", temporary_.c_str(), 1); }

  std::string links() const { return folder_.path() + "/links"; }
  std::string library(const std::string& below) const {
    fs::create_directories(folder_.path() + "/" + below);
    const std::string path = folder_.path() + "/" + below + "/libtacho.so";
    std::ofstream(path) << "library";
    return path;
  }
  ptrdiff_t folders() const { return std::distance(fs::directory_iterator(links()), fs::directory_iterator()); }

  TemporaryFolder folder_;
  std::string temporary_;
};

TEST_F(LibraryLinksTest, ALibraryBesideItsPreloadNameNeedsNone) {
  const std::string path = library("plain");
  fs::create_symlink("libtacho.so", folder_.path() + "/plain/" + kPreloadName);
  const auto made = LibraryLinks::create(path);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->names().library, path);
  EXPECT_EQ(made->names().preload, folder_.path() + "/plain/" + kPreloadName);
  EXPECT_EQ(folders(), 0);
}

TEST_F(LibraryLinksTest, TheLastRunRemovesThem) {
  const std::string path = library("with space");
  auto first = LibraryLinks::create(path);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(fs::equivalent(first->names().library, path));
  EXPECT_TRUE(fs::equivalent(first->names().preload, path));
  EXPECT_EQ(first->names().library.find(' '), std::string::npos);
  {
    const auto second = LibraryLinks::create(path);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(second->names().library, first->names().library);
    EXPECT_EQ(folders(), 1);
  }
  EXPECT_TRUE(fs::equivalent(first->names().library, path)) << "the other run has ended, this one has not";
  *first = LibraryLinks();
  EXPECT_EQ(folders(), 0);
}

TEST_F(LibraryLinksTest, KeptOnesStayWhileTheLibraryIsThere) {
  const std::string gone = library("gone soon"), stays = library("stays here");
  for (const std::string& path : {gone, stays}) {
    auto made = LibraryLinks::create(path);
    ASSERT_TRUE(made) << made.error().message;
    made->keep();
  }
  EXPECT_EQ(folders(), 2);
  fs::remove(gone);
  const auto other = LibraryLinks::create(library("another one"));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(folders(), 2) << "the one whose library is gone went";
}

TEST_F(LibraryLinksTest, ForeignFoldersAreLeftAlone) {
  const std::string folder = fmt::format("{}/tacho-{}-{:016x}", links(), ::geteuid(), 1);
  fs::create_directories(folder);
  std::ofstream(folder + "/libtacho.so") << "no link";
  const auto made = LibraryLinks::create(library("with space"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(fs::exists(folder + "/libtacho.so"));
}

}  // namespace
}  // namespace tacho::launch
