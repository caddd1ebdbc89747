// `tacho info FILE`: what a trace holds.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/open_trace.h"
#include "cli/shared/summary.h"
#include "event/schema.h"
#include "format/format.h"
#include "report/table.h"

namespace tacho::cli {

using event::Table;

int run_info(int argc, char** argv) {
  CLI::App app(
      "What a trace holds: the run, its processes and devices, the number of events, what is missing.",
      "tacho info");
  std::string file;
  bool tables = false;
  app.add_option("file", file, "trace")->required();
  app.add_flag("--tables", tables, "rows and chunks of every table instead of the summary");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return complain(kBadInput, option_error(app, error));
  }
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  std::string out;
  if (tables) {
    report::Table table;
    table.columns = {{"Table"}, {"Rows"}, {"Chunks"}, {"Meaning", report::Align::kLeft, -1, true}};
    for (const event::TableInfo& info : event::all_tables()) {
      const int64_t rows = (*trace)->rows(info.table) - (event::is_fact(info.table) ? 0 : 1);
      if (rows <= 0) continue;
      table.rows.push_back({std::string(info.name), rows,
                            event::is_fact(info.table)
                                ? report::Cell(static_cast<int64_t>((*trace)->chunks(info.table).size()))
                                : report::Cell(),
                            std::string(info.text)});
    }
    report::TextStyle style;
    style.colour = screen.colour;
    out = report::to_text(table, style);
  } else {
    out = summary_text(**trace, screen, {.top = 5, .next_steps = false});
    if (const auto version = (*trace)->property(Table::kEnd, 0, "tacho_version")) {
      const auto commit = (*trace)->property(Table::kEnd, 0, "tacho_commit");
      out += fmt::format("Recorded by tacho {}{}\n", report::clean(*version),
                         commit ? fmt::format(" (commit {})", report::clean(*commit)) : "");
    }
    for (int64_t process = 1; process < (*trace)->rows(Table::kProcess); ++process)
      out += fmt::format(
          "Process {}  {}\n", (*trace)->cell(Table::kProcess, process, event::column::Process::pid),
          report::clean((*trace)->text(Table::kProcess, process, event::column::Process::command)));
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return kOk;
}

}  // namespace tacho::cli
