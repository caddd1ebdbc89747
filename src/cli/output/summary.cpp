// Formats the summary of a run (summary.h).
#include "cli/output/summary.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "analysis/stacks/own_code.h"
#include "analysis/stats.h"
#include "base/format.h"
#include "base/job_rank.h"
#include "cli/output/findings.h"
#include "cli/shared/chosen_ranks.h"
#include "ranks/match/mpi_operations.h"
#include "report/shorten.h"
#include "report/table.h"
#include "walk/span.h"

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

// Indents a sentence by two, on a terminal its further lines by four. In files it stays one line, for grep.
std::string indented(const std::string& text, const report::Screen& screen) {
  if (!screen.terminal) return "  " + text + "\n";
  return "  " + report::wrapped(text, std::max<size_t>(screen.width, 20) - 4, 4) + "\n";
}

report::TextStyle style_of(const report::Screen& screen) {
  report::TextStyle style;
  style.width = screen.width;
  style.colour = screen.colour;
  style.indent = 2;
  return style;
}

void add_stats(std::string& out, const trace::Trace& trace, const report::Screen& screen, analysis::By by,
               const std::string& title, size_t top, const analysis::StatOptions& options = {}) {
  const auto rows = analysis::StatTable::make(trace, by, options);
  if (!rows) {
    out += "\n" + rows.error().message + "\n";
    return;
  }
  if (rows->size() == 0) return;
  out += heading(fmt::format("{} ({} {}, {})", title, rows->calls(),
                             by == analysis::By::kKernel ? (rows->calls() == 1 ? "dispatch" : "dispatches")
                                                         : (rows->calls() == 1 ? "call" : "calls"),
                             report::format_duration(static_cast<double>(rows->total()))),
                 screen);
  report::Table table;
  table.columns = {{"Time", report::Align::kRight},         {"%", report::Align::kRight, 1},
                   {"Calls", report::Align::kRight},        {"Mean", report::Align::kRight},
                   {"Min", report::Align::kRight},          {"Max", report::Align::kRight},
                   {"Name", report::Align::kLeft, -1, true}};
  table.columns[4].leave_out = 1;
  table.columns[5].leave_out = 2;
  for (size_t i = 0; i < std::min(top, rows->size()); ++i) {
    const analysis::StatRow row = rows->row(i);
    const bool timed = row.count > row.unknown;
    const auto time = [&](double value) { return timed ? report::format_duration(value) : std::string("—"); };
    table.rows.push_back({time(static_cast<double>(row.total)), row.percent, row.count, time(row.mean),
                          time(static_cast<double>(row.min)), time(static_cast<double>(row.max)), row.name});
  }
  report::TextStyle style = style_of(screen);
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
           row.sized > 0 ? report::Cell(report::format_bytes(static_cast<double>(row.bytes))) : report::Cell(),
           row.rate() ? report::Cell(*row.rate()) : report::Cell(), row.name});
  out += report::to_text(table, style_of(screen));
  if (const std::string unsized = analysis::unsized_sentence(*copies); !unsized.empty())
    out += indented("Copies: " + unsized + ".", screen);
}

void add_devices(std::string& out, const trace::Trace& trace, const report::Screen& screen, double run) {
  const auto busy = analysis::device_busy(trace);
  if (!busy || busy->empty()) return;
  out += heading("Devices", screen);
  report::Table table;
  table.columns = {{"Busy", report::Align::kRight},
                   {"of the run", report::Align::kRight},
                   {"of its span", report::Align::kRight},
                   {"Processes", report::Align::kRight},
                   {"Device"},
                   {"Name", report::Align::kLeft, -1, true}};
  bool shared = false;
  for (const analysis::DeviceBusy& device : *busy) {
    const auto share = [&](double of) {
      return of > 0 ? report::Cell(fmt::format("{:.1f} %", static_cast<double>(device.busy) / of * 100))
                    : report::Cell();
    };
    shared = shared || device.processes > 1;
    table.rows.push_back({report::format_duration(static_cast<double>(device.busy)), share(run),
                          share(static_cast<double>(device.span)), device.processes, device.number,
                          device.name == device.number ? std::string() : device.name});
  }
  if (!shared) {
    table.columns.erase(table.columns.begin() + 3);
    for (auto& row : table.rows) row.erase(row.begin() + 3);
  }
  out += report::to_text(table, style_of(screen));
}

