// The fixed parts of a .tacho file as structs, little-endian, without padding. docs/trace-file.md draws and explains
// them. A change here needs a new kFormatVersion and a change of that page.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tacho::trace {

static_assert(std::endian::native == std::endian::little);

inline constexpr char kFileMagic[8] = {'\x89', 'T', 'A', 'C', 'H', 'O', '\r', '\n'};
inline constexpr char kTrailerMagic[8] = {'T', 'A', 'C', 'H', 'O', 'E', 'N', 'D'};
inline constexpr uint32_t kSectionMagic = 0x43455354;  // "TSEC"
inline constexpr uint32_t kFormatVersion = 2;
inline constexpr size_t kMaxChunkRows = 65536;

/// First bytes of the file.
struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t bytes;   // of this header
  uint64_t schema;  // hash of the description (version 1: of its only layout)
  uint64_t id;      // random; in every section too, so that old bytes of another file cannot pass for a section
  uint32_t flags;   // FileFlag
  uint32_t reserved;
  uint64_t unused[2];
  uint64_t checksum;  // of the bytes before
};
static_assert(sizeof(FileHeader) == 64);
enum FileFlag : uint32_t { kFileRing = 1, kFileAggregate = 2 };

enum class SectionKind : uint8_t {
  kDictionary = 1,   // new rows and updates of dimensions and strings
  kSlab = 2,         // facts
  kKept = 3,         // facts that no policy drops: clocks, notes, losses
  kAggregate = 4,    // merged summaries of a trace without facts
  kFooter = 5,       // directory of all sections
  kFree = 6,         // free space for a later section
  kDescription = 7,  // names of the tables, columns and enumerators: the first section, and not in the directory
};

/// Precedes every section; sections lie end to end from byte 64 on.
struct SectionHeader {
  uint32_t magic;
  SectionKind kind;
  uint8_t flags;
  uint16_t reserved;
  uint64_t bytes;     // of the section with this header: a multiple of 8
  uint64_t sequence;  // order of sections in time; of two with one sequence the higher revision counts
  uint32_t revision;
  uint32_t head_bytes;     // of the head, which follows this header
  uint64_t head_checksum;  // of the head
  uint64_t rows;           // facts in it, for people who inspect the file
  uint64_t id;             // FileHeader::id
  uint64_t checksum;       // of the bytes before
};
static_assert(sizeof(SectionHeader) == 64);

/// The kind of rows in a chunk.
enum class ChunkRole : uint8_t {
  kFacts = 0,      // columns of a fact table, then three extras: summaries, histogram, busy
  kRows = 1,       // new rows of a dimension: its columns; of the string table: lengths, then the text
  kUpdates = 2,    // table 255; columns table, row, column, value
  kAggregate = 3,  // no columns; the three extras of a fact table
};
inline constexpr uint8_t kUpdateTable = 255;
inline constexpr size_t kUpdateColumns = 4;
inline constexpr size_t kExtras = 3;

/// The head of a dictionary, slab or aggregate section: u32 number of chunks, u32 zero, then per chunk a ChunkHead and
/// its Blobs (first the columns', then the extras').
struct ChunkHead {
  uint8_t table;
  ChunkRole role;
  uint8_t columns;
  uint8_t extras;
  uint32_t rows;
  int64_t first;      // facts: smallest start; dictionary: number of the first row
  int64_t max_start;  // these four: facts only
  int64_t max_end;
  int64_t min_track;
  int64_t max_track;
};
static_assert(sizeof(ChunkHead) == 48);

/// Bytes of one column or extra. bytes == 0: not stored.
struct Blob {
  uint32_t offset;  // from the end of the head
  uint32_t bytes;
  uint64_t checksum;
};
static_assert(sizeof(Blob) == 16);

/// The footer: u64 number of entries, the entries, then the heads of the sections in the same order, then a Trailer.
/// Its SectionHeader's head_bytes and head_checksum cover everything between the two.
struct DirectoryEntry {
  uint64_t offset;  // of the section
  uint64_t bytes;
  uint64_t sequence;
  SectionKind kind;
  uint8_t reserved[3];
  uint32_t head_bytes;
};
static_assert(sizeof(DirectoryEntry) == 32);

/// Last bytes of a finished file.
struct Trailer {
  uint64_t footer;    // offset of its section
  uint64_t checksum;  // of `footer` and the file's id
  char magic[8];
};
static_assert(sizeof(Trailer) == 24);

/// XXH3, 64 bits, of `bytes`.
uint64_t checksum(std::span<const uint8_t> bytes);
/// Of a struct's bytes before its member `checksum`, which must be the last.
template <typename T>
uint64_t checksum_of(const T& header) {
  return checksum({reinterpret_cast<const uint8_t*>(&header), sizeof(T) - sizeof(uint64_t)});
}
uint64_t trailer_checksum(uint64_t footer, uint64_t id);

template <typename T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

constexpr uint64_t round_up_8(uint64_t bytes) {
  return (bytes + 7) & ~uint64_t{7};
}

}  // namespace tacho::trace
