// Puts the layers of a file together (source.h).
#include "format/source/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "format/source/archive.h"
#include "format/source/layers.h"

namespace tacho::format::source {
namespace {

constexpr size_t kHead = 4096;
constexpr size_t kDeepest = 4;  // a gzip file in a tar archive in a gzip file
// Windows of zstd: 128 MiB for the outermost, what zstd unpacks unasked, and 8 MiB, what its levels up to 19 use, for
// those within.
constexpr int kOuterWindowBits = 27, kInnerWindowBits = 23;

// One layer of packing, and where in an archive the trace lies.
struct PackedLayer {
  Packing packing;
  ArchivedFile file = {};
  bool zstd() const { return packing == Packing::kZstd || (packing == Packing::kZip && file.method == 93); }
};

Result<int> open_plain(const std::string& path) {
  // A pipe that nobody writes to would hold open() up.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail("{}: {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(descriptor);
    return fail("{}: is a folder", path);
  }
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) {
    ::close(descriptor);
    return fail("{}: is a pipe, which can be read only once: write its contents to a file", path);
  }
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  return descriptor;
}

Result<LayerBelow> unpack(LayerBelow below, const PackedLayer& layer, int window_bits, const std::string& path) {
  switch (layer.packing) {
    case Packing::kGzip:
      return gzip_bytes(std::move(below), path);
    case Packing::kZstd:
      return zstd_bytes(std::move(below), window_bits, path);
    case Packing::kTar:
      return slice_of(std::move(below), layer.file.from, layer.file.size, path);
    case Packing::kZip: {
      LayerBelow member = slice_of(std::move(below), layer.file.from, layer.file.packed, path);
      if (layer.file.method == 93) {
        TACHO_ASSIGN(member, zstd_bytes(std::move(member), window_bits, path));
      } else if (layer.file.method == 8) {
        TACHO_ASSIGN(member, deflated_bytes(std::move(member), path));
      }
      return checked_bytes(std::move(member), layer.file.size, layer.file.checksum, path);
    }
    case Packing::kNone:
      break;
  }
  return below;
}

Packing packing_of(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return Packing::kGzip;
  if (head.starts_with("\x28\xb5\x2f\xfd")) return Packing::kZstd;
  if (head.starts_with("PK\3\4") || head.starts_with("PK\5\6")) return Packing::kZip;
  return is_tar(head) ? Packing::kTar : Packing::kNone;
}

// The name of a form that tacho does not unpack, or that stands in a trace's place, and what to do; nullptr = another.
const char* foreign_form(std::string_view head) {
  struct Form {
    std::string_view magic;
    const char* says;
  };
  static constexpr Form kForms[] = {
      {std::string_view("\xfd\x37zXZ\0", 6), "an xz file: unpack it with unxz"},
      {"BZh", "a bzip2 file: unpack it with bunzip2"},
      {"7z\xbc\xaf\x27\x1c", "a 7-Zip archive: unpack it with 7z x"},
      {"Rar!\x1a\x07", "a RAR archive: unpack it"},
      {"\x04\x22\x4d\x18", "an lz4 file: unpack it with unlz4"},
      {"\x1f\x9d", "a file of compress: unpack it with uncompress"},
      {"version https://git-lfs.github.com/spec/",
       "a pointer of Git LFS, not the file itself: get it with git lfs pull"},
      {"<!DOCTYPE html", "a page in HTML, no trace: perhaps the answer of a server that wanted a login"},
      {"<!doctype html", "a page in HTML, no trace: perhaps the answer of a server that wanted a login"},
      {"<html", "a page in HTML, no trace: perhaps the answer of a server that wanted a login"},
  };
  for (const Form& form : kForms) {
    if (!head.starts_with(form.magic)) continue;
    // "BZh" could begin a text; a bzip2 file goes on with its level and the digits of pi.
    if (form.magic == "BZh" && (head.size() < 10 || (head.substr(4, 6) != "1AY&SY" && head.substr(4, 4) != "\x17rE8")))
      continue;
    return form.says;
  }
  return nullptr;
}

struct OpenLayers {
  LayerBelow bytes;  // head included
  const ByteLayer* outermost = nullptr;
  std::string head;
  Packing packing = Packing::kNone;
  uint64_t plain_size = 0;
};

// A layer of packing with the place of an archive's trace, or why that cannot be read.
Result<PackedLayer> layer_of(Packing packing, ByteLayer& bytes, size_t depth, const std::string& path) {
  PackedLayer layer{packing};
  if (packing == Packing::kTar) {
    TACHO_ASSIGN(layer.file, find_in_tar(bytes, path));
  } else if (packing == Packing::kZip) {
    if (depth > 0) return fail("{}: a zip archive within another packing: unpack it", path);
    TACHO_ASSIGN(const int descriptor, open_plain(path));
    auto found = find_in_zip(descriptor, path);
    ::close(descriptor);
    if (!found) return fail_with(std::move(found));
    layer.file = *found;
  }
  return layer;
}