// Where the host spent its time: the user's own lines, or functions if no line is known, with the GPU time that they
// launched.
void add_host_time(std::string& out, const trace::Trace& trace, const report::Screen& screen, size_t top) {
  if (trace.rows(Table::kSample) == 0) return;
  // Finding the launching line reads every call; with more calls than this, shows only the host's time.
  constexpr int64_t kMostCalls = 2'000'000;
  analysis::StackOptions options;
  options.gpu = trace.rows(Table::kApi) <= kMostCalls;
  const auto all = analysis::stack_tree(trace, options);
  if (!all || all->samples == 0) return;
  const analysis::OwnShare own = analysis::own_share(*all);
  const bool filtered = own.host_ns > 0 || own.gpu_ns > 0;
  const analysis::StackTree tree = analysis::own_code(*all);
  std::vector<analysis::StackRow> rows = analysis::stack_rows(tree, analysis::StackBy::kLine);
  const bool lines =
      std::any_of(rows.begin(), rows.end(), [](const analysis::StackRow& row) { return row.frame.line > 0; });
  if (!lines) rows = analysis::stack_rows(tree, analysis::StackBy::kFunction);
  std::erase_if(rows, [](const analysis::StackRow& row) { return row.self_ns == 0 && row.gpu_self_ns == 0; });
  const auto percent = [&](int64_t ns, int64_t of) {
    return of > 0 && ns > 0 ? report::Cell(static_cast<double>(ns) / static_cast<double>(of) * 100) : report::Cell();
  };
  const auto time = [](int64_t ns) {
    return ns > 0 ? report::Cell(report::format_duration(static_cast<double>(ns))) : report::Cell();
  };
  out += heading(fmt::format("Host time ({} samples, {} of {})", all->samples,
                             report::format_duration(static_cast<double>(all->host_ns)),
                             all->wall ? all->cpu ? "CPU and wall time" : "wall time" : "CPU time"),
                 screen);
  report::Table table;
  table.columns = {{"Host", report::Align::kRight}, {"%", report::Align::kRight, 1}};
  const bool gpu = tree.gpu_ns > 0;
  if (gpu) {
    table.columns.push_back({"GPU", report::Align::kRight});
    table.columns.push_back({"%", report::Align::kRight, 1});
  }
  table.columns.push_back({"Where", report::Align::kLeft, -1, true});
  table.columns.back().cut = report::Cut::kPath;
  table.columns.push_back({"Function", report::Align::kLeft, -1, true});
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const analysis::StackRow& row = rows[i];
    std::vector<report::Cell> cells = {time(row.self_ns), percent(row.self_ns, tree.host_ns)};
    if (gpu) {
      cells.push_back(time(row.gpu_self_ns));
      cells.push_back(percent(row.gpu_self_ns, tree.gpu_ns));
    }
    cells.emplace_back(analysis::place_text(row.frame));
    cells.emplace_back(row.frame.name);
    table.rows.push_back(std::move(cells));
  }
  out += report::to_text(table, style_of(screen));
  if (rows.size() > top) out += fmt::format("  … and {} more\n", rows.size() - top);
  if (filtered)
    out += indented(fmt::format("Your own {}: time in libraries counts for the {} that called them.",
                                lines ? "lines" : "functions", lines ? "line" : "function"),
                    screen);
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

// What share of the run the program spent in MPI.
void add_mpi(std::string& out, const trace::Trace& trace, const report::Screen& screen, double run) {
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
  out += heading("MPI", screen) + indented(text, screen);
}

