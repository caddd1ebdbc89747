// Answers as text, CSV and JSON (answer.h).
#include "report/answer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/output.h"

namespace tacho::report {
namespace {

std::vector<size_t> columns_of(const Answer& answer, std::string Answer::Column::*word) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < answer.columns.size(); ++c)
    if (!(answer.columns[c].*word).empty()) columns.push_back(c);
  return columns;
}

Cell readable_cell(const Cell& cell, const Answer::Column& column) {
  const auto* const whole = std::get_if<int64_t>(&cell);
  const auto* const number = std::get_if<double>(&cell);
  if (whole == nullptr && number == nullptr) return cell;
  const double value = whole != nullptr ? static_cast<double>(*whole) : *number;
  if (std::isnan(value) || (column.dash_zero && value == 0)) return {};
  switch (column.unit) {
    case Unit::kNs:
      return (value < 0 ? "-" : "") + format_duration(std::fabs(value));
    case Unit::kBytes:
      return (value < 0 ? "-" : "") + format_bytes(std::fabs(value));
    case Unit::kShare:
      return value * 100;
    case Unit::kProbability:
      return value < 0.001 ? std::string("< 0.001") : format_fixed(value, 3);
    case Unit::kText:
    case Unit::kCount:
    case Unit::kPercent:
    case Unit::kNumber:
    case Unit::kAny:
      break;
  }
  return cell;
}

PrintedColumn readable_column(const Answer::Column& from) {
  PrintedColumn column{from.title};
  const bool text = from.unit == Unit::kText, any = from.unit == Unit::kAny;
  column.align = any ? Align::kAutomatic : text ? Align::kLeft : Align::kRight;
  column.decimals = from.decimals >= 0 || any ? from.decimals : from.unit == Unit::kPercent ? 1 : 2;
  column.shrink = (text || any) && !from.whole;
  column.cut = from.cut;
  column.leave_out = from.leave_out;
  return column;
}

}  // namespace

std::string_view to_string(Unit unit) {
  static constexpr std::string_view kWords[] = {"text",   "count",       "ns",    "bytes", "percent",
                                                "number", "probability", "share", "any"};
  return kWords[static_cast<size_t>(unit)];
}

PrintedTable exact_table(Answer answer) {
  PrintedTable table{std::move(answer.id), std::move(answer.title), {}, {}};
  const std::vector<size_t> columns = columns_of(answer, &Answer::Column::name);
  for (const size_t c : columns) table.columns.push_back({std::move(answer.columns[c].name)});
  if (columns.size() < answer.columns.size())
    for (auto& row : answer.rows) {
      std::vector<Cell> cells;
      for (const size_t c : columns) cells.push_back(c < row.size() ? std::move(row[c]) : Cell{});
      row = std::move(cells);
    }
  table.rows = std::move(answer.rows);
  return table;
}

PrintedTable readable_table(const Answer& answer) {
  PrintedTable table;
  const std::vector<size_t> shown = answer.shown.empty() ? columns_of(answer, &Answer::Column::title) : answer.shown;
  for (const size_t c : shown) table.columns.push_back(readable_column(answer.columns[c]));
  for (const auto& row : answer.rows) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const size_t c : shown) cells.push_back(c < row.size() ? readable_cell(row[c], answer.columns[c]) : Cell{});
  }
  return table;
}

std::string left_out_sentence(const std::vector<std::string>& titles, std::string_view option) {
  std::string names;
  for (auto title = titles.rbegin(); title != titles.rend(); ++title) names += (names.empty() ? "" : ", ") + *title;
  if (names.empty()) return {};
  return fmt::format("{} left out: widen the terminal{}{}", names, option.empty() ? "" : ", or use ", option);
}

AnswerFormat face_of(std::string_view word) {
  return word == "csv" ? AnswerFormat::kCsv : word == "json" ? AnswerFormat::kJson : AnswerFormat::kText;
}

RowPrinter::RowPrinter(const Answer& answer, const ShowOptions& options)
    : answer_(answer), options_(options), json_(out_, {.spaced = !options.sql, .infinities = true}) {}

