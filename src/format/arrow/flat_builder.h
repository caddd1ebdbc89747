// Builds FlatBuffers, in which Arrow's messages are written: as much of the format as those messages need. A buffer
// grows from its end to its start, because what refers to a thing stands in front of it.
//
// Format: https://flatbuffers.dev/internals/
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tacho::format::arrow {

class FlatBuilder {
 public:
  /// Of a thing within the buffer: its first byte's distance from the end.
  using Place = size_t;

  Place text(std::string_view text) {
    align(sizeof(uint32_t), text.size() + 1);
    prepend(uint8_t{0});
    for (size_t i = text.size(); i-- > 0;) reversed_.push_back(static_cast<uint8_t>(text[i]));
    return counted(text.size());
  }

  Place list(std::span<const Place> things) {
    align(sizeof(uint32_t), sizeof(uint32_t) * things.size());
    for (size_t i = things.size(); i-- > 0;) prepend(reference_to(things[i]));
    return counted(things.size());
  }

  /// A list of structures of kEach longs.
  template <size_t kEach>
  Place longs(std::span<const std::array<int64_t, kEach>> structures) {
    const size_t bytes = kEach * sizeof(int64_t) * structures.size();
    align(sizeof(uint32_t), bytes);
    align(sizeof(int64_t), bytes);
    for (size_t i = structures.size(); i-- > 0;)
      for (size_t part = kEach; part-- > 0;) prepend(structures[i][part]);
    return counted(structures.size());
  }

  // A table: begin(), its fields by their numbers in the schema, end(). Nothing else may be built between the two.
  void begin() {
    fields_.clear();
    begun_ = size();
  }
  template <typename Number>
  void scalar(size_t field, Number value) {
    prepend(value);
    note(field);
  }
  void refer(size_t field, Place to) {
    align(sizeof(uint32_t), 0);
    prepend(reference_to(to));
    note(field);
  }
  Place end() {
    prepend(int32_t{0});  // the distance of the list of fields, known below
    const Place table = size();
    for (size_t i = fields_.size(); i-- > 0;) prepend(static_cast<uint16_t>(fields_[i] == 0 ? 0 : table - fields_[i]));
    prepend(static_cast<uint16_t>(table - begun_));
    prepend(static_cast<uint16_t>((fields_.size() + 2) * sizeof(uint16_t)));
    const auto distance = static_cast<uint32_t>(size() - table);
    for (size_t byte = 0; byte < sizeof distance; ++byte)
      reversed_[table - 1 - byte] = static_cast<uint8_t>(distance >> (8 * byte));
    return table;
  }

  /// The buffer, whose length is a multiple of 8 bytes.
  std::string finish(Place root) {
    align(sizeof(int64_t), sizeof(uint32_t));
    prepend(reference_to(root));
    return {reversed_.rbegin(), reversed_.rend()};
  }

 private:
  size_t size() const { return reversed_.size(); }
  // Fills up so that what follows `more` further bytes is aligned.
  void align(size_t alignment, size_t more) {
    while ((size() + more) % alignment != 0) reversed_.push_back(0);
  }
  template <typename Number>
  void prepend(Number value) {
    align(sizeof value, 0);
    using Bits = std::make_unsigned_t<Number>;
    for (size_t byte = sizeof value; byte-- > 0;)
      reversed_.push_back(static_cast<uint8_t>(static_cast<Bits>(value) >> (8 * byte)));
  }
  uint32_t reference_to(Place place) const { return static_cast<uint32_t>(size() + sizeof(uint32_t) - place); }
  Place counted(size_t count) {
    prepend(static_cast<uint32_t>(count));
    return size();
  }
  void note(size_t field) {
    fields_.resize(std::max(fields_.size(), field + 1));
    fields_[field] = size();
  }

  std::vector<uint8_t> reversed_;  // the last byte first
  std::vector<Place> fields_;      // of the table that is being built; 0 = left out
  Place begun_ = 0;
};

}  // namespace tacho::format::arrow
