// The answer to a question: a table of exact values, each column with a name for programs, a title for people and a
// unit. Every table that a command prints is one, and goes out as text, CSV or JSON here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/table.h"

namespace tacho::report {

/// The content of a column. Programs get values as they are, people as described here.
enum class Unit : uint8_t {
  kText,
  kCount,
  kNs,           ///< a duration: "1.53 us"
  kBytes,        ///< "1.50 KiB"
  kPercent,      ///< of what the title or the heading says; one decimal
  kNumber,       ///< two decimals
  kProbability,  ///< "< 0.001", else three decimals
  kShare,        ///< 0 to 1; people get percent
  kAny,          ///< a column of SQL: each cell as it is
};
/// "text", "count", "ns", "bytes", "percent", "number", "probability", "share", "any".
std::string_view to_string(Unit unit);

struct Answer {
  struct Column {
    std::string name = {};   ///< for programs: "total_ns"; empty = for people alone
    std::string title = {};  ///< for people: "Time"; empty = for programs alone
    Unit unit = Unit::kText;
    int leave_out = 0;       ///< as PrintedColumn::leave_out of report/table.h
    int decimals = -1;       ///< of numbers for people; -1: the unit's
    bool dash_zero = false;  ///< people get a dash for 0: the thing did not happen
    bool whole = false;      ///< text that is never cut
    Cut cut = Cut::kName;    ///< how other text gives way
  };
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};  ///< shorter rows are filled with empty cells
  /// The columns for people in their order; empty = those with a title, as they stand.
  std::vector<size_t> shown = {};
  /// Gives the rows after `rows` one at a time, since there may be millions; false when there are no more. Empty =
  /// none.
  std::function<bool(std::vector<Cell>&)> next = {};
  std::vector<std::string> notes = {};           ///< sentences for people, below the table
  std::vector<std::string> remarks = {};         ///< omissions and caveats: to standard error, whatever the format
  std::string when_empty = "no GPU operations";  ///< shown in place of a table without rows
  std::string id = {}, title = {};               ///< of the table in JSON
};

/// Exact values under names for programs. Uses `rows` only, not `next`.
PrintedTable exact_table(Answer answer);
/// Durations and sizes in readable units, under titles for people. Uses `rows` only, not `next`.
PrintedTable readable_table(const Answer& answer);

/// Says what a narrow screen hides: "Min, Max left out: widen the terminal, or use --output-format csv"; empty
/// where nothing is lost. `titles`: as TextStyle::left_out gets them; `option`: gives every column, may be empty.
std::string left_out_sentence(const std::vector<std::string>& titles, std::string_view option);

enum class AnswerFormat : uint8_t { kText, kCsv, kJson };
/// Of an option's word: "csv", "json"; any other is text.
AnswerFormat face_of(std::string_view word);

struct ShowOptions {
  AnswerFormat face = AnswerFormat::kText;
  size_t most = 0;       ///< rows; 0 = all
  bool sql = false;      ///< a result of SQL: digits stay, NULL is a word, JSON holds columns and rows alone
  size_t page = 10'000;  ///< rows of text that share a header and widths of columns
  std::string_view all_columns = "--output-format csv";  ///< the option that gives them; empty = there is none
  /// Takes what is printed in place of standard output; false = nobody gets the rest. Text is then as wide as it likes.
  std::function<bool(std::string_view)> put = {};
};

/// Prints rows as they come, on standard output or ShowOptions::put: text in pages; csv and JSON are one document.
class RowPrinter {
 public:
  /// `answer` describes the columns and ends the table; its rows are not printed. It must outlive the printer.
  RowPrinter(const Answer& answer, const ShowOptions& options);
  RowPrinter(const RowPrinter&) = delete;
  RowPrinter& operator=(const RowPrinter&) = delete;
  /// False when the output can no longer be written: nobody gets the rest.
  bool row(std::vector<Cell>&& cells);
  void end();

 private:
  bool flush(bool last);
  void add_text(Answer&& page, bool last);

  const Answer& answer_;
  ShowOptions options_;
  std::vector<std::vector<Cell>> rows_;
  std::string out_;
  JsonWriter json_;
  bool first_ = true;
};

/// Prints several answers as one JSON document: {"tables": [...], "notes": [...]}, each table as show() prints it, and
/// `notes` with their notes and those given. Rows of Answer::next are not printed.
void show_document(std::vector<Answer>&& answers, const std::vector<std::string>& notes);

/// Prints an answer: rows and notes on standard output, remarks on standard error.
void show(Answer& answer, const ShowOptions& options);

}  // namespace tacho::report
