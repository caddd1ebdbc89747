// Writing of traces in other formats (export_trace.h).
#include "cli/files/export_trace.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/files/output_file.h"
#include "cli/shared/command_line.h"
#include "report/progress.h"
#include "trace/read/rows.h"
#include "walk/names/names.h"

namespace tacho::cli {

namespace column = event::column;
namespace fs = std::filesystem;
using event::Table;

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
    Status ignored;
    for (const auto& values : trace::chunks<column::CounterValue::track>(trace, ignored))
      for (const int64_t track : values.track) {
        const int64_t process = trace::cell<column::Track::process>(trace, track);
        if (process > 0 && process < static_cast<int64_t>(seen.size())) seen[static_cast<size_t>(process)] = true;
      }
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

std::string stem_of(const std::string& source) {
  std::string name = fs::path(source).filename().string();
  for (const char* ending : {".gz", ".tacho", ".json", ".rpd", ".db", "_results"})
    if (name.size() > std::strlen(ending) && name.ends_with(ending)) name.resize(name.size() - std::strlen(ending));
  return name.empty() ? std::string("trace") : name;
}

Status export_trace(const trace::Trace& trace, const format::Writer& writer, const ExportPlace& place,
                    format::ExportOptions options, std::vector<std::string>& written) {
  const std::string stem = stem_of(place.source);
  const auto remark_left_out = [&, filter = static_cast<const walk::EventFilter&>(options)]() -> Status {
    if (std::string sentence = format::left_out(writer, trace, filter); !sentence.empty())
      options.remark(std::move(sentence));
    return {};
  };
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
    TACHO_TRY(writer.write(trace, target, options, written));
    return remark_left_out();
  }
  if (!place.file.empty())
    return fail("-f {} writes several files: give their folder with -d instead of -o", writer.name);
  std::vector<int64_t> processes = {options.process};
  if (options.process == 0) processes = processes_with_records(trace, options);
  if (processes.empty()) processes = {0};
  std::set<std::string> used;  // containers and hosts may have processes of one pid: each gets files of its own
  for (const int64_t process : processes) {
    format::ExportTarget target;
    target.folder = place.folder;
    const int64_t pid = trace.cell(Table::kProcess, process, column::Process::pid);
    std::string name = pid > 0 ? fmt::format("{}", pid) : stem;
    const bool named = !place.prefix.empty();
    if (named) name = used.empty() || pid <= 0 ? place.prefix : fmt::format("{}_{}", place.prefix, pid);
    target.prefix = options.overwrite || named ? name : free_prefix(place.folder, name);
    for (int i = 1; !used.insert(target.prefix).second; ++i) target.prefix = fmt::format("{}.{}", name, i);
    options.process = process;
    report::Progress progress(fmt::format("writing {}", target.prefix));
    options.progress = &progress;
    TACHO_TRY(writer.write(trace, target, options, written));
  }
  return remark_left_out();
}

void ignore_output_signals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  sigaction(SIGPIPE, &ignore, nullptr);
}

}  // namespace tacho::cli
