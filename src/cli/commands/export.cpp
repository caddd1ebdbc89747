// `tacho export FILE -f FORMAT`: writes a trace in another tool's format.
#include "cli/commands/export.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "cli/shared/suggest.h"
#include "walk/names.h"

namespace tacho::cli {

namespace column = event::column;
namespace fs = std::filesystem;
using event::Table;

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) words.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<const format::Writer*> writer_of(std::string_view name) {
  std::vector<std::string> names;
  for (const format::Writer& writer : format::writers()) {
    if (writer.name == name) return &writer;
    names.emplace_back(writer.name);
  }
  const std::string best = nearest(name, names);
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  return fail("there is no format '{}'{}; formats are {}", name, best.empty() ? "" : ", did you mean '" + best + "'",
              all);
}

std::vector<int64_t> processes_with_records(const trace::Trace& trace, const format::ExportOptions& options) {
  std::vector<bool> seen(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kProcess), 1)));
  for (size_t i = 0; i < event::kFactTables; ++i) {
    const auto table = static_cast<Table>(i);
    if (!event::is_timed(table) || !options.wants(table)) continue;
    // Ignores read errors: the code that reads the rows themselves reports them.
    static_cast<void>(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries) {
        if (table == Table::kApi && !options.wants(event::from_cell<event::Domain>(
                                        trace.cell(Table::kFunction, summary.dim, column::Function::domain))))
          continue;
        const int64_t process = trace.cell(Table::kTrack, summary.track, column::Track::process);
        if (process > 0 && process < static_cast<int64_t>(seen.size())) seen[static_cast<size_t>(process)] = true;
      }
    }));
  }
  if (options.wants(Table::kCounterValue) && trace.rows(Table::kCounterValue) > 0) {
    static constexpr int kTracks[] = {column::CounterValue::track};
    static_cast<void>(trace::visit_chunks(
        trace, Table::kCounterValue, kTracks, [&](size_t, std::span<const std::span<const int64_t>> columns) {
          for (const int64_t track : columns[0]) {
            const int64_t process = trace.cell(Table::kTrack, track, column::Track::process);
            if (process > 0 && process < static_cast<int64_t>(seen.size())) seen[static_cast<size_t>(process)] = true;
          }
          return true;
        }));
  }
  std::vector<int64_t> found;
  for (size_t row = 1; row < seen.size(); ++row)
    if (seen[row]) found.push_back(static_cast<int64_t>(row));
  return found;
}

std::string free_prefix(const std::string& folder, const std::string& prefix) {
  const auto taken = [&](const std::string& candidate) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored))
      if (entry.path().filename().string().starts_with(candidate + "_")) return true;
    return false;
  };
  if (!taken(prefix)) return prefix;
  for (int i = 1;; ++i)
    if (const std::string candidate = fmt::format("{}.{}", prefix, i); !taken(candidate)) return candidate;
}

namespace {

std::string stem_of(const std::string& source) {
  std::string name = fs::path(source).filename().string();
  for (const char* ending : {".gz", ".tacho", ".json", ".rpd", ".db", "_results"})
    if (name.size() > std::strlen(ending) && name.ends_with(ending)) name.resize(name.size() - std::strlen(ending));
  return name.empty() ? std::string("trace") : name;
}

// -f tacho: converts a trace from another format to .tacho.
Status export_own_format(const ExportPlace& place, bool overwrite, std::vector<std::string>& written) {
  std::string file = place.file;
  if (file.empty()) {
    if (!place.folder.empty()) TACHO_TRY(create_folders(place.folder));
    file = (fs::path(place.folder) / (stem_of(place.source) + ".tacho")).string();
    if (!overwrite) file = free_name(file);
  }
  if (same_file(place.source, file)) return fail("{}: is the trace itself; choose another name with -o", file);
  TACHO_TRY(write_converted(file, "tacho", overwrite,
                            [&](trace::TraceWriter& writer) { return copy_trace(place.source, writer); }));
  written.push_back(file);
  return {};
}

}  // namespace

Status export_trace(const trace::Trace& trace, const format::Writer& writer, const ExportPlace& place,
                    format::ExportOptions options, std::vector<std::string>& written) {
  const std::string stem = stem_of(place.source);
  if (!place.folder.empty()) TACHO_TRY(create_folders(place.folder));
  if (!writer.folder) {
    format::ExportTarget target;
    target.file = place.file;
    if (target.file.empty()) {
      target.file = (fs::path(place.folder) / (stem + std::string(writer.extension))).string();
      if (!options.overwrite) target.file = free_name(target.file);
    }
    report::Progress progress(fmt::format("writing {}", target.file));
    options.progress = &progress;
    return writer.write(trace, target, options, written);
  }
  if (!place.file.empty())
    return fail("-f {} writes several files: give their folder with -d instead of -o", writer.name);
  std::vector<int64_t> processes = {options.process};
  if (options.process == 0) processes = processes_with_records(trace, options);
  if (processes.empty()) processes = {0};
  for (const int64_t process : processes) {
    format::ExportTarget target;
    target.folder = place.folder;
    const int64_t pid = trace.cell(Table::kProcess, process, column::Process::pid);
    target.prefix = pid > 0 ? fmt::format("{}", pid) : stem;
    if (!options.overwrite) target.prefix = free_prefix(place.folder, target.prefix);
    options.process = process;
    report::Progress progress(fmt::format("writing {}", target.prefix));
    options.progress = &progress;
    TACHO_TRY(writer.write(trace, target, options, written));
  }
  return {};
}