// The first findings, a line each. A trace that takes long to judge only gets the command.
void add_findings(std::string& out, const trace::Trace& trace, const report::Screen& screen,
                  const SummaryOptions& options) {
  int64_t rows = 0, work = 0;
  for (const Table table : {Table::kApi, Table::kMarker, Table::kSample}) rows += trace.rows(table);
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill}) work += trace.rows(table);
  if (work == 0 || trace.aggregated()) return;
  const std::string file = options.kept ? report::clean(trace.path()) : std::string();
  std::string lines;
  if (rows + work > options.judged_rows) {
    if (!file.empty()) lines = fmt::format("  tacho report findings {}\n", file);
  } else if (const auto findings = findings_of(trace)) {
    lines = findings_lines(*findings, file, screen);
  } else {
    lines = indented(report::clean(findings.error().message), screen);
  }
  if (!lines.empty()) out += heading("Findings", screen) + lines;
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
  // Tools that programs start, including build systems and version managers.
  static constexpr std::string_view kTools[] = {
      "sh",    "bash",    "dash",  "zsh",        "ld",      "ld.bfd",   "ld.lld",   "lld",      "collect2", "as",
      "cc1",   "cc1plus", "gcc",   "g++",        "cc",      "c++",      "clang",    "clang++",  "ptxas",    "nvcc",
      "cicc",  "env",     "pyenv", "pyenv-exec", "rbenv",   "uname",    "which",    "grep",     "sed",      "cut",
      "head",  "tr",      "cat",   "basename",   "dirname", "readlink", "realpath", "ldconfig", "hostname", "git",
      "lscpu", "ls",      "rm",    "mkdir",      "awk",     "mawk",     "gawk",     "sort",     "expr",     "id"};
  std::vector<std::pair<std::string, size_t>> folded;
  size_t count = 0;
  for (int64_t row = 1; row < rows; ++row) {
    const auto at = static_cast<size_t>(row);
    const std::string name(trace.text(Table::kProcess, row, column::Process::name));
    // "x86_64-linux-gnu-ld.bfd" is a linker too.
    const bool tool = std::any_of(std::begin(kTools), std::end(kTools), [&](std::string_view known) {
      return name == known ||
             (name.size() > known.size() && name.ends_with(known) && name[name.size() - known.size() - 1] == '-');
    });
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
  out += "\n";
  for (const std::string& sentence : analysis::loss_sentences(trace))
    out += report::painted(indented(sentence, screen), report::Paint::kYellow, screen.colour);
  return out;
}

}  // namespace

