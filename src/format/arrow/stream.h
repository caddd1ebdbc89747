// Arrow's IPC stream and file, which pandas, polars, DuckDB, Spark and JavaScript read without parsing a text: a
// schema, then batches of rows as columns. Own code: Debian has no Arrow library, and four types of columns need little
// of the format.
//
// Format: https://arrow.apache.org/docs/format/Columnar.html, metadata version V5, little-endian
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::format::arrow {

enum class ArrowType : uint8_t { kNull, kInt64, kDouble, kUtf8 };

struct ArrowField {
  std::string name;  // any bytes: the stream gets valid UTF-8
  ArrowType type = ArrowType::kNull;
};

/// Appends a text; bytes that are not part of valid UTF-8 become U+FFFD. Says whether there were any.
bool append_valid(std::string& to, std::string_view text);

/// A column of one batch: the values of its rows, one after the other. Each call must fit the column's type.
class ArrowColumn {
 public:
  explicit ArrowColumn(ArrowType type) : type_(type) {}
  void clear();
  void add_null();
  void add(int64_t value) {
    valid(true);
    numbers_.push_back(value);
  }
  void add(double value);
  /// As append_valid().
  bool add(std::string_view text);
  /// A text that is known to be valid UTF-8.
  void add_valid(std::string_view text) {
    valid(true);
    text_.append(text);
    ends_.push_back(static_cast<int32_t>(text_.size()));
  }
  /// Whole numbers, or the bits of doubles, of which `null` stands for no value.
  void add_bits(std::span<const int64_t> values, int64_t null);

  ArrowType type() const { return type_; }
  size_t rows() const { return rows_; }
  /// Bytes of its texts; a batch must stay far below 2 GiB of them in a column.
  size_t text_bytes() const { return text_.size(); }

 private:
  friend class StreamWriter;
  void valid(bool is) {
    if (rows_ % 8 == 0) validity_.push_back(0);
    if (is)
      validity_.back() = static_cast<char>(validity_.back() | 1 << rows_ % 8);
    else
      ++nulls_;
    ++rows_;
  }

  ArrowType type_;
  size_t rows_ = 0, nulls_ = 0;
  std::string validity_;             // a bit for each row
  std::vector<int64_t> numbers_;     // whole numbers, or the bits of doubles
  std::vector<int32_t> ends_ = {0};  // of texts, behind the start of the first
  std::string text_;
};

enum class Framing : uint8_t {
  kStream,  ///< for pipes: read from its begin to its end mark
  kFile,    ///< also Feather V2: the stream between marks, then where each batch lies
};

/// Writes a stream: begin(), batches, end(). Nothing is buffered beyond a call but where a file's batches lie.
class StreamWriter {
 public:
  /// Takes the next bytes of the stream; false = nobody reads them.
  using Put = std::function<bool(std::string_view)>;
  explicit StreamWriter(Put put, Framing framing = Framing::kStream) : sink_(std::move(put)), framing_(framing) {}

  /// False, here and below, when the bytes were not taken.
  bool begin(std::span<const ArrowField> fields);
  /// All columns have the same number of rows, and the types that begin() named.
  bool batch(std::span<const ArrowColumn> columns);
  bool end();

 private:
  bool put(std::string_view bytes);
  bool message(std::string_view metadata);

  Put sink_;
  Framing framing_;
  int64_t written_ = 0;                          // bytes
  std::vector<ArrowField> fields_;               // of a file, for its end
  std::vector<std::array<int64_t, 3>> batches_;  // of a file: begin, bytes of the metadata, bytes of the body
};

}  // namespace tacho::format::arrow
