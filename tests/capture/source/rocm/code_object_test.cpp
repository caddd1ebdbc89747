// Kernels and variables of code objects, read from images and metadata made here.
#include "capture/source/rocm/code_object.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <string.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tacho::capture::rocm {
namespace {

// MessagePack, as little of it as metadata has.
std::string text(const std::string& value) {
  if (value.size() < 32) return static_cast<char>(0xa0 | value.size()) + value;
  return std::string("\xd9") + static_cast<char>(value.size()) + value;
}
std::string number(uint32_t value) {
  if (value < 128) return std::string(1, static_cast<char>(value));
  return std::string("\xcd") + static_cast<char>(value >> 8) + static_cast<char>(value & 255);
}
std::string array(const std::vector<std::string>& items) {
  std::string out("\xdc");
  out += static_cast<char>(items.size() >> 8);
  out += static_cast<char>(items.size() & 255);
  for (const std::string& item : items) out += item;
  return out;
}
std::string map(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out(1, static_cast<char>(0x80 | pairs.size()));
  for (const auto& [key, value] : pairs) out += text(key) + value;
  return out;
}
std::string argument(const std::string& kind, uint32_t size) {
  return map({{".offset", number(0)}, {".size", number(size)}, {".value_kind", text(kind)}});
}
std::string kernel(const std::string& name, const std::vector<std::string>& arguments) {
  // Between the wanted fields: a float, nothing, true, a number below 0 and bytes, all of which are skipped.
  return map({{".agpr_count", number(0)},
              {".args", array(arguments)},
              {".float", std::string("\xcb") + std::string(8, 'x')},
              {".language_version", array({number(2), number(0)})},
              {".name", text(name)},
              {".nothing", std::string("\xc0")},
              {".symbol", text(name + ".kd")},
              {".true", std::string("\xc3")},
              {".negative", std::string("\xff")},
              {".bytes", std::string("\xc4\x03") + "abc"},
              {".wavefront_size", number(64)}});
}
std::string metadata(const std::vector<std::string>& kernels) {
  return map({{"amdhsa.kernels", array(kernels)},
              {"amdhsa.target", text("amdgcn-amd-amdhsa--gfx942")},
              {"amdhsa.version", array({number(1), number(2)})}});
}

bool read(const std::string& bytes, const char* name, KernelArguments& out) {
  // Exactly as long, so that a sanitizer sees a read behind it.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  memcpy(copy.get(), bytes.data(), bytes.size());
  return read_kernel_arguments(copy.get(), bytes.size(), name, out);
}

const std::string kTwo = metadata({kernel("first", {argument("global_buffer", 8), argument("by_value", 4)}),
                                   kernel("a_name_of_more_than_thirty_two_characters",
                                          {argument("by_value", 300), argument("hidden_block_count_x", 4),
                                           argument("global_buffer", 8), argument("hidden_hostcall_buffer", 8)}),
                                   kernel("none", {})});

TEST(CodeObject, ArgumentsOfAKernel) {
  KernelArguments found;
  ASSERT_TRUE(read(kTwo, "first", found));
  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(found.size[0], 8u);
  EXPECT_EQ(found.size[1], 4u);
  EXPECT_FALSE(found.calls_host);
  ASSERT_TRUE(read(kTwo, "a_name_of_more_than_thirty_two_characters", found));
  EXPECT_EQ(found.count, 2u);  // hidden ones are not the program's
  EXPECT_EQ(found.size[0], 300u);
  EXPECT_TRUE(found.calls_host);
  ASSERT_TRUE(read(kTwo, "none", found));
  EXPECT_EQ(found.count, 0u);
  EXPECT_FALSE(read(kTwo, "firs", found));
  EXPECT_FALSE(read(kTwo, "first2", found));
  EXPECT_FALSE(read_kernel_arguments(nullptr, 0, "first", found));
}

TEST(CodeObject, KernelsThatUseTheHeapOrPrint) {
  for (const char* const kind : {"hidden_heap_v1", "hidden_printf_buffer", "hidden_hostcall_buffer"}) {
    KernelArguments found;
    ASSERT_TRUE(read(metadata({kernel("k", {argument(kind, 8)})}), "k", found));
    EXPECT_TRUE(found.calls_host) << kind;
    EXPECT_EQ(found.count, 0u);
  }
}

TEST(CodeObject, TooManyArguments) {
  KernelArguments found;
  const std::vector<std::string> most(KernelArguments::kMost, argument("by_value", 4));
  EXPECT_TRUE(read(metadata({kernel("k", most)}), "k", found));
  EXPECT_EQ(found.count, KernelArguments::kMost);
  std::vector<std::string> more = most;
  more.push_back(argument("by_value", 4));
  EXPECT_FALSE(read(metadata({kernel("k", more)}), "k", found));
}

TEST(CodeObject, MetadataThatLies) {
  KernelArguments found;
  for (size_t length = 0; length < kTwo.size(); ++length) read(kTwo.substr(0, length), "none", found);
  EXPECT_FALSE(read(kTwo.substr(0, kTwo.size() / 2), "none", found));
  // An array of four thousand million items, maps in maps without end, a text longer than all there is.
  EXPECT_FALSE(read(text("x"), "k", found));
  EXPECT_FALSE(read("\x81" + text("amdhsa.kernels") + "\xdd\xff\xff\xff\xff", "k", found));
  EXPECT_FALSE(read("\x81" + text("other") + std::string(100'000, '\x91'), "k", found));
  EXPECT_FALSE(read("\x81" + text("other") + "\xdb\xff\xff\xff\xff", "k", found));
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = kTwo;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    read(bytes, "a_name_of_more_than_thirty_two_characters", found);
  }
}

struct Image {
  Elf64_Ehdr header{};
  Elf64_Phdr parts[3]{};
  char note[512]{};

  explicit Image(const std::string& content) {
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    parts[0] = {PT_LOAD, PF_R | PF_X, 0x1000, 0x1000, 0x1000, 64, 64, 4096};
    parts[1] = {PT_LOAD, PF_R | PF_W, 0x2000, 0x3000, 0x3000, 16, 80'000, 4096};
    // Another's note first.
    const Elf64_Nhdr other{4, 5, 1}, own{7, static_cast<uint32_t>(content.size()), 32};
    std::string notes(reinterpret_cast<const char*>(&other), sizeof other);
    notes += std::string("GNU\0hello\0\0\0", 12);
    notes += std::string(reinterpret_cast<const char*>(&own), sizeof own) + std::string("AMDGPU\0\0", 8) + content;
    memcpy(note, notes.data(), notes.size());
    parts[2] = {PT_NOTE, PF_R, offsetof(Image, note), 0, 0, notes.size(), notes.size(), 4};
  }
  bool read(CodeObjectParts& out, size_t bytes = sizeof(Image)) const {
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes]);
    memcpy(copy.get(), static_cast<const void*>(this), bytes);
    const bool good = read_code_object(copy.get(), bytes, out);
    metadata = out.metadata != nullptr && good
                   ? std::string(reinterpret_cast<const char*>(out.metadata), out.metadata_bytes)
                   : "";
    return good;
  }
  mutable std::string metadata;
};

TEST(CodeObject, VariablesAndMetadataOfAnImage) {
  const std::string content = metadata({kernel("k", {argument("global_buffer", 8)})});
  const Image image(content);
  CodeObjectParts parts;
  ASSERT_TRUE(image.read(parts));
  ASSERT_EQ(parts.writable_count, 1u);
  EXPECT_EQ(parts.writable[0].address, 0x3000u);
  EXPECT_EQ(parts.writable[0].bytes, 80'000u);
  EXPECT_EQ(image.metadata, content);
}

TEST(CodeObject, ImagesThatLie) {
  const Image good(metadata({}));
  CodeObjectParts parts;
  for (size_t length = 0; length < sizeof(Elf64_Ehdr); length += 7) EXPECT_FALSE(good.read(parts, length));
  const auto broken = [&](auto change) {
    Image image(metadata({}));
    change(image);
    return !image.read(parts);
  };
  EXPECT_TRUE(broken([](Image& image) { image.header.e_ident[EI_CLASS] = ELFCLASS32; }));
  EXPECT_TRUE(broken([](Image& image) { image.header.e_phentsize = 8; }));
  EXPECT_TRUE(broken([](Image& image) { image.header.e_phoff = ~0ull; }));
  EXPECT_TRUE(broken([](Image& image) { image.header.e_phnum = 0xffff; }));
  EXPECT_TRUE(broken([](Image& image) { image.parts[2].p_offset = ~0ull - 8; }));
  EXPECT_TRUE(broken([](Image& image) { image.parts[2].p_filesz = 1u << 30; }));
  EXPECT_TRUE(broken([](Image& image) {
    const uint32_t long_name = 0xfffffffc;
    memcpy(image.note, &long_name, sizeof long_name);
  }));
}

}  // namespace
}  // namespace tacho::capture::rocm
