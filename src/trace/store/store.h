// SectionStore: the sections of a file being written. It puts a section at the end, or into the space of a dropped one.
// It writes the section's contents first, then the header of the space that remains, and last the header that makes the
// section valid, so that the file is readable whenever the process dies.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "trace/store/file.h"
#include "trace/store/layout.h"

namespace tacho::trace {

using RowCounts = std::array<uint32_t, event::kFactTables>;

struct StoredSection {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t sequence = 0;
  SectionKind kind = SectionKind::kFree;
  uint32_t head_bytes = 0;
  RowCounts rows{};  // facts in it
};

class SectionStore {
 public:
  /// Writes the file's header and its description.
  static Result<SectionStore> create(RandomAccessFile file, uint32_t flags);

  struct Contents {
    SectionKind kind;
    uint64_t sequence;
    uint32_t revision;
    std::span<const uint8_t> head, payload;
    const RowCounts& rows;
  };
  /// Size of the file, with its directory, after a write() of this many bytes.
  uint64_t size_with(uint64_t head_bytes, uint64_t payload_bytes) const;
  /// Writes a section. Returns 0, or an errno and leaves the file as it was.
  int write(const Contents& contents);
  /// Drops the section at `index` of sections(), so that its space can be used again. Returns 0 or an errno.
  int drop(size_t index);
  /// Writes directory and trailer. Returns 0, or an errno and leaves the file as it was.
  int write_footer();
  /// Copies the sections, in the order of their sequence, into a new file without gaps if gaps take more than 1/16 of
  /// it. Keeps the old file if there is no room for a second one.
  void compact();

  std::span<const StoredSection> sections() const { return sections_; }
  uint64_t end() const { return end_; }
  RandomAccessFile& file() { return file_; }
  const RandomAccessFile& file() const { return file_; }

 private:
  struct Room {
    uint64_t offset, bytes;
  };
  explicit SectionStore(RandomAccessFile file) : file_(std::move(file)) {}
  SectionHeader header(SectionKind kind, uint64_t bytes) const;
  int write_header(uint64_t offset, SectionHeader header);
  int release(Room room);
  uint64_t footer_bytes() const { return footer_bytes_; }

  RandomAccessFile file_;
  FileHeader file_header_{};
  uint64_t end_ = 0;
  uint64_t footer_bytes_ = 0;
  std::vector<StoredSection> sections_;  // in the order of writing
  std::vector<Room> rooms_;              // sorted by offset, never adjacent
};

}  // namespace tacho::trace
