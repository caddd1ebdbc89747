// Sections of text (sections.h).
#include "report/sections.h"

#include <algorithm>

namespace tacho::report {

void Sections::heading(std::string_view text, Paint paint) {
  if (!text_.empty()) text_ += '\n';
  text_ += painted(text, paint, layout_.colour) + "\n";
}

void Sections::sentence(std::string_view text, size_t further) {
  sentence(text, layout_.indent, further);
}

void Sections::sentence(std::string_view text, size_t indent, size_t further) {
  text_ += paragraph(text, layout_.long_lines ? 0 : layout_.width, indent, indent + further) + "\n";
}

void Sections::painted_sentence(std::string_view text, Paint paint, size_t further) {
  const size_t width = layout_.long_lines ? 0 : layout_.width;
  text_ += painted(paragraph(text, width, layout_.indent, layout_.indent + further), paint, layout_.colour) + "\n";
}

void Sections::line(std::string_view text) {
  text_.append(text).append(1, '\n');
}

namespace {

// The first `most` rows as text; `left_out` gets the titles of columns that do not fit.
std::string fitting_text(PrintedTable& table, size_t most, const Sections::Layout& layout,
                         std::vector<std::string>& left_out) {
  if (most != 0 && table.rows.size() > most) table.rows.resize(most);
  TextStyle style;
  style.width = layout.width;
  style.colour = layout.colour;
  style.indent = layout.indent;
  style.left_out = &left_out;
  return to_text(table, style);
}

}  // namespace

bool Sections::leaves_out(const Answer& answer, std::string_view title, size_t most) const {
  PrintedTable table = readable_table(answer);
  std::vector<std::string> left_out;
  fitting_text(table, most, layout_, left_out);
  return std::find(left_out.begin(), left_out.end(), title) != left_out.end();
}

size_t Sections::table(const Answer& answer, size_t most) {
  PrintedTable table = readable_table(answer);
  const size_t rows = table.rows.size();
  std::vector<std::string> left_out;
  text_ += fitting_text(table, most, layout_, left_out);
  // A report goes to files as wide as to a terminal of 80 columns: it says how wide.
  std::string lost = left_out_sentence(left_out, "");
  if (const size_t colon = lost.rfind(": "); colon != std::string::npos) {
    lost.replace(colon, std::string::npos, fmt::format(" at {} columns", layout_.width));
    painted_sentence(lost, Paint::kDim);
  }
  for (const std::string& note : answer.notes) sentence(note);
  return rows - table.rows.size();
}

}  // namespace tacho::report
