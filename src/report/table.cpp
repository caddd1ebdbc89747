// Layout of tables.
#include "report/table.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text/csv.h"
#include "report/shorten.h"

namespace tacho::report {

namespace {

enum class Numbers : uint8_t { kFull, kScaled };

std::string cell_text(const Cell& cell, const PrintedColumn& column, const TextStyle& style, Numbers numbers) {
  const int decimals = column.decimals >= 0 ? column.decimals : style.decimals;
  if (const auto* text = std::get_if<std::string>(&cell)) return clean(*text);
  if (const auto* whole = std::get_if<int64_t>(&cell)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&cell)) {
    if (std::isnan(*number)) return style.missing;
    if (numbers == Numbers::kScaled && std::fabs(*number) >= 1e5) return format_si(*number, decimals);
    return format_fixed(*number, decimals);
  }
  return style.missing;
}

bool is_right(const PrintedTable& table, size_t column) {
  const Align align = table.columns[column].align;
  if (align != Align::kAutomatic) return align == Align::kRight;
  bool numbers = false;
  for (const auto& row : table.rows) {
    if (column >= row.size()) continue;
    if (std::holds_alternative<std::string>(row[column])) {
      // "inf" and friends never get here as text; a word makes it a text column.
      return false;
    }
    numbers = numbers || !std::holds_alternative<std::monostate>(row[column]);
  }
  return numbers;
}

// Numbers are never cut: what is left of one would read as another.
bool may_shrink(const PrintedTable& table, size_t column) {
  if (!table.columns[column].shrink) return false;
  return std::none_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
    return column < row.size() &&
           (std::holds_alternative<int64_t>(row[column]) || std::holds_alternative<double>(row[column]));
  });
}

using Lines = std::vector<std::string>;

// Text in lines of at most `width` columns; hard breaks, as long kernel names have no spaces where they are needed.
Lines broken(std::string_view text, size_t width, size_t max_lines) {
  Lines lines;
  std::string line;
  size_t used = 0;
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xc0) == 0x80) ++length;
    const std::string_view point = text.substr(i, length);
    const size_t columns = display_width(point);
    if (used + columns > width && !line.empty()) {
      lines.push_back(std::move(line));
      line.clear();
      used = 0;
      if (max_lines > 0 && lines.size() == max_lines) {
        std::string& end = lines.back();
        while (display_width(end) + 3 > width && !end.empty()) {
          while (!end.empty() && (static_cast<unsigned char>(end.back()) & 0xc0) == 0x80) end.pop_back();
          if (!end.empty()) end.pop_back();
        }
        end += "...";
        return lines;
      }
    }
    line += point;
    used += columns;
    i += length;
  }
  lines.push_back(std::move(line));
  return lines;
}

// Cells of shrinking columns as they fit.
void cut_cells(const PrintedTable& table, std::vector<std::vector<std::string>>& cells,
               const std::vector<size_t>& widths, const std::vector<bool>& shrinks, const std::vector<bool>& shown) {
  for (size_t c = 0; c < widths.size(); ++c) {
    if (!shown[c] || !shrinks[c]) continue;
    const auto too_wide = [&](const auto& row) { return display_width(row[c]) > widths[c]; };
    if (std::none_of(cells.begin(), cells.end(), too_wide)) continue;
    if (const Cut cut = table.columns[c].cut; cut == Cut::kPath || cut == Cut::kStack) {
      for (auto& row : cells) row[c] = shortened_path(row[c], widths[c], cut == Cut::kPath ? '/' : ';');
    } else if (table.columns[c].cut == Cut::kName) {
      std::vector<std::string> names;
      names.reserve(cells.size());
      for (auto& row : cells) names.push_back(std::move(row[c]));
      names = shortened_apart(names, widths[c]);
      for (size_t r = 0; r < cells.size(); ++r) cells[r][c] = std::move(names[r]);
    }
  }
}

