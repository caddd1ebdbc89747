// The libc functions that libtacho.so calls while it records, as hidden functions of its own: calls from here bind to
// them, the program's do not. ThreadSanitizer and its like interpose these functions, do not see how libtacho.so's
// threads synchronise, and would report races in it and change the program's exit code.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <emmintrin.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "tape/permitted.h"

#define TACHO_OWN extern "C" __attribute__((visibility("hidden"), used))

namespace {

using Bytes = unsigned char;
// Words at any address, of any type.
typedef uint64_t Word8 __attribute__((may_alias, aligned(1)));
typedef uint32_t Word4 __attribute__((may_alias, aligned(1)));
typedef uint16_t Word2 __attribute__((may_alias, aligned(1)));

// From this many bytes on, the processor's own copying is as fast as any.
constexpr size_t kLong = 512;

inline __m128i load16(const Bytes* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
inline void store16(Bytes* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}
template <typename Word>
inline Word load(const Bytes* from) {
  return *reinterpret_cast<const Word*>(from);
}
template <typename Word>
inline void store(Bytes* to, uint64_t value) {
  *reinterpret_cast<Word*>(to) = static_cast<Word>(value);
}

// At most 16 bytes; all are read before any is written.
inline void copy_short(Bytes* to, const Bytes* from, size_t bytes) {
  if (bytes >= 8) {
    const uint64_t first = load<Word8>(from), last = load<Word8>(from + bytes - 8);
    store<Word8>(to, first);
    store<Word8>(to + bytes - 8, last);
  } else if (bytes >= 4) {
    const uint64_t first = load<Word4>(from), last = load<Word4>(from + bytes - 4);
    store<Word4>(to, first);
    store<Word4>(to + bytes - 4, last);
  } else if (bytes >= 2) {
    const uint64_t first = load<Word2>(from), last = load<Word2>(from + bytes - 2);
    store<Word2>(to, first);
    store<Word2>(to + bytes - 2, last);
  } else if (bytes == 1) {
    *to = *from;
  }
}

}  // namespace

TACHO_OWN void* memcpy(void* out, const void* in, size_t bytes) {
  auto* to = static_cast<Bytes*>(out);
  const auto* from = static_cast<const Bytes*>(in);
  if (bytes <= 16) {
    copy_short(to, from, bytes);
  } else if (bytes < kLong) {
    const __m128i last = load16(from + bytes - 16);
    for (size_t at = 0; at + 16 < bytes; at += 16) store16(to + at, load16(from + at));
    store16(to + bytes - 16, last);
  } else {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  }
  return out;
}

TACHO_OWN void* memmove(void* out, const void* in, size_t bytes) {
  auto* const to = static_cast<Bytes*>(out);
  const auto* const from = static_cast<const Bytes*>(in);
  if (bytes <= 16) {
    copy_short(to, from, bytes);
  } else if (to <= from || to >= from + bytes) {
    // Forwards, each piece read before it is written.
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16) store16(to + at, load16(from + at));
    for (; at < bytes; ++at) {
      to[at] = from[at];
      asm volatile("" : : : "memory");  // keeps the compiler from turning the loop into a call of the function itself
    }
  } else {
    size_t at = bytes;
    for (; at >= 16; at -= 16) store16(to + at - 16, load16(from + at - 16));
    for (; at > 0; --at) {
      to[at - 1] = from[at - 1];
      asm volatile("" : : : "memory");
    }
  }
  return out;
}

TACHO_OWN void* memset(void* out, int value, size_t bytes) {
  auto* to = static_cast<Bytes*>(out);
  const uint64_t word = 0x0101010101010101ULL * static_cast<Bytes>(value);
  if (bytes >= kLong) {
    asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
  } else if (bytes >= 8) {
    for (size_t at = 0; at + 8 < bytes; at += 8) store<Word8>(to + at, word);
    store<Word8>(to + bytes - 8, word);
  } else {
    for (size_t at = 0; at < bytes; ++at) {
      to[at] = static_cast<Bytes>(value);
      asm volatile("" : : : "memory");
    }
  }
  return out;
}

TACHO_OWN int memcmp(const void* one, const void* two, size_t bytes) {
  const auto* const a = static_cast<const Bytes*>(one);
  const auto* const b = static_cast<const Bytes*>(two);
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8)
    if (load<Word8>(a + at) != load<Word8>(b + at)) break;
  for (; at < bytes; ++at)
    if (a[at] != b[at]) return a[at] < b[at] ? -1 : 1;
  return 0;
}

namespace {
// Bytes before the first 0, at most `most`. Reads whole aligned pieces, which never cross into an unmapped page.
__attribute__((no_sanitize("address"))) size_t length_of(const char* text, size_t most) {
  const auto begin = reinterpret_cast<uintptr_t>(text);
  const uintptr_t aligned = begin & ~uintptr_t{15};
  const __m128i zero = _mm_setzero_si128();
  const auto zeros = [&](uintptr_t at) {
    return static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(reinterpret_cast<const __m128i*>(at)), zero)));
  };
  uint32_t found = zeros(aligned) >> (begin - aligned);
  if (found != 0) {
    const auto length = static_cast<size_t>(__builtin_ctz(found));
    return length < most ? length : most;
  }
  for (uintptr_t at = aligned + 16; at - begin < most; at += 16) {
    found = zeros(at);
    if (found == 0) continue;
    const size_t length = at - begin + static_cast<size_t>(__builtin_ctz(found));
    return length < most ? length : most;
  }
  return most;
}
}  // namespace

TACHO_OWN size_t strlen(const char* text) {
  return length_of(text, SIZE_MAX / 2);
}
TACHO_OWN size_t strnlen(const char* text, size_t most) {
  return most == 0 ? 0 : length_of(text, most);
}

TACHO_OWN void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (!tacho::tape::permitted(tacho::tape::kCallMemory)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
TACHO_OWN int munmap(void* at, size_t bytes) {
  if (!tacho::tape::permitted(tacho::tape::kCallMemory)) return -1;
  return static_cast<int>(syscall(SYS_munmap, at, bytes));
}

#endif
