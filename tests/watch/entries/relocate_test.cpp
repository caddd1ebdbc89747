// Heads of functions are moved and run: the copy computes what the function does.
#include "watch/entries/relocate.h"

#include <gtest/gtest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <random>

namespace tacho::watch {
namespace {

using Function = uint64_t (*)(uint64_t, uint64_t);

// Memory for code, and for copies of it, near each other.
class Pages {
 public:
  Pages() {
    at_ = static_cast<uint8_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Pages() { munmap(at_, kBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  uint8_t* place(size_t offset) { return at_ + offset; }
  uint64_t address(size_t offset) { return reinterpret_cast<uint64_t>(at_ + offset); }
  void put(size_t offset, const std::vector<uint8_t>& code) { memcpy(place(offset), code.data(), code.size()); }
  Function function(size_t offset) { return reinterpret_cast<Function>(place(offset)); }

 private:
  static constexpr size_t kBytes = 1 << 16;
  uint8_t* at_ = nullptr;
};
constexpr size_t kOriginal = 256, kCopy = 32768, kData = 4096;

Result<MovedHead> moved(Pages& pages, const std::vector<uint8_t>& code) {
  pages.put(kOriginal, code);
  return move_head(std::span(pages.place(kOriginal), code.size()), pages.address(kOriginal), pages.address(kCopy));
}

// The function and its copy, which also has to survive that the function's head is a jump.
void expect_same(const std::vector<uint8_t>& code, size_t at, size_t taken) {
  Pages pages;
  const uint64_t word = 0x1122334455667788;
  memcpy(pages.place(kOriginal + kData), &word, sizeof word);
  const auto head = moved(pages, code);
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->at, at);
  EXPECT_EQ(head->taken, taken);
  std::vector<uint64_t> expected, found;
  constexpr uint64_t kValues[] = {0, 1, 7, 0x8000000000000000, 12345678901234567};
  for (const uint64_t a : kValues)
    for (const uint64_t b : kValues) expected.push_back(pages.function(kOriginal)(a, b));
  pages.put(kCopy, head->code);
  memset(pages.place(kOriginal + head->at), 0xcc, kJumpBytes);
  for (const uint64_t a : kValues)
    for (const uint64_t b : kValues) found.push_back(pages.function(kCopy)(a, b));
  EXPECT_EQ(found, expected);
}

TEST(Relocate, PushesAndMoves) {
  // push %rbp; mov %rsp,%rbp; push %r12; lea (%rdi,%rsi),%rax; pop %r12; pop %rbp; ret
  expect_same({0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x8d, 0x04, 0x37, 0x41, 0x5c, 0x5d, 0xc3}, 0, 6);
}

TEST(Relocate, AnEndbrStays) {
  // endbr64; mov %rdi,%rax; xor %rsi,%rax; ret
  expect_same({0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x48, 0x31, 0xf0, 0xc3}, 4, 10);
}

TEST(Relocate, DataBesideTheCode) {
  // mov 0xff9(%rip),%rax, the word at kData; add %rdi,%rax; ret
  expect_same({0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0, 0x48, 0x01, 0xf8, 0xc3}, 0, 7);
  // cmpq $0x12345678,0xff5(%rip): an operand behind the distance; setb %al; movzbl %al,%eax; ret
  expect_same({0x48, 0x81, 0x3d, 0xf5, 0x0f, 0, 0, 0x78, 0x56, 0x34, 0x12, 0x0f, 0x92, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3}, 0,
              11);
  // push %rbx; lea 0xff8(%rip),%rbx; mov (%rbx),%rax; pop %rbx; ret
  expect_same({0x53, 0x48, 0x8d, 0x1d, 0xf8, 0x0f, 0, 0, 0x48, 0x8b, 0x03, 0x5b, 0xc3}, 0, 8);
}

TEST(Relocate, LongJumpsAndCalls) {
  // test %rdi,%rdi; je +3 by four bytes; mov %rsi,%rax; ret; mov $5,%eax; ret
  expect_same({0x48, 0x85, 0xff, 0x0f, 0x84, 0x04, 0, 0, 0, 0x48, 0x89, 0xf0, 0xc3, 0xb8, 5, 0, 0, 0, 0xc3}, 0, 9);
  // jmp +2 by four bytes; ud2; mov %rdi,%rax; ret
  expect_same({0xe9, 2, 0, 0, 0, 0x0f, 0x0b, 0x48, 0x89, 0xf8, 0xc3}, 0, 5);
  // call +1; ret; mov %rsi,%rax; ret
  expect_same({0xe8, 1, 0, 0, 0, 0xc3, 0x48, 0x89, 0xf0, 0xc3}, 0, 5);
  // movabs $0x1122334455667788,%rax; ret
  expect_same({0x48, 0xb8, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xc3}, 0, 10);
}

std::string why_not(const std::vector<uint8_t>& code) {
  Pages pages;
  const auto head = moved(pages, code);
  return head ? "" : head.error().message;
}

TEST(Relocate, Refusals) {
  EXPECT_EQ(why_not({0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90}), "it is shorter than a jump");
  EXPECT_EQ(why_not({0x90, 0xeb, 0x05, 0x90, 0x90, 0x90}), "it has a short jump among its first instructions");
  EXPECT_EQ(why_not({0x48, 0x85, 0xff, 0x74, 0x01, 0xc3, 0xc3}), "it has a short jump among its first instructions");
  EXPECT_EQ(why_not({0xe3, 0x05, 0x90, 0x90, 0x90, 0x90}),
            "it has a short jump among its first instructions");  // jrcxz
  EXPECT_EQ(why_not({0xe2, 0x05, 0x90, 0x90, 0x90, 0x90}), "it has a short jump among its first instructions");  // loop
  EXPECT_EQ(why_not({0x90, 0x06, 0x90, 0x90, 0x90, 0x90}), "its instruction at byte 1 is none that Capstone knows");
  EXPECT_EQ(why_not({0x55, 0x48}), "its instruction at byte 1 is none that Capstone knows");
  EXPECT_EQ(why_not({}), "its instruction at byte 0 is none that Capstone knows");
  EXPECT_EQ(why_not({0xc7, 0xf8, 0, 0, 0, 0}), "it begins a transaction");
  EXPECT_EQ(why_not({0x67, 0x8b, 0x05, 0, 0, 0, 0, 0xc3}), "it addresses memory by a register of 32 bits (eip)");
  // dec %edi; nop; nop; nop; jne back to the first nop
  EXPECT_EQ(why_not({0xff, 0xcf, 0x90, 0x90, 0x90, 0x75, 0xfb, 0xc3}), "it jumps back into its first instructions");
  // The loop goes to the function's beginning, where the jump is.
  EXPECT_EQ(why_not({0xff, 0xcf, 0x90, 0x90, 0x90, 0x75, 0xf9, 0xc3}), "");
  const std::vector<uint8_t> load = {0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3};
  EXPECT_EQ(move_head(load, 0x10000, 0x200000000).error().message, "its data is farther than 2 GiB from the copy");
  EXPECT_FALSE(jump(0x10000, 0x200000000));
}

TEST(Relocate, FarJump) {
  Pages pages;
  pages.put(kOriginal, {0x48, 0x8d, 0x04, 0x37, 0xc3});
  pages.put(kCopy, far_jump(pages.address(kOriginal)));
  EXPECT_EQ(pages.function(kCopy)(40, 2), 42u);
}

// Functions of the C library as they are here, each moved and compared with itself.
TEST(Relocate, FunctionsOfTheMathLibrary) {
  using Math = double (*)(double);
  constexpr Math kFunctions[] = {sin,   cos,   tan,   asin, acos,  atan,   sinh,     cosh, tanh,  exp,
                                 exp2,  expm1, log,   log2, log10, log1p,  sqrt,     cbrt, ceil,  floor,
                                 trunc, rint,  round, erf,  erfc,  tgamma, lgamma,   fabs, asinh, acosh,
                                 atanh, j0,    j1,    y0,   y1,    logb,   nearbyint};
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> values(-20, 20);
  size_t moved_ones = 0;
  for (const Math function : kFunctions) {
    // Near the library, so that what it refers to is in reach.
    const auto from = reinterpret_cast<uint64_t>(function);
    void* room = MAP_FAILED;
    for (uint64_t distance = 1 << 20; room == MAP_FAILED && distance < uint64_t{1} << 30; distance += 1 << 20)
      room = mmap(reinterpret_cast<void*>((from - distance) & ~uint64_t{4095}), 4096,
                  PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    const auto head =
        move_head(std::span(reinterpret_cast<const uint8_t*>(from), 512), from, reinterpret_cast<uint64_t>(room));
    if (head) {
      ++moved_ones;
      memcpy(room, head->code.data(), head->code.size());
      for (int i = 0; i < 200; ++i) {
        const double value = values(random), expected = function(value), found = reinterpret_cast<Math>(room)(value);
        EXPECT_EQ(memcmp(&expected, &found, sizeof value), 0) << value;
      }
    }
    munmap(room, 4096);
  }
  EXPECT_GE(moved_ones, 12u);
}

// Whatever the bytes are, the answer is a copy or a reason, and a copy of registers' arithmetic computes the same.
TEST(Relocate, RandomBytes) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 50'000; ++i) {
    std::vector<uint8_t> code(random() % 40);
    for (uint8_t& byte : code) byte = static_cast<uint8_t>(random());
    const auto head = move_head(code, 0x7f0000000000, 0x7f0000100000);
    if (!head) continue;
    EXPECT_GE(head->taken, head->at + kJumpBytes);
    EXPECT_LE(head->taken, code.size());
    EXPECT_EQ(head->code.size(), head->taken + kJumpBytes);
  }
}

TEST(Relocate, RandomArithmetic) {
  // Of %rax, %rcx, %rdx, %rsi and %rdi: add, or, and, sub, xor, mov, and with constants of one and of four bytes.
  constexpr uint8_t kOperations[] = {0x01, 0x09, 0x21, 0x29, 0x31, 0x89}, kRegisters[] = {0, 1, 2, 6, 7};
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> code = {0x31, 0xc0, 0x31, 0xc9, 0x31, 0xd2};  // %rax, %rcx and %rdx are 0
    for (int at = 0; at < 8; ++at) {
      const uint8_t one = kRegisters[random() % 5], other = kRegisters[random() % 5];
      switch (random() % 3) {
        case 0:
          code.insert(code.end(), {0x48, kOperations[random() % 6], static_cast<uint8_t>(0xc0 | one << 3 | other)});
          break;
        case 1:
          code.insert(code.end(), {0x48, 0x83, static_cast<uint8_t>(0xc0 | other), static_cast<uint8_t>(random())});
          break;
        default:
          code.insert(code.end(), {0x48, 0x81, static_cast<uint8_t>(0xe8 | other), static_cast<uint8_t>(random()),
                                   static_cast<uint8_t>(random()), 0, 0});
      }
    }
    code.push_back(0xc3);
    Pages pages;
    const auto head = moved(pages, code);
    ASSERT_TRUE(head) << head.error().message;
    const uint64_t a = random(), b = random(), expected = pages.function(kOriginal)(a, b);
    pages.put(kCopy, head->code);
    EXPECT_EQ(pages.function(kCopy)(a, b), expected);
  }
}

}  // namespace
}  // namespace tacho::watch