std::string plain(const PrintedTable& table, const TextStyle& style, const std::vector<std::vector<std::string>>& cells,
                  const std::vector<bool>& right, const std::vector<size_t>& widths, const std::vector<bool>& shown) {
  std::string out;
  const std::string indent(style.indent, ' ');
  const auto line = [&](const auto& text_of) {
    std::string text;
    size_t column = style.indent;
    for (size_t c = 0; c < widths.size(); ++c) {
      if (!shown[c]) continue;
      if (column > style.indent) {
        text += "  ";
        column += 2;
      }
      std::string cell = text_of(c);
      if (table.columns[c].shrink && table.columns[c].cut == Cut::kWrap && display_width(cell) > widths[c])
        cell = wrapped(cell, widths[c], column);
      else
        cell = shortened(cell, widths[c]);
      text += right[c] ? padded_left(cell, widths[c]) : padded_right(cell, widths[c]);
      column += widths[c];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  out += indent + painted(line([&](size_t c) { return table.columns[c].title; }), Paint::kDim, style.colour) + "\n";
  for (const auto& row : cells) out += indent + line([&](size_t c) { return row[c]; }) + "\n";
  return out;
}

constexpr size_t kLeast = 10;  // columns of a shrinking column that still say something

// Leaves columns out until the shrinking ones can be read; `total` is the width of the whole table.
void leave_columns_out(const PrintedTable& table, const TextStyle& style, const std::vector<size_t>& widths,
                       const std::vector<bool>& shrinks, size_t& total, std::vector<bool>& shown) {
  const auto shrinking = std::count(shrinks.begin(), shrinks.end(), true);
  const size_t readable = shrinking > 1 ? 22 : 34;
  for (;;) {
    size_t needed = total, next = table.columns.size();
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (!shown[c]) continue;
      const PrintedColumn& column = table.columns[c];
      if (shrinks[c]) needed -= widths[c] - std::min(widths[c], readable);
      if (column.leave_out > 0 && (next == table.columns.size() || column.leave_out > table.columns[next].leave_out))
        next = c;
    }
    if (needed <= style.width || next == table.columns.size()) break;
    for (size_t c = table.columns.size(); c-- > 0;) {
      if (!shown[c] || table.columns[c].leave_out != table.columns[next].leave_out) continue;
      shown[c] = false;
      total -= widths[c] + 2;
      if (style.left_out != nullptr) style.left_out->push_back(table.columns[c].title);
    }
  }
  // Columns of one rank, as those of SQL, go from the right, as long as it can be said that they do.
  const auto least = [&](size_t c) { return shrinks[c] ? std::min(widths[c], kLeast) : widths[c]; };
  size_t needed = style.indent;
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (shown[c]) needed += least(c) + (needed > style.indent ? 2 : 0);
  for (size_t c = table.columns.size(); c-- > 1 && needed > style.width && style.left_out != nullptr;) {
    if (!shown[c]) continue;
    shown[c] = false;
    total -= widths[c] + 2;
    needed -= least(c) + 2;
    style.left_out->push_back(table.columns[c].title);
  }
}

std::string boxed(const PrintedTable& table, const TextStyle& style, const std::vector<std::vector<std::string>>& cells,
                  const std::vector<bool>& right, const std::vector<size_t>& widths) {
  std::string out;
  const std::string indent(style.indent, ' ');
  const auto rule = [&](std::string_view left, std::string_view fill, std::string_view middle, std::string_view end) {
    out += indent;
    for (size_t c = 0; c < widths.size(); ++c) {
      out += c == 0 ? left : middle;
      for (size_t i = 0; i < widths[c] + 2; ++i) out += fill;
    }
    out += end;
    out += '\n';
  };
  const auto row = [&](const std::vector<Lines>& lines) {
    size_t height = 1;
    for (const Lines& cell : lines) height = std::max(height, cell.size());
    for (size_t i = 0; i < height; ++i) {
      out += indent;
      for (size_t c = 0; c < widths.size(); ++c) {
        const std::string_view text = i < lines[c].size() ? std::string_view(lines[c][i]) : std::string_view();
        out += "│ " + (right[c] ? padded_left(text, widths[c]) : padded_right(text, widths[c])) + " ";
      }
      out += "│\n";
    }
  };
  const auto lines_of = [&](size_t c, const std::string& text) {
    const PrintedColumn& column = table.columns[c];
    return column.wrap > 0 ? broken(text, column.wrap, column.max_lines) : Lines{text};
  };
  rule("╒", "═", "╤", "╕");
  std::vector<Lines> lines(widths.size());
  for (size_t c = 0; c < widths.size(); ++c) lines[c] = {table.columns[c].title};
  row(lines);
  rule("╞", "═", "╪", "╡");
  for (size_t r = 0; r < cells.size(); ++r) {
    if (r > 0) rule("├", "─", "┼", "┤");
    for (size_t c = 0; c < widths.size(); ++c) lines[c] = lines_of(c, cells[r][c]);
    row(lines);
  }
  rule("╘", "═", "╧", "╛");
  return out;
}

// The text in lines of at most `width` columns, broken at words where that is possible.
Lines word_lines(const std::string& text, size_t width) {
  Lines lines;
  const std::string whole = wrapped(text, width);
  for (size_t from = 0; from <= whole.size();) {
    const size_t to = std::min(whole.find('\n', from), whole.size());
    for (std::string& line : broken(std::string_view(whole).substr(from, to - from), width, 0))
      lines.push_back(std::move(line));
    from = to + 1;
  }
  return lines;
}

std::string grid(const PrintedTable& table, const TextStyle& style, const std::vector<std::vector<std::string>>& cells,
                 std::vector<size_t> widths) {
  size_t total = 1;
  for (const size_t width : widths) total += width + 3;
  while (style.width > 0 && total > style.width) {
    // The widest column gives way, down to a size that still says something.
    const size_t widest = static_cast<size_t>(std::max_element(widths.begin(), widths.end()) - widths.begin());
    if (widths[widest] <= 10) break;
    --widths[widest];
    --total;
  }
  std::string rule = "|";
  for (const size_t width : widths) rule += std::string(width + 2, '-') + "|";
  std::string out = rule + "\n|";
  for (size_t c = 0; c < widths.size(); ++c) {
    const std::string title = shortened(table.columns[c].title, widths[c]);
    const size_t room = widths[c] - display_width(title);
    out += " " + std::string(room / 2, ' ') + title + std::string(room - room / 2, ' ') + " |";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : cells) {
    std::vector<Lines> lines;
    size_t height = 1;
    for (size_t c = 0; c < widths.size(); ++c)
      height = std::max(height, lines.emplace_back(word_lines(row[c], widths[c])).size());
    for (size_t i = 0; i < height; ++i) {
      out += "|";
      for (size_t c = 0; c < widths.size(); ++c)
        out += " " + padded_right(i < lines[c].size() ? lines[c][i] : "", widths[c]) + " |";
      out += "\n";
    }
  }
  return out + rule + "\n";
}

}  // namespace

