// Walking and re-sealing the bytes of a .tacho file: for tests that damage one on purpose, and for the fuzzer.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "trace/store/layout.h"

namespace tacho::trace {

template <typename T>
void store(std::vector<uint8_t>& bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline void seal_header(std::vector<uint8_t>& bytes) {
  if (bytes.size() < sizeof(FileHeader)) return;
  auto header = load<FileHeader>(bytes.data());
  header.checksum = checksum_of(header);
  store(bytes, 0, header);
}

struct SectionSpan {
  size_t offset;
  SectionHeader header;
};

/// Sections as far as their lengths make sense; checksums are not looked at.
inline std::vector<SectionSpan> sections_of(std::span<const uint8_t> bytes) {
  std::vector<SectionSpan> found;
  size_t offset = sizeof(FileHeader);
  while (bytes.size() > offset && bytes.size() - offset >= sizeof(SectionHeader)) {
    const auto header = load<SectionHeader>(bytes.data() + offset);
    if (header.magic != kSectionMagic || header.bytes < sizeof header || header.bytes > bytes.size() - offset) break;
    found.push_back({offset, header});
    offset += header.bytes;
  }
  return found;
}

/// Sets the checksums of a head's blobs right; `payload` is where they lie in the file.
inline void seal_blobs(std::vector<uint8_t>& bytes, size_t head, size_t head_bytes, size_t payload) {
  size_t at = head + 8;
  const size_t end = head + head_bytes;
  while (end > at && end - at >= sizeof(ChunkHead)) {
    const auto chunk = load<ChunkHead>(bytes.data() + at);
    at += sizeof chunk;
    for (size_t i = 0; i < size_t{chunk.columns} + chunk.extras && at + sizeof(Blob) <= end; ++i, at += sizeof(Blob)) {
      auto blob = load<Blob>(bytes.data() + at);
      if (payload > bytes.size() || blob.offset > bytes.size() - payload ||
          blob.bytes > bytes.size() - payload - blob.offset)
        continue;
      blob.checksum = checksum(std::span(bytes).subspan(payload + blob.offset, blob.bytes));
      store(bytes, at, blob);
    }
  }
}

/// Corrects every checksum that can be found, so that changed bytes get past them.
inline void reseal(std::vector<uint8_t>& bytes) {
  if (bytes.size() < sizeof(FileHeader)) return;
  seal_header(bytes);
  const uint64_t id = load<FileHeader>(bytes.data()).id;
  for (SectionSpan section : sections_of(bytes)) {
    SectionHeader& header = section.header;
    header.id = id;
    const size_t head = section.offset + sizeof header;
    header.head_bytes = static_cast<uint32_t>(std::min<uint64_t>(header.head_bytes, header.bytes - sizeof header));
    if (header.kind == SectionKind::kFooter) {
      // The directory's entries, then their heads.
      if (header.head_bytes >= 8) {
        const uint64_t count =
            std::min<uint64_t>(load<uint64_t>(bytes.data() + head), (header.head_bytes - 8) / sizeof(DirectoryEntry));
        size_t at = head + 8 + count * sizeof(DirectoryEntry);
        for (uint64_t i = 0; i < count; ++i) {
          const auto entry = load<DirectoryEntry>(bytes.data() + head + 8 + i * sizeof(DirectoryEntry));
          if (entry.head_bytes > head + header.head_bytes - at) break;
          if (entry.offset < bytes.size())
            seal_blobs(bytes, at, entry.head_bytes, entry.offset + sizeof(SectionHeader) + entry.head_bytes);
          at += entry.head_bytes;
        }
      }
    } else if (header.kind != SectionKind::kDescription) {
      seal_blobs(bytes, head, header.head_bytes, head + header.head_bytes);
    }
    header.head_checksum = checksum(std::span(bytes).subspan(head, header.head_bytes));
    header.checksum = checksum_of(header);
    store(bytes, section.offset, header);
  }
  if (bytes.size() < sizeof(FileHeader) + sizeof(Trailer)) return;
  auto trailer = load<Trailer>(bytes.data() + bytes.size() - sizeof(Trailer));
  trailer.checksum = trailer_checksum(trailer.footer, id);
  store(bytes, bytes.size() - sizeof trailer, trailer);
}

}  // namespace tacho::trace
