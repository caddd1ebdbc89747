// Formats the summary of a run (summary.h).
#include "cli/output/summary.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "analysis/stats.h"
#include "analysis/sums/sums.h"
#include "base/format.h"
#include "base/job_rank.h"
#include "cli/output/code_tables.h"
#include "cli/output/findings.h"
#include "cli/output/sampled_counters.h"
#include "cli/shared/chosen_ranks.h"
#include "ranks/match/mpi_operations.h"
#include "report/sections.h"
#include "report/shorten.h"
#include "walk/names/program_ranges.h"
#include "walk/names/tools.h"
#include "walk/time/span.h"

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

using report::Answer;
using report::Cell;
using report::Sections;
using report::Unit;

// In files a sentence stays one line, for grep.
Sections sections_of(const report::Screen& screen) {
  return Sections({.width = screen.width, .colour = screen.colour, .long_lines = !screen.terminal, .indent = 2});
}

std::string duration(double ns) {
  return report::format_duration(ns);
}
std::string duration(int64_t ns) {
  return report::format_duration(static_cast<double>(ns));
}

std::string counted(int64_t count, std::string_view one, std::string_view ending = "s") {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : ending);
}

void add_stats(Sections& out, const trace::Trace& trace, analysis::By by, const std::string& title, size_t top,
               const analysis::StatOptions& options = {}) {
  const auto rows = analysis::StatTable::make(trace, by, options);
  if (!rows) {
    out.line("\n" + rows.error().message);
    return;
  }
  if (rows->size() == 0) return;
  // Ranges lie in each other: their times are not added up.
  const bool ranges = by == analysis::By::kMarker;
  out.heading(ranges ? fmt::format("{} ({})", title, counted(rows->calls(), "range"))
                     : fmt::format("{} ({}, {})", title,
                                   by == analysis::By::kKernel ? counted(rows->calls(), "dispatch", "es")
                                                               : counted(rows->calls(), "call"),
                                   duration(rows->total())));
  Answer answer;
  answer.columns = {{.title = "Time", .unit = Unit::kNs},
                    {.title = "% of all", .unit = Unit::kPercent},
                    {.title = "Calls", .unit = Unit::kCount},
                    {.title = "Mean", .unit = Unit::kNs},
                    {.title = "Min", .unit = Unit::kNs, .leave_out = 1},
                    {.title = "Max", .unit = Unit::kNs, .leave_out = 2},
                    {.title = "Name"}};
  if (ranges) answer.shown = {0, 2, 3, 4, 5, 6};
  for (size_t i = 0; i < std::min(top, rows->size()); ++i) {
    const analysis::StatRow row = rows->row(i);
    const auto time = [&](auto value) { return row.count > row.unknown ? Cell(value) : Cell(); };
    answer.rows.push_back(
        {time(row.total), row.percent, row.count, time(row.mean), time(row.min), time(row.max), row.name});
  }
  out.table(answer);
  if (rows->size() > top) out.line(fmt::format("  … and {} more", rows->size() - top));
}

// GB/s: two decimals, and for less than those show the first digits that are not 0.
Cell rate_cell(double rate) {
  return rate > 0 && rate < 0.01 ? Cell(fmt::format("{:.2g}", rate)) : Cell(rate);
}

void add_copies(Sections& out, const trace::Trace& trace) {
  const auto copies = analysis::statistics(trace, analysis::By::kCopy);
  const auto fills = analysis::statistics(trace, analysis::By::kFill);
  if (!copies || !fills || (copies->empty() && fills->empty())) return;
  out.heading("Copies and fills");
  Answer answer;
  answer.columns = {{.title = "Time", .unit = Unit::kNs},
                    {.title = "Calls", .unit = Unit::kCount},
                    {.title = "Bytes", .unit = Unit::kBytes},
                    {.title = "GB/s", .unit = Unit::kNumber},
                    {.title = "Direction"}};
  for (const auto* rows : {&*copies, &*fills})
    for (const analysis::StatRow& row : *rows)
      answer.rows.push_back({row.total, row.count, row.sized > 0 ? Cell(row.bytes) : Cell(),
                             row.rate() ? rate_cell(*row.rate()) : Cell(), row.name});
  out.table(answer);
  if (const std::string unsized = analysis::unsized_sentence(*copies); !unsized.empty())
    out.sentence("Copies: " + unsized + ".");
}

