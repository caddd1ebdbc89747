// Markers inside a target, for all marker APIs: tacho.h (tacho_api.cpp), ROCTx (roctx.cpp), NVTX (nvtx.cpp). Every
// domain has a stack of ranges per thread. If the push of a range was recorded, its pop is recorded too, even if
// recording was paused in between. A pop without a push never reaches the pool.
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::capture::marker {

/// A marker's message: text (or, if `interned` is not 0, the number of a string) and attributes. Strings are numbers of
/// tape::intern, 0 = none; domain 0 is tacho.h's default domain.
struct Marker {
  std::string_view text;
  uint32_t interned = 0;
  uint32_t domain = 0;
  uint32_t category = 0;
  uint32_t color = 0;  // ARGB, if has_color
  bool has_color = false;
  uint8_t payload_flag = 0;      // event::kMarkerInteger, kMarkerDouble or 0
  uint64_t payload = 0;          // bit pattern
  std::string_view fields = {};  // extended payloads: event::FieldsHeader and what follows it, in whole words
};

inline constexpr int kNoRange = -1;     // pop without push
inline constexpr int kNotTracked = -2;  // more domains with open ranges on this thread than are tracked

/// True if this process is traced. Tries to attach on the first call.
bool ready();
/// True if markers are being recorded now.
bool active();

/// Attach on the first call. All return at once if the process is not traced.
void mark(const Marker& marker);
/// Level of the range opened, from 0 for the outermost of its domain on this thread, or kNotTracked.
int push(const Marker& marker);
/// Level of the range closed, kNoRange or kNotTracked.
int pop(uint32_t domain);
/// The same with extended payloads, which are added to those of the range.
int pop_with(uint32_t domain, std::string_view fields);
/// Id of the range, unique in the process; with kUnrecorded set when it was not recorded (0 when not traced).
uint64_t start(const Marker& marker);
inline constexpr uint64_t kUnrecorded = 1ULL << 63;
/// Ignores ids that were not recorded; records the others even while paused.
void stop(uint64_t range);
void stop_with(uint64_t range, std::string_view fields);
/// The markers that start and stop the recording are those of the next attach.
void forget_triggers();
/// The program asks `tacho watch --keep` for a file; elsewhere a mark.
void keep(std::string_view why);
void pause();
void resume();
void flush();
/// tid: kernel thread id; 0 = the calling thread.
void name_thread(uint32_t tid, std::string_view name);

/// `text` (may be null) cut to the limit of a record, at the start of a UTF-8 character; a note counts the cuts.
std::string_view clip(const char* text);
/// Counts a text that had to be cut to `limit` bytes.
void count_cut();

}  // namespace tacho::capture::marker
