// Replaces libFuzzer if the compiler has none: runs a fuzz target over the files named, then over -runs=N inputs (of up
// to -max_len=N bytes) that it makes with a simple mutator of its own, the same ones for the same -seed=N. So every
// build tries every target a little. -timeout=S ends an input that takes longer, as a fault. -input=PATH keeps the
// input at hand in a file, where it is found after a fault (tests/attack/long.py).
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
}

namespace {
std::mt19937_64 random_words(1);
}

// Flips, overwrites, copies, inserts or removes a few bytes.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  for (uint64_t changes = 1 + random_words() % 4; changes > 0; --changes) {
    const size_t at = size == 0 ? 0 : random_words() % size;
    switch (random_words() % 6) {
      case 0:
        if (size > 0) data[at] = static_cast<uint8_t>(data[at] ^ (1u << (random_words() % 8)));
        break;
      case 1:
        if (size > 0) data[at] = static_cast<uint8_t>(random_words());
        break;
      case 2:
        if (size >= 8) {
          constexpr uint64_t kTelling[] = {0,          1,          0x7f,      0xff,       0xffff,
                                           0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX, 65536};
          const uint64_t value = kTelling[random_words() % std::size(kTelling)];
          memcpy(data + random_words() % (size - 7), &value, size_t{1} << (random_words() % 4));
        }
        break;
      case 3:
        if (size > 1) {
          const size_t from = random_words() % size;
          memmove(data + at, data + from, 1 + random_words() % std::min<size_t>(size - std::max(at, from), 16));
        }
        break;
      case 4:
        if (size > 1) memmove(data + at, data + at + 1, size - at - 1), --size;
        break;
      default:
        if (size < max_size) {
          memmove(data + at + 1, data + at, size - at);
          data[at] = static_cast<uint8_t>(random_words());
          ++size;
        }
    }
  }
  return size;
}

namespace {

// The input at hand, in a file that outlives a fault: its length, then its bytes.
class Kept {
 public:
  void open(const char* path, size_t most) {
    FILE* const file = fopen(path, "w+");
    if (file == nullptr || ftruncate(fileno(file), static_cast<off_t>(most + 8)) != 0) {
      perror(path);
      exit(1);
    }
    void* const at = mmap(nullptr, most + 8, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (at == MAP_FAILED) exit(1);
    bytes_ = static_cast<uint8_t*>(at);
    most_ = most;
    fclose(file);
  }
  void keep(const uint8_t* data, size_t size) {
    if (bytes_ == nullptr) return;
    const uint64_t kept = std::min(size, most_);
    memcpy(bytes_, &kept, sizeof kept);
    if (kept > 0) memcpy(bytes_ + 8, data, kept);
  }

 private:
  uint8_t* bytes_ = nullptr;
  size_t most_ = 0;
};

void on_alarm(int) {
  constexpr char kSentence[] = "one input took longer than -timeout\n";
  if (write(2, kSentence, sizeof kSentence - 1) < 0) _exit(4);
  _exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  size_t most = 16384;
  unsigned timeout = 0;
  const char* input_path = nullptr;
  constexpr size_t kPool = 64;
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  std::vector<std::vector<uint8_t>> pool(1);
  long runs = 10'000;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "-runs=", 6) == 0) {
      runs = atol(argv[i] + 6);
      continue;
    }
    if (strncmp(argv[i], "-seed=", 6) == 0) {
      random_words.seed(strtoull(argv[i] + 6, nullptr, 10));
      continue;
    }
    if (strncmp(argv[i], "-timeout=", 9) == 0) {
      timeout = static_cast<unsigned>(atoi(argv[i] + 9));
      continue;
    }
    if (strncmp(argv[i], "-input=", 7) == 0) {
      input_path = argv[i] + 7;
      continue;
    }
    if (strncmp(argv[i], "-max_len=", 9) == 0) {
      most = static_cast<size_t>(atol(argv[i] + 9));
      continue;
    }
    std::ifstream in(argv[i], std::ios::binary);
    if (!in) {
      fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 1;
    }
    std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    pool.push_back(std::move(bytes));
  }
  Kept kept;
  if (input_path != nullptr) kept.open(input_path, most * 2);
  if (timeout != 0) signal(SIGALRM, on_alarm);
  for (long run = 0; run < runs; ++run) {
    std::vector<uint8_t> bytes = pool[random_words() % pool.size()];
    size_t size = bytes.size();
    bytes.resize(std::max(size, most));
    size = LLVMFuzzerCustomMutator != nullptr
               ? LLVMFuzzerCustomMutator(bytes.data(), size, bytes.size(), static_cast<unsigned>(random_words()))
               : LLVMFuzzerMutate(bytes.data(), size, bytes.size());
    bytes.resize(size);
    bytes.shrink_to_fit();
    kept.keep(bytes.data(), bytes.size());
    alarm(timeout);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    if (pool.size() < kPool) {
      pool.push_back(std::move(bytes));
    } else if (random_words() % 8 == 0) {
      pool[random_words() % kPool] = std::move(bytes);
    }
  }
  printf("%ld inputs\n", runs);
  return 0;
}