void add_devices(Sections& out, const trace::Trace& trace, double run) {
  const auto busy = analysis::device_busy(trace);
  if (!busy || busy->empty()) return;
  out.heading("Devices");
  Answer answer;
  answer.columns = {{.title = "Busy", .unit = Unit::kNs},
                    {.title = "of the run", .unit = Unit::kNumber},
                    {.title = "of its span", .unit = Unit::kNumber},
                    {.title = "Processes", .unit = Unit::kCount},
                    {.title = "Device", .whole = true},
                    {.title = "Name"}};
  bool shared = false;
  for (const analysis::DeviceBusy& device : *busy) {
    const auto share = [&](double of) {
      return of > 0 ? Cell(fmt::format("{:.1f} %", static_cast<double>(device.busy) / of * 100)) : Cell();
    };
    shared = shared || device.processes > 1;
    answer.rows.push_back({device.busy, share(run), share(static_cast<double>(device.span)), device.processes,
                           device.number, device.name == device.number ? std::string() : device.name});
  }
  if (!shared) answer.shown = {0, 1, 2, 4, 5};
  out.table(answer);
}

// How many rows of a table were recorded, even if --aggregate kept only their sums.
int64_t recorded(const trace::Trace& trace, Table table) {
  if (!trace.aggregated()) return trace.rows(table);
  const auto sums = trace.merged_summaries(table);
  int64_t count = 0;
  if (sums)
    for (const trace::Summary& sum : *sums) count += sum.count;
  return count;
}

// The share of the run that the program spent in MPI.
void add_mpi(Sections& out, const trace::Trace& trace, double run) {
  const auto sums = trace.merged_summaries(Table::kApi);
  if (!sums) return;
  int64_t inside = 0, waiting = 0, calls = 0, thread = 0;
  bool several = false;
  for (const trace::Summary& sum : *sums) {
    if (static_cast<event::Domain>(trace.cell(Table::kFunction, sum.dim, column::Function::domain)) !=
        event::Domain::kMpi)
      continue;
    const std::string_view name = trace.text(Table::kFunction, sum.dim, column::Function::name);
    // Starting and ending a job is no communication of its work.
    if (name == "MPI_Init" || name == "MPI_Init_thread" || name == "MPI_Finalize" || name == "MPI_Abort") continue;
    several = several || (thread != 0 && thread != sum.track);
    thread = sum.track;
    calls += sum.count;
    inside += sum.sum;
    if (ranks::only_waits(name)) waiting += sum.sum;
  }
  if (calls == 0) return;
  const auto time = [](int64_t value) { return report::format_duration(static_cast<double>(value)); };
  std::string text =
      fmt::format("{} in {} call{} besides MPI_Init and MPI_Finalize", time(inside), calls, calls == 1 ? "" : "s");
  if (several)
    text += ", summed over threads";
  else if (run > 0)
    text += fmt::format(", {:.1f} % of the run", static_cast<double>(inside) / run * 100);
  text += fmt::format("; {} of it in calls that only wait. tacho ranks shows for whom, given the traces of all ranks",
                      time(waiting));
  out.heading("MPI");
  out.sentence(text);
}

// The first findings, a line each. A trace that takes long to judge only gets the command.
void add_findings(Sections& out, const trace::Trace& trace, const SummaryOptions& options) {
  int64_t rows = 0, work = 0;
  for (const Table table : {Table::kApi, Table::kMarker, Table::kSample}) rows += trace.rows(table);
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill}) work += trace.rows(table);
  if ((work == 0 && trace.rows(Table::kSample) == 0) || trace.aggregated()) return;
  const std::string file = options.kept ? report::clean(trace.path()) : std::string();
  if (rows + work > options.judged_rows) {
    if (file.empty()) return;
    out.heading("Findings");
    out.line("  tacho report findings " + file);
  } else if (const auto findings = findings_of(trace)) {
    add_findings_lines(out, *findings, file);
  } else {
    out.heading("Findings");
    out.sentence(report::clean(findings.error().message));
  }
}

}  // namespace

