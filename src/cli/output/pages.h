// Prints long tables, perhaps of millions of rows, page by page on standard output.
#pragma once

#include <cstddef>
#include <string>

#include "base/text/json_writer.h"
#include "report/table.h"

namespace tacho::cli {

/// One table in pages. Each page of text has its own header and column widths; csv and JSON are one document.
class Pages {
 public:
  static constexpr size_t kRows = 10'000;  ///< at most, in a page
  /// `format`: text, csv or json; `when_empty`: the line of text to print for a table without rows.
  Pages(const std::string& format, std::string when_empty);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  bool text() const { return format_ == Format::kText; }
  /// Prints the next page; all pages have the same columns. `last`: no page follows.
  void give(const report::Table& page, bool last);

 private:
  enum class Format { kText, kCsv, kJson } format_;
  std::string when_empty_, out_;
  JsonWriter writer_;
  report::TextStyle style_;
  bool first_ = true;
};

}  // namespace tacho::cli
