// Writes Arrow's messages (stream.h).
#include "format/arrow/stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/text/utf8.h"
#include "format/arrow/flat_builder.h"

namespace tacho::format::arrow {
namespace {

static_assert(std::endian::native == std::endian::little, "buffers go out as they are");

// Numbers of Message.fbs and Schema.fbs.
constexpr int16_t kVersion5 = 4;
enum class Header : uint8_t { kSchema = 1, kRecordBatch = 3 };
enum class TypeTable : uint8_t { kNull = 1, kInt = 2, kFloatingPoint = 3, kUtf8 = 5 };
constexpr int16_t kDoublePrecision = 2;

// A file begins with its mark, filled up to 8 bytes, and ends in it.
constexpr std::string_view kFileBegin{"ARROW1\0\0", 8};

constexpr size_t kAlignment = 64;  // of buffers, which the format recommends
size_t padded(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::string message_of(FlatBuilder& builder, Header kind, FlatBuilder::Place header, int64_t body) {
  builder.begin();
  builder.scalar(3, body);
  builder.refer(2, header);
  builder.scalar(0, kVersion5);
  builder.scalar(1, static_cast<uint8_t>(kind));
  return builder.finish(builder.end());
}

TypeTable table_of(ArrowType type) {
  switch (type) {
    case ArrowType::kInt64:
      return TypeTable::kInt;
    case ArrowType::kDouble:
      return TypeTable::kFloatingPoint;
    case ArrowType::kUtf8:
      return TypeTable::kUtf8;
    case ArrowType::kNull:
      break;
  }
  return TypeTable::kNull;
}

FlatBuilder::Place field_of(FlatBuilder& builder, const ArrowField& field) {
  const auto name = builder.text(valid_utf8(field.name));
  builder.begin();
  if (field.type == ArrowType::kInt64) {
    builder.scalar(0, int32_t{64});
    builder.scalar(1, uint8_t{1});  // signed
  } else if (field.type == ArrowType::kDouble) {
    builder.scalar(0, kDoublePrecision);
  }
  const auto type = builder.end();
  const auto children = builder.list({});
  builder.begin();
  builder.refer(0, name);
  builder.refer(3, type);
  builder.refer(5, children);
  builder.scalar(1, uint8_t{1});  // may be null
  builder.scalar(2, static_cast<uint8_t>(table_of(field.type)));
  return builder.end();
}

FlatBuilder::Place schema_of(FlatBuilder& builder, std::span<const ArrowField> fields) {
  std::vector<FlatBuilder::Place> places;
  for (const ArrowField& field : fields) places.push_back(field_of(builder, field));
  const auto list = builder.list(places);
  builder.begin();
  builder.refer(1, list);
  builder.scalar(0, int16_t{0});  // little-endian
  return builder.end();
}

bool is_valid(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word = 0;
    if (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const CodePoint point = next_code_point(text.substr(at));
    if (!point.valid) return false;
    at += point.length;
  }
  return true;
}

}  // namespace

void ArrowColumn::clear() {
  rows_ = nulls_ = 0;
  validity_.clear();
  numbers_.clear();
  ends_.assign(1, 0);
  text_.clear();
}

void ArrowColumn::add_null() {
  valid(false);
  if (type_ == ArrowType::kUtf8)
    ends_.push_back(ends_.back());
  else if (type_ != ArrowType::kNull)
    numbers_.push_back(0);
}

void ArrowColumn::add(double value) {
  valid(true);
  numbers_.push_back(std::bit_cast<int64_t>(value));
}

bool append_valid(std::string& to, std::string_view text) {
  if (is_valid(text)) {
    to.append(text);
    return false;
  }
  while (!text.empty()) {
    const CodePoint point = next_code_point(text);
    to.append(point.valid ? text.substr(0, point.length) : "\xef\xbf\xbd");
    text.remove_prefix(point.length);
  }
  return true;
}

bool ArrowColumn::add(std::string_view text) {
  valid(true);
  const bool repaired = append_valid(text_, text);
  ends_.push_back(static_cast<int32_t>(text_.size()));
  return repaired;
}

void ArrowColumn::add_bits(std::span<const int64_t> values, int64_t null) {
  size_t at = 0;
  const auto one = [&] {
    const int64_t value = values[at++];
    valid(value != null);
    numbers_.push_back(value == null ? 0 : value);
  };
  while (at < values.size() && rows_ % 8 != 0) one();
  while (values.size() - at >= 8) {  // a byte of validity at once
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; ++i) bits |= static_cast<unsigned>(values[at + i] != null) << i;
    for (unsigned i = 0; i < 8; ++i) numbers_.push_back((bits >> i & 1) != 0 ? values[at + i] : 0);
    validity_.push_back(static_cast<char>(bits));
    nulls_ += 8 - static_cast<size_t>(std::popcount(bits));
    rows_ += 8;
    at += 8;
  }
  while (at < values.size()) one();
}

bool StreamWriter::put(std::string_view bytes) {
  written_ += static_cast<int64_t>(bytes.size());
  return sink_(bytes);
}

// A message: a mark, the length of the metadata, the metadata; its body follows.
bool StreamWriter::message(std::string_view metadata) {
  std::string head(8, '\xff');
  const auto length = static_cast<uint32_t>(metadata.size());
  std::memcpy(head.data() + 4, &length, sizeof length);
  head += metadata;
  return put(head);
}

bool StreamWriter::begin(std::span<const ArrowField> fields) {
  if (framing_ == Framing::kFile) {
    fields_.assign(fields.begin(), fields.end());
    if (!put(kFileBegin)) return false;
  }
  FlatBuilder builder;
  const auto schema = schema_of(builder, fields);
  return message(message_of(builder, Header::kSchema, schema, 0));
}

bool StreamWriter::batch(std::span<const ArrowColumn> columns) {
  std::vector<std::array<int64_t, 2>> nodes, places;  // rows and nulls; where buffers begin, and their bytes
  std::vector<std::string_view> buffers;
  size_t body = 0;
  const auto buffer = [&](std::string_view bytes) {
    places.push_back({static_cast<int64_t>(body), static_cast<int64_t>(bytes.size())});
    buffers.push_back(bytes);
    body += padded(bytes.size());
  };
  const auto bytes_of = [](const auto& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  for (const ArrowColumn& column : columns) {
    nodes.push_back({static_cast<int64_t>(column.rows_), static_cast<int64_t>(column.nulls_)});
    if (column.type_ == ArrowType::kNull) continue;  // has no buffers
    buffer(column.nulls_ == 0 ? std::string_view() : std::string_view(column.validity_));
    if (column.type_ == ArrowType::kUtf8) {
      buffer(bytes_of(column.ends_));
      buffer(column.text_);
    } else {
      buffer(bytes_of(column.numbers_));
    }
  }
  FlatBuilder builder;
  const auto node_list = builder.longs<2>(nodes);
  const auto buffer_list = builder.longs<2>(places);
  builder.begin();
  builder.scalar(0, static_cast<int64_t>(columns.empty() ? 0 : columns[0].rows_));
  builder.refer(1, node_list);
  builder.refer(2, buffer_list);
  const auto header = builder.end();
  const int64_t from = written_;
  if (!message(message_of(builder, Header::kRecordBatch, header, static_cast<int64_t>(body)))) return false;
  if (framing_ == Framing::kFile) batches_.push_back({from, written_ - from, static_cast<int64_t>(body)});
  static constexpr char kPadding[kAlignment] = {};
  for (const std::string_view bytes : buffers)
    if (!put(bytes) || !put({kPadding, padded(bytes.size()) - bytes.size()})) return false;
  return true;
}

bool StreamWriter::end() {
  if (!put({"\xff\xff\xff\xff\0\0\0\0", 8})) return false;
  if (framing_ == Framing::kStream) return true;
  FlatBuilder builder;
  const auto schema = schema_of(builder, fields_);
  const auto batches = builder.longs<3>(batches_);
  const auto dictionaries = builder.longs<3>({});
  builder.begin();
  builder.refer(1, schema);
  builder.refer(2, dictionaries);
  builder.refer(3, batches);
  builder.scalar(0, kVersion5);
  std::string footer = builder.finish(builder.end());
  const auto length = static_cast<int32_t>(footer.size());
  footer.append(reinterpret_cast<const char*>(&length), sizeof length);
  return put(footer) && put(kFileBegin.substr(0, 6));
}

}  // namespace tacho::format::arrow