std::string helper_processes(const trace::Trace& trace, std::vector<int64_t>& shown) {
  const int64_t rows = trace.rows(Table::kProcess);
  std::vector<uint8_t> works(static_cast<size_t>(std::max<int64_t>(rows, 1))), sampled(works.size());
  const auto mark = [&](Table table, std::vector<uint8_t>& of) {
    // Ignores read errors: the code that reads the rows themselves reports them.
    static_cast<void>(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries) {
        const int64_t process = trace.cell(Table::kTrack, summary.track, column::Track::process);
        if (process > 0 && process < rows) of[static_cast<size_t>(process)] = 1;
      }
    }));
  };
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill, Table::kApi, Table::kMarker})
    mark(table, works);
  mark(Table::kSample, sampled);
  std::vector<std::pair<std::string, size_t>> folded;
  size_t count = 0;
  for (int64_t row = 1; row < rows; ++row) {
    const auto at = static_cast<size_t>(row);
    if (walk::made_up_process(trace, row)) continue;
    const std::string name(trace.text(Table::kProcess, row, column::Process::name));
    const bool tool = walk::is_helping_tool(name);
    if (works[at] != 0 || (!tool && (sampled[at] != 0 || row == 1))) {
      shown.push_back(row);
      continue;
    }
    ++count;
    const std::string text = name.empty() ? "unknown" : report::clean(name);
    const auto known = std::find_if(folded.begin(), folded.end(), [&](const auto& one) { return one.first == text; });
    if (known == folded.end())
      folded.emplace_back(text, 1);
    else
      ++known->second;
  }
  if (shown.empty() && rows > 1) {
    // Only a shell ran.
    shown.push_back(1);
    const std::string first = report::clean(trace.text(Table::kProcess, 1, column::Process::name));
    for (auto& [text, number] : folded)
      if (text == first || (first.empty() && text == "unknown")) --number;
    std::erase_if(folded, [](const auto& one) { return one.second == 0; });
    --count;
  }
  if (count == 0) return {};
  std::stable_sort(folded.begin(), folded.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string names;
  constexpr size_t kMostNames = 6;
  for (size_t i = 0; i < std::min(folded.size(), kMostNames); ++i)
    names += (names.empty() ? "" : ", ") + folded[i].first +
             (folded[i].second > 1 ? fmt::format(" ({})", folded[i].second) : std::string());
  if (folded.size() > kMostNames) names += ", …";
  return fmt::format("{} more process{} without GPU work: {}", count, count == 1 ? "" : "es", names);
}

