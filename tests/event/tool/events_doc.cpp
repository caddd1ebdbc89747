// Writes docs/events.md from the schema: `events_doc` prints it, `events_doc --check FILE` says whether FILE is it.
#include <stdio.h>
#include <string.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/format.h"
#include "event/schema.h"

namespace tacho::event {
namespace {

std::string_view type_name(const Column& column) {
  switch (column.type) {
    case Type::kInteger:
      return "integer";
    case Type::kTime:
      return "time, ns";
    case Type::kDuration:
      return "duration, ns";
    case Type::kBytes:
      return "bytes";
    case Type::kDouble:
      return "double";
    case Type::kEnum:
      return column.enumeration->name;
    case Type::kId:
      return "id";
    case Type::kString:
      return "row of string";
    case Type::kRow:
      break;
  }
  return "row";
}

// A cell of a Markdown table.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string table_section(const TableInfo& info) {
  std::string out =
      fmt::format("### {}\n\nNumber {}. A row is {}.\n\n", info.name, static_cast<int>(info.table), info.text);
  if (info.columns.empty()) return out + "Rows are bytes of any kind, usually UTF-8; row 0 is the empty text.\n\n";
  out += "| column | type | meaning |\n|---|---|---|\n";
  for (const Column& column : info.columns) {
    const std::string type = column.type == Type::kRow ? fmt::format("row of {}", table_info(column.target).name)
                                                       : std::string(type_name(column));
    out += fmt::format("| `{}` | {} | {} |\n", column.name, type, escaped(column.text));
  }
  return out + "\n";
}

std::string enum_section(const Enumeration& enumeration) {
  std::string out = fmt::format("| `{}` | ", enumeration.name);
  for (const Enumerator& value : enumeration.values) {
    out += fmt::format("{}{} {}", &value == enumeration.values.data() ? "" : ", ", value.code, value.text);
  }
  return out + " |\n";
}

std::string document() {
  std::string out = "# Events\n\n"
                    "The contents of a trace. `build/tests/events_doc` makes this page from `src/event/tables.def` and "
                    "`src/event/enums.def`; change it there.\n\n"
                    "Facts are many and narrow, dimensions are few and wide, and facts "
                    "refer to dimensions by row number. Row 0 of a\n"
                    "dimension means \"none\". Every value is a 64-bit integer: times are nanoseconds of "
                    "CLOCK_MONOTONIC_RAW, strings are\n"
                    "row numbers of table `string`, doubles are stored as their bit "
                    "pattern. A value that the source could not know is\n"
                    "the smallest 64-bit integer, and shown as absent, never as 0. How rows lie in a file is in\n"
                    "[trace-file.md](trace-file.md).\n\n";
  out += "Every file names its tables, columns and enumerators, so that other "
         "builds of tacho can read it. The sections\n"
         "below list them; a name never changes its meaning.\n\n## Facts\n\n";
  for (const TableInfo& info : all_tables()) {
    if (info.table == Table::kString) out += "## Dimensions\n\n";
    out += table_section(info);
  }
  out += "## Enumerations\n\n| type | values |\n|---|---|\n";
  for (const Enumeration* enumeration : all_enumerations()) out += enum_section(*enumeration);
  return out;
}

}  // namespace
}  // namespace tacho::event

int main(int argc, char** argv) {
  const std::string text = tacho::event::document();
  if (argc == 3 && strcmp(argv[1], "--check") == 0) {
    std::ifstream in(argv[2], std::ios::binary);
    const std::string committed{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (committed == text) return 0;
    fprintf(stderr, "%s is not what the schema says: run build/tests/events_doc > docs/events.md\n", argv[2]);
    return 1;
  }
  fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
