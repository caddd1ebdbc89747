// Text of the summary after a run (summary.h).
#include "cli/shared/summary.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "analysis/stats.h"
#include "base/format.h"
#include "report/table.h"

namespace tacho::cli {
namespace {

using event::Table;
namespace column = event::column;

double number_property(const trace::Trace& trace, std::string_view key) {
  const auto text = trace.property(Table::kEnd, 0, key);
  double value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

std::string heading(const std::string& text, const report::Screen& screen) {
  return "\n" + report::painted(text, report::Paint::kBold, screen.colour) + "\n";
}

void add_stats(std::string& out, const trace::Trace& trace, const report::Screen& screen, analysis::By by,
               const std::string& title, size_t top, bool with_group) {
  const auto rows = analysis::StatTable::make(trace, by);
  if (!rows) {
    out += "\n" + rows.error().message + "\n";
    return;
  }
  if (rows->size() == 0) return;
  out += heading(fmt::format("{} ({} {}, {})", title, rows->calls(),
                             by == analysis::By::kKernel ? "dispatches" : "calls",
                             report::format_duration(static_cast<double>(rows->total()))),
                 screen);
  report::Table table;
  table.columns = {{"Time", report::Align::kRight},         {"%", report::Align::kRight, 1},
                   {"Calls", report::Align::kRight},        {"Mean", report::Align::kRight},
                   {"Min", report::Align::kRight},          {"Max", report::Align::kRight},
                   {"Name", report::Align::kLeft, -1, true}};
  for (size_t i = 0; i < std::min(top, rows->size()); ++i) {
    const analysis::StatRow row = rows->row(i);
    const bool timed = row.count > row.unknown;
    const auto time = [&](double value) { return timed ? report::format_duration(value) : std::string("—"); };
    table.rows.push_back({time(static_cast<double>(row.total)), row.percent, row.count, time(row.mean),
                          time(static_cast<double>(row.min)), time(static_cast<double>(row.max)),
                          with_group && !row.group.empty() ? row.name + "  [" + row.group + "]" : row.name});
  }
  report::TextStyle style;
  style.width = screen.width;
  style.colour = screen.colour;
  style.indent = 2;
  style.decimals = 1;
  out += report::to_text(table, style);
  if (rows->size() > top) out += fmt::format("  … and {} more\n", rows->size() - top);
}

void add_copies(std::string& out, const trace::Trace& trace, const report::Screen& screen) {
  const auto copies = analysis::statistics(trace, analysis::By::kCopy);
  const auto fills = analysis::statistics(trace, analysis::By::kFill);
  if (!copies || !fills || (copies->empty() && fills->empty())) return;
  out += heading("Copies and fills", screen);
  report::Table table;
  table.columns = {{"Time", report::Align::kRight},
                   {"Calls", report::Align::kRight},
                   {"Bytes", report::Align::kRight},
                   {"GB/s", report::Align::kRight, 2},
                   {"Direction", report::Align::kLeft, -1, true}};
  for (const auto* rows : {&*copies, &*fills})
    for (const analysis::StatRow& row : *rows)
      table.rows.push_back(
          {report::format_duration(static_cast<double>(row.total)), row.count,
           report::format_bytes(static_cast<double>(row.bytes)),
           row.total > 0 ? report::Cell(static_cast<double>(row.bytes) / static_cast<double>(row.total))
                         : report::Cell(),
           row.name});
  report::TextStyle style;
  style.width = screen.width;
  style.colour = screen.colour;
  style.indent = 2;
  out += report::to_text(table, style);
}

// Rows of a table that were recorded, also where --aggregate kept only their sums.
int64_t recorded(const trace::Trace& trace, Table table) {
  if (!trace.aggregated()) return trace.rows(table);
  const auto sums = trace.merged_summaries(table);
  int64_t count = 0;
  if (sums)
    for (const trace::Summary& sum : *sums) count += sum.count;
  return count;
}

}  // namespace

std::string summary_text(const trace::Trace& trace, const report::Screen& screen,
                         const SummaryOptions& options) {
  std::string out;
  const auto command = trace.property(Table::kEnd, 0, "command");
  const double seconds = number_property(trace, "target_seconds");
  const auto [first, last] = trace.time_range();
  out += report::painted("tacho", report::Paint::kBold, screen.colour);
  if (command)
    out += "  " + report::shortened(report::clean(*command), screen.width > 20 ? screen.width - 10 : 60);
  out += "\n";
  int64_t events = 0;
  for (size_t i = 0; i <= static_cast<size_t>(Table::kReading); ++i)
    events += event::is_timed(static_cast<Table>(i)) ? recorded(trace, static_cast<Table>(i))
                                                     : trace.rows(static_cast<Table>(i));
  const int64_t processes = std::max<int64_t>(trace.rows(Table::kProcess) - 1, 0);
  out += fmt::format("  {}ran {}; {} event{} of {} process{}{}\n", seconds > 0 ? "" : "recording ",
                     report::format_duration(seconds > 0 ? seconds * 1e9 : static_cast<double>(last - first)),
                     events, events == 1 ? "" : "s", processes, processes == 1 ? "" : "es",
                     trace.complete() ? "" : "; the recording was cut off");
  if (const auto code = trace.property(Table::kEnd, 0, "signal"))
    out += fmt::format("  the program was ended by signal {}\n", *code);
  else if (const auto exit = trace.property(Table::kEnd, 0, "exit_code"); exit && *exit != "0")
    out += fmt::format("  the program exited with code {}\n", *exit);

  add_stats(out, trace, screen, analysis::By::kKernel, "Kernels", options.top, false);
  if (const auto busy = analysis::device_busy(trace); busy && !busy->empty()) {
    out += heading("Devices", screen);
    for (const analysis::DeviceBusy& device : *busy) {
      const double wall = seconds > 0 ? seconds * 1e9 : static_cast<double>(last - first);
      out += fmt::format(
          "  {}: busy {} = {:.1f} % of the run, {:.1f} % between its first and last work\n",
          report::clean(device.name), report::format_duration(static_cast<double>(device.busy)),
          wall > 0 ? static_cast<double>(device.busy) / wall * 100 : 0.0,
          device.span > 0 ? static_cast<double>(device.busy) / static_cast<double>(device.span) * 100
                          : 100.0);
    }
  }
  add_copies(out, trace, screen);
  add_stats(out, trace, screen, analysis::By::kApi, "API calls", std::min<size_t>(options.top, 8), false);
  add_stats(out, trace, screen, analysis::By::kMarker, "Markers", std::min<size_t>(options.top, 8), false);

  std::string account;
  double hook = 0;
  int64_t counted = 0;
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    if (const auto text = trace.property(Table::kProcess, process, "hook_ns")) {
      double value = 0;
      std::from_chars(text->data(), text->data() + text->size(), value);
      hook += value;
      ++counted;
    }
  if (counted > 0) {
    hook /= static_cast<double>(counted);
    const auto hooks = recorded(trace, Table::kApi) + recorded(trace, Table::kMarker);
    account = fmt::format("  {:.0f} ns a recorded call, measured in the program at its start: {} in all",
                          hook, report::format_duration(hook * static_cast<double>(hooks)));
    const double drain = number_property(trace, "drain_cpu_seconds");
    if (drain > 0)
      account += fmt::format("; tacho itself {} of CPU beside it", report::format_duration(drain * 1e9));
    account += "\n";
  }
  const auto losses = analysis::loss_sentences(trace);
  if (!account.empty() || !losses.empty()) out += heading("Our own cost and losses", screen) + account;
  for (const std::string& sentence : losses)
    out += "  " + report::painted(sentence, report::Paint::kYellow, screen.colour) + "\n";
  if (!trace.complete())
    out +=
        "  what was recorded after the last write to this file is missing; how much that is, it cannot say\n";
  else if (losses.empty() && !account.empty() && !trace.property(Table::kEnd, 0, "unrecorded_processes"))
    out += "  nothing was lost\n";
  for (const std::string& sentence : analysis::filter_sentences(trace))
    out += "  " + sentence + ", as asked\n";

  std::vector<int64_t> severity, text;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kNote).size(); ++chunk) {
    if (!trace.decode(Table::kNote, chunk, column::Note::severity, severity) ||
        !trace.decode(Table::kNote, chunk, column::Note::text, text))
      break;
    for (size_t i = 0; i < text.size(); ++i)
      out += fmt::format("  {}: {}\n", event::to_string(static_cast<event::NoteSeverity>(severity[i])),
                         report::clean(trace.string(text[i])));
  }

  out += "\n";
  if (options.kept)
    out += fmt::format(
        "{}  {} ({}{})\n", report::painted("Trace", report::Paint::kBold, screen.colour),
        report::clean(trace.path()), report::format_bytes(static_cast<double>(trace.file_size())),
        events > 5000 ? fmt::format(", {:.1f} B an event",
                                    static_cast<double>(trace.file_size()) / static_cast<double>(events))
                      : std::string());
  const char* heading_of_files = "Files  ";
  for (const std::string& path : options.written) {
    out += fmt::format("{}{}\n", heading_of_files, report::clean(path));
    heading_of_files = "       ";
  }
  if (options.kept && options.next_steps && events > 0) {
    out += fmt::format("Next   tacho stats {0}\n", report::clean(trace.path()));
    out += fmt::format("       tacho export {0} -f pftrace     (open in ui.perfetto.dev)\n",
                       report::clean(trace.path()));
  }
  return out;
}

}  // namespace tacho::cli