void ignore_output_signals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  sigaction(SIGPIPE, &ignore, nullptr);
}

int run_export(int argc, char** argv) {
  CommandOptions app("Write a trace in another tool's format.", "tacho export");
  std::string formats_text = "Formats:\n  tacho       tacho's own: .tacho\n";
  for (const format::Writer& writer : format::writers())
    formats_text += fmt::format("  {:<12}{}\n", writer.name, writer.text);
  app.footer(formats_text + "\n"
                            "Examples:\n"
                            "  tacho export app.tacho -f pftrace               writes app.pftrace\n"
                            "  tacho export app.tacho -f csv -d csv_files      writes csv_files/<pid>_*.csv\n"
                            "  tacho export app.tacho -f json -o /tmp/a.json");
  ExportPlace place;
  std::string formats, agent_index = "relative";
  int64_t pid = 0;
  bool no_statistics = false;
  format::ExportOptions options;
  app.add_option("file", place.source, "trace").required();
  app.add_option("-f,--format", formats, "one of the formats below, or several with commas").required();
  const CommandOption file =
      app.add_option("-o,--output", place.file, "file to write (default: the trace's name with the format's ending)");
  app.add_option("-d,--output-directory", place.folder, "folder for files with default names").excludes(file);
  app.add_flag("--overwrite", options.overwrite, "replace existing files");
  app.add_option("--pid", pid, "only this process").positive();
  app.add_flag("-M,--mangled-kernels", options.mangled, "kernel names as the runtime gives them");
  app.add_flag("-T,--truncate-kernels", options.truncate, "kernel names without arguments and templates");
  app.add_flag("--kernel-rename", options.kernel_rename,
               "kernels take the name of the innermost marker open at their launch");
  app.add_option("-A,--agent-index", agent_index, "absolute, relative or type-relative")
      .one_of({"absolute", "relative", "type-relative"})
      .capture_default_str();
  app.add_flag("--group-by-queue", options.group_by_queue, "pftrace, json: name tracks after queues, not streams");
  app.add_flag("--extra-columns", options.extra_columns, "csv: columns that rocprofv3 lacks (Size_Bytes of copies)");
  app.add_option("--rpd-schema", options.rpd_schema, "rpd: schema version")
      .one_of_numbers({2, 3})
      .capture_default_str();
  app.add_flag("--no-stats", no_statistics, "csv: no *_stats.csv");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  options.statistics = !no_statistics;
  options.agent_index = agent_index == "absolute"   ? walk::AgentIndex::kAbsolute
                        : agent_index == "relative" ? walk::AgentIndex::kRelative
                                                    : walk::AgentIndex::kTypeRelative;
  std::vector<const format::Writer*> wanted;
  bool own_format = false;
  for (const std::string& name : words_of(formats)) {
    if (name == "tacho") {
      own_format = true;
      continue;
    }
    const auto writer = writer_of(name);
    if (!writer) return complain(kBadInput, writer.error().message);
    wanted.push_back(*writer);
  }
  if (wanted.empty() && !own_format) return complain(kBadInput, "-f names no format");
  if (wanted.size() + (own_format ? 1 : 0) > 1 && !place.file.empty())
    return complain(kBadInput, "-o names one file, but -f names several formats: use -d");
  ignore_output_signals();
  const auto trace = open_trace(place.source);
  if (!trace) return complain(kBadInput, trace.error().message);
  if (pid != 0) {
    for (int64_t row = 1; row < (*trace)->rows(Table::kProcess); ++row)
      if ((*trace)->cell(Table::kProcess, row, column::Process::pid) == pid) options.process = row;
    if (options.process == 0)
      return complain(kBadInput, fmt::format("{} has no process {}; tacho info lists them", place.source, pid));
  }
  std::vector<std::string> written, remarks;
  options.remarks = &remarks;
  if (own_format) {
    if (pid != 0) return complain(kBadInput, "-f tacho writes the whole trace; leave --pid out, or use tacho trim");
    if (const Status done = export_own_format(place, options.overwrite, written); !done)
      return complain(kBadInput, done.error().message);
  }
  for (const format::Writer* writer : wanted)
    if (const Status done = export_trace(**trace, *writer, place, options, written); !done)
      return complain(kBadInput, done.error().message);
  if (written.empty())
    complain(kOk, fmt::format("{}: nothing was recorded that -f {} could hold", place.source, formats));
  print_outputs(written);
  for (const std::string& remark : remarks) complain(kOk, remark);
  return kOk;
}

}  // namespace tacho::cli
