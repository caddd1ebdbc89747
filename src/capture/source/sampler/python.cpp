// Reading of CPython's frames (python.h). Layouts per version; every pointer is checked before it is followed, because
// the interpreter may have been interrupted while it built a frame.
#include "capture/source/sampler/python.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <string_view>

#include "capture/room/pages.h"
#include "tape/writer.h"

namespace tacho::capture::sampler {
namespace {

constexpr int16_t kAbsent = -1;

// Byte offsets of one minor version.
struct Layout {
  int16_t minor;
  // thread state
  int16_t frame;         // -> newest frame, or -> cframe
  int16_t cframe_frame;  // in the cframe, or kAbsent: no cframe
  int16_t thread_id;
  int16_t chunk;       // data stack; `top` follows
  int16_t finalizing;  // in _PyRuntime
  // frame
  int16_t previous, code, instruction, owner, entry;
  // code object
  int16_t filename, name, first_line, table,
      bytecode;  // bytecode: kAbsent = the instruction is an index already
  // others
  int16_t generator_frame;        // frame inside a generator object
  int16_t ascii, compact, loose;  // text of str objects: where it lies, by kind
};
constexpr Layout kLayouts[] = {
    {9, 24, kAbsent, 176, kAbsent, 16, 24, 32, 104, kAbsent, kAbsent, 104, 112, 40, 120, kAbsent, kAbsent, 48, 72, 56},
    {10, 24, kAbsent, 176, kAbsent, 16, 24, 32, 96, kAbsent, kAbsent, 104, 112, 40, 120, kAbsent, kAbsent, 48, 72, 56},
    {11, 56, 8, 152, 296, 24, 48, 32, 56, 69, 68, 112, 128, 72, 136, 184, 80, 48, 72, 56},
    {12, 56, 0, 136, 232, 24, 8, 0, 56, 70, kAbsent, 112, 128, 68, 136, 192, 72, 40, 56, 56},
    {13, 72, kAbsent, 152, 232, 608, 8, 0, 56, 70, kAbsent, 112, 128, 68, 136, 200, 72, 40, 56, 56},
};
constexpr int16_t kCodeBytes = 208;  // enough of a code object of any version for the fields above

enum Owner : uint8_t { kThread = 0, kGenerator = 1, kShim = 3 };

struct Interpreter {
  Layout layout;
  uintptr_t runtime;
  uintptr_t code_type, generator_type, coroutine_type, async_generator_type;
  void* (*thread_state)();
};
constinit Interpreter g_python = {};
constinit std::atomic<bool> g_ready{false}, g_refused{false};

void refuse(const char* sentence) {
  if (!g_refused.exchange(true)) tape::note(event::NoteSeverity::kWarning, sentence);
}

// Code objects that have a number

// By a key of the object's address and content: addresses are used again while the program runs.
struct CodeEntry {
  std::atomic<uint64_t> key;  // 0 = empty
  std::atomic<uint32_t> number;
  uint32_t generation;  // of the process image that defined it
};
constexpr uint32_t kCodes = 1 << 16;
constinit std::atomic<CodeEntry*> g_codes{nullptr};
constinit std::atomic<uint32_t> g_next_code{1};

CodeEntry* code_table() {
  CodeEntry* table = g_codes.load(std::memory_order_acquire);
  if (table != nullptr) return table;
  void* const memory = map_pages(kCodes * sizeof(CodeEntry));
  if (memory == nullptr) return nullptr;
  auto* const fresh = static_cast<CodeEntry*>(memory);
  if (g_codes.compare_exchange_strong(table, fresh, std::memory_order_acq_rel)) return fresh;
  munmap(memory, kCodes * sizeof(CodeEntry));
  return table;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 31;
}

template <typename T>
T field(const std::byte* object, int16_t offset) {
  T value;
  memcpy(&value, object + offset, sizeof value);
  return value;
}

// A str as UTF-8 in `out`; its length, 0 when it cannot be read.
size_t copy_text(Prober& prober, uintptr_t object, char* out, size_t capacity) {
  const Layout& layout = g_python.layout;
  std::byte head[64];
  if (object == 0 || !prober.read(object, head, sizeof head)) return 0;
  const auto length = field<int64_t>(head, 16);
  const auto state = field<uint32_t>(head, 32);
  if (length <= 0) return 0;
  const uint32_t kind = state >> 2 & 7;
  if (kind != 1 && kind != 2 && kind != 4) return 0;
  const bool compact = (state >> 5 & 1) != 0, ascii = (state >> 6 & 1) != 0;
  uintptr_t text = object + static_cast<uintptr_t>(compact && ascii ? layout.ascii : layout.compact);
  if (!compact) text = field<uintptr_t>(head, layout.loose);
  const size_t characters = static_cast<size_t>(length) < capacity ? static_cast<size_t>(length) : capacity;
  if (!prober.readable(text, characters * kind)) return 0;
  size_t used = 0;
  for (size_t i = 0; i < characters; ++i) {
    uint32_t c = 0;
    memcpy(&c, reinterpret_cast<const char*>(text) + i * kind, kind);
    char bytes[4];
    size_t width = 1;
    if (c < 0x80) {
      bytes[0] = static_cast<char>(c);
    } else if (c < 0x800) {
      bytes[0] = static_cast<char>(0xc0 | c >> 6);
      bytes[1] = static_cast<char>(0x80 | (c & 0x3f));
      width = 2;
    } else if (c < 0x10000) {
      bytes[0] = static_cast<char>(0xe0 | c >> 12);
      bytes[1] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
      bytes[2] = static_cast<char>(0x80 | (c & 0x3f));
      width = 3;
    } else {
      bytes[0] = static_cast<char>(0xf0 | c >> 18);
      bytes[1] = static_cast<char>(0x80 | (c >> 12 & 0x3f));
      bytes[2] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
      bytes[3] = static_cast<char>(0x80 | (c & 0x3f));
      width = 4;
    }
    if (used + width > capacity) break;
    memcpy(out + used, bytes, width);
    used += width;
  }
  return used;
}

// Writes the definition of a code object whose bytes are in `code`; its number, 0 if that is not possible now.
uint32_t define_code(Prober& prober, const std::byte* code, PythonScratch& scratch) {
  const Layout& layout = g_python.layout;
  auto* const record = reinterpret_cast<event::CodeRecord*>(scratch.record);
  *record = {};
  size_t length = copy_text(prober, field<uintptr_t>(code, layout.name), scratch.text, sizeof scratch.text);
  record->name = tape::intern({scratch.text, length});
  length = copy_text(prober, field<uintptr_t>(code, layout.filename), scratch.text, sizeof scratch.text);
  record->file = tape::intern({scratch.text, length});
  if (record->name == 0 || record->file == 0) return 0;
  record->first_line = field<int32_t>(code, layout.first_line);
  record->version = 0x300u | static_cast<uint32_t>(layout.minor);
  // bytes object: size at 16, data at 32. A table longer than fits is cut: later lines show the last one known.
  const uintptr_t table = field<uintptr_t>(code, layout.table);
  int64_t size = 0;
  if (prober.load(table + 16, size) && size > 0) {
    const size_t room = sizeof scratch.record - sizeof *record;
    const size_t bytes = static_cast<size_t>(size) < room ? static_cast<size_t>(size) : room;
    if (prober.read(table + 32, scratch.record + sizeof *record, bytes)) record->table_bytes = bytes;
  }
  const size_t padded = (sizeof *record + record->table_bytes + 7) & ~size_t{7};
  memset(scratch.record + sizeof *record + record->table_bytes, 0, padded - sizeof *record - record->table_bytes);
  const uint32_t number = g_next_code.fetch_add(1, std::memory_order_relaxed);
  record->header = {event::RecordKind::kCode, 0, static_cast<uint16_t>(padded), number};
  return tape::define(&record->header) ? number : 0;
}

uint32_t code_number(Prober& prober, uintptr_t address, PythonScratch& scratch, bool& valid) {
  const Layout& layout = g_python.layout;
  alignas(8) std::byte code[kCodeBytes];
  valid = false;
  if (address % 8 != 0 || !prober.read(address, code, sizeof code)) return 0;
  if (field<uintptr_t>(code, 8) != g_python.code_type) return 0;
  valid = true;
  uint64_t key = mix(0x8f1bbcdcbfa53e0bULL, address);
  key = mix(key, field<uint64_t>(code, 16));
  key = mix(key, field<uint32_t>(code, layout.first_line));
  for (const int16_t part : {layout.filename, layout.name, layout.table}) {
    // Objects: their address, length and first words (the hash of a str).
    const uintptr_t object = field<uintptr_t>(code, part);
    uint64_t words[3] = {};
    if (!prober.read(object + 16, words, sizeof words)) return 0;
    key = mix(mix(mix(key, object), words[0]), words[1]);
    if (part == layout.table) key = mix(key, words[2]);
  }
  if (key == 0) key = 1;
  CodeEntry* const table = code_table();
  if (table == nullptr) return 0;
  const auto generation = static_cast<uint32_t>(tape::process_generation());
  auto at = static_cast<uint32_t>(key) % kCodes;
  for (uint32_t tried = 0; tried < 64; ++tried, at = (at + 1) % kCodes) {
    CodeEntry& entry = table[at];
    uint64_t there = entry.key.load(std::memory_order_acquire);
    if (there == 0) {
      const uint32_t number = define_code(prober, code, scratch);
      if (number != 0 && entry.key.compare_exchange_strong(there, key, std::memory_order_acq_rel)) {
        entry.generation = generation;
        entry.number.store(number, std::memory_order_release);
      }
      return number;
    }
    // A forked child goes on with its parent's definitions.
    if (there == key) return entry.number.load(std::memory_order_acquire);
  }
  return define_code(prober, code, scratch);  // table crowded: defined again
}

// Frames

// Where frames of threads lie: the chunks of the thread's data stack.
class DataStack {
 public:
  template <typename Memory>
  DataStack(Memory& prober, uintptr_t state, int16_t offset) {
    uintptr_t chunk = 0, end = 0;  // of the newest: up to its top
    if (!prober.load(state + static_cast<uintptr_t>(offset), chunk) ||
        !prober.load(state + static_cast<uintptr_t>(offset) + 8, end))
      return;
    constexpr uintptr_t kMostAtOnce = 16384;
    if (end > chunk)
      prober.expect(end - chunk > kMostAtOnce ? end - kMostAtOnce : chunk,
                    end - chunk > kMostAtOnce ? kMostAtOnce : end - chunk);
    while (chunk != 0 && count_ < kMost) {
      chunks_[count_++] = {chunk + 24, end};
      uintptr_t head[2];
      if (!prober.read(chunk, head, sizeof head) || head[0] == 0) break;
      chunk = head[0];
      uintptr_t size = 0;
      if (!prober.load(chunk + 8, size)) break;
      end = chunk + size;
    }
  }
  bool holds(uintptr_t frame, size_t bytes) const {
    for (uint32_t i = 0; i < count_; ++i)
      if (frame >= chunks_[i].begin && frame < chunks_[i].end && bytes <= chunks_[i].end - frame) return true;
    return false;
  }

