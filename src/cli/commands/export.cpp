// `tacho export FILE -f FORMAT`: writes a trace in another tool's format.
#include <filesystem>

#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/export_trace.h"
#include "cli/files/open_trace.h"
#include "cli/files/profile_trace.h"
#include "cli/files/writer_names.h"
#include "cli/shared/command_line.h"
#include "workload/workload.h"

namespace tacho::cli {

namespace column = event::column;
namespace fs = std::filesystem;
using event::Table;

namespace {

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

int run_export(int argc, char** argv) {
  CommandOptions app("Write a trace in another tool's format.", "tacho export");
  std::string formats_text = "Formats:\n  tacho       tacho's own: .tacho\n";
  for (const format::Writer& writer : format::writers())
    formats_text += fmt::format("  {:<12}{}\n", writer.name, writer.text);
  app.footer("Examples:\n"
             "  tacho export app.tacho -f pftrace               writes app.pftrace\n"
             "  tacho export app.tacho -f csv -d csv_files      csv_files/<pid>_*.csv\n"
             "  tacho export app.tacho -f json -o /tmp/a.json\n" +
             formats_text);
  ExportPlace place;
  std::string formats, agent_index = "relative", style = "perfetto";
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
  app.add_option("--style", style, "pftrace: Perfetto's model of GPUs (perfetto), or slices as rocprofv3 writes them")
      .one_of({"perfetto", "rocprofv3"})
      .capture_default_str();
  app.add_flag("--extra-columns", options.extra_columns, "csv: columns that rocprofv3 lacks (Size_Bytes of copies)");
  app.add_option("--rpd-schema", options.rpd_schema, "rpd: schema version")
      .one_of_numbers({2, 3})
      .capture_default_str();
  app.add_flag("--no-stats", no_statistics, "csv: no *_stats.csv");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  options.statistics = !no_statistics;
  options.gpu_model = style == "perfetto";
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
  auto trace = open_trace(place.source);
  if (!trace && workload::find_workload(place.source)) trace = trace_of_profile(place.source);
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
