// Files of processes that listen: which of them tacho maps.
#include "attach/listen_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace tacho::attach {
namespace {

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

bool opens(const File& file) {
  return ListenFile::open(getpid(), file.descriptor()).has_value();
}

TEST(ListenFile, TakesSealedFilesInMemoryOnly) {
  const File memory(memfd_create("listens", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_GE(memory.descriptor(), 0);
  ASSERT_EQ(ftruncate(memory.descriptor(), sizeof(tape::ListenBlock)), 0);
  EXPECT_FALSE(opens(memory)) << "it could shrink";
  ASSERT_EQ(fcntl(memory.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(opens(memory));
  const File small(memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(fcntl(small.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(opens(small));
}

TEST(ListenFile, TakesNoFileWithAName) {
  for (const std::string& folder : {testing::TempDir(), std::string("/dev/shm/")}) {
    std::string path = folder + "listen_file_XXXXXX";
    const File named(mkstemp(path.data()));
    if (named.descriptor() < 0) continue;
    ASSERT_EQ(ftruncate(named.descriptor(), sizeof(tape::ListenBlock)), 0);
    EXPECT_FALSE(opens(named)) << path;
    unlink(path.c_str());
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const File one(ends[0]), other(ends[1]);
  EXPECT_FALSE(opens(one));
  EXPECT_FALSE(opens(File(-1)));
}

}  // namespace
}  // namespace tacho::attach
