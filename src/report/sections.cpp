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

size_t Sections::table(const Answer& answer, size_t most) {
  PrintedTable table = readable_table(answer);
  const size_t rows = table.rows.size();
  if (most != 0 && rows > most) table.rows.resize(most);
  std::vector<std::string> left_out;
  TextStyle style;
  style.width = layout_.width;
  style.colour = layout_.colour;
  style.indent = layout_.indent;
  style.left_out = &left_out;
  text_ += to_text(table, style);
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
