// Prints tables in pages (pages.h).
#include "cli/output/pages.h"

#include <unistd.h>

#include <utility>

#include "report/output.h"

namespace tacho::cli {

Pages::Pages(const std::string& format, std::string when_empty)
    : format_(format == "csv"    ? Format::kCsv
              : format == "json" ? Format::kJson
                                 : Format::kText),
      when_empty_(std::move(when_empty)),
      writer_(out_) {
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  style_.width = screen.terminal ? screen.width : 0;
  style_.colour = screen.colour;
}

void Pages::give(const report::Table& page, bool last) {
  switch (format_) {
    case Format::kCsv:
      out_ += report::to_csv(page, first_);
      break;
    case Format::kJson:
      if (first_) report::begin_json(page, writer_);
      report::rows_json(page, writer_);
      if (last) {
        report::end_json(writer_);
        out_ += "\n";
      }
      break;
    case Format::kText:
      if (!page.rows.empty())
        out_ += report::to_text(page, style_);
      else if (first_)
        out_ += when_empty_ + "\n";
  }
  report::put(out_);
  out_.clear();
  first_ = false;
}

}  // namespace tacho::cli
