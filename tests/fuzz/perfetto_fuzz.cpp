// Perfetto traces: any bytes give a trace or a sentence. The mutator knows messages: after most changes it repairs the
// lengths around them, so that they reach what lies deep inside.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "format/perfetto/perfetto.h"
#include "format/perfetto/perfetto_maker.h"
#include "format/perfetto/wire.h"
#include "fuzz/checking_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using tacho::format::perfetto::WireFields;
using namespace tacho::test;

struct FieldPlace {
  uint32_t number, type;
  std::string content;  // of a message or text
  uint64_t value;
};

std::vector<FieldPlace> fields_of(std::string_view message) {
  std::vector<FieldPlace> fields;
  for (WireFields field(message); field.next() && fields.size() < 4096;)
    fields.push_back({field.number(), field.type(), std::string(field.bytes()), field.value()});
  return fields;
}

std::string joined(const std::vector<FieldPlace>& fields) {
  Proto message;
  for (const FieldPlace& field : fields) {
    if (field.type == WireFields::kBytes)
      message.bytes(field.number, field.content);
    else if (field.type == WireFields::kFixed64)
      message.fixed(field.number, field.value);
    else
      message.number(field.number, field.value);
  }
  return message.text();
}

// Changes something in a message or in one within it, and repairs the lengths.
std::string changed(std::string_view message, std::mt19937_64& random, int depth) {
  std::vector<FieldPlace> fields = fields_of(message);
  if (fields.empty()) return std::string(message);
  static constexpr uint64_t kTelling[] = {0,   1,   2,      3,          5,          6,         64,
                                          127, 128, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
  const size_t at = random() % fields.size();
  FieldPlace& field = fields[at];
  if (field.type == WireFields::kBytes && depth < 8 && random() % 8 != 0) {
    field.content = changed(field.content, random, depth + 1);
    return joined(fields);
  }
  switch (random() % 7) {
    case 0:
      fields.erase(fields.begin() + static_cast<ptrdiff_t>(at));
      break;
    case 1:
      fields.insert(fields.begin() + static_cast<ptrdiff_t>(random() % fields.size()), field);
      break;
    case 2:
      std::swap(field, fields[random() % fields.size()]);
      break;
    case 3:
      field.number = 1 + static_cast<uint32_t>(random() % 140);
      break;
    case 4:
      field.type = static_cast<uint32_t>(random() % 3);
      break;
    default:
      field.value = random() % 3 == 0 ? random() : kTelling[random() % std::size(kTelling)];
      if (field.type == WireFields::kBytes && !field.content.empty())
        field.content[random() % field.content.size()] = static_cast<char>(random());
  }
  return joined(fields);
}

std::string compressed(const std::string& packets) {
  uLongf size = compressBound(packets.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(packets.data()), packets.size());
  out.resize(size);
  return Proto().bytes(1, Proto().bytes(50, out).text()).text();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  static const std::vector<std::string> seeds = perfetto_samples();
  std::mt19937_64 random(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  if (size < 16) text = seeds[seed % seeds.size()];
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes; ++i) text = changed(text, random, 0);
  if (random() % 16 == 0) text = compressed(text);
  if (random() % 16 == 0) text += seeds[random() % seeds.size()];
  if (random() % 16 == 0) text.resize(text.size() - std::min<size_t>(text.size(), random() % 64));
  if (text.size() > max_size) text.resize(max_size);
  memcpy(data, text.data(), text.size());
  return random() % 8 == 0 ? LLVMFuzzerMutate(data, text.size(), max_size) : text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  tacho::fuzz::CheckingWriter writer;
  tacho::fuzz::expect_sentence(tacho::format::perfetto::read_into(file.write(data, size), writer));
  return 0;
}
