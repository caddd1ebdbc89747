// Makes Arrow's columns of rows and of a scan's columns (arrow_answer.h).
#include "query/sql/arrow_answer.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

#include "query/engine/aggregate_plan.h"
#include "query/engine/relation.h"

namespace tacho::query {

using event::kUnknown;
using format::arrow::ArrowColumn;
using format::arrow::ArrowField;
using format::arrow::ArrowType;
using format::arrow::StreamWriter;

namespace {

constexpr size_t kTextBytes = 8 << 20;        // of a batch
constexpr int64_t kExact = int64_t{1} << 53;  // the whole numbers up to it are doubles, too

// The type that SQLite's rules for declarations give; kNull: none that Arrow could promise.
ArrowType declared_type(std::string_view declared) {
  std::string word(declared);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  const auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (has("INT")) return ArrowType::kInt64;
  if (has("CHAR") || has("CLOB") || has("TEXT")) return ArrowType::kUtf8;
  if (has("REAL") || has("FLOA") || has("DOUB")) return ArrowType::kDouble;
  return ArrowType::kNull;
}

size_t bytes_of(std::span<const report::Cell> row) {
  size_t bytes = row.size() * sizeof(report::Cell);
  for (const report::Cell& cell : row)
    if (const auto* text = std::get_if<std::string>(&cell)) bytes += text->size();
  return bytes;
}

}  // namespace

std::vector<std::string> ArrowNotes::sentences() const {
  std::vector<std::string> result;
  for (const std::string& name : mixed_columns)
    result.push_back(fmt::format("column \"{}\" holds values of several types: in Arrow all of them are texts", name));
  if (invalid_texts > 0)
    result.push_back(fmt::format("{} {} not valid UTF-8: U+FFFD stands for each wrong byte", invalid_texts,
                                 invalid_texts == 1 ? "text is" : "texts are"));
  return result;
}

RowSink ArrowRows::sink() {
  return {[this](std::span<const std::string> names) { names_.assign(names.begin(), names.end()); },
          [this](std::span<const report::Cell> row) { return take(row); },
          [this](std::span<const std::string> declared) { declared_.assign(declared.begin(), declared.end()); }};
}

bool ArrowRows::take(std::span<const report::Cell> row) {
  if (state_ == State::kWriting) return write(row);
  seen_.resize(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    if (const auto* whole = std::get_if<int64_t>(&row[i])) {
      ++seen_[i].whole;
      seen_[i].wide += *whole > kExact || *whole < -kExact ? 1 : 0;
    } else if (std::holds_alternative<double>(row[i])) {
      ++seen_[i].reals;
    } else if (std::holds_alternative<std::string>(row[i])) {
      ++seen_[i].texts;
    }
  }
  if (state_ == State::kSurvey) return true;
  waiting_bytes_ += bytes_of(row);
  waiting_.emplace_back(row.begin(), row.end());
  if (waiting_.size() < kRows && waiting_bytes_ < kTextBytes) return true;
  const bool settled = declared_settle_ && declared_.size() == row.size() &&
                       std::ranges::none_of(declared_, [](const std::string& declared) {
                         return declared_type(declared) == ArrowType::kNull;
                       });
  if (settled) return begin();
  state_ = State::kSurvey;
  waiting_.clear();
  return true;
}

bool ArrowRows::again() {
  if (state_ != State::kSurvey) return false;
  begin();
  return read_;
}

ArrowType ArrowRows::type_of(size_t column) {
  const Seen seen = column < seen_.size() ? seen_[column] : Seen{};
  const ArrowType declared = column < declared_.size() ? declared_type(declared_[column]) : ArrowType::kNull;
  const bool numbers = seen.whole + seen.reals > 0;
  if (declared_settle_ && declared != ArrowType::kNull) return declared;
  if (seen.texts > 0 && !numbers) return ArrowType::kUtf8;
  if (seen.texts > 0 || (seen.reals > 0 && seen.wide > 0)) {
    notes_.mixed_columns.push_back(names_[column]);
    return ArrowType::kUtf8;
  }
  if (seen.reals > 0) return ArrowType::kDouble;
  return seen.whole > 0 ? ArrowType::kInt64 : declared;
}

// Writes the schema and the rows that waited for it.
bool ArrowRows::begin() {
  std::vector<ArrowField> fields;
  for (size_t i = 0; i < names_.size(); ++i) {
    fields.push_back({names_[i], type_of(i)});
    columns_.emplace_back(fields.back().type);
  }
  state_ = State::kWriting;
  read_ = writer_.begin(fields);
  for (const auto& row : std::exchange(waiting_, {}))
    if (!write(row)) return false;
  return read_;
}

bool ArrowRows::add(size_t column, const report::Cell& cell) {
  ArrowColumn& to = columns_[column];
  if (std::holds_alternative<std::monostate>(cell)) {
    to.add_null();
    return true;
  }
  const auto* const whole = std::get_if<int64_t>(&cell);
  const auto* const real = std::get_if<double>(&cell);
  const auto* const text = std::get_if<std::string>(&cell);
  if (to.type() == ArrowType::kUtf8) {
    const size_t before = to.text_bytes();
    if (text == nullptr)
      to.add_valid(whole != nullptr ? fmt::format("{}", *whole) : fmt::format("{}", *real));
    else if (to.add(*text))
      ++notes_.invalid_texts;
    text_bytes_ += to.text_bytes() - before;
  } else if (to.type() == ArrowType::kInt64 && whole != nullptr) {
    to.add(*whole);
  } else if (to.type() == ArrowType::kDouble && real != nullptr) {
    to.add(*real);
  } else if (to.type() == ArrowType::kDouble && whole != nullptr && *whole <= kExact && *whole >= -kExact) {
    to.add(static_cast<double>(*whole));
  } else {
    status_ = fail("column \"{}\" gave other types of values when the statement ran a second time", names_[column]);
    return false;
  }
  return true;
}

bool ArrowRows::write(std::span<const report::Cell> row) {
  for (size_t i = 0; i < row.size(); ++i)
    if (!add(i, row[i])) return false;
  if (columns_.empty() || (columns_[0].rows() < kRows && text_bytes_ < kTextBytes)) return read_;
  return flush();
}

bool ArrowRows::flush() {
  read_ = read_ && writer_.batch(columns_);
  for (ArrowColumn& column : columns_) column.clear();
  text_bytes_ = 0;
  return read_;
}

Status ArrowRows::end(ArrowNotes& notes) {
  if (state_ == State::kWaiting) begin();
  TACHO_TRY(Status(status_));
  notes = notes_;
  if (!columns_.empty() && columns_[0].rows() > 0) flush();
  if (read_) writer_.end();
  return {};
}

namespace {

// Texts of a column by their codes, made valid once and kept as memory allows.
class Texts {
 public:
  explicit Texts(const ColumnInfo& column) : column_(column) {}
  /// Says whether the text had to be made valid.
  bool add(int64_t code, ArrowColumn& to) {
    if (code != last_code_ || places_.empty()) {
      auto found = places_.find(code);
      if (found == places_.end()) found = keep(code);
      last_code_ = code;
      last_ = found->second;
    }
    to.add_valid(std::string_view(texts_).substr(last_.at, last_.length));
    return last_.repaired;
  }

