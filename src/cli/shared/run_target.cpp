// A tracing run from its request to the summary (run_target.h).
#include "cli/shared/run_target.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/export.h"
#include "cli/shared/summary.h"
#include "trace/trace.h"

namespace tacho::cli {

namespace {

// Files beside the trace, in -f's order; the names were found free, or were asked for, before the start.
struct Extra {
  const format::Writer* writer;
  ExportPlace place;
};

// The output itself is always recorded; without "tacho" in -f it is a file that goes away after the exports.
Status prepare_formats(const TraceRequest& r, std::vector<Extra>& extras) {
  namespace fs = std::filesystem;
  for (const std::string& name : r.formats) {
    if (name == "tacho") continue;
    TACHO_ASSIGN(const format::Writer* const writer, writer_of(name));
    Extra extra{writer,
                {r.launch.recording.output, "", fs::path(r.launch.recording.output).parent_path().string()}};
    if (!writer->folder) {
      extra.place.file = fs::path(r.launch.recording.output).replace_extension(writer->extension).string();
      std::error_code ignored;
      if (!r.overwrite && fs::exists(extra.place.file, ignored)) {
        if (!r.output.empty())
          return fail("{} exists; give another -o, or --overwrite to replace it", extra.place.file);
        extra.place.file = free_name(extra.place.file);
      }
      extra.place.folder.clear();
    }
    extras.push_back(std::move(extra));
  }
  return {};
}

bool keeps_trace(const TraceRequest& r) {
  return r.formats.empty() || std::find(r.formats.begin(), r.formats.end(), "tacho") != r.formats.end();
}

// The recording's name, and that nothing is lost by writing it.
Status choose_output(TraceRequest& r) {
  if (r.output.empty()) {
    std::string base = std::filesystem::path(r.launch.command[0]).filename().string();
    if (base.empty()) base = "trace";
    r.launch.recording.output = r.overwrite ? base + ".tacho" : free_name(base + ".tacho");
  } else if (is_standard_output(r.output)) {
    return fail("-o {}: standard output is the program's; give the recording a name", r.output);
  } else {
    r.launch.recording.output = r.output;
    std::error_code ignored;
    if (!r.overwrite && std::filesystem::exists(r.output, ignored))
      return fail("{} exists; give another -o, or --overwrite to replace it", r.output);
    const auto folder = std::filesystem::path(r.output).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
      return fail("{}: the folder {} does not exist", r.output, folder.string());
  }
  return {};
}

}  // namespace

int run_target(TraceRequest& request) {
  if (const Status ready = complete(request); !ready) return complain(kOwnError, ready.error().message);
  if (const Status ready = choose_output(request); !ready) return complain(kOwnError, ready.error().message);
  std::vector<Extra> extras;
  if (const Status ready = prepare_formats(request, extras); !ready)
    return complain(kOwnError, ready.error().message);
  const bool keep = keeps_trace(request);
  if (!keep) {
    // The exports take their names from the output; the recording itself lies hidden beside it and goes at the end.
    const auto path = std::filesystem::path(request.launch.recording.output);
    request.launch.recording.output =
        (path.parent_path() / fmt::format(".{}.{}.tacho", path.stem().string(), getpid())).string();
    request.launch.recording.writer.durable = false;
  }
  const auto outcome = launch::run(request.launch);
  if (!outcome) return complain(outcome.error().exit_code, outcome.error().message);
  if (!outcome->written) {
    complain(kOwnError, outcome->written.error().message);
    return outcome->exit_code;
  }
  const auto trace = trace::Trace::open(request.launch.recording.output);
  if (!trace) {
    complain(kOwnError, trace.error().message);
    return outcome->exit_code;
  }
  SummaryOptions options;
  options.kept = keep;
  ignore_file_size_signal();
  for (const Extra& extra : extras) {
    format::ExportOptions export_options;
    export_options.overwrite = request.overwrite;
    export_options.statistics = true;
    export_options.rpd_schema = static_cast<int>(request.rpd_schema);
    if (const Status done =
            export_trace(**trace, *extra.writer, extra.place, export_options, options.written);
        !done)
      return complain(kOwnError, fmt::format("{}; the recording is kept in {} (tacho export writes it anew)",
                                             done.error().message, request.launch.recording.output));
  }
  if (!request.shown_as.empty()) options.written = {request.shown_as};
  if (!request.launch.quiet) {
    const std::string text = summary_text(**trace, report::screen_of(STDERR_FILENO), options);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  if (!keep) unlink(request.launch.recording.output.c_str());
  return outcome->exit_code;
}

}  // namespace tacho::cli
