// `tacho import DIR`: what AMD's tools left in a folder becomes a trace, a profile folder, or both.
#include "workload/import.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "analysis/trim.h"
#include "base/files/temporary.h"
#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/export_trace.h"
#include "cli/files/open_trace.h"
#include "cli/files/writer_names.h"
#include "cli/shared/command_line.h"
#include "format/format.h"
#include "format/rocprofv3_csv/rocprofv3_csv.h"
#include "format/source/names.h"
#include "format/source/source.h"
#include "report/output.h"

namespace tacho::cli {
namespace {

namespace fs = std::filesystem;

bool has_ending(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

// True for a file of a trace that AMD's tools write, as far as its name and its first bytes say.
bool is_amd_trace(const std::string& path) {
  if (!format::named_like_a_trace(path)) return false;
  const std::string_view plain = format::without_packing(path);
  const bool perfetto = format::named_like_perfetto(path);
  if (!perfetto && !plain.ends_with(".json")) return format::open_any(path).has_value();
  // Others write JSON, too, and not only traces.
  const std::string head = format::source::peek(path).text;
  return std::any_of(format::readers().begin(), format::readers().end(), [&](const format::Reader& reader) {
    const bool amd = perfetto || reader.name == "rocprofv3" || reader.name == "rocprof";
    return amd && reader.accepts(path, head, false);
  });
}

// Folders of rocprofv3's CSV files, and single files of other formats, to four levels below `folder`. A folder of CSV
// files is read as a whole, with the folders right below it. `notes` say what was left out.
std::vector<std::string> find_traces(const std::string& folder, const workload::ForeignCounters& counters,
                                     std::vector<std::string>& notes) {
  constexpr size_t kMost = 1000;
  std::vector<std::string> found;
  ptrdiff_t repeated = 0;
  bool too_many = false;
  std::error_code error;
  const auto is_counters = [&](const std::string& path) {
    return std::find(counters.passes.begin(), counters.passes.end(), path) != counters.passes.end();
  };
  const auto csv = std::find_if(format::readers().begin(), format::readers().end(),
                                [](const format::Reader& reader) { return reader.name == "rocprofv3 csv"; });
  // By its header, whatever its name; not beside counters, whose tool leaves lists of kernels, too.
  const auto is_csv_trace = [&](const std::string& path) {
    return has_ending(path, {".csv", ".csv.gz", ".csv.zst"}) && csv != format::readers().end() &&
           std::none_of(counters.passes.begin(), counters.passes.end(),
                        [&](const std::string& pass) { return folder_of(pass) == folder_of(path); }) &&
           csv->accepts(path, format::source::peek(path).text, false);
  };
  const auto look = [&](const auto& self, const std::string& where, int depth, bool within_set) -> void {
    if (std::find(counters.folders.begin(), counters.folders.end(), where) != counters.folders.end()) return;
    std::vector<std::string> below, traces, parts;
    for (const auto& entry : fs::directory_iterator(where, fs::directory_options::skip_permission_denied, error)) {
      std::error_code ignored;
      const std::string path = entry.path().string(), name = entry.path().filename().string();
      if (entry.is_directory(ignored))
        below.push_back(path);
      else if (format::rocprofv3_csv::run_of_part(name))
        parts.push_back(path);
      else if (is_csv_trace(path) || is_amd_trace(path) ||
               (name.ends_with("results.csv") && !is_counters(path) && format::open_any(path)))
        traces.push_back(path);
      else if (format::named_like_perfetto(name))
        notes.push_back(path + ": is left out: its name is that of a Perfetto trace, and its contents are not");
      if (traces.size() + found.size() > kMost) {
        too_many = true;
        break;
      }
    }
    std::sort(below.begin(), below.end());
    std::sort(traces.begin(), traces.end());
    const auto perfetto_traces = [&] {
      return std::count_if(traces.begin(), traces.end(),
                           [](const std::string& path) { return format::named_like_perfetto(path); });
    };
    repeated += perfetto_traces();
    format::leave_out_repeated(traces, parts);
    repeated -= perfetto_traces();
    const bool here = !parts.empty() && !within_set && csv != format::readers().end() && csv->accepts(where, "", true);
    if (here) found.push_back(where);
    found.insert(found.end(), traces.begin(), traces.end());
    if (depth < 4)
      for (const std::string& path : below) self(self, path, depth + 1, here);
  };
  look(look, folder, 0, false);
  if (repeated > 0)
    notes.push_back(fmt::format("{}: {} Perfetto trace{} left out: other files of the same run hold more", folder,
                                repeated, repeated == 1 ? " is" : "s are"));
  if (too_many) notes.push_back(fmt::format("{}: holds more than {} traces; not all were read", folder, kMost));
  return found;
}

// Traces of runs that were made once for each pass of counters go together as the folder around their passes.
std::vector<std::string> join_passes(const std::vector<std::string>& traces, const std::string& folder) {
  std::vector<std::string> joined;
  for (const std::string& trace : traces) {
    std::string whole = trace;
    for (std::string at = trace; at.size() >= folder.size(); at = folder_of(at)) {
      std::error_code error;
      if (format::passes::accepts(at, "", fs::is_directory(at, error))) whole = at;
      if (at.size() == folder.size()) break;
    }
    if (std::find(joined.begin(), joined.end(), whole) == joined.end()) joined.push_back(whole);
  }
  return joined;
}

// Databases and JSON of rocprofv3 hold counters, too: as rocprofv3's CSV files in `place` they join the other passes.
Status add_counters_of(const std::vector<std::string>& traces, const std::string& place,
                       workload::ForeignCounters& counters) {
  TACHO_ASSIGN(const format::Writer* const csv, writer_of("csv"));
  for (size_t i = 0; i < traces.size(); ++i) {
    std::error_code error;
    if (fs::is_directory(traces[i], error)) continue;
    TACHO_ASSIGN(const auto trace, format::open_any(traces[i]));
    if (trace->rows(event::Table::kCounterValue) == 0) continue;
    format::ExportOptions options;
    options.tables = uint64_t{1} << static_cast<unsigned>(event::Table::kCounterValue);
    std::vector<std::string> written;
    TACHO_TRY(export_trace(*trace, *csv, {traces[i], "", fmt::format("{}/{}", place, i), ""}, options, written));
  }
  const workload::ForeignCounters more = workload::find_foreign_counters(place);
  counters.passes.insert(counters.passes.end(), more.passes.begin(), more.passes.end());
  if (counters.agents.empty()) counters.agents = more.agents;
  if (counters.architecture.empty()) counters.architecture = more.architecture;
  return {};
}

Status write_trace(const std::vector<std::string>& inputs, const std::string& output, bool overwrite,
                   std::vector<std::string>& notes) {
  return write_converted(output, "tacho", overwrite, [&](trace::TraceWriter& writer) -> Status {
    if (inputs.size() == 1) return copy_trace(inputs[0], writer);
    std::vector<analysis::MergeInput> traces;
    for (const std::string& input : inputs) {
      TACHO_ASSIGN(auto trace, open_trace(input));
      traces.push_back({std::move(trace), input});
    }
    return analysis::merge_into(traces, writer, notes);
  });
}

}  // namespace

int run_import(int argc, char** argv) {
  CommandOptions app(
      "Make a trace (.tacho) and a profile folder of what AMD's tools left in a folder: rocprofv3's CSV, JSON and "
      "databases, rocprof v1's and v2's files, folders of rocprof-compute, .rpd files.",
      "tacho import");
  app.footer("Examples:\n"
             "  tacho import out                       out.tacho, or the profile folder out-profile, or both\n"
             "  tacho import results -o vcopy --arch gfx90a");
  std::string folder, output, architecture;
  bool overwrite = false;
  app.add_option("folder", folder, "folder with the tools' output, in it or up to four levels below").required();
  app.add_option("-o,--output", output, "name of the trace and of the profile folder, without ending");
  app.add_option("--arch", architecture, "the GPU's architecture (gfx90a ...), where no file of rocprof says it");
  app.add_flag("--overwrite", overwrite, "replace existing outputs");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return complain(kBadInput,
                    folder + (fs::exists(folder, error) ? ": is a file; tacho reads it as it is: tacho stats " + folder
                                                        : ": there is no such folder"));
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  workload::ForeignCounters counters = workload::find_foreign_counters(folder);
  std::vector<std::string> written, notes;
  const std::vector<std::string> traces = find_traces(folder, counters, notes);
  const auto place = TemporaryFolder::create(temporary_folder() + "/tacho-import-");
  if (!place) return complain(kBadInput, place.error().message);
  if (const Status done = add_counters_of(traces, place->path(), counters); !done)
    return complain(kBadInput, done.error().message);
  const bool profile = !counters.passes.empty() || !counters.folders.empty();
  if (!profile && traces.empty()) {
    for (const std::string& note : notes) complain(kOk, note);
    return complain(kBadInput, folder + ": nothing that AMD's tools write lies in it or in the four levels below");
  }
  if (counters.passes.empty() && counters.folders.size() > 1)
    return complain(kBadInput, fmt::format("{}: holds {} folders of rocprof-compute; import them one by one: {}",
                                           folder, counters.folders.size(), counters.folders.front()));
  std::string base =
      output.empty() ? fs::path(fs::absolute(folder, error)).lexically_normal().filename().string() : output;
  if (base.ends_with(".tacho")) base.resize(base.size() - 6);
  const std::string trace_name = base + ".tacho",
                    profile_name = output.empty() || !traces.empty() ? base + "-profile" : base;
  for (const std::string& name : {traces.empty() ? std::string() : trace_name, profile ? profile_name : std::string()})
    if (!name.empty() && !overwrite && fs::exists(name, error))
      return complain(kBadInput, name + ": exists; choose another name with -o, or --overwrite replaces it");
  ignore_output_signals();
  if (!traces.empty()) {
    const std::vector<std::string> inputs = join_passes(traces, folder);
    if (const Status done = write_trace(inputs, trace_name, overwrite, notes); !done)
      return complain(kBadInput, done.error().message);
    if (inputs.size() == 1)  // of several, each was told of when it was opened
      if (const auto written_trace = trace::Trace::open(trace_name))
        if (const std::string sentence = format::passes::sentence(**written_trace); !sentence.empty())
          notes.push_back(fmt::format("{}: {}", inputs[0], sentence));
    written.push_back(trace_name);
  }
  if (profile) {
    if (const Status done = workload::import_counters(counters, folder, profile_name, architecture, overwrite); !done)
      return complain(kBadInput, done.error().message);
    written.push_back(profile_name);
  }
  for (const std::string& note : notes) complain(kOk, note);
  print_outputs(written);
  if (!traces.empty()) report::print_error("Next   tacho stats {}\n", trace_name);
  if (profile) report::print_error("Next   tacho analyze -p {}\n", profile_name);
  return kOk;
}

}  // namespace tacho::cli