 private:
  static constexpr size_t kMost = 1 << 16;
  struct Place {
    size_t at = 0, length = 0;
    bool repaired = false;
  };
  using Places = tsl::robin_map<int64_t, Place>;
  Places::iterator keep(int64_t code) {
    if (places_.size() >= kMost || texts_.size() > kTextBytes) {
      places_.clear();
      texts_.clear();
    }
    Place place{.at = texts_.size()};
    place.repaired = format::arrow::append_valid(texts_, column_.text(code, scratch_));
    place.length = texts_.size() - place.at;
    return places_.emplace(code, place).first;
  }

  const ColumnInfo& column_;
  Places places_;
  std::string texts_, scratch_;
  int64_t last_code_ = 0;
  Place last_;
};

class ColumnsWriter {
 public:
  ColumnsWriter(const AggregatePlan& plan, const ArrowOutput& output)
      : plan_(plan), writer_(output.put, output.framing) {}
  Status run(ArrowNotes& notes);

 private:
  void begin();
  size_t fill(size_t from, size_t to);

  const AggregatePlan& plan_;
  StreamWriter writer_;
  bool read_ = true;
  std::vector<int> sources_;                   // the table's columns, as the items name them
  std::vector<ArrowColumn> columns_;           // of the batch
  std::vector<std::unique_ptr<Texts>> texts_;  // of text columns, else nullptr
  std::vector<size_t> text_columns_;
  std::vector<std::vector<int64_t>> values_;  // of the scan's batch
  int64_t invalid_texts_ = 0;
};

void ColumnsWriter::begin() {
  std::vector<ArrowField> fields;
  for (const AggregatePlan::Item& item : plan_.items) {
    const Node& node = plan_.nodes[static_cast<size_t>(item.node)];
    const ColumnInfo& about = plan_.column(node);
    const ArrowType type = about.type == ValueType::kText   ? ArrowType::kUtf8
                           : about.type == ValueType::kReal ? ArrowType::kDouble
                                                            : ArrowType::kInt64;
    fields.push_back({item.title, type});
    columns_.emplace_back(type);
    texts_.push_back(type == ArrowType::kUtf8 ? std::make_unique<Texts>(about) : nullptr);
    if (type == ArrowType::kUtf8) text_columns_.push_back(sources_.size());
    sources_.push_back(node.column);
  }
  values_.resize(sources_.size());
  read_ = writer_.begin(fields);
}

// Fills the columns with the values from `from` on; returns where they end, before `to` if the texts are long.
size_t ColumnsWriter::fill(size_t from, size_t to) {
  for (ArrowColumn& column : columns_) column.clear();
  size_t end = from;
  for (size_t bytes = 0; end < to && bytes < kTextBytes; ++end)
    for (const size_t i : text_columns_) {
      ArrowColumn& column = columns_[i];
      const size_t before = column.text_bytes();
      if (values_[i][end] == kUnknown)
        column.add_null();
      else if (texts_[i]->add(values_[i][end], column))
        ++invalid_texts_;
      bytes += column.text_bytes() - before;
    }
  for (size_t i = 0; i < columns_.size(); ++i)
    if (texts_[i] == nullptr) columns_[i].add_bits(std::span(values_[i]).subspan(from, end - from), kUnknown);
  return end;
}

Status ColumnsWriter::run(ArrowNotes& notes) {
  begin();
  const AggregatePlan::Source& source = plan_.sources[0];
  ScanPlan plan;
  plan.constraints = source.constraints;
  plan.used = sources_;
  Scan scan(*source.relation, *source.store, std::move(plan));
  auto left = plan_.limit >= 0 ? static_cast<size_t>(plan_.limit) : SIZE_MAX;
  while (read_ && left > 0 && scan.next_batch()) {
    const size_t rows = std::min(scan.selection().size(), left);
    for (size_t i = 0; i < sources_.size(); ++i) scan.gather(sources_[i], values_[i]);
    if (!scan.status()) break;
    for (size_t from = 0; read_ && from < rows;) {
      from = fill(from, std::min(rows, from + ArrowRows::kRows));
      read_ = writer_.batch(columns_);
    }
    left -= rows;
  }
  TACHO_TRY(Status(scan.status()));
  notes.invalid_texts = invalid_texts_;
  if (read_) writer_.end();
  return {};
}

}  // namespace

Status write_columns(const AggregatePlan& plan, const ArrowOutput& output, ArrowNotes& notes) {
  return ColumnsWriter(plan, output).run(notes);
}

}  // namespace tacho::query
