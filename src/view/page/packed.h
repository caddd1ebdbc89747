// The data of a self-contained page, as it is written: columns of numbers, then a JSON that says where each of them
// lies, all of it compressed.
//
//   u32 'TEMB' | u32 2 | columns | JSON | u32 bytes of the JSON
//
// as gzip in base64; of several runs one after the other, with white space between. web/src/view/packed.ts reads it.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/json_writer.h"

namespace tacho::view {

class Packed {
 public:
  /// Where a column lies behind the first eight bytes; no bytes: all of it is 0.
  struct Place {
    uint64_t offset = 0, bytes = 0;
  };

  /// `put` gets the text, piece by piece.
  explicit Packed(std::function<void(std::string_view)> put);
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  ~Packed();
  Status begin();

  /// get(each) of a list as LEB128 varints.
  template <typename List, typename Get>
  Place integers(const List& list, Get get) {
    column_.clear();
    bool any = false;
    for (const auto& each : list) {
      uint64_t value = get(each);
      any |= value != 0;
      while (value >= 0x80) {
        column_ += static_cast<char>(value | 0x80);
        value >>= 7;
      }
      column_ += static_cast<char>(value);
    }
    return any ? put_column() : Place();
  }
  /// The same of the differences from each to the next, as zigzag numbers; the first is from 0.
  template <typename List, typename Get>
  Place differences(const List& list, Get get) {
    int64_t last = 0;
    return integers(list, [&](const auto& each) {
      const int64_t value = get(each), step = value - last;
      last = value;
      return static_cast<uint64_t>(step) << 1 ^ static_cast<uint64_t>(step >> 63);
    });
  }
  /// get(each) of a list, eight bytes each.
  template <typename List, typename Get>
  Place doubles(const List& list, Get get) {
    column_.clear();
    for (const auto& each : list) {
      const double value = get(each);
      column_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return put_column();
  }

  /// The JSON; its writer appends to `json`. No column may follow the first call of written().
  std::string json;
  /// Passes on what `json` holds when it is long.
  void written() {
    if (json.size() >= kMostText) pass_on();
  }
  Status finish();

 private:
  static constexpr size_t kMostText = size_t{4} << 20;
  Place put_column();
  void pass_on();
  int feed(std::string_view piece, int flush);
  void encode(std::string_view bytes);

  std::function<void(std::string_view)> put_;
  std::string column_;
  uint64_t offset_ = 0;
  std::unordered_map<std::string, Place> known_;  // columns by hash and length
  uint64_t json_bytes_ = 0;
  std::vector<char> room_;
  std::string left_;  // fewer than three bytes between calls
  z_stream stream_{};
  bool begun_ = false;
};

/// Named columns; those of zeros only are left out.
using Columns = std::vector<std::pair<std::string_view, Packed::Place>>;
/// {"name": [offset, bytes], ...}
void put_columns(JsonWriter& json, const Columns& columns);

}  // namespace tacho::view
