// Tables with typed cells, printed to a terminal, as csv or as JSON: the one place where reports become text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text/json_writer.h"
#include "report/text.h"

namespace tacho::report {

/// No value (prints as — or empty, null in JSON), a whole number, a number, or text.
using Cell = std::variant<std::monostate, int64_t, double, std::string>;

/// NaN becomes "no value".
Cell number_cell(double value);

enum class Align : uint8_t { kAutomatic, kLeft, kRight };  ///< Automatic: numbers right, text left

/// How a shrinking column of a plain table gives way.
enum class Cut : uint8_t {
  kName,   ///< names: in the middle, and different ones stay different (shorten.h)
  kPath,   ///< paths: from the left
  kStack,  ///< stacks, outermost frame first, joined by ';': from the left
  kWrap,   ///< sentences: broken into lines; for a table's last column
};

struct PrintedColumn {
  std::string title;
  Align align = Align::kAutomatic;
  int decimals = -1;     ///< of doubles; -1: the style's
  bool shrink = false;   ///< text (never numbers) that may be cut when the table is too wide for the screen
  size_t wrap = 0;       ///< Box: text is broken into lines of this many columns; 0: one line
  size_t max_lines = 0;  ///< Box: of a wrapped cell, the rest becomes "..."; 0: any
  Cut cut = Cut::kName;
  /// Plain: 0 = always shown; others are left out of tables that are too wide, those with the highest number first and
  /// together, before the shrinking columns get narrower than they can be read. Where that is not enough, the last
  /// columns go, if TextStyle::left_out is set.
  int leave_out = 0;
};

struct PrintedTable {
  std::string id;     ///< "2.1"; may be empty
  std::string title;  ///< may be empty
  std::vector<PrintedColumn> columns;
  std::vector<std::vector<Cell>> rows;  ///< shorter rows are filled with empty cells
};

enum class Border : uint8_t {
  kPlain,  ///< columns two spaces apart, a dim header line, nothing else
  kBox,    ///< double outer lines and a line below every row, as rocprof-compute prints tables
  kGrid,   ///< '|' between columns and centred titles, as rocprof-sys-avail prints tables; text wraps to fit
};

struct TextStyle {
  Border border = Border::kPlain;
  int decimals = 2;
  /// Columns that the table should fit into: large doubles get SI prefixes, then text is cut; 0: any.
  size_t width = 0;
  bool colour = false;
  size_t indent = 0;
  std::string missing = "—";
  bool scaled = true;  ///< `width` may give doubles SI prefixes; integer cells print all their digits at any width
  /// Gets the titles of columns that were left out; may be nullptr.
  std::vector<std::string>* left_out = nullptr;
};

/// The table's lines, each ended by a newline. It prints no title: headings belong to the report.
std::string to_text(const PrintedTable& table, const TextStyle& style);

/// A header line (unless it is a later part of a table) and the rows; numbers in full precision, no value = empty.
std::string to_csv(const PrintedTable& table, bool header = true);

/// A cell as a JSON value; no value is null.
void put_cell(JsonWriter& json, const Cell& cell);
/// {"id", "title", "columns": [...], "rows": [[...], ...]}
void to_json(const PrintedTable& table, JsonWriter& writer);
/// The same in three steps, for tables that come in parts: what stands before the rows, the rows of a part, the end.
void begin_json(const PrintedTable& table, JsonWriter& writer);
/// The same without id and title: {"columns": [...], "rows": [
void begin_bare_json(const PrintedTable& table, JsonWriter& writer);
void rows_json(const PrintedTable& part, JsonWriter& writer);
void end_json(JsonWriter& writer);

}  // namespace tacho::report
