// Text in sections for one stream: headings, sentences that wrap at words and tables that fit. Reports of several
// tables are made of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "report/answer.h"
#include "report/text.h"

namespace tacho::report {

class Sections {
 public:
  struct Layout {
    size_t width = 80;  ///< columns of tables and sentences; 0 = any
    bool colour = false;
    bool long_lines = false;  ///< sentences stay one line each, for grep
    size_t indent = 0;        ///< of tables and sentences below a heading
  };
  explicit Sections(const Layout& layout) : layout_(layout) {}

  /// A blank line, unless the text begins here, and the heading.
  void heading(std::string_view text, Paint paint = Paint::kBold);
  /// A sentence at the layout's indent; further lines `further` columns to the right of it.
  void sentence(std::string_view text, size_t further = 2);
  void sentence(std::string_view text, size_t indent, size_t further);
  /// The same in colour.
  void painted_sentence(std::string_view text, Paint paint, size_t further = 2);
  /// Text as it is, with the newline at its end.
  void line(std::string_view text);
  /// At most `most` rows of the answer (0 = all) and a line that names columns which do not fit. Returns how many rows
  /// are left out. The answer's notes become sentences.
  size_t table(const Answer& answer, size_t most = 0);
  /// Whether table() would leave out the column with this title.
  bool leaves_out(const Answer& answer, std::string_view title, size_t most = 0) const;

  const Layout& layout() const { return layout_; }
  bool empty() const { return text_.empty(); }
  std::string take() { return std::move(text_); }

 private:
  Layout layout_;
  std::string text_;
};

}  // namespace tacho::report