bool RowPrinter::row(std::vector<Cell>&& cells) {
  rows_.push_back(std::move(cells));
  constexpr size_t kAtOnce = 256;
  return rows_.size() < (options_.face == AnswerFormat::kText ? options_.page : kAtOnce) || flush(false);
}

void RowPrinter::end() {
  flush(true);
}

bool RowPrinter::flush(bool last) {
  Answer page;
  page.id = answer_.id;
  page.title = answer_.title;
  page.columns = answer_.columns;
  page.shown = answer_.shown;
  page.rows = std::exchange(rows_, {});
  if (options_.face == AnswerFormat::kText) {
    add_text(std::move(page), last);
  } else {
    const PrintedTable table = exact_table(std::move(page));
    if (options_.face == AnswerFormat::kCsv) {
      out_ += to_csv(table, first_);
    } else {
      if (first_ && options_.sql)
        begin_bare_json(table, json_);
      else if (first_)
        begin_json(table, json_);
      rows_json(table, json_);
      if (last && options_.sql) json_.end_line();
      if (last) end_json(json_);
      if (last) json_.end_line();
    }
  }
  first_ = false;
  const std::string bytes = std::exchange(out_, {});
  return options_.put ? options_.put(bytes) : put(bytes);
}

void RowPrinter::add_text(Answer&& page, bool last) {
  const Screen screen = options_.put ? Screen() : screen_of(STDOUT_FILENO);
  std::vector<std::string> left_out;
  TextStyle style;
  style.width = screen.fit();
  style.colour = screen.colour;
  style.left_out = &left_out;
  if (options_.sql) {
    style.decimals = 6;
    style.scaled = false;  // people copy SQL's results into other programs
    style.missing = "NULL";
  }
  const bool empty = page.rows.empty();
  if (!empty || (first_ && options_.sql))
    out_ += to_text(readable_table(page), style);
  else if (first_)
    out_ += screen.sentence(answer_.when_empty);
  if (!last || (empty && first_)) return;
  // The option gives columns that have a name for programs.
  const auto for_people = std::stable_partition(left_out.begin(), left_out.end(), [&](const std::string& title) {
    return std::any_of(answer_.columns.begin(), answer_.columns.end(),
                       [&](const Answer::Column& column) { return column.title == title && !column.name.empty(); });
  });
  std::vector<std::string> notes = {left_out_sentence({left_out.begin(), for_people}, options_.all_columns),
                                    left_out_sentence({for_people, left_out.end()}, "")};
  std::erase(notes, "");
  notes.insert(notes.end(), answer_.notes.begin(), answer_.notes.end());
  if (!notes.empty()) out_ += "\n";
  for (const std::string& note : notes) out_ += screen.sentence(note);
}

void show_document(std::vector<Answer>&& answers, const std::vector<std::string>& notes) {
  std::string out;
  JsonWriter json(out, {.spaced = true, .infinities = true});
  json.begin_object().key("tables").begin_array();
  std::vector<std::string> sentences;
  for (Answer& answer : answers) {
    sentences.insert(sentences.end(), answer.notes.begin(), answer.notes.end());
    to_json(exact_table(std::move(answer)), json);
  }
  json.end_array().key("notes").begin_array();
  sentences.insert(sentences.end(), notes.begin(), notes.end());
  for (const std::string& sentence : sentences) json.value(sentence);
  json.end_array().end_object();
  json.end_line();
  put(out);
  flush_output();
}

void show(Answer& answer, const ShowOptions& options) {
  RowPrinter printer(answer, options);
  size_t given = 0;
  const auto full = [&] { return options.most != 0 && given >= options.most; };
  bool heard = true;  // somebody reads the output
  for (auto& row : answer.rows) {
    if (full() || !heard) break;
    heard = printer.row(std::move(row));
    ++given;
  }
  std::vector<Cell> row;
  while (answer.next && heard && !full() && answer.next(row)) {
    heard = printer.row(std::exchange(row, {}));
    ++given;
  }
  printer.end();
  flush_output();
  for (const std::string& remark : answer.remarks) warn(remark);
}

}  // namespace tacho::report
