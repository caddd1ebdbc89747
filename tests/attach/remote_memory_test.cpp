// What a process's memory says of itself is untrusted: texts, and tables of symbols.
#include "attach/remote_memory.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tacho::attach {
namespace {

constexpr size_t kVdsoBytes = 8192;  // two pages, on x86-64

uint64_t address_of(const void* at) {
  return reinterpret_cast<uint64_t>(at);
}

TEST(RemoteMemory, TextsArePartsOfOneLine) {
  const auto memory = RemoteMemory::open(getpid());
  ASSERT_TRUE(memory) << memory.error().message;
  const char* const hostile = "a\nb\x1b[31mc\x7f\rd";
  EXPECT_EQ(memory->text(address_of(hostile), 512), "a b [31mc  d");
  EXPECT_EQ(memory->text(address_of(hostile), 3), "a b");
  EXPECT_EQ(memory->text(16, 512), "");
}

// The kernel's own small library, which every process has mapped.
class Vdso {
 public:
  Vdso() : image_(kVdsoBytes) {
    memcpy(image_.data(), reinterpret_cast<const void*>(getauxval(AT_SYSINFO_EHDR)), image_.size());
    module_.begin = address_of(image_.data());
    module_.end = module_.begin + image_.size();
  }
  std::vector<unsigned char>& image() { return image_; }
  const RemoteModule& module() const { return module_; }

 private:
  std::vector<unsigned char> image_;
  RemoteModule module_;
};

TEST(RemoteMemory, FindsFunctionsAndNoneThatIsNotThere) {
  const auto memory = RemoteMemory::open(getpid());
  ASSERT_TRUE(memory) << memory.error().message;
  const Vdso vdso;
  const auto found = find_function(*memory, vdso.module(), "__vdso_clock_gettime");
  ASSERT_TRUE(found);
  EXPECT_TRUE(vdso.module().holds(found->begin));
  EXPECT_GT(found->bytes, 0u);
  EXPECT_FALSE(find_function(*memory, vdso.module(), "__vdso_clock"));
  EXPECT_FALSE(find_function(*memory, vdso.module(), ""));
}

TEST(RemoteMemory, FindsNothingOutsideOfAModuleWhateverItsTablesSay) {
  const auto memory = RemoteMemory::open(getpid());
  ASSERT_TRUE(memory) << memory.error().message;
  std::mt19937 random(7);
  size_t still_found = 0;
  for (int round = 0; round < 3000; ++round) {
    Vdso vdso;
    for (uint32_t changes = 1 + random() % 8; changes > 0; --changes) {
      const size_t at = random() % 2048;  // headers, tables of symbols, and names
      const size_t bytes = std::min<size_t>(1u << random() % 4, vdso.image().size() - at);
      const uint64_t value = random() % 3 == 0 ? ~uint64_t{0} : uint64_t{random()} << 32 | random();
      memcpy(vdso.image().data() + at, &value, bytes);
    }
    const auto found = find_function(*memory, vdso.module(), "__vdso_clock_gettime");
    still_found += found.has_value();
    EXPECT_TRUE(!found || vdso.module().holds(found->begin));
  }
  EXPECT_GT(still_found, 100u);
  EXPECT_LT(still_found, 2900u);
}

}  // namespace
}  // namespace tacho::attach
