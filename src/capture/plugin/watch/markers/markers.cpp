// What the marker APIs of capture/source/marker call, in libtacho-watch.so: a record in the ring of `tacho watch
// --keep` for each push, pop, mark, start and stop. Without the ring they do nothing. The APIs themselves (NVTX,
// tacho.h) are compiled into both libraries; texts and domains are numbers here, too, of this file's own table.
#include <pthread.h>
#include <string.h>

#include <atomic>
#include <new>
#include <string_view>

#include "capture/attached.h"
#include "capture/capture.h"
#include "capture/plugin/watch/ring.h"
#include "capture/plugin/watch/sums.h"
#include "capture/room/lock.h"
#include "capture/room/pages.h"
#include "capture/source/marker/marker.h"
#include "capture/source/marker/nvtx.h"
#include "capture/source/opencl/opencl.h"
#include "tape/writer.h"

namespace tacho::capture::watch {
namespace {

constexpr size_t kKeptText = event::kWatchMarkTextBytes + event::kWatchTextRecords * event::kWatchTextBytes;

// A text that has a number: a registered string, a domain's name.
struct Text {
  uint64_t hash;  // of the whole text
  size_t whole;   // its bytes
  uint32_t size;  // of which are here
  CallNumber domain;
  char text[kKeptText];

  bool is(uint64_t its_hash, std::string_view given) const {
    return hash == its_hash && whole == given.size() && memcmp(text, given.data(), size) == 0;
  }
};

constexpr uint32_t kTexts = 1 << 14, kMostTexts = kTexts / 4 * 3;
constexpr size_t kTextsAtOnce = 256;
constinit std::atomic<Text*> g_texts[kTexts] = {};  // by hash; a text's number is its place plus 1
constinit LockWord g_lock{0};
constinit Text* g_unused = nullptr;
constinit size_t g_unused_count = 0;
constinit uint32_t g_text_count = 0;

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash ^ hash >> 29;
}

std::string_view first_of(std::string_view text) {
  return {text.data(), text.size() < kKeptText ? text.size() : kKeptText};
}

// The place of the text, or the free one where it belongs; nullptr: the table has been full for long.
std::atomic<Text*>* place_of(uint64_t hash, std::string_view text) {
  for (uint32_t i = 0, at = hash % kTexts; i < kTexts; ++i, at = (at + 1) % kTexts) {
    const Text* const there = g_texts[at].load(std::memory_order_acquire);
    if (there == nullptr || there->is(hash, text)) return &g_texts[at];
  }
  return nullptr;
}

// Under the lock.
Text* make_text(uint64_t hash, std::string_view text) {
  if (g_text_count == kMostTexts) return nullptr;
  if (g_unused_count == 0) {
    static constinit bool at_forks = false;
    if (!at_forks && pthread_atfork(nullptr, nullptr, [] { unlock(g_lock); }) != 0) return nullptr;
    at_forks = true;
    g_unused = static_cast<Text*>(map_pages(kTextsAtOnce * sizeof(Text)));
    if (g_unused == nullptr) return nullptr;
    g_unused_count = kTextsAtOnce;
  }
  --g_unused_count;
  ++g_text_count;
  Text* const made = new (g_unused++) Text{};
  made->hash = hash;
  made->whole = text.size();
  made->size = static_cast<uint32_t>(first_of(text).size());
  memcpy(made->text, text.data(), made->size);
  return made;
}

uint32_t number_of(std::string_view text) {
  const uint64_t hash = hash_of(text);
  std::atomic<Text*>* place = place_of(hash, text);
  if (place == nullptr) return 0;
  if (place->load(std::memory_order_relaxed) == nullptr) {
    const Guard guard(g_lock);
    place = place_of(hash, text);
    if (place == nullptr) return 0;
    if (place->load(std::memory_order_relaxed) == nullptr) {
      Text* const made = make_text(hash, text);
      if (made == nullptr) return 0;
      place->store(made, std::memory_order_release);
    }
  }
  return static_cast<uint32_t>(place - g_texts) + 1;
}

Text* text_of(uint32_t number) {
  return number == 0 || number > kTexts ? nullptr : g_texts[number - 1].load(std::memory_order_acquire);
}

uint16_t domain_of(uint32_t number) {
  Text* const text = text_of(number);
  if (text == nullptr) return 0;
  char name[sizeof event::WatchCall::name];
  const size_t size = text->size < sizeof name - 1 ? text->size : sizeof name - 1;
  memcpy(name, text->text, size);
  name[size] = '\0';
  return text->domain.find(event::Domain::kMarker, name, "");
}

uint64_t keep(WatchRecordKind kind, const marker::Marker& marker) {
  KeptMarker kept{
      .kind = kind, .text = first_of(marker.text), .whole = marker.text.size(), .domain = domain_of(marker.domain)};
  if (const Text* const text = text_of(marker.interned); text != nullptr) {
    kept.text = {text->text, text->size};
    kept.whole = text->whole;
  }
  return keep_marker(kept);
}

// How many ranges of a domain are open on this thread, of a few domains.
struct Level {
  uint32_t domain, open;
};
struct Levels {
  Level of[3];
  uint32_t others;  // in domains beyond these
  uint32_t stay;    // in which they began: what was open when tacho left is not known any more
};
__attribute__((tls_model("initial-exec"))) constinit thread_local Levels t_levels = {};

void begin_levels() {
  const uint32_t stay = g_stay.load(std::memory_order_relaxed);
  if (__builtin_expect(t_levels.stay != stay, 0)) t_levels = {{}, 0, stay};
}

// A range's number, since one of an earlier stay may end in this one: its stay above its record's ticket.
constexpr uint32_t kStayAt = 48;
uint64_t stay_bits() {
  return static_cast<uint64_t>(g_stay.load(std::memory_order_relaxed)) << kStayAt;
}

// `claim`: a free place becomes the domain's. nullptr: there is none.
Level* level_of(uint32_t domain, bool claim) {
  Level* free = nullptr;
  for (Level& each : t_levels.of) {
    if (each.open != 0 && each.domain == domain) return &each;
    if (each.open == 0 && free == nullptr) free = &each;
  }
  if (free == nullptr || !claim) return nullptr;
  free->domain = domain;
  return free;
}

}  // namespace
}  // namespace tacho::capture::watch