 private:
  static constexpr uint32_t kMost = 16;
  struct {
    uintptr_t begin, end;
  } chunks_[kMost];
  uint32_t count_ = 0;
};

// Chain of 3.9 and 3.10: frame objects, complete before they can be reached.
template <typename Memory>
event::PythonState object_frames(Memory& prober, uintptr_t frame, PythonScratch& scratch, uint32_t& count) {
  const Layout& layout = g_python.layout;
  while (frame != 0) {
    if (count == PythonScratch::kMost) return event::PythonState::kTruncated;
    alignas(8) std::byte bytes[112];
    if (!prober.read(frame, bytes, sizeof bytes)) return event::PythonState::kBroken;
    const auto last = field<int32_t>(bytes, layout.instruction);
    const int64_t offset = layout.minor == 10 && last >= 0 ? int64_t{last} * 2 : last;
    scratch.frames[count++] = {field<uintptr_t>(bytes, layout.code), static_cast<uintptr_t>(offset), event::kPythonEnd};
    frame = field<uintptr_t>(bytes, layout.previous);
  }
  return event::PythonState::kWhole;
}

// Chain of 3.11 and later: frames on the data stack, in generators and (shims) on the C stack.
template <typename Memory>
event::PythonState interpreter_frames(Memory& prober, uintptr_t state, uintptr_t frame, uintptr_t sp,
                                      uintptr_t stack_high, PythonScratch& scratch, uint32_t& count) {
  const Layout& layout = g_python.layout;
  const DataStack data(prober, state, layout.chunk);
  constexpr size_t kFrameBytes = 80;
  while (frame != 0) {
    if (count == PythonScratch::kMost) return event::PythonState::kTruncated;
    if (frame % 8 != 0) return event::PythonState::kBroken;
    alignas(8) std::byte bytes[kFrameBytes];
    uint8_t expected;
    if (data.holds(frame, kFrameBytes)) {
      if (!prober.copy(frame, bytes, kFrameBytes)) return event::PythonState::kBroken;
      expected = kThread;
    } else if (layout.minor >= 12 && frame >= sp && frame < stack_high && kFrameBytes <= stack_high - frame) {
      if (!prober.copy(frame, bytes, kFrameBytes)) return event::PythonState::kBroken;
      expected = kShim;
    } else {
      uintptr_t type = 0;
      if (!prober.load(frame - static_cast<uintptr_t>(layout.generator_frame) + 8, type) ||
          !prober.read(frame, bytes, kFrameBytes))
        return event::PythonState::kBroken;
      const bool generator =
          type == g_python.generator_type || type == g_python.coroutine_type || type == g_python.async_generator_type;
      // Without known bounds of the C stack a shim shows itself by its owner only.
      if (!generator && !(layout.minor >= 12 && stack_high == 0 && field<uint8_t>(bytes, layout.owner) == kShim))
        return event::PythonState::kBroken;
      expected = generator ? kGenerator : kShim;
    }
    const auto owner = field<uint8_t>(bytes, layout.owner);
    if (owner != expected) return event::PythonState::kBroken;
    if (owner == kShim) {
      scratch.frames[count++] = {0, 0, event::kPythonShim};
    } else {
      const auto code = field<uintptr_t>(bytes, layout.code);
      const auto instruction = field<uintptr_t>(bytes, layout.instruction);
      const bool ends = layout.entry != kAbsent && field<uint8_t>(bytes, layout.entry) == 1;
      scratch.frames[count++] = {code, instruction - (code + static_cast<uintptr_t>(layout.bytecode)),
                                 ends ? event::kPythonEnd : 0};
    }
    frame = field<uintptr_t>(bytes, layout.previous);
  }
  return event::PythonState::kWhole;
}

// Frames of the thread behind a thread state, innermost first, into scratch.frames.
template <typename Memory>
event::PythonState chain_of(Memory& memory, uintptr_t state, uintptr_t sp, uintptr_t stack_high, PythonScratch& scratch,
                            uint32_t& found) {
  const Layout& layout = g_python.layout;
  found = 0;
  uintptr_t frame = 0;
  if (!memory.load(state + static_cast<uintptr_t>(layout.frame), frame)) return event::PythonState::kNone;
  if (layout.cframe_frame != kAbsent && frame != 0 &&
      !memory.load(frame + static_cast<uintptr_t>(layout.cframe_frame), frame))
    return event::PythonState::kBroken;
  return layout.minor <= 10 ? object_frames(memory, frame, scratch, found)
                            : interpreter_frames(memory, state, frame, sp, stack_high, scratch, found);
}

// scratch.frames as the record has them, into scratch.words.
event::PythonState describe(Prober& prober, event::PythonState result, uint32_t found, PythonScratch& scratch,
                            uint32_t& count) {
  for (uint32_t i = 0; i < found; ++i) {
    const PythonScratch::Frame& one = scratch.frames[i];
    uint64_t word = one.flags;
    if ((one.flags & event::kPythonShim) == 0) {
      bool valid = false;
      const uint32_t number = code_number(prober, one.code, scratch, valid);
      if (!valid) return event::PythonState::kBroken;  // from here on nothing can be believed
      const auto offset = static_cast<int64_t>(one.instruction);
      word |= static_cast<uint64_t>(number) << 32;
      if (offset >= 0 && offset < (1 << 28)) word |= static_cast<uint64_t>(offset) + 2;
    }
    scratch.words[count++] = word;
  }
  return result;
}

// Threads that wait for others

// Some of Python's threads, as they have shown themselves. If an entry's thread has ended, its thread state has another
// number or is no longer readable.
struct KnownThread {
  std::atomic<uintptr_t> state;  // 0 = free
  std::atomic<uintptr_t> thread;
  std::atomic<uint64_t> generation;
};
constexpr uint32_t kKnownThreads = 16;
constinit KnownThread g_known_threads[kKnownThreads] = {};
constinit std::atomic<uint32_t> g_threads_known{1};  // changes of the list
constexpr int64_t kAnswerHolds = 100'000'000;        // ns
constexpr uint32_t kMostWaiting = 48;                // threads of Python: with more the search would take too long

void remember(uintptr_t state, uintptr_t thread) {
  const uint64_t generation = tape::process_generation();
  const auto first = static_cast<uint32_t>(mix(0, state)) % kKnownThreads;
  KnownThread* chosen = &g_known_threads[first];  // in a crowded table the oldest goes
  for (uint32_t tried = 0, at = first; tried < 4; ++tried, at = (at + 1) % kKnownThreads) {
    KnownThread& entry = g_known_threads[at];
    const uintptr_t there = entry.state.load(std::memory_order_relaxed);
    if (there == state && entry.thread.load(std::memory_order_relaxed) == thread &&
        entry.generation.load(std::memory_order_relaxed) == generation)
      return;
    if (there == 0 || there == state || entry.generation.load(std::memory_order_relaxed) != generation) {
      chosen = &entry;
      break;
    }
  }
  chosen->thread.store(thread, std::memory_order_relaxed);
  chosen->generation.store(generation, std::memory_order_relaxed);
  chosen->state.store(state, std::memory_order_release);
  g_threads_known.fetch_add(1, std::memory_order_release);
}

// The end of a str of another thread's, at most `capacity` characters; characters beyond ASCII as '?'.
size_t end_of_text(uintptr_t object, char* out, size_t capacity) {
  const Layout& layout = g_python.layout;
  std::byte head[64];
  if (object == 0 || !Snapshot::read_now(object, head, sizeof head)) return 0;
  const auto length = field<int64_t>(head, 16);
  const auto state = field<uint32_t>(head, 32);
  const uint32_t kind = state >> 2 & 7;
  if (length <= 0 || (kind != 1 && kind != 2 && kind != 4)) return 0;
  const bool compact = (state >> 5 & 1) != 0, ascii = (state >> 6 & 1) != 0;
  uintptr_t text = object + static_cast<uintptr_t>(compact && ascii ? layout.ascii : layout.compact);
  if (!compact) text = field<uintptr_t>(head, layout.loose);
  size_t characters = static_cast<size_t>(length);
  if (characters > capacity) {
    text += (characters - capacity) * kind;
    characters = capacity;
  }
  char wide[4 * 128];
  if (characters * kind > sizeof wide || !Snapshot::read_now(text, wide, characters * kind)) return 0;
  for (size_t i = 0; i < characters; ++i) {
    uint32_t c = 0;
    memcpy(&c, wide + i * kind, kind);
    out[i] = c < 0x80 ? static_cast<char>(c) : '?';
  }
  return characters;
}

// Functions of PyTorch in which a thread waits for its backward pass.
bool is_backward(uintptr_t address) {
  const Layout& layout = g_python.layout;
  alignas(8) std::byte code[kCodeBytes];
  if (address % 8 != 0 || !Snapshot::read_now(address, code, sizeof code) ||
      field<uintptr_t>(code, 8) != g_python.code_type)
    return false;
  char text[128];
  const std::string_view file(text, end_of_text(field<uintptr_t>(code, layout.filename), text, sizeof text));
  if (file.find("torch/autograd/") == std::string_view::npos) return false;
  const std::string_view name(text, end_of_text(field<uintptr_t>(code, layout.name), text, sizeof text));
  return name == "_engine_run_backward" || name == "backward" || name == "grad";
}

// State of the one thread that waits in torch/autograd; 0 = none, several, or unknown. Searches all threads of the
// interpreter, also those that have not shown themselves, by following the list of their states from one that has. The
// list may change meanwhile; an inconsistency ends the search.
uintptr_t waiting_state(WaitingScratch& waiting, int64_t now) {
  const Layout& layout = g_python.layout;
  Snapshot& memory = waiting.memory;
  const uint64_t generation = tape::process_generation();
  const auto most = [](int16_t a, int16_t b) { return a > b ? a : b; };
  int16_t needed = most(layout.frame, layout.thread_id);
  if (layout.chunk != kAbsent) needed = most(needed, static_cast<int16_t>(layout.chunk + 8));
  // Every version's state begins so.
  struct Links {
    uintptr_t previous, next, interpreter;
  };
  const auto links_of = [&](uintptr_t state, Links& links) {
    memory.expect(state, static_cast<size_t>(needed) + 8);
    return memory.load(state, links) && links.interpreter != 0;
  };
  uintptr_t first = 0;
  Links links{};
  for (const KnownThread& entry : g_known_threads) {
    const uintptr_t state = entry.state.load(std::memory_order_acquire);
    uintptr_t thread = 0;
    if (state != 0 && entry.generation.load(std::memory_order_relaxed) == generation && links_of(state, links) &&
        memory.load(state + static_cast<uintptr_t>(layout.thread_id), thread) &&
        thread == entry.thread.load(std::memory_order_relaxed)) {
      first = state;
      break;
    }
  }
  if (first == 0) return 0;
  const uintptr_t interpreter = links.interpreter;
  const auto changing = [&] {
    memory.give_up();
    return uintptr_t{0};
  };
  for (uint32_t steps = 0; links.previous != 0; ++steps) {
    Links before{};
    if (steps == kMostWaiting || !links_of(links.previous, before) || before.next != first ||
        before.interpreter != interpreter)
      return changing();
    first = links.previous;
    links = before;
  }
  uintptr_t result = 0, previous = 0;
  uint32_t steps = 0;
  for (uintptr_t state = first; state != 0; previous = state, state = links.next) {
    if (++steps > kMostWaiting || !links_of(state, links) || links.previous != previous ||
        links.interpreter != interpreter)
      return changing();
    uintptr_t frame = 0, code = 0;
    if (!memory.load(state + static_cast<uintptr_t>(layout.frame), frame)) return changing();
    if (frame == 0) continue;
    if (layout.cframe_frame != kAbsent) {
      if (!memory.load(frame + static_cast<uintptr_t>(layout.cframe_frame), frame)) continue;
      if (frame == 0) continue;
    }
    // A thread that runs may have left the frame by now: it does not wait.
    if (!memory.load(frame + static_cast<uintptr_t>(layout.code), code)) continue;
    auto& known = waiting.codes[mix(0, code) % (sizeof waiting.codes / sizeof waiting.codes[0])];
    if (known.code != code || now >= known.until) known = {code, now + kAnswerHolds, is_backward(code)};
    if (!known.waits) continue;
    if (result != 0) return 0;
    result = state;
  }
  return result;
}

// Finding the interpreter

// Offsets of the members of code objects as the interpreter itself publishes them: a check of the table above.
bool members_agree(uintptr_t code_type, const Layout& layout) {
  const uintptr_t members = *reinterpret_cast<const uintptr_t*>(code_type + 240);
  if (members == 0) return false;
  int found = 0;
  for (uintptr_t entry = members;; entry += 40) {
    const char* const name = *reinterpret_cast<const char* const*>(entry);
    if (name == nullptr) break;
    const auto offset = *reinterpret_cast<const int64_t*>(entry + 16);
    if (strcmp(name, "co_filename") == 0) {
      if (offset != layout.filename) return false;
      ++found;
    }
    if (strcmp(name, "co_firstlineno") == 0) {
      if (offset != layout.first_line) return false;
      ++found;
    }
    if (strcmp(name, "co_name") == 0 || strcmp(name, "co_qualname") == 0) {
      const int16_t expected = strcmp(name, "co_qualname") == 0 ? layout.name
                               : layout.minor <= 10             ? layout.name
                                                                : static_cast<int16_t>(layout.name - 8);
      if (offset != expected) return false;
      ++found;
    }
  }
  return found >= 3;
}

// 3.13 says its own offsets at the start of _PyRuntime.
bool take_debug_offsets(uintptr_t runtime, Layout& layout) {
  const auto* const words = reinterpret_cast<const uint64_t*>(runtime);
  if (memcmp(words, "xdebugpy", 8) != 0 || words[1] >> 16 != 0x030d) return false;
  if (words[2] != 0) return false;  // free-threaded
  const auto small = [](uint64_t value) { return static_cast<int16_t>(value); };
  const uint64_t* const runtime_state = words + 3;        // size, finalizing, interpreters_head
  const uint64_t* const thread = runtime_state + 3 + 13;  // size, prev, next, interp, current_frame, thread_id, ...
  const uint64_t* const frame = thread + 9;               // size, previous, executable, instr_ptr, localsplus, owner
  const uint64_t* const code = frame + 6;                 // size, filename, name, qualname, linetable, firstlineno, ...
  layout.finalizing = small(runtime_state[1]);
  layout.frame = small(thread[4]);
  layout.thread_id = small(thread[5]);
  layout.chunk = small(thread[7]);
  layout.previous = small(frame[1]);
  layout.code = small(frame[2]);
  layout.instruction = small(frame[3]);
  layout.owner = small(frame[5]);
  layout.filename = small(code[1]);
  layout.name = small(code[3]);
  layout.table = small(code[4]);
  layout.first_line = small(code[5]);
  layout.bytecode = small(code[9]);
  return true;
}

uintptr_t symbol(const char* name) {
  return reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void forget_python() {
  if (CodeEntry* const table = g_codes.exchange(nullptr)) munmap(table, kCodes * sizeof(CodeEntry));
  g_ready.store(false, std::memory_order_release);
  g_refused.store(false, std::memory_order_relaxed);
}

void find_python() {
  if (g_ready.load(std::memory_order_acquire) || g_refused.load(std::memory_order_relaxed)) return;
  const uintptr_t runtime = symbol("_PyRuntime");
  if (runtime == 0) return;
  static constinit std::atomic<bool> busy{false};
  if (busy.exchange(true)) return;
  Interpreter found = {};
  found.runtime = runtime;
  uint32_t version = 0;
  if (const uintptr_t at = symbol("Py_Version"); at != 0) {
    version = *reinterpret_cast<const uint32_t*>(at) >> 16;
  } else if (const uintptr_t get = symbol("Py_GetVersion");
             get != 0) {  // may be called before the interpreter is set up
    unsigned major = 0, minor = 0;
    if (sscanf(reinterpret_cast<const char* (*)()>(get)(), "%u.%u", &major, &minor) == 2) version = major << 8 | minor;
  }
  bool known = false;
  for (const Layout& layout : kLayouts)
    if (version == (0x300u | static_cast<uint32_t>(layout.minor))) {
      found.layout = layout;
      known = true;
    }
  found.code_type = symbol("PyCode_Type");
  found.generator_type = symbol("PyGen_Type");
  found.coroutine_type = symbol("PyCoro_Type");
  found.async_generator_type = symbol("PyAsyncGen_Type");
  found.thread_state = reinterpret_cast<void* (*)()>(symbol("PyGILState_GetThisThreadState"));
  if (!known) {
    refuse(
        "this version of Python is not one whose frames tacho can read (3.9 to 3.13): its call stacks are native only");
  } else if (found.code_type == 0 || found.thread_state == nullptr || found.generator_type == 0) {
    refuse("this Python hides the symbols that tacho needs to read its frames: call stacks are native only");
  } else if ((found.layout.minor >= 13 && !take_debug_offsets(runtime, found.layout)) ||
             !members_agree(found.code_type, found.layout)) {
    refuse("this build of Python (free-threaded or with other structures) lays out "
           "its frames differently: call stacks are native only");
  } else {
    g_python = found;
    g_ready.store(true, std::memory_order_release);
  }
  busy.store(false);
}

event::PythonState python_frames(Prober& prober, uintptr_t sp, uintptr_t stack_high, PythonScratch& scratch,
                                 uint32_t& count) {
  count = 0;
  if (!g_ready.load(std::memory_order_acquire)) return event::PythonState::kNone;
  const Layout& layout = g_python.layout;
  const auto state = reinterpret_cast<uintptr_t>(g_python.thread_state());
  if (state == 0) return event::PythonState::kNone;
  // At the end of the interpreter only the thread that ends it has a state that is surely not freed.
  const auto finalizing =
      *reinterpret_cast<const uintptr_t*>(g_python.runtime + static_cast<uintptr_t>(layout.finalizing));
  if (finalizing != 0 && finalizing != state) return event::PythonState::kNone;
  uintptr_t thread = 0;
  if (!prober.load(state + static_cast<uintptr_t>(layout.thread_id), thread) || thread != pthread_self())
    return event::PythonState::kNone;
  remember(state, thread);
  uint32_t found = 0;
  const event::PythonState result = chain_of(prober, state, sp, stack_high, scratch, found);
  return describe(prober, result, found, scratch, count);
}

event::PythonState waiting_frames(WaitingScratch& waiting, PythonScratch& scratch, uint32_t& count) {
  count = 0;
  if (!g_ready.load(std::memory_order_acquire)) return event::PythonState::kNone;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  const int64_t now = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  const uint32_t known = g_threads_known.load(std::memory_order_acquire);
  if (now >= waiting.until || known != waiting.threads_known || !waiting.memory.unchanged()) {
    waiting.memory.clear();
    waiting.threads_known = known;
    waiting.count = 0;
    waiting.state = event::PythonState::kNone;
    const uintptr_t state = waiting_state(waiting, now);
    uint32_t found = 0;
    if (state != 0) {
      const event::PythonState result = chain_of(waiting.memory, state, 0, 0, scratch, found);
      if (result != event::PythonState::kBroken && result != event::PythonState::kNone) {
        // Code objects of a frame that waits stay.
        Prober prober;
        waiting.state = describe(prober, result, found, scratch, waiting.count);
        if (waiting.state == event::PythonState::kBroken) waiting.count = 0;
        memcpy(waiting.words, scratch.words, waiting.count * sizeof scratch.words[0]);
      }
    }
    // The bytes do not show when another code object takes a place in memory: looked at again before long.
    waiting.until = waiting.memory.complete() ? now + kAnswerHolds : 0;
  } else {
    memcpy(scratch.words, waiting.words, waiting.count * sizeof scratch.words[0]);
  }
  count = waiting.count;
  return count != 0 ? waiting.state : event::PythonState::kNone;
}

}  // namespace tacho::capture::sampler
