// Entry of every GoogleTest program: gives tests the build and source trees, so that a program can also be started by
// hand, and a folder for temporary files, in which they must leave nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

// True, with a sentence for each file, if the tests left any in `folder`. Removes them.
bool left_behind(const std::filesystem::path& folder) {
  bool any = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    fprintf(stderr, "The tests left %s behind.\n", entry.path().c_str());
    any = true;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return any;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("TACHO_BUILD", TACHO_TEST_BUILD, 0);
  setenv("TACHO_SOURCE", TACHO_TEST_SOURCE, 0);
  setenv("TACHO_DATA", TACHO_TEST_SOURCE "/../shared/data", 0);
  setenv("POCL_CACHE_DIR", TACHO_TEST_BUILD "/pocl-cache", 0);
  std::string folder = (std::filesystem::temp_directory_path() / "tacho-tests-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    fprintf(stderr, "%s cannot be made\n", folder.c_str());
    return 1;
  }
  setenv("TMPDIR", folder.c_str(), 1);
  setenv("TEST_TMPDIR", folder.c_str(), 1);
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  return left_behind(folder) ? 1 : result;
}
