// Reads protobuf messages: fields one after the other, without exceptions, copies or trust in any length.
//
//   key = varint(number << 3 | type), then by type: 0 a varint, 1 eight bytes, 2 varint(length) and as many bytes,
//   5 four bytes. Perfetto uses no others.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tacho::format::perfetto {

/// read_varint() for numbers of more than two bytes.
inline bool read_long_varint(const char*& at, const char* end, uint64_t& value) {
  uint64_t result = 0;
  const char* byte = at;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (byte == end) return false;
    const auto bits = static_cast<unsigned char>(*byte++);
    if (shift < 64) result |= static_cast<uint64_t>(bits & 0x7f) << shift;
    if (bits < 0x80) {
      value = result;
      at = byte;
      return true;
    }
  }
  return false;
}

/// The varint at `at`, which moves behind it; false if it does not end before `end` or has more than ten bytes.
[[gnu::always_inline]] inline bool read_varint(const char*& at, const char* end, uint64_t& value) {
  if (end - at >= 2) [[likely]] {
    const auto first = static_cast<unsigned char>(at[0]), second = static_cast<unsigned char>(at[1]);
    if (first < 0x80) {
      value = first;
      ++at;
      return true;
    }
    if (second < 0x80) {
      value = static_cast<uint64_t>(first & 0x7f) | static_cast<uint64_t>(second) << 7;
      at += 2;
      return true;
    }
  }
  return read_long_varint(at, end, value);
}

/// True if a message is only number `a` = `value` and number `b`, both below 16 and in this order; `b_value` gets the
/// latter's. Half of the events of a trace are such ends of slices.
inline bool is_pair(std::string_view message, uint32_t a, char value, uint32_t b, uint64_t& b_value) {
  if (message.size() < 4 || message[0] != static_cast<char>(a << 3) || message[1] != value ||
      message[2] != static_cast<char>(b << 3))
    return false;
  const char* at = message.data() + 3;
  const char* const end = message.data() + message.size();
  return read_varint(at, end, b_value) && at == end;
}

/// The fields of one message. `for (WireFields field(message); field.next();) switch (field.number()) ...`
class WireFields {
 public:
  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireFields(std::string_view message) : at_(message.data()), end_(message.data() + message.size()) {}

  /// Moves to the next field; false at the end of the message and where it makes no sense: see damaged().
  [[gnu::always_inline]] bool next() {
    if (at_ == end_) return false;
    uint64_t key = 0;
    if (!read_varint(at_, end_, key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) return stop();
    number_ = static_cast<uint32_t>(key >> 3);
    type_ = static_cast<uint32_t>(key & 7);
    switch (type_) {
      case kVarint:
        return read_varint(at_, end_, value_) || stop();
      case kFixed64:
        if (end_ - at_ < 8) return stop();
        std::memcpy(&value_, at_, 8);
        at_ += 8;
        return true;
      case kBytes:
        if (!read_varint(at_, end_, value_) || value_ > static_cast<uint64_t>(end_ - at_)) return stop();
        bytes_ = std::string_view(at_, static_cast<size_t>(value_));
        at_ += value_;
        return true;
      case kFixed32: {
        if (end_ - at_ < 4) return stop();
        uint32_t small = 0;
        std::memcpy(&small, at_, 4);
        value_ = small;
        at_ += 4;
        return true;
      }
      default:
        return stop();
    }
  }

  uint32_t number() const { return number_; }
  uint32_t type() const { return type_; }
  /// The field's number and type in one: is(4, kBytes). A known number of another type is an unknown field.
  bool is_number() const { return type_ == kVarint; }
  bool is_bytes() const { return type_ == kBytes; }
  uint64_t value() const { return value_; }
  int64_t signed_value() const { return static_cast<int64_t>(value_); }
  /// A double, or a float in four bytes.
  double real() const {
    return type_ == kFixed32 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(value_)))
                             : std::bit_cast<double>(value_);
  }
  /// The content of a text or message; empty for fields of another type.
  std::string_view bytes() const { return type_ == kBytes ? bytes_ : std::string_view(); }
  /// True once next() has met bytes that are no field.
  bool damaged() const { return damaged_; }

  /// Calls f(value) for each number of a repeated field, packed or not.
  template <typename F>
  void each_number(F f) const {
    if (type_ != kBytes) return f(value_);
    const char* at = bytes_.data();
    uint64_t value = 0;
    while (at != bytes_.data() + bytes_.size() && read_varint(at, bytes_.data() + bytes_.size(), value)) f(value);
  }
  /// The same for fields of eight bytes.
  template <typename F>
  void each_fixed(F f) const {
    if (type_ != kBytes) return f(value_);
    for (size_t at = 0; at + 8 <= bytes_.size(); at += 8) {
      uint64_t value = 0;
      std::memcpy(&value, bytes_.data() + at, 8);
      f(value);
    }
  }

 private:
  bool stop() {
    damaged_ = true;
    at_ = end_;
    return false;
  }

  const char *at_, *end_;
  uint32_t number_ = 0, type_ = 0;
  uint64_t value_ = 0;
  std::string_view bytes_;
  bool damaged_ = false;
};

}  // namespace tacho::format::perfetto