namespace tacho::capture::marker {

bool ready() {
  return watch::keeps();
}
bool active() {
  return watch::keeps();
}

std::string_view clip(const char* text) {
  if (text == nullptr) return {};
  return {text, strnlen(text, tape::kLongestText)};
}
void count_cut() {}  // what is kept of a text is less anyway, and says so

void mark(const Marker& marker) {
  if (ready()) watch::keep(watch::WatchRecordKind::kMark, marker);
}
void keep(std::string_view why) {
  if (ready()) watch::keep(watch::WatchRecordKind::kTrigger, {.text = why});
}

int push(const Marker& marker) {
  if (!ready()) return kNotTracked;
  watch::begin_levels();
  watch::keep(watch::WatchRecordKind::kPush, marker);
  watch::Level* const level = watch::level_of(marker.domain, true);
  if (level != nullptr) return static_cast<int>(level->open++);
  ++watch::t_levels.others;
  return kNotTracked;
}

int pop(uint32_t domain) {
  if (!ready()) return kNotTracked;
  watch::begin_levels();
  int result = kNotTracked;
  if (watch::Level* const level = watch::level_of(domain, false); level != nullptr)
    result = static_cast<int>(--level->open);
  else if (watch::t_levels.others == 0)
    return kNoRange;
  else
    --watch::t_levels.others;
  watch::keep_marker({.kind = watch::WatchRecordKind::kPop, .domain = watch::domain_of(domain)});
  return result;
}
int pop_with(uint32_t domain, std::string_view) {
  return pop(domain);
}

uint64_t start(const Marker& marker) {
  const uint64_t ticket = ready() ? watch::keep(watch::WatchRecordKind::kStart, marker) : 0;
  return ticket != 0 ? watch::stay_bits() | ticket : 0;
}
void stop(uint64_t range) {
  const uint64_t ticket = range ^ watch::stay_bits();
  if (range != 0 && ticket >> watch::kStayAt == 0 && ready())
    watch::keep_marker({.kind = watch::WatchRecordKind::kStop, .of = ticket});
}
void stop_with(uint64_t range, std::string_view) {
  stop(range);
}

// What belongs to a recording.
void pause() {}
void resume() {}
void flush() {}
void name_thread(uint32_t, std::string_view) {}

}  // namespace tacho::capture::marker

namespace tacho::capture {

bool start() {
  return watch::keeps();
}
bool listens() {
  return false;
}
void opencl::flush() {}

// Extended payloads are not kept.
void nvtx::read_payloads(uint32_t, const PayloadData*, size_t, Payloads&) {}

}  // namespace tacho::capture

/// Numbers of texts hold for as long as the process lives; what it had registered before tacho came has none.
uint32_t tacho::tape::late_session() {
  return tacho::capture::watch::g_late ? 1 : 0;
}
uint32_t tacho::tape::intern(std::string_view text) {
  return tacho::capture::watch::keeps() ? tacho::capture::watch::number_of(text) : 0;
}
