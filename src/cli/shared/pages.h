// Prints long tables, maybe millions of rows, page by page on standard output.
#pragma once

#include <cstddef>
#include <string>

#include "base/json_writer.h"
#include "report/table.h"

namespace tacho::cli {

/// One table in pages. As text every page has a header, and columns as wide as the page needs; csv and JSON are one document.
class Pages {
 public:
  static constexpr size_t kRows = 10'000;  ///< of a page, at most
  /// `format`: text, csv or json; `when_empty`: the line of text instead of a table without rows.
  Pages(const std::string& format, std::string when_empty);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  bool text() const { return format_ == Format::kText; }
  /// Prints the next page; all have the same columns. `last`: nothing follows.
  void give(const report::Table& page, bool last);

 private:
  enum class Format { kText, kCsv, kJson } format_;
  std::string when_empty_, out_;
  JsonWriter writer_;
  report::TextStyle style_;
  bool first_ = true;
};

}  // namespace tacho::cli
