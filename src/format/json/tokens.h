// A JSON reader for text that may end anywhere. Every function returns kMore when it reaches the end of the text, so
// that its caller can get more and start again at the beginning of the event.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::format::json {

enum class JsonOutcome : uint8_t { kOk, kMore, kBad };

/// Characters of numbers, true, false and null (and of nonsense that looks like them).
struct WordCharacters {
  bool is[256] = {};
  constexpr WordCharacters() {
    for (int c = '0'; c <= '9'; ++c) is[c] = true;
    for (int c = 'a'; c <= 'z'; ++c) is[c] = true;
    for (int c = 'A'; c <= 'Z'; ++c) is[c] = true;
    is[static_cast<int>('+')] = is[static_cast<int>('-')] = is[static_cast<int>('.')] = true;
  }
};
inline constexpr WordCharacters kWord;

/// Whether `key` is `name`: without a call of memcmp, unlike ==.
template <size_t kSize>
[[gnu::always_inline]] inline bool is(std::string_view key, const char (&name)[kSize]) {
  return key.size() == kSize - 1 && __builtin_memcmp(key.data(), name, kSize - 1) == 0;
}

/// Reads tokens. A text that it returns points into the input, or into the caller's buffer if it had escapes.
class JsonTokens {
 public:
  static constexpr int kDeepest = 512;
  static constexpr const char* kTooDeep = "values nested too deeply";  // what() of valid JSON that is too deep

  /// The caller keeps the text; 64 readable bytes, all zero, must follow `end`. `unescaped`, if given, remembers of the
  /// whole file that its writer does not escape backslashes: set as soon as a text shows it, see unescape().
  JsonTokens(const char* at, const char* end, bool* unescaped = nullptr) : at_(at), end_(end), unescaped_(unescaped) {}

  const char* at() const { return at_; }
  const char* end() const { return end_; }
  const char* what() const { return what_; }  // the reason, after kBad

  [[gnu::always_inline]] void skip_space() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
  }
  /// The next character that is not white space; '\0' at the end.
  [[gnu::always_inline]] char peek() {
    skip_space();
    return *at_;
  }
  bool at_end() {
    skip_space();
    return at_ >= end_;
  }
  void step() { ++at_; }

  JsonOutcome expect(char c) {
    if (peek() == c) {
      ++at_;
      return JsonOutcome::kOk;
    }
    return at_ >= end_ ? JsonOutcome::kMore : bad("unexpected character");
  }

  /// The raw text between quotes; `escaped` says whether it contains backslashes (see unescape).
  [[gnu::always_inline]] JsonOutcome raw_string(std::string_view& text, bool& escaped) {
    if (peek() != '"') return at_ >= end_ ? JsonOutcome::kMore : bad("a string was expected");
    const char* const first = ++at_;
    escaped = false;
    while (true) {
      at_ = find_special(at_);
      if (at_ >= end_) return JsonOutcome::kMore;
      if (*at_ == '"') break;
      if (*at_ == '\\') {
        escaped = true;
        if (at_ + 1 >= end_) return JsonOutcome::kMore;
        at_ += 2;
        continue;
      }
      // Other tools write control characters into names unescaped; tacho accepts them.
      ++at_;
    }
    text = {first, static_cast<size_t>(at_ - first)};
    ++at_;
    return JsonOutcome::kOk;
  }
  /// A string with its escapes resolved; if it has any, `buffer` holds the text.
  JsonOutcome string(std::string_view& text, std::string& buffer) {
    bool escaped = false;
    const JsonOutcome outcome = raw_string(text, escaped);
    if (outcome == JsonOutcome::kOk && escaped) {
      if (unescape(text, buffer, unescaped_ != nullptr && *unescaped_) && unescaped_ != nullptr) *unescaped_ = true;
      text = buffer;
    }
    return outcome;
  }
  /// Resolves the escapes of a text. Some tools write paths of Windows without escaping them (C:\Users\dev): a text
  /// with an escape that JSON does not have, or with a drive and a single backslash, keeps its backslashes, but for \"
  /// and \\. So does a path if `unescaped`. Returns whether this text shows that its writer does not escape.
  static bool unescape(std::string_view text, std::string& out, bool unescaped = false);

  /// The characters of a number, true, false or null.
  JsonOutcome word(std::string_view& text) {
    skip_space();
    const char* const first = at_;
    while (kWord.is[static_cast<unsigned char>(*at_)]) ++at_;
    if (at_ >= end_) return JsonOutcome::kMore;
    if (at_ == first) return bad("a value was expected");
    text = {first, static_cast<size_t>(at_ - first)};
    return JsonOutcome::kOk;
  }

  /// Skips a value of any kind.
  JsonOutcome skip();

  JsonOutcome bad(const char* what) {
    what_ = what;
    return JsonOutcome::kBad;
  }

 private:
  // The next quote, backslash or character below the space.
  static const char* find_special(const char* at) {
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), low = _mm_set1_epi8(0x1f);
    while (true) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      const __m128i hits = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, slash)),
                                        _mm_cmpeq_epi8(_mm_min_epu8(block, low), block));
      const int mask = _mm_movemask_epi8(hits);
      if (mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
      at += 16;
    }
  }

  const char* at_;
  const char* end_;
  bool* unescaped_;
  const char* what_ = "";
};

/// A decimal number times 10^3 as an exact integer (rounds further digits half away from zero): turns microseconds into
/// ns. False if the text is no number or does not fit.
bool thousandfold(std::string_view text, int64_t& value);
/// An integer, decimal or hexadecimal with 0x; a fraction must be zero. Unsigned 64-bit numbers keep their bits.
bool integer(std::string_view text, int64_t& value);
bool real(std::string_view text, double& value);

}  // namespace tacho::format::json
