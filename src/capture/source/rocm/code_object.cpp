// Reading code objects and their metadata (code_object.h).
#include "capture/source/rocm/code_object.h"

#include <elf.h>
#include <string.h>

#include <initializer_list>

namespace tacho::capture::rocm {

namespace {

constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA

// MessagePack

struct Item {
  enum class Kind : uint8_t { kNumber, kText, kArray, kMap, kOther };
  Kind kind;
  uint64_t value;    // a number; how many items an array has, or pairs a map
  const char* text;  // of `value` bytes

  bool is(const char* word) const {
    return kind == Kind::kText && strlen(word) == value && memcmp(text, word, value) == 0;
  }
  bool begins(const char* word) const {
    return kind == Kind::kText && strlen(word) <= value && memcmp(text, word, strlen(word)) == 0;
  }
};

class Reader {
 public:
  Reader(const uint8_t* at, size_t bytes) : at_(at), end_(at + bytes) {}

  // Reads a number or a text whole, of an array or a map the head.
  bool next(Item& item) {
    if (at_ == end_) return false;
    const uint8_t head = *at_++;
    item = {Item::Kind::kOther, 0, nullptr};
    const auto number = [&](uint64_t value) {
      item.kind = Item::Kind::kNumber;
      item.value = value;
      return true;
    };
    if (head < 0x80) return number(head);
    if (head < 0x90) return holds(Item::Kind::kMap, head & 0x0f, item);
    if (head < 0xa0) return holds(Item::Kind::kArray, head & 0x0f, item);
    if (head < 0xc0) return text(head & 0x1f, item);
    if (head >= 0xe0) return true;  // below 0
    uint64_t size = 0;
    switch (head) {
      case 0xc0:
      case 0xc2:
      case 0xc3:
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return big_endian(1u << (head - 0xc4), size) && pass(size);
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return big_endian(1u << (head - 0xc7), size) && pass(1) && pass(size);
      case 0xca:
        return pass(4);
      case 0xcb:
        return pass(8);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return big_endian(1u << (head - 0xcc), size) && number(size);
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return pass(1u << (head - 0xd0));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return pass(1 + (1u << (head - 0xd4)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return big_endian(1u << (head - 0xd9), size) && text(size, item);
      case 0xdc:
      case 0xdd:
        return big_endian(2u << (head - 0xdc), size) && holds(Item::Kind::kArray, size, item);
      case 0xde:
      case 0xdf:
        return big_endian(2u << (head - 0xde), size) && holds(Item::Kind::kMap, size, item);
      default:
        return false;
    }
  }

  // Passes over one item and all that is in it.
  bool skip() {
    for (uint64_t open = 1; open != 0; --open) {
      Item item;
      if (!next(item)) return false;
      if (item.kind == Item::Kind::kArray) open += item.value;
      if (item.kind == Item::Kind::kMap) open += 2 * item.value;
    }
    return true;
  }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  bool pass(uint64_t bytes) {
    if (bytes > left()) return false;
    at_ += bytes;
    return true;
  }
  bool big_endian(size_t bytes, uint64_t& out) {
    if (bytes > left()) return false;
    out = 0;
    for (size_t i = 0; i < bytes; ++i) out = out << 8 | *at_++;
    return true;
  }
  bool text(uint64_t bytes, Item& item) {
    item.kind = Item::Kind::kText;
    item.value = bytes;
    item.text = reinterpret_cast<const char*>(at_);
    return pass(bytes);
  }
  // Every item takes a byte at least, so that skip() ends and its sum does not overflow.
  bool holds(Item::Kind kind, uint64_t count, Item& item) {
    item.kind = kind;
    item.value = count;
    return count <= left();
  }

  const uint8_t *at_, *end_;
};

// A map of one argument.
bool read_argument(Reader& reader, KernelArguments& out) {
  Item map, key;
  if (!reader.next(map) || map.kind != Item::Kind::kMap) return false;
  uint64_t size = 0;
  bool hidden = false;
  for (uint64_t i = 0; i < map.value; ++i) {
    if (!reader.next(key)) return false;
    Item value;
    if (key.is(".size")) {
      if (!reader.next(value) || value.kind != Item::Kind::kNumber || value.value > 65536) return false;
      size = value.value;
    } else if (key.is(".value_kind")) {
      if (!reader.next(value)) return false;
      hidden = value.begins("hidden_");
      for (const char* const outside : {"hidden_hostcall_buffer", "hidden_printf_buffer", "hidden_heap_v1"})
        out.calls_host = out.calls_host || value.is(outside);
    } else if (!reader.skip()) {
      return false;
    }
  }
  if (hidden) return true;
  if (out.count == KernelArguments::kMost) return false;
  out.size[out.count++] = static_cast<uint32_t>(size);
  return true;
}

// A map of one kernel. `found` is true if it has that name.
bool read_kernel(Reader& reader, const char* kernel, KernelArguments& out, bool& found) {
  Item map, key, value;
  if (!reader.next(map) || map.kind != Item::Kind::kMap) return false;
  Reader arguments(nullptr, 0);
  bool has_arguments = false;
  for (uint64_t i = 0; i < map.value; ++i) {
    if (!reader.next(key)) return false;
    if (key.is(".name")) {
      if (!reader.next(value)) return false;
      found = value.is(kernel);
      continue;
    }
    if (key.is(".args")) {
      arguments = reader;
      has_arguments = true;
    }
    if (!reader.skip()) return false;
  }
  if (!found || !has_arguments) return true;
  Item array;
  if (!arguments.next(array) || array.kind != Item::Kind::kArray) return false;
  for (uint64_t i = 0; i < array.value; ++i)
    if (!read_argument(arguments, out)) return false;
  return true;
}

}  // namespace

bool read_code_object(const uint8_t* image, size_t bytes, CodeObjectParts& out) {
  out = {};
  Elf64_Ehdr header;
  if (bytes < sizeof header) return false;
  memcpy(&header, image, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  const auto within = [&](uint64_t at, uint64_t size) { return at <= bytes && size <= bytes - at; };
  if (!within(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) return false;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    memcpy(&part, image + header.e_phoff + i * sizeof part, sizeof part);
    if (part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0 && part.p_memsz != 0) {
      if (out.writable_count == CodeObjectParts::kMost) return false;
      out.writable[out.writable_count++] = {part.p_vaddr, part.p_memsz};
    }
    if (part.p_type != PT_NOTE) continue;
    if (!within(part.p_offset, part.p_filesz)) return false;
    for (uint64_t at = part.p_offset, end = at + part.p_filesz; end - at >= sizeof(Elf64_Nhdr);) {
      Elf64_Nhdr note;
      memcpy(&note, image + at, sizeof note);
      at += sizeof note;
      const uint64_t name = (uint64_t{note.n_namesz} + 3) / 4 * 4, content = uint64_t{note.n_descsz};
      if (name > end - at || content > end - at - name) return false;
      if (note.n_type == kMetadataNote && note.n_namesz == sizeof "AMDGPU" &&
          memcmp(image + at, "AMDGPU", sizeof "AMDGPU") == 0) {
        out.metadata = image + at + name;
        out.metadata_bytes = content;
      }
      const uint64_t padded = (content + 3) / 4 * 4;
      if (padded > end - at - name) break;
      at += name + padded;
    }
  }
  return true;
}

bool read_kernel_arguments(const uint8_t* metadata, size_t bytes, const char* kernel, KernelArguments& out) {
  out = {};
  if (metadata == nullptr) return false;
  Reader reader(metadata, bytes);
  Item map, key, array;
  if (!reader.next(map) || map.kind != Item::Kind::kMap) return false;
  for (uint64_t i = 0; i < map.value; ++i) {
    if (!reader.next(key)) return false;
    if (!key.is("amdhsa.kernels")) {
      if (!reader.skip()) return false;
      continue;
    }
    if (!reader.next(array) || array.kind != Item::Kind::kArray) return false;
    for (uint64_t at = 0; at < array.value; ++at) {
      bool found = false;
      if (!read_kernel(reader, kernel, out, found)) return false;
      if (found) return true;
    }
    return false;
  }
  return false;
}

}  // namespace tacho::capture::rocm
