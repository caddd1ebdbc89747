// Packed files: any bytes as gzip, Zstandard, zip, tar or UTF-16 give a text or a sentence.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "format/source/source.h"
#include "fuzz/checking_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

// A zip archive with one stored member, its list and end.
std::string zip_seed() {
  const auto number = [](std::string& out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
  };
  std::string zip;
  const auto header = [&](std::string_view magic, bool list) {
    zip += magic;
    if (list) number(zip, 20, 2);
    number(zip, 20, 2);
    number(zip, 0, 2 + 2 + 4);  // flags, method, time
    number(zip, 0xa505df1b, 4);
    number(zip, 1, 4);
    number(zip, 1, 4);
    number(zip, 1, 2);
    number(zip, 0, list ? 2 + 2 + 2 + 2 + 4 + 4 : 2);
    zip += 'a';
  };
  header("PK\3\4", false);
  zip += '{';
  const size_t at = zip.size();
  header("PK\1\2", true);
  const size_t size = zip.size() - at;
  zip += "PK\5\6";
  number(zip, 0, 4);
  number(zip, 1, 2);
  number(zip, 1, 2);
  number(zip, size, 4);
  number(zip, at, 4);
  number(zip, 0, 2);
  return zip;
}

// Sets the sum of a tar archive's first header, so that mutations reach what lies behind it.
void repair_tar(uint8_t* data, size_t size) {
  if (size < 512) return;
  memset(data + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += data[i];
  for (int i = 5; i >= 0; --i, sum >>= 3) data[148 + i] = static_cast<uint8_t>('0' + (sum & 7));
  data[154] = 0;
}

std::string tar_seed() {
  std::string tar(1536, '\0');
  memcpy(tar.data(), "run/a.json", 10);
  memcpy(tar.data() + 124, "00000000020", 11);
  tar[156] = '0';
  memcpy(tar.data() + 512, "{\"traceEvents\":[", 16);
  return tar;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size < 4) {
    const std::string text = seed % 3 == 0   ? zip_seed()
                             : seed % 3 == 1 ? tar_seed()
                                             : std::string("\xff\xfe{\0}\0\x3d\xd8\x80\xde", 10);
    size = std::min(text.size(), max_size);
    memcpy(data, text.data(), size);
  }
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 1) repair_tar(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  using namespace tacho::format::source;
  const std::string& path = file.write(data, size);
  const SourceHead head = peek(path);
  if (!head.readable || head.text.size() > 3 * 4096) abort();
  auto stream = SourceStream::open(path);
  if (!stream) {
    tacho::fuzz::expect_sentence(tl::unexpected<tacho::Error>(stream.error()));
    return 0;
  }
  if (!head.refusal.empty()) abort();
  std::string piece(1000, '\0');
  uint64_t total = 0;
  while (const size_t got = stream->read(piece.data(), piece.size())) {
    if (total == 0 &&
        piece.compare(0, std::min(got, head.text.size()), head.text, 0, std::min(got, head.text.size())) != 0)
      abort();
    total += got;
    if (total > (64u << 20)) break;
  }
  tacho::fuzz::expect_sentence(stream->status());
  return 0;
}
