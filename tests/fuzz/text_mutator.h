// Mutations that keep a JSON or YAML text mostly well-formed: random bytes rarely get past the first bracket.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tacho::fuzz {

/// A stretch of letters, digits, dots and minus signs, or of a quoted string without its quotes.
inline bool word_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

/// Changes `text` in one to three places: a word becomes another of the text or one of `words` or an interesting
/// number; a stretch between separators is doubled, moved or removed; or bytes change at random. Empty texts become
/// `document`.
inline std::string mutated_text(std::string text, std::string_view document,
                                std::initializer_list<std::string_view> words, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  if (text.size() < 4 || random() % 64 == 0) text = document;
  static constexpr std::string_view kNumbers[] = {"0",
                                                  "-1",
                                                  "1",
                                                  "255",
                                                  "65536",
                                                  "2147483648",
                                                  "4294967296",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551615",
                                                  "99999999999999999999999",
                                                  "1e400",
                                                  "-1e-400",
                                                  "0.5",
                                                  "null",
                                                  "true",
                                                  "[]",
                                                  "{}",
                                                  "\"\"",
                                                  "\"\\u0000\"",
                                                  "\"\\ud800\"",
                                                  "0x7fffffff"};
  const auto word_at = [&](size_t from, size_t& begin, size_t& end) {
    for (begin = from; begin < text.size() && !word_byte(text[begin]); ++begin) {
    }
    for (end = begin; end < text.size() && word_byte(text[end]); ++end) {
    }
    return end > begin;
  };
  for (auto changes = 1 + random() % 3; changes > 0 && !text.empty(); --changes) {
    const size_t at = random() % text.size();
    size_t begin = 0, end = 0, other_begin = 0, other_end = 0;
    switch (random() % 6) {
      case 0:
        if (word_at(at, begin, end)) text.replace(begin, end - begin, kNumbers[random() % std::size(kNumbers)]);
        break;
      case 1:
        if (words.size() > 0 && word_at(at, begin, end))
          text.replace(begin, end - begin, *(words.begin() + random() % words.size()));
        break;
      case 2:
        if (word_at(at, begin, end) && word_at(random() % text.size(), other_begin, other_end))
          text.replace(begin, end - begin, text.substr(other_begin, other_end - other_begin));
        break;
      case 3: {  // a stretch from one separator to another, put elsewhere after a separator
        static constexpr std::string_view kSeparators = ",\n";
        begin = text.find_first_of(kSeparators, at);
        if (begin == std::string::npos) break;
        end = text.find_first_of(kSeparators, begin + 1 + random() % 200);
        if (end == std::string::npos) break;
        const std::string stretch = text.substr(begin, end - begin);
        const size_t place = text.find_first_of(kSeparators, random() % text.size());
        if (place != std::string::npos) text.insert(place, stretch);
        break;
      }
      case 4:
        begin = text.find_first_of(",\n", at);
        if (begin == std::string::npos) break;
        end = text.find_first_of(",\n", begin + 1 + random() % 200);
        if (end != std::string::npos) text.erase(begin, end - begin);
        break;
      default: {
        const size_t size = text.size();
        text.resize(size + 8);
        text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
      }
    }
  }
  if (text.size() > max_size) text.resize(max_size);
  return text;
}

/// For LLVMFuzzerCustomMutator: puts `text` into the buffer.
inline size_t put(std::string_view text, uint8_t* data) {
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace tacho::fuzz