// The layers from the file up, and the first that unpacks.
Result<LayerBelow> build(const std::string& path, const std::vector<PackedLayer>& layers,
                         const ByteLayer** outermost = nullptr) {
  TACHO_ASSIGN(const int descriptor, open_plain(path));
  LayerBelow bytes = file_bytes(descriptor, path);
  int window_bits = kOuterWindowBits;
  for (const PackedLayer& layer : layers) {
    TACHO_ASSIGN(bytes, unpack(std::move(bytes), layer, window_bits, path));
    if (outermost != nullptr && &layer == &layers.front()) *outermost = bytes.get();
    if (layer.zstd()) window_bits = kInnerWindowBits;
  }
  return bytes;
}

Result<OpenLayers> open_layers(const std::string& path) {
  OpenLayers open;
  std::vector<PackedLayer> layers;
  for (;;) {
    TACHO_ASSIGN(LayerBelow bytes, build(path, layers, &open.outermost));
    FirstBytes first = first_bytes(*bytes, kHead);
    if (!first.status && first.bytes.empty()) return fail_with(std::move(first.status));
    const Packing packing = packing_of(first.bytes);
    if (layers.empty()) open.packing = packing;
    if (packing == Packing::kNone) {
      open.bytes = bytes_with(first.bytes, std::move(bytes));
      open.head = std::move(first.bytes);
      break;
    }
    if (layers.size() >= kDeepest) return fail("{}: packed more than {} times: unpack it", path, kDeepest);
    if (packing == Packing::kTar) {
      TACHO_ASSIGN(bytes, build(path, layers));
    }
    TACHO_ASSIGN(const PackedLayer layer, layer_of(packing, *bytes, layers.size(), path));
    layers.push_back(layer);
  }
  if (open.head.empty()) return fail("{}: the file is empty", path);
  if (const char* const form = foreign_form(open.head)) return fail("{}: {}", path, form);
  const TextForm form = text_form(open.head);
  if (form == TextForm::kUtf32) return fail("{}: a text in UTF-32: save it as UTF-8", path);
  if (form == TextForm::kUtf16Little || form == TextForm::kUtf16Big) {
    const bool big = form == TextForm::kUtf16Big;
    open.bytes = utf16_text(std::move(open.bytes), big);
    open.head = first_bytes(*utf16_text(bytes_with(open.head, nullptr), big), kHead).bytes;
  } else if (form == TextForm::kUtf8Mark) {
    TACHO_TRY(open.bytes->skip(3));
    open.head.erase(0, 3);
  } else if (layers.empty()) {
    std::error_code error;
    open.plain_size = std::filesystem::file_size(path, error);
    if (error) open.plain_size = 0;
  }
  return open;
}

}  // namespace

SourceStream::SourceStream() = default;
SourceStream::SourceStream(SourceStream&&) noexcept = default;
SourceStream& SourceStream::operator=(SourceStream&&) noexcept = default;
SourceStream::~SourceStream() = default;

Result<SourceStream> SourceStream::open(const std::string& path) {
  TACHO_ASSIGN(OpenLayers open, open_layers(path));
  SourceStream stream;
  stream.bytes_ = std::move(open.bytes);
  stream.outermost_ = open.outermost;
  stream.packing_ = open.packing;
  stream.plain_size_ = open.plain_size;
  return stream;
}

size_t SourceStream::read(char* to, size_t size) {
  if (!status_) return 0;
  auto got = bytes_->read(to, size);
  if (got) return *got;
  status_ = fail_with(std::move(got));
  return 0;
}

std::string SourceStream::foreign_bytes() const {
  const uint64_t from = outermost_ != nullptr ? outermost_->foreign_from() : 0;
  if (from == 0) return {};
  return "bytes behind the gzip data, from byte " + std::to_string(from) + " of the file on, are not read";
}

SourceHead peek(const std::string& path) {
  SourceHead head;
  const auto descriptor = open_plain(path);
  if (!descriptor) {
    std::error_code error;
    if (std::filesystem::is_fifo(path, error)) head.refusal = descriptor.error().message;
    return head;
  }
  ::close(*descriptor);
  head.readable = true;
  auto open = open_layers(path);
  if (!open) {
    head.refusal = std::move(open.error().message);
    return head;
  }
  head.packing = open->packing;
  head.text = std::move(open->head);
  return head;
}

}  // namespace tacho::format::source
