// A .tacho file taken apart into its description and chunks and put together again: for tests and the fuzzer, which
// make files of builds that have other tables, columns and enumerators than this one.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "trace/store/codec.h"
#include "trace/store/description.h"
#include "trace/store/layout.h"

namespace tacho::trace {

struct RawChunk {
  ChunkHead head;
  std::vector<std::vector<uint8_t>> blobs;  // the columns', then the extras'
};

struct RawSection {
  SectionHeader header;
  std::vector<RawChunk> chunks;
};

struct RawFile {
  FileHeader header;
  std::string description;
  std::vector<RawSection> sections;  // without the description, the footer and free room

  /// nullopt: not a whole file of the current format.
  static std::optional<RawFile> parse(std::span<const uint8_t> bytes) {
    RawFile file;
    if (bytes.size() < sizeof(FileHeader)) return std::nullopt;
    file.header = load<FileHeader>(bytes.data());
    size_t offset = sizeof(FileHeader);
    while (bytes.size() - offset >= sizeof(SectionHeader)) {
      const auto header = load<SectionHeader>(bytes.data() + offset);
      if (header.magic != kSectionMagic || header.bytes < sizeof header || header.bytes > bytes.size() - offset ||
          header.head_bytes > header.bytes - sizeof header)
        break;
      const std::span<const uint8_t> section = bytes.subspan(offset + sizeof header, header.bytes - sizeof header);
      offset += header.bytes;
      if (header.kind == SectionKind::kFooter) break;
      if (header.kind == SectionKind::kDescription) {
        auto text = unpack_description(section.first(header.head_bytes));
        if (!text) return std::nullopt;
        file.description = std::move(*text);
      } else if (header.kind != SectionKind::kFree) {
        auto chunks = parse_chunks(section, header.head_bytes);
        if (!chunks) return std::nullopt;
        file.sections.push_back({header, std::move(*chunks)});
      }
    }
    if (file.description.empty()) return std::nullopt;
    return file;
  }

  /// A finished file of it, every checksum right; of version 1 it has no description.
  std::vector<uint8_t> bytes(uint32_t version = kFormatVersion) const {
    std::vector<uint8_t> out;
    FileHeader front = header;
    front.version = version;
    front.schema = version == 1 ? kSchemaOfVersion1 : description_hash(description);
    front.checksum = checksum_of(front);
    append(out, front);
    std::vector<uint8_t> heads;
    std::vector<DirectoryEntry> entries;
    if (version != 1) append_section(out, make_header(SectionKind::kDescription, 0), pack_description(description), {});
    for (const RawSection& section : sections) {
      std::vector<uint8_t> head, payload;
      append(head, static_cast<uint32_t>(section.chunks.size()));
      append(head, uint32_t{0});
      for (const RawChunk& chunk : section.chunks) {
        append(head, chunk.head);
        for (const std::vector<uint8_t>& blob : chunk.blobs) {
          append(head, Blob{static_cast<uint32_t>(payload.size()), static_cast<uint32_t>(blob.size()),
                            blob.empty() ? 0 : checksum(blob)});
          payload.insert(payload.end(), blob.begin(), blob.end());
        }
      }
      DirectoryEntry entry{};
      entry.offset = out.size();
      entry.sequence = section.header.sequence;
      entry.kind = section.header.kind;
      entry.head_bytes = static_cast<uint32_t>(head.size());
      append_section(out, make_header(section.header.kind, section.header.sequence), head, payload);
      entry.bytes = out.size() - entry.offset;
      entries.push_back(entry);
      heads.insert(heads.end(), head.begin(), head.end());
    }
    const uint64_t footer = out.size();
    std::vector<uint8_t> body;
    append(body, uint64_t{entries.size()});
    for (const DirectoryEntry& entry : entries) append(body, entry);
    body.insert(body.end(), heads.begin(), heads.end());
    SectionHeader last = make_header(SectionKind::kFooter, 0);
    last.bytes = sizeof last + body.size() + sizeof(Trailer);
    last.head_bytes = static_cast<uint32_t>(body.size());
    last.head_checksum = checksum(body);
    last.checksum = checksum_of(last);
    append(out, last);
    out.insert(out.end(), body.begin(), body.end());
    Trailer trailer{};
    trailer.footer = footer;
    trailer.checksum = trailer_checksum(footer, header.id);
    std::memcpy(trailer.magic, kTrailerMagic, sizeof kTrailerMagic);
    append(out, trailer);
    return out;
  }

  /// Calls `edit` with every chunk of a table (by its number in the file) in the role given.
  template <typename Edit>
  void edit(uint8_t table, ChunkRole role, Edit edit) {
    for (RawSection& section : sections) {
      for (RawChunk& chunk : section.chunks) {
        if (chunk.head.table == table && chunk.head.role == role) edit(chunk);
      }
    }
  }

 private:
  template <typename T>
  static void append(std::vector<uint8_t>& out, const T& value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof value);
  }
  SectionHeader make_header(SectionKind kind, uint64_t sequence) const {
    SectionHeader made{};
    made.magic = kSectionMagic;
    made.kind = kind;
    made.sequence = sequence;
    made.id = header.id;
    return made;
  }
  static void append_section(std::vector<uint8_t>& out, SectionHeader made, std::span<const uint8_t> head,
                             std::span<const uint8_t> payload) {
    made.bytes = round_up_8(sizeof made + head.size() + payload.size());
    made.head_bytes = static_cast<uint32_t>(head.size());
    made.head_checksum = checksum(head);
    made.checksum = checksum_of(made);
    const size_t end = out.size() + made.bytes;
    append(out, made);
    out.insert(out.end(), head.begin(), head.end());
    out.insert(out.end(), payload.begin(), payload.end());
    out.resize(end);
  }
  static std::optional<std::vector<RawChunk>> parse_chunks(std::span<const uint8_t> section, size_t head_bytes) {
    std::vector<RawChunk> chunks;
    if (head_bytes < 8) return std::nullopt;
    const auto count = load<uint32_t>(section.data());
    size_t at = 8;
    for (uint32_t i = 0; i < count; ++i) {
      if (head_bytes - at < sizeof(ChunkHead)) return std::nullopt;
      RawChunk chunk{load<ChunkHead>(section.data() + at), {}};
      at += sizeof(ChunkHead);
      for (int b = 0; b < chunk.head.columns + chunk.head.extras; ++b, at += sizeof(Blob)) {
        if (head_bytes - at < sizeof(Blob)) return std::nullopt;
        const auto blob = load<Blob>(section.data() + at);
        const size_t room = section.size() - head_bytes;
        if (blob.offset > room || blob.bytes > room - blob.offset) return std::nullopt;
        const auto bytes = section.subspan(head_bytes + blob.offset, blob.bytes);
        chunk.blobs.emplace_back(bytes.begin(), bytes.end());
      }
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }
};

/// A column of `values` as a blob.
inline std::vector<uint8_t> column_blob(std::span<const int64_t> values) {
  ColumnEncoder encoder;
  std::vector<uint8_t> bytes;
  encoder.encode(values, bytes);
  return bytes;
}

/// Puts a column in front of column `at` of a chunk, and takes column `at` away.
inline void insert_column(RawChunk& chunk, size_t at, std::span<const int64_t> values) {
  chunk.blobs.insert(chunk.blobs.begin() + static_cast<ptrdiff_t>(at), column_blob(values));
  ++chunk.head.columns;
}
inline void erase_column(RawChunk& chunk, size_t at) {
  chunk.blobs.erase(chunk.blobs.begin() + static_cast<ptrdiff_t>(at));
  --chunk.head.columns;
}

}  // namespace tacho::trace