namespace {
std::string rank_of(const SummaryOptions& options) {
  return fmt::format("rank {}{}", options.rank,
                     options.ranks > 0 ? fmt::format(" of {}", options.ranks) : std::string());
}

// The run's length; 0 where rows are damaged, which is said where they are shown.
double run_length(const trace::Trace& trace) {
  const auto run = walk::run_span(trace);
  return run ? static_cast<double>(run->length()) : 0;
}

// "run of 1.15 s" and, where tacho started the program, how long that ran.
std::string how_long(const trace::Trace& trace) {
  const double seconds = number_property(trace, "target_seconds"), run = run_length(trace);
  const std::string program =
      seconds > 0 ? fmt::format("program {}", report::format_duration(seconds * 1e9)) : std::string();
  if (run == 0 && !program.empty()) return program;
  if (analysis::holds_sums(trace))
    if (const auto span = analysis::span_of_sums(trace))
      return fmt::format("sums of {}", report::format_duration(static_cast<double>(span->to - span->from)));
  return fmt::format("run of {}{}{}", report::format_duration(run), program.empty() ? "" : ", ", program);
}

// "; ended by signal 11", "; exited with code 3", or nothing.
std::string bad_end(const trace::Trace& trace) {
  if (const auto code = trace.property(Table::kEnd, 0, "signal")) return fmt::format("; ended by signal {}", *code);
  const auto exit = trace.property(Table::kEnd, 0, "exit_code");
  return exit && *exit != "0" ? fmt::format("; exited with code {}", *exit) : std::string();
}

std::string rank_line(const trace::Trace& trace, const report::Screen& screen, const SummaryOptions& options) {
  const auto count = [&](Table table, const char* one) {
    const int64_t rows = recorded(trace, table);
    return fmt::format("{} {}{}", rows, one, rows == 1 ? "" : "s");
  };
  std::string out =
      fmt::format("{}  {}: {}, {}, {}{}{}", report::painted("tacho", report::Paint::kBold, screen.colour),
                  rank_of(options), how_long(trace), count(Table::kDispatch, "kernel"), count(Table::kApi, "call"),
                  bad_end(trace), trace.complete() ? "" : "; the recording was cut off");
  if (options.kept) out += "  " + report::clean(trace.path());
  for (const std::string& path : options.written) out += "  " + report::clean(path);
  Sections text = sections_of(screen);
  text.line(out);
  for (const std::string& sentence : analysis::loss_sentences(trace))
    text.painted_sentence(sentence, report::Paint::kYellow);
  return text.take();
}

// The program, how long it ran, how it ended. Returns the number of events.
int64_t add_head(Sections& out, const trace::Trace& trace, const report::Screen& screen,
                 const SummaryOptions& options) {
  std::string head = report::painted("tacho", report::Paint::kBold, screen.colour);
  const auto command = trace.property(Table::kEnd, 0, "command");
  const std::string what = command ? std::string(*command) : std::filesystem::path(trace.path()).filename().string();
  head += "  " + report::shortened_middle(report::clean(what), screen.width > 20 ? screen.width - 7 : 13);
  out.line(head);
  int64_t events = 0;
  for (size_t i = 0; i <= static_cast<size_t>(Table::kReading); ++i)
    events += event::is_timed(static_cast<Table>(i)) ? recorded(trace, static_cast<Table>(i))
                                                     : trace.rows(static_cast<Table>(i));
  std::vector<int64_t> shown;
  const std::string helpers = helper_processes(trace, shown);
  // Events may all be of the machine.
  const std::string processes =
      shown.empty() ? "" : " of " + counted(static_cast<int64_t>(shown.size()), "process", "es");
  out.line(fmt::format("  {}; {}{}{}", how_long(trace), counted(events, "event"), processes,
                       trace.complete() ? "" : "; the recording was cut off"));
  if (options.rank >= 0) out.line(fmt::format("  {}; every other recorded rank has one line", rank_of(options)));
  if (!helpers.empty()) out.sentence(helpers);
  if (const auto code = trace.property(Table::kEnd, 0, "signal"))
    out.line(fmt::format("  the program was ended by signal {}", *code));
  else if (const auto exit = trace.property(Table::kEnd, 0, "exit_code"); exit && *exit != "0")
    out.line(fmt::format("  the program exited with code {}", *exit));
  return events;
}

// The cost of tracing itself, and the losses.
bool add_account(Sections& out, const trace::Trace& trace) {
  std::string account;
  double hook = 0;
  int64_t counted_processes = 0;
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    if (const auto text = trace.property(Table::kProcess, process, "hook_ns")) {
      double value = 0;
      std::from_chars(text->data(), text->data() + text->size(), value);
      hook += value;
      ++counted_processes;
    }
  if (counted_processes > 0) {
    hook /= static_cast<double>(counted_processes);
    const auto hooks = recorded(trace, Table::kApi) + recorded(trace, Table::kMarker);
    account = fmt::format("{:.0f} ns a recorded call, measured in the program at its start: {} in all", hook,
                          duration(hook * static_cast<double>(hooks)));
    const double drain = number_property(trace, "drain_cpu_seconds");
    if (drain > 0) account += fmt::format("; tacho itself used {} of CPU time", duration(drain * 1e9));
  }
  const auto losses = analysis::loss_sentences(trace);
  const bool headed = !account.empty() || !losses.empty();
  if (headed) out.heading("Our own cost and losses");
  if (!account.empty()) out.sentence(account);
  for (const std::string& sentence : losses) out.painted_sentence(sentence, report::Paint::kYellow);
  if (!trace.complete())
    out.sentence("what was recorded after the last write to this file is missing; how much that is, it cannot say");
  else if (losses.empty() && !account.empty() && !trace.property(Table::kEnd, 0, "unrecorded_processes"))
    out.line("  nothing was lost");
  for (const std::string& sentence : analysis::filter_sentences(trace)) out.sentence(sentence);
  return headed;
}

// What several processes have told stands once.
void add_notes(Sections& out, const trace::Trace& trace, bool headed) {
  std::vector<std::pair<int64_t, int64_t>> notes;  // severity, text; in order
  std::map<std::pair<int64_t, int64_t>, size_t> times;
  std::vector<int64_t> severity, text;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kNote).size(); ++chunk) {
    if (!trace.decode(Table::kNote, chunk, column::Note::severity, severity) ||
        !trace.decode(Table::kNote, chunk, column::Note::text, text))
      break;
    for (size_t i = 0; i < text.size(); ++i)
      if (++times[{severity[i], text[i]}] == 1) notes.emplace_back(severity[i], text[i]);
  }
  if (!headed && !notes.empty()) out.heading("Remarks");
  for (const auto& note : notes) {
    const size_t told = times[note];
    out.sentence(fmt::format("{}: {}{}", event::to_string(static_cast<event::NoteSeverity>(note.first)),
                             report::clean(trace.string(note.second)),
                             told > 1 ? fmt::format(" ({} times)", told) : ""));
  }
}