Cell number_cell(double value) {
  return std::isnan(value) ? Cell{} : Cell{value};
}

std::string to_text(const PrintedTable& table, const TextStyle& style) {
  const size_t columns = table.columns.size();
  if (columns == 0) return {};
  std::vector<bool> right(columns);
  for (size_t c = 0; c < columns; ++c) right[c] = is_right(table, c);

  std::vector<std::vector<std::string>> cells;
  std::vector<size_t> widths(columns);
  const size_t gap = style.border == Border::kPlain ? 2 : 3;
  const auto measure = [&](Numbers numbers) {
    cells.assign(table.rows.size(), std::vector<std::string>(columns));
    for (size_t c = 0; c < columns; ++c) {
      const PrintedColumn& column = table.columns[c];
      // The header of a box grid has two columns of air, as tabulate gives it; its tables look alike that way.
      widths[c] = display_width(column.title) + (style.border == Border::kBox ? 2 : 0);
      for (size_t r = 0; r < table.rows.size(); ++r) {
        cells[r][c] = cell_text(c < table.rows[r].size() ? table.rows[r][c] : Cell{}, column, style, numbers);
        size_t width = display_width(cells[r][c]);
        if (style.border == Border::kBox && column.wrap > 0) width = std::min(width, column.wrap);
        widths[c] = std::max(widths[c], width);
      }
    }
    size_t total = style.indent + (style.border == Border::kBox ? 4 : 0);
    for (size_t c = 0; c < columns; ++c) total += widths[c] + (c > 0 ? gap : 0);
    return total;
  };
  size_t total = measure(Numbers::kFull);
  if (style.border == Border::kGrid) return grid(table, style, cells, widths);
  if (style.border == Border::kBox) return boxed(table, style, cells, right, widths);
  std::vector<bool> shown(columns, true);
  if (style.width > 0) {
    if (total > style.width && style.scaled) total = measure(Numbers::kScaled);
    std::vector<bool> shrinks(columns);
    for (size_t c = 0; c < columns; ++c) shrinks[c] = may_shrink(table, c);
    leave_columns_out(table, style, widths, shrinks, total, shown);
    while (total > style.width) {
      // The widest column that may shrink gives way, down to a size that still says something.
      size_t widest = columns, second = kLeast;
      for (size_t c = 0; c < columns; ++c) {
        if (!shown[c] || !shrinks[c] || widths[c] <= kLeast) continue;
        if (widest == columns || widths[c] > widths[widest]) {
          second = widest == columns ? kLeast : widths[widest];
          widest = c;
        } else {
          second = std::max(second, widths[c]);
        }
      }
      if (widest == columns) break;
      // Down to the next one, so that no column loses all while another keeps what it has.
      const size_t floor = second < widths[widest] ? second : widths[widest] - 1;
      const size_t less = std::min(total - style.width, widths[widest] - floor);
      widths[widest] -= less;
      total -= less;
    }
    cut_cells(table, cells, widths, shrinks, shown);
    // Shortened names may need less than they were given.
    for (size_t c = 0; c < columns; ++c) {
      if (!shrinks[c] || table.columns[c].cut == Cut::kWrap) continue;
      size_t used = display_width(table.columns[c].title);
      for (const auto& row : cells) used = std::max(used, display_width(row[c]));
      widths[c] = std::min(widths[c], used);
    }
  }
  return plain(table, style, cells, right, widths, shown);
}

