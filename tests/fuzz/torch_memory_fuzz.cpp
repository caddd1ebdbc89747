// Memory snapshots of PyTorch: any bytes behind the head of a pickle give a trace or a sentence.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "format/torch_memory/torch_memory.h"
#include "fuzz/checking_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

// {"segments": [{"device": 0, "address": 4096, "total_size": 2048, "stream": 0, "segment_pool_id": (0, 1), "blocks":
//  [{"size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": F}]}], "device_traces": [[{"action":
//  "alloc", "addr": 4096, "size": 1000, "stream": 0, "time_us": 77, "frames": F}, {"action": "free_requested", ...}]]}
// with F = [{"name": "f", "filename": "a.py", "line": 3}], as Python's pickle of protocol 4 has it.
std::string seed_text() {
  const auto word = [](const char* text) {
    return std::string("\x8c") + static_cast<char>(strlen(text)) + text + "\x94";
  };
  const auto number = [](uint16_t value) {
    return std::string("M") + static_cast<char>(value & 0xff) + static_cast<char>(value >> 8);
  };
  std::string s("\x80\x04}\x94(", 5);
  s += word("segments") + "]\x94}\x94(" + word("device") + std::string("K\0", 2) + word("address") + number(4096) +
       word("total_size") + number(2048) + word("stream") + std::string("K\0", 2) + word("segment_pool_id") +
       std::string("K\0K\1\x86\x94", 6) + word("blocks") + "]\x94}\x94(" + word("size") + number(1024) +
       word("requested_size") + number(1000) + word("state") + word("active_allocated") + word("frames") +
       "]\x94}\x94(" + word("name") + word("f") + word("filename") + word("a.py") + word("line") + "K\3uauauaa";
  s += word("device_traces") + "]\x94]\x94(";
  for (const char* const action : {"alloc", "free_requested", "free_completed", "segment_alloc", "oom", "annotate"})
    s += "}\x94(" + word("action") + word(action) + word("addr") + number(4096) + word("size") + number(1000) +
         word("time_us") + number(77) + word("frames") + "]\x94u";
  return s + "eau.";
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size < 4) {
    const std::string text = seed_text();
    size = std::min(text.size(), max_size);
    memcpy(data, text.data(), size);
  }
  const size_t from = std::min<size_t>(size, 2);
  if (seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  return from + LLVMFuzzerMutate(data + from, size - from, max_size - from);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  using namespace tacho::format::torch_memory;
  const std::string& path = file.write(data, size);
  (void)accepts(path, {reinterpret_cast<const char*>(data), std::min<size_t>(size, 4096)}, false);
  tacho::fuzz::CheckingWriter writer;
  tacho::fuzz::expect_sentence(read_into(path, writer));
  return 0;
}