void add_files(Sections& out, const trace::Trace& trace, int64_t events, const SummaryOptions& options) {
  if (options.kept) {
    // A file in another format became a trace without a name: this is the given file's size.
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(trace.path(), error);
    std::string facts = error ? std::string() : report::format_bytes(static_cast<double>(size));
    if (!error && size == trace.file_size() && events > 5000)
      facts += fmt::format(", {:.1f} B an event", static_cast<double>(size) / static_cast<double>(events));
    out.line(fmt::format("{}  {}{}", report::painted("Trace", report::Paint::kBold, out.layout().colour),
                         report::clean(trace.path()), facts.empty() ? facts : " (" + facts + ")"));
  }
  const char* head = "Files  ";
  for (const std::string& path : options.written) {
    out.line(head + report::clean(path));
    head = "       ";
  }
}

void add_next_steps(Sections& out, const trace::Trace& trace, const SummaryOptions& options) {
  const std::string file = report::clean(trace.path());
  const bool sampled = trace.rows(Table::kSample) > 0;
  const char* head = "Next   ";
  const auto suggest = [&](std::string_view command, std::string_view why = {}) {
    out.line(fmt::format("{}tacho {}{}", head, command, why.empty() ? "" : fmt::format("   ({})", why)));
    head = "       ";
  };
  if (options.rank >= 0 && (trace.rows(Table::kMessage) > 0 || trace.rows(Table::kCommunicator) > 1)) {
    const std::string folder = std::filesystem::path(trace.path()).parent_path().string();
    suggest(fmt::format("ranks {}", folder.empty() ? "." : report::clean(folder)), "who made whom wait");
  }
  suggest(fmt::format("view {}", file), trace.aggregated() ? "in a browser" : "the timeline, in a browser");
  if (trace.property(Table::kEnd, 0, "torch_trace") == "1")
    suggest(fmt::format("stats {} --by operator", file), "or --by module");
  if (trace.property(Table::kEnd, 0, "memory") == "1") suggest(fmt::format("memory {}", file), "who holds the memory");
  if (sampled || trace.property(Table::kEnd, 0, "attach.stayed_out") != "1")
    suggest(fmt::format("stats {} --by {}", file, sampled ? "line" : "api"));
  if (sampled) suggest(fmt::format("flame {}", file));
  // --aggregate keeps no events for a timeline.
  if (!trace.aggregated()) suggest(fmt::format("export {} -f pftrace", file), "open in ui.perfetto.dev");
}

}  // namespace

std::string summary_text(const trace::Trace& trace, const report::Screen& screen, const SummaryOptions& options) {
  Sections out = sections_of(screen);
  const double run = run_length(trace);
  const int64_t events = add_head(out, trace, screen, options);
  add_stats(out, trace, analysis::By::kKernel, "Kernels", options.top);
  add_devices(out, trace, run);
  add_copies(out, trace);
  add_sampled_counters(out, trace, options.top);
  const size_t fewer = std::min<size_t>(options.top, 8);
  add_stats(out, trace, analysis::By::kApi, "API calls", fewer, {.runtime_calls = true});
  add_stats(out, trace, analysis::By::kApi, "MPI calls", fewer, {.domain = event::Domain::kMpi});
  add_operators(out, trace, fewer);
  add_lines(out, trace, fewer);
  add_stats(out, trace, analysis::By::kMarker, "Markers", fewer, {.of_program = true});
  add_mpi(out, trace, run);
  add_findings(out, trace, options);
  add_notes(out, trace, add_account(out, trace));
  out.line("");
  add_files(out, trace, events, options);
  if (options.kept && options.next_steps && events > 0) add_next_steps(out, trace, options);
  return out.take();
}

std::string summary_of_run(const trace::Trace& trace, SummaryOptions options, std::string_view ranks) {
  if (const JobRank job = job_rank(); job.known() && job.size != 1) {
    options.rank = job.rank;
    options.ranks = job.size;
  }
  const report::Screen screen = report::screen_of(STDERR_FILENO);
  return is_first_rank(ranks) ? summary_text(trace, screen, options) : rank_line(trace, screen, options);
}

}  // namespace tacho::cli