std::string to_csv(const PrintedTable& table, bool header) {
  std::string out;
  for (size_t c = 0; header && c < table.columns.size(); ++c)
    out += (c > 0 ? "," : "") + csv_field(table.columns[c].title);
  if (header) out += '\n';
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (c > 0) out += ',';
      if (c >= row.size()) continue;
      if (const auto* text = std::get_if<std::string>(&row[c])) out += csv_field(*text);
      if (const auto* whole = std::get_if<int64_t>(&row[c])) out += fmt::format("{}", *whole);
      if (const auto* number = std::get_if<double>(&row[c]); number != nullptr && !std::isnan(*number))
        out += format_exact(*number);
    }
    out += '\n';
  }
  return out;
}

void put_cell(JsonWriter& json, const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell))
    json.value(*text);
  else if (const auto* whole = std::get_if<int64_t>(&cell))
    json.value(*whole);
  else if (const auto* number = std::get_if<double>(&cell))
    json.value(*number);
  else
    json.null();
}

namespace {

void put_columns(const PrintedTable& table, JsonWriter& writer) {
  writer.key("columns").begin_array();
  for (const PrintedColumn& column : table.columns) writer.value(column.title);
  writer.end_array().key("rows").begin_array();
}

}  // namespace

void begin_json(const PrintedTable& table, JsonWriter& writer) {
  put_columns(table, writer.begin_object().key("id").value(table.id).key("title").value(table.title));
}

void begin_bare_json(const PrintedTable& table, JsonWriter& writer) {
  put_columns(table, writer.begin_object());
}

void rows_json(const PrintedTable& part, JsonWriter& writer) {
  for (const auto& row : part.rows) {
    writer.newline().begin_array();
    for (size_t c = 0; c < part.columns.size(); ++c) put_cell(writer, c < row.size() ? row[c] : Cell{});
    writer.end_array();
  }
}

void end_json(JsonWriter& writer) {
  writer.end_array().end_object();
}

void to_json(const PrintedTable& table, JsonWriter& writer) {
  begin_json(table, writer);
  rows_json(table, writer);
  end_json(writer);
}

}  // namespace tacho::report
