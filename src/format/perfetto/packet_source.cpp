// Reads and unpacks packets (packet_source.h).
#include "format/perfetto/packet_source.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "format/perfetto/messages.h"
#include "format/perfetto/wire.h"

namespace tacho::format::perfetto {

namespace {

// Either kind of zlib data: 15 + 32 looks at its header.
std::unique_ptr<z_stream> new_inflater() {
  auto stream = std::make_unique<z_stream>();
  std::memset(stream.get(), 0, sizeof(z_stream));
  if (inflateInit2(stream.get(), 15 + 32) != Z_OK) return nullptr;
  return stream;
}

}  // namespace

Result<std::unique_ptr<UnpackedFile>> UnpackedFile::open(const std::string& path) {
  TACHO_ASSIGN(source::SourceStream stream, source::SourceStream::open(path));
  return std::unique_ptr<UnpackedFile>(new UnpackedFile(std::move(stream), path));
}

size_t UnpackedFile::read(char* to, size_t size) {
  const size_t got = stream_.read(to, size);
  if (got > 0 || stream_.status()) return got;
  trouble_ = stream_.status().error().message;
  if (const std::string name = path_ + ": "; trouble_.starts_with(name)) trouble_.erase(0, name.size());
  return 0;
}

Result<std::unique_ptr<PacketSource>> PacketSource::open(const std::string& path) {
  std::unique_ptr<PacketSource> source(new PacketSource);
  TACHO_ASSIGN(source->file_, UnpackedFile::open(path));
  source->window_.resize(1 << 20);
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  source->most_unpacked_ = (64u << 20) + (error ? 0 : std::min<uint64_t>(bytes, 1ULL << 50) * 256);
  return source;
}

PacketSource::~PacketSource() {
  if (inflater_) inflateEnd(inflater_.get());
  ZSTD_freeDCtx(zstd_);
}

// More bytes into the window, whose unread part moves to the front; false at the end of the file.
bool PacketSource::more() {
  if (at_end_) return false;
  if (from_ > 0) {
    std::memmove(window_.data(), window_.data() + from_, to_ - from_);
    passed_ += from_;
    to_ -= from_;
    from_ = 0;
  }
  if (to_ == window_.size()) window_.resize(std::min(window_.size() * 2, kLongest + 64));
  const size_t got = file_->read(window_.data() + to_, window_.size() - to_);
  to_ += got;
  if (got == 0) at_end_ = true;
  return got > 0;
}

void PacketSource::refuse(std::string why) {
  if (refused_++ == 0) refusal_ = std::move(why);
}

// Passes over `size` bytes; false if the file ends before.
bool PacketSource::skip(uint64_t size) {
  while (size > to_ - from_) {
    size -= to_ - from_;
    from_ = to_;
    if (!more()) return false;
  }
  from_ += size;
  return true;
}

bool PacketSource::next_of_file(std::string_view& packet) {
  while (ending_.empty()) {
    const auto ends = [&](const char* what) {
      const uint64_t place = passed_ + from_;
      ending_ = file_->trouble().empty() ? fmt::format("{} at byte {}, after {} packets", what, place, packets_)
                                         : fmt::format("{} near byte {} of what it unpacks to, after {} packets",
                                                       file_->trouble(), place, packets_);
      return false;
    };
    const char* at = window_.data() + from_;
    const char* const end = window_.data() + to_;
    uint64_t key = 0, size = 0;
    if (!read_varint(at, end, key) || ((key & 7) != 1 && (key & 7) != 5 && !read_varint(at, end, size))) {
      if (to_ - from_ >= 20) return ends("bytes that are no packet");
      if (more()) continue;
      if (from_ == to_ && file_->trouble().empty()) return false;
      return ends("the file is cut off within a packet");
    }
    if (key >> 3 == 0 || (key & 7) == 3 || (key & 7) == 4 || (key & 7) > 5) return ends("bytes that are no packet");
    const auto head = static_cast<uint64_t>(at - (window_.data() + from_));
    if (key != (trace_packet << 3 | WireFields::kBytes)) {
      // A field of Trace that tacho does not know.
      const uint64_t body = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : (key & 7) == 0 ? 0 : size;
      if (body > UINT64_MAX - head || !skip(head + body)) return ends("the file is cut off");
      continue;
    }
    if (size > kLongest) {
      if (!skip(head + std::min<uint64_t>(size, INT64_MAX)))
        return ends("a packet is longer than the rest of the file");
      refuse(fmt::format("a packet of {} MiB", size >> 20));
      continue;
    }
    if (size > static_cast<uint64_t>(end - at)) {
      if (more()) continue;
      return ends("the file is cut off within a packet");
    }
    packet = std::string_view(at, size);
    from_ += head + size;
    ++packets_;
    return true;
  }
  return false;
}

bool PacketSource::next_nested(std::string_view& packet) {
  while (nested_at_ < nested_end_) {
    const char* at = nested_.data() + nested_at_;
    const char* const end = nested_.data() + nested_end_;
    uint64_t key = 0, size = 0;
    if (!read_varint(at, end, key) || key != (trace_packet << 3 | WireFields::kBytes) || !read_varint(at, end, size) ||
        size > static_cast<uint64_t>(end - at)) {
      refuse("compressed packets that are cut off");
      nested_at_ = nested_end_;
      return false;
    }
    nested_at_ = static_cast<size_t>(at - nested_.data()) + size;
    packet = std::string_view(at, size);
    ++packets_;
    return true;
  }
  if (nested_.size() > (1u << 20)) std::vector<char>().swap(nested_);
  return false;
}

// Unpacks into nested_ what fits; false once that is all. `bad`: the data makes no sense.
bool PacketSource::unpack_some(bool zstd, void* zstd_input, bool& bad) {
  char* const to = nested_.data() + nested_end_;
  const size_t room = nested_.size() - nested_end_;
  if (zstd) {
    auto& in = *static_cast<ZSTD_inBuffer*>(zstd_input);
    ZSTD_outBuffer out{to, room, 0};
    const size_t code = ZSTD_decompressStream(zstd_, &out, &in);
    nested_end_ += out.pos;
    bad = ZSTD_isError(code) != 0 || (code != 0 && out.pos == 0 && in.pos == in.size);
    return !bad && !(code == 0 && in.pos == in.size);
  }
  inflater_->next_out = reinterpret_cast<Bytef*>(to);
  inflater_->avail_out = static_cast<uInt>(room);
  const int code = inflate(inflater_.get(), Z_NO_FLUSH);
  nested_end_ += room - inflater_->avail_out;
  bad = code != Z_OK && code != Z_STREAM_END;
  return code == Z_OK;
}

void PacketSource::enter(std::string_view data, bool zstd) {
  if (from_nested_) return refuse("compressed packets within compressed packets");
  nested_at_ = nested_end_ = 0;
  if (unpacked_ >= most_unpacked_)
    return refuse(fmt::format("compressed packets of a file of its size that unpack to more than {} MiB together",
                              most_unpacked_ >> 20));
  if (nested_.empty()) nested_.resize(1 << 18);
  if (zstd && zstd_ == nullptr) {
    zstd_ = ZSTD_createDCtx();
    if (zstd_ != nullptr) ZSTD_DCtx_setParameter(zstd_, ZSTD_d_windowLogMax, 26);
  }
  if (!zstd && inflater_ == nullptr) inflater_ = new_inflater();
  if (zstd ? zstd_ == nullptr : inflater_ == nullptr) return refuse("compressed packets without memory to unpack them");
  if (zstd) {
    ZSTD_DCtx_reset(zstd_, ZSTD_reset_session_only);
  } else {
    inflateReset(inflater_.get());
    inflater_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    inflater_->avail_in = static_cast<uInt>(data.size());
  }
  ZSTD_inBuffer in{data.data(), data.size(), 0};
  bool bad = false;
  while (unpack_some(zstd, &in, bad)) {
    if (nested_end_ < nested_.size()) continue;
    if (nested_.size() >= kLongest) {
      unpacked_ += nested_end_;
      nested_end_ = 0;
      return refuse(fmt::format("compressed packets that unpack to more than {} MiB", kLongest >> 20));
    }
    nested_.resize(std::min(nested_.size() * 2, kLongest));
  }
  unpacked_ += nested_end_;
  if (bad) refuse("compressed packets whose data is damaged");  // what was unpacked before counts
}

bool PacketSource::next(std::string_view& packet) {
  from_nested_ = next_nested(packet);
  return from_nested_ || next_of_file(packet);
}

bool begins_with_packets(std::string_view head) {
  if (head.empty()) return false;
  const char* at = head.data();
  const char* const end = at + head.size();
  uint64_t key = 0, size = 0;
  if (!read_varint(at, end, key) || key != (trace_packet << 3 | WireFields::kBytes) || !read_varint(at, end, size) ||
      size == 0)
    return false;
  const auto whole = static_cast<size_t>(std::min<uint64_t>(size, static_cast<uint64_t>(end - at)));
  WireFields field(std::string_view(at, whole));
  bool known = false;
  while (field.next()) {
    const uint32_t number = field.number();
    if (number > 1999 && number != 3000) return false;
    const bool bytes = field.is_bytes();
    known |=
        bytes ? number == packet_clock_snapshot || number == packet_track_event || number == packet_interned_data ||
                    number == packet_track_descriptor || number == packet_trace_config || number == packet_compressed ||
                    number == packet_zstd_compressed || number == packet_process_tree || number == packet_defaults ||
                    number == packet_render_stage || number == packet_gpu_counters || number == packet_gpu_info ||
                    number == packet_synchronization_marker || number == packet_trace_stats ||
                    number == packet_perf_sample || number == packet_process_descriptor ||
                    number == packet_thread_descriptor || number == packet_ftrace_events || number == packet_trace_uuid
              : number == packet_timestamp || number == packet_sequence || number == packet_flags ||
                    number == packet_trusted_pid || number == packet_first_on_sequence;
  }
  // The first packet may be longer than the head.
  return (known || size > whole) && (!field.damaged() || size > whole);
}

}  // namespace tacho::format::perfetto
