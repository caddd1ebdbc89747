// Sections in a file being written.
#include "trace/store/store.h"

#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trace/store/description.h"

namespace tacho::trace {
namespace {

template <typename T>
std::span<const uint8_t> bytes_of(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

uint64_t random_id() {
  uint64_t id = 0;
  if (getrandom(&id, sizeof id, 0) == sizeof id && id != 0) return id;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

Result<SectionStore> SectionStore::create(RandomAccessFile file, uint32_t flags) {
  SectionStore store(std::move(file));
  FileHeader& header = store.file_header_;
  std::memcpy(header.magic, kFileMagic, sizeof kFileMagic);
  header.version = kFormatVersion;
  header.bytes = sizeof header;
  header.schema = description_hash(our_description());
  header.id = random_id();
  header.flags = flags;
  header.checksum = checksum_of(header);
  // The description directly behind it: every other section can rely on it.
  const std::span<const uint8_t> described = our_packed_description();
  SectionHeader section = store.header(SectionKind::kDescription, round_up_8(sizeof(SectionHeader) + described.size()));
  section.head_bytes = static_cast<uint32_t>(described.size());
  section.head_checksum = checksum(described);
  section.checksum = checksum_of(section);
  std::vector<uint8_t> front(sizeof header + section.bytes);
  std::memcpy(front.data(), &header, sizeof header);
  std::memcpy(front.data() + sizeof header, &section, sizeof section);
  std::memcpy(front.data() + sizeof header + sizeof section, described.data(), described.size());
  if (const int error = store.file_.write_at(0, front); error != 0) {
    return fail("{}: cannot be written: {}", store.file_.path(), strerror(error));
  }
  store.end_ = front.size();
  store.footer_bytes_ = sizeof(SectionHeader) + sizeof(uint64_t) + sizeof(Trailer);
  return store;
}

SectionHeader SectionStore::header(SectionKind kind, uint64_t bytes) const {
  SectionHeader header{};
  header.magic = kSectionMagic;
  header.kind = kind;
  header.bytes = bytes;
  header.id = file_header_.id;
  return header;
}

int SectionStore::write_header(uint64_t offset, SectionHeader header) {
  header.checksum = checksum_of(header);
  return file_.write_at(offset, bytes_of(header));
}

uint64_t SectionStore::size_with(uint64_t head_bytes, uint64_t payload_bytes) const {
  const uint64_t bytes = sizeof(SectionHeader) + head_bytes + payload_bytes;
  uint64_t end = end_ + bytes;
  for (const Room& room : rooms_) {
    if (room.bytes >= bytes) end = end_;
  }
  return end + footer_bytes_ + sizeof(DirectoryEntry) + head_bytes;
}

int SectionStore::write(const Contents& contents) {
  const uint64_t content = sizeof(SectionHeader) + contents.head.size() + contents.payload.size();
  uint64_t bytes = round_up_8(content);
  uint64_t offset = end_;
  auto room = std::find_if(rooms_.begin(), rooms_.end(), [&](const Room& r) { return r.bytes >= bytes; });
  uint64_t rest = 0;
  if (room != rooms_.end()) {
    offset = room->offset;
    rest = room->bytes - bytes;
    if (rest < sizeof(SectionHeader)) bytes += rest, rest = 0;  // no header fits into what is left
  }
  const auto undo = [&](int error) {
    if (room == rooms_.end()) file_.truncate(end_);
    return error;
  };
  const uint64_t body = offset + sizeof(SectionHeader);
  if (const int error = file_.write_at(body, contents.head)) return undo(error);
  if (const int error = file_.write_at(body + contents.head.size(), contents.payload)) return undo(error);
  if (room == rooms_.end() && bytes > content) {
    constexpr uint8_t kZeros[8] = {};
    if (const int error = file_.write_at(offset + content, {kZeros, bytes - content})) return undo(error);
  }
  if (rest > 0) {
    if (const int error = write_header(offset + bytes, header(SectionKind::kFree, rest))) return undo(error);
  }
  SectionHeader section = header(contents.kind, bytes);
  section.sequence = contents.sequence;
  section.revision = contents.revision;
  section.head_bytes = static_cast<uint32_t>(contents.head.size());
  section.head_checksum = checksum(contents.head);
  for (const uint32_t rows : contents.rows) section.rows += rows;
  if (const int error = write_header(offset, section)) return undo(error);

  if (room == rooms_.end()) {
    end_ = offset + bytes;
  } else if (rest > 0) {
    *room = {offset + bytes, rest};
  } else {
    rooms_.erase(room);
  }
  sections_.push_back({offset, bytes, contents.sequence, contents.kind, section.head_bytes, contents.rows});
  footer_bytes_ += sizeof(DirectoryEntry) + section.head_bytes;
  return 0;
}

int SectionStore::release(Room room) {
  auto next = std::lower_bound(rooms_.begin(), rooms_.end(), room.offset,
                               [](const Room& r, uint64_t offset) { return r.offset < offset; });
  if (next != rooms_.end() && room.offset + room.bytes == next->offset) {
    room.bytes += next->bytes;
    next = rooms_.erase(next);
  }
  if (next != rooms_.begin() && std::prev(next)->offset + std::prev(next)->bytes == room.offset) {
    --next;
    room = {next->offset, next->bytes + room.bytes};
    next = rooms_.erase(next);
  }
  if (room.offset + room.bytes == end_) {
    if (const int error = file_.truncate(room.offset)) return error;
    end_ = room.offset;
    return 0;
  }
  rooms_.insert(next, room);
  return write_header(room.offset, header(SectionKind::kFree, room.bytes));
}

int SectionStore::drop(size_t index) {
  const StoredSection section = sections_[index];
  sections_.erase(sections_.begin() + static_cast<ptrdiff_t>(index));
  footer_bytes_ -= sizeof(DirectoryEntry) + section.head_bytes;
  return release({section.offset, section.bytes});
}

int SectionStore::write_footer() {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<uint8_t> piece;
  XXH3_state_t* hash = XXH3_createState();
  if (hash == nullptr) return ENOMEM;
  XXH3_64bits_reset(hash);
  uint64_t at = end_ + sizeof(SectionHeader);
  int error = 0;
  const auto flush = [&] {
    if (error == 0) error = file_.write_at(at, piece);
    XXH3_64bits_update(hash, piece.data(), piece.size());
    at += piece.size();
    piece.clear();
  };
  const auto put = [&](std::span<const uint8_t> bytes) {
    piece.insert(piece.end(), bytes.begin(), bytes.end());
    if (piece.size() >= kPiece) flush();
  };
  put(bytes_of(uint64_t{sections_.size()}));
  for (const StoredSection& section : sections_) {
    DirectoryEntry entry{};
    entry.offset = section.offset;
    entry.bytes = section.bytes;
    entry.sequence = section.sequence;
    entry.kind = section.kind;
    entry.head_bytes = section.head_bytes;
    put(bytes_of(entry));
  }
  std::vector<uint8_t> head;
  for (const StoredSection& section : sections_) {
    head.resize(section.head_bytes);
    if (error == 0) error = file_.read_at(section.offset + sizeof(SectionHeader), head);
    put(head);
  }
  flush();
  SectionHeader footer = header(SectionKind::kFooter, at + sizeof(Trailer) - end_);
  footer.head_bytes = static_cast<uint32_t>(at - end_ - sizeof(SectionHeader));
  footer.head_checksum = XXH3_64bits_digest(hash);
  XXH3_freeState(hash);
  Trailer trailer{};
  trailer.footer = end_;
  trailer.checksum = trailer_checksum(end_, file_header_.id);
  std::memcpy(trailer.magic, kTrailerMagic, sizeof kTrailerMagic);
  if (error == 0) error = file_.write_at(at, bytes_of(trailer));
  if (error == 0) error = write_header(end_, footer);
  if (error != 0) {
    file_.truncate(end_);
    return error;
  }
  end_ = at + sizeof trailer;
  return 0;
}

void SectionStore::compact() {
  uint64_t gaps = 0;
  for (const Room& room : rooms_) gaps += room.bytes;
  if (gaps <= end_ / 16) return;
  Result<RandomAccessFile> fresh = file_.another();
  if (!fresh) return;
  Result<SectionStore> made = create(std::move(*fresh), file_header_.flags);
  if (!made) return;
  std::vector<StoredSection> sorted(sections_.begin(), sections_.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const StoredSection& a, const StoredSection& b) { return a.sequence < b.sequence; });
  std::vector<uint8_t> contents;
  for (const StoredSection& section : sorted) {
    contents.resize(section.bytes - sizeof(SectionHeader));
    if (file_.read_at(section.offset + sizeof(SectionHeader), contents) != 0) return;
    const std::span<const uint8_t> all(contents);
    const Contents copy{
        section.kind, section.sequence, 0, all.first(section.head_bytes), all.subspan(section.head_bytes),
        section.rows};
    if (made->write(copy) != 0) return;
  }
  *this = std::move(*made);  // the old file goes with the old store
}

}  // namespace tacho::trace
