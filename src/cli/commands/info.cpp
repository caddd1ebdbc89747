// `tacho info FILE`: what a trace contains.
#include <unistd.h>

#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/output/summary.h"
#include "cli/shared/command_line.h"
#include "event/schema.h"
#include "format/format.h"
#include "report/answer.h"
#include "report/output.h"
#include "report/shorten.h"
#include "walk/names/program_ranges.h"

namespace tacho::cli {

using event::Table;

int run_info(int argc, char** argv) {
  CommandOptions app("What a trace holds: the run, its processes and devices, the number of events, what is missing.",
                     "tacho info");
  app.examples("  tacho info app.tacho\n"
               "  tacho info app.tacho --tables          rows of every table");
  std::string file;
  bool tables = false, all_processes = false;
  app.add_option("file", file, "trace").required();
  app.add_flag("--tables", tables, "rows and chunks of every table instead of the summary");
  app.add_flag("--all-processes", all_processes,
               "list every process, also shells, linkers and others without GPU work");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  const auto trace = open_trace(file, WhenEmpty::kAccept);
  if (!trace) return complain(kBadInput, trace.error().message);
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  std::string out;
  if (tables) {
    report::Answer answer;
    answer.columns = {{.title = "Table", .whole = true},
                      {"", "Rows", report::Unit::kCount},
                      {"", "Chunks", report::Unit::kCount},
                      {.title = "Meaning", .cut = report::Cut::kWrap}};
    answer.when_empty = file + ": nothing was recorded";
    for (const event::TableInfo& info : event::all_tables()) {
      const int64_t rows = (*trace)->rows(info.table) - (event::is_fact(info.table) ? 0 : 1);
      if (rows <= 0) continue;
      answer.rows.push_back({std::string(info.name), rows,
                             event::is_fact(info.table)
                                 ? report::Cell(static_cast<int64_t>((*trace)->chunks(info.table).size()))
                                 : report::Cell(),
                             std::string(info.text)});
    }
    report::show(answer, {});
  } else {
    out = summary_text(**trace, screen, {.top = 5, .next_steps = false, .judged_rows = 2'000'000});
    if (const auto version = (*trace)->property(Table::kEnd, 0, "tacho_version")) {
      const auto commit = (*trace)->property(Table::kEnd, 0, "tacho_commit");
      out += fmt::format("Recorded by tacho {}{}\n", report::clean(*version),
                         commit ? fmt::format(" (commit {})", report::clean(*commit)) : "");
    }
    std::vector<int64_t> shown;
    const std::string helpers = helper_processes(**trace, shown);
    if (all_processes) {
      shown.clear();
      for (int64_t row = 1; row < (*trace)->rows(Table::kProcess); ++row)
        if (!walk::made_up_process(**trace, row)) shown.push_back(row);
    }
    for (const int64_t row : shown) {
      const int64_t pid = (*trace)->cell(Table::kProcess, row, event::column::Process::pid);
      std::string_view command = (*trace)->text(Table::kProcess, row, event::column::Process::command);
      if (command.empty()) command = (*trace)->text(Table::kProcess, row, event::column::Process::name);
      const std::string start = pid > 0 ? fmt::format("Process {}  ", pid) : std::string("Process  ");
      std::string text = report::clean(command.empty() ? "without a command line in this file" : command);
      if (const size_t fit = screen.fit(); fit != 0)
        text = report::shortened_middle(text, fit - std::min(fit / 2, start.size()));
      out += start + text + "\n";
    }
    if (!helpers.empty() && !all_processes) out += screen.sentence(helpers + " (--all-processes lists them)");
  }
  report::put(out);
  return kOk;
}

}  // namespace tacho::cli
