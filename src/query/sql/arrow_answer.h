// The answer to a statement as an Arrow IPC stream or file (format/arrow/stream.h).
//
// Arrow gives every column one type, SQL gives every value its own. Whole numbers alone are int64, numbers among which
// are reals double, texts utf8. A column without values has its declared type, or is null. Where a column holds numbers
// and texts, or reals and whole numbers that a double cannot hold, all its values become texts, and a note says so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/arrow/stream.h"
#include "query/engine/row_sink.h"

namespace tacho::query {

struct AggregatePlan;

/// Takes the next bytes of the stream; false = nobody reads them, which ends the answer without an error.
using ArrowPut = format::arrow::StreamWriter::Put;

struct ArrowOutput {
  ArrowPut put;
  format::arrow::Framing framing = format::arrow::Framing::kStream;
};

/// What the stream cannot show: sentences without their full stop.
struct ArrowNotes {
  int64_t invalid_texts = 0;               // with bytes that are not UTF-8, which became U+FFFD
  std::vector<std::string> mixed_columns;  // whose values became texts
  std::vector<std::string> sentences() const;
};

/// Makes a stream of rows. Up to kRows rows wait until the types of all are known. If there are more, and a declaration
/// does not settle the types, the statement runs again, so that memory stays bounded: the first run finds the types.
class ArrowRows {
 public:
  static constexpr size_t kRows = 1 << 14;

  /// `declared_settle`: values always have the type that their column's declaration names.
  ArrowRows(ArrowOutput output, bool declared_settle)
      : writer_(std::move(output.put), output.framing), declared_settle_(declared_settle) {}

  /// Takes the rows of one run of the statement.
  RowSink sink();
  /// To call after the first run without errors: whether the statement has to run again, into another sink().
  bool again();
  /// Ends the stream. Errors: the second run gave other values.
  Status end(ArrowNotes& notes);

 private:
  enum class State : uint8_t { kWaiting, kSurvey, kWriting };
  // What a column was seen to hold.
  struct Seen {
    int64_t whole = 0, wide = 0, reals = 0, texts = 0;  // wide: whole numbers beyond 2^53
  };
  bool take(std::span<const report::Cell> row);
  bool begin();
  bool write(std::span<const report::Cell> row);
  bool add(size_t column, const report::Cell& cell);
  bool flush();
  format::arrow::ArrowType type_of(size_t column);

  format::arrow::StreamWriter writer_;
  bool declared_settle_;
  State state_ = State::kWaiting;
  std::vector<std::string> names_, declared_;
  std::vector<Seen> seen_;
  std::vector<std::vector<report::Cell>> waiting_;
  size_t waiting_bytes_ = 0;
  std::vector<format::arrow::ArrowColumn> columns_;
  size_t text_bytes_ = 0;  // of the batch
  bool read_ = true;       // somebody takes the bytes
  ArrowNotes notes_;
  Status status_;
};

/// Makes a stream of columns of one table, without SQLite: `plan` is parse_columns()'.
Status write_columns(const AggregatePlan& plan, const ArrowOutput& output, ArrowNotes& notes);

}  // namespace tacho::query