std::string summary_text(const trace::Trace& trace, const report::Screen& screen, const SummaryOptions& options) {
  std::string out;
  const auto command = trace.property(Table::kEnd, 0, "command");
  const double run = run_length(trace);
  out += report::painted("tacho", report::Paint::kBold, screen.colour);
  if (command)
    out += "  " + report::shortened_middle(report::clean(*command), screen.width > 20 ? screen.width - 7 : 13);
  out += "\n";
  int64_t events = 0;
  for (size_t i = 0; i <= static_cast<size_t>(Table::kReading); ++i)
    events += event::is_timed(static_cast<Table>(i)) ? recorded(trace, static_cast<Table>(i))
                                                     : trace.rows(static_cast<Table>(i));
  std::vector<int64_t> shown;
  const std::string helpers = helper_processes(trace, shown);
  const size_t processes = shown.size();
  out += fmt::format("  {}; {} event{} of {} process{}{}\n", how_long(trace), events, events == 1 ? "" : "s", processes,
                     processes == 1 ? "" : "es", trace.complete() ? "" : "; the recording was cut off");
  if (options.rank >= 0) out += fmt::format("  {}; every other recorded rank has one line\n", rank_of(options));
  if (!helpers.empty()) out += indented(helpers, screen);
  if (const auto code = trace.property(Table::kEnd, 0, "signal"))
    out += fmt::format("  the program was ended by signal {}\n", *code);
  else if (const auto exit = trace.property(Table::kEnd, 0, "exit_code"); exit && *exit != "0")
    out += fmt::format("  the program exited with code {}\n", *exit);

  add_stats(out, trace, screen, analysis::By::kKernel, "Kernels", options.top);
  add_devices(out, trace, screen, run);
  add_copies(out, trace, screen);
  const size_t fewer = std::min<size_t>(options.top, 8);
  add_stats(out, trace, screen, analysis::By::kApi, "API calls", fewer, {.runtime_calls = true});
  add_stats(out, trace, screen, analysis::By::kApi, "MPI calls", fewer, {.domain = event::Domain::kMpi});
  add_stats(out, trace, screen, analysis::By::kMarker, "Markers", fewer);
  add_host_time(out, trace, screen, fewer);
  add_mpi(out, trace, screen, run);
  add_findings(out, trace, screen, options);

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
    account = fmt::format("{:.0f} ns a recorded call, measured in the program at its start: {} in all", hook,
                          report::format_duration(hook * static_cast<double>(hooks)));
    const double drain = number_property(trace, "drain_cpu_seconds");
    if (drain > 0) account += fmt::format("; tacho itself {} of CPU beside it", report::format_duration(drain * 1e9));
    account = indented(account, screen);
  }
  const auto losses = analysis::loss_sentences(trace);
  if (!account.empty() || !losses.empty()) out += heading("Our own cost and losses", screen) + account;
  for (const std::string& sentence : losses)
    out += report::painted(indented(sentence, screen), report::Paint::kYellow, screen.colour);
  if (!trace.complete())
    out += indented("what was recorded after the last write to this file is missing; how much that is, it cannot say",
                    screen);
  else if (losses.empty() && !account.empty() && !trace.property(Table::kEnd, 0, "unrecorded_processes"))
    out += "  nothing was lost\n";
  for (const std::string& sentence : analysis::filter_sentences(trace))
    out += indented(sentence + ", as asked", screen);

  std::vector<int64_t> severity, text;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kNote).size(); ++chunk) {
    if (!trace.decode(Table::kNote, chunk, column::Note::severity, severity) ||
        !trace.decode(Table::kNote, chunk, column::Note::text, text))
      break;
    for (size_t i = 0; i < text.size(); ++i)
      out += indented(fmt::format("{}: {}", event::to_string(static_cast<event::NoteSeverity>(severity[i])),
                                  report::clean(trace.string(text[i]))),
                      screen);
  }

  out += "\n";
  if (options.kept) {
    // A file in another format became a trace without a name: this is the given file's size.
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(trace.path(), error);
    std::string facts = error ? std::string() : report::format_bytes(static_cast<double>(size));
    if (!error && size == trace.file_size() && events > 5000)
      facts += fmt::format(", {:.1f} B an event", static_cast<double>(size) / static_cast<double>(events));
    out += fmt::format("{}  {}{}\n", report::painted("Trace", report::Paint::kBold, screen.colour),
                       report::clean(trace.path()), facts.empty() ? facts : " (" + facts + ")");
  }
  const char* heading_of_files = "Files  ";
  for (const std::string& path : options.written) {
    out += fmt::format("{}{}\n", heading_of_files, report::clean(path));
    heading_of_files = "       ";
  }
  if (options.kept && options.next_steps && events > 0) {
    const std::string file = report::clean(trace.path());
    const bool sampled = trace.rows(Table::kSample) > 0;
    const char* heading = "Next   ";
    const auto suggest = [&](std::string_view command, std::string_view why = {}) {
      out += fmt::format("{}tacho {}{}\n", heading, command, why.empty() ? "" : fmt::format("   ({})", why));
      heading = "       ";
    };
    if (options.rank >= 0 && (trace.rows(Table::kMessage) > 0 || trace.rows(Table::kCommunicator) > 1)) {
      const std::string folder = std::filesystem::path(trace.path()).parent_path().string();
      suggest(fmt::format("ranks {}", folder.empty() ? "." : report::clean(folder)), "who made whom wait");
    }
    suggest(fmt::format("view {}", file), "the timeline, in a browser");
    if (trace.property(Table::kEnd, 0, "torch_trace") == "1")
      suggest(fmt::format("stats {} --by operator", file), "or --by module");
    suggest(fmt::format("stats {} --by {}", file, sampled ? "line" : "api"));
    if (sampled) suggest(fmt::format("flame {}", file));
    suggest(fmt::format("export {} -f pftrace", file), "open in ui.perfetto.dev");
  }
  return out;
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
