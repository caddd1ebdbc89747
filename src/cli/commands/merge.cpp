// `tacho merge A B C -o ALL`: joins several traces (processes, ranks, hosts, runs) into one.
#include <numeric>

#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/merge_files.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "cli/shared/suggest.h"
#include "ranks/read/load.h"
#include "report/output.h"

namespace tacho::cli {

int run_merge(int argc, char** argv) {
  CommandOptions app("Put several traces together. Processes stay apart even where their "
                     "numbers are equal (column run of table process).",
                     "tacho merge");
  app.footer("Examples:\n"
             "  tacho merge rank0.tacho rank1.tacho -o job.tacho\n"
             "  tacho merge ranks/ -o job.json          all traces of a folder, for Perfetto");
  std::vector<std::string> inputs;
  std::string output, format;
  bool overwrite = false;
  app.add_option("inputs", inputs, "traces of any format that tacho reads, or folders that hold them").required();
  app.add_option("-o,--output", output,
                 "file to write; its ending says the format (.tacho, .rpd, .db, .json, .pftrace)")
      .required();
  app.add_option("-f,--format", format, "format of the output, when its name does not say it");
  app.add_flag("--overwrite", overwrite, "replace an existing output");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  std::vector<std::string> notes, files;
  if (const Status listed = ranks::list_traces(inputs, files, notes); !listed)
    return complain(kBadInput, none_is_a_trace(inputs, listed.error().message));
  // A file that the command line names is wanted, even twice; what lies in a folder may be there twice by chance.
  const bool folders = files != inputs;
  inputs = std::move(files);
  for (const std::string& input : inputs)
    if (same_file(input, output)) return complain(kBadInput, output + ": is one of the inputs; choose another name");
  size_t merged = inputs.size();
  const Status done = write_converted(output, format, overwrite, [&](trace::TraceWriter& writer) -> Status {
    if (inputs.size() == 1) return copy_trace(inputs[0], writer);  // needs no trace in between
    TACHO_ASSIGN(const TraceFiles traces, TraceFiles::open(inputs, folders, notes));
    std::vector<size_t> all(traces.size());
    std::iota(all.begin(), all.end(), size_t{0});
    merged = traces.size();
    return traces.merge(all, writer, notes);
  });
  if (!done) return complain(kBadInput, done.error().message);
  for (const std::string& note : notes) complain(kOk, note);
  if (merged == 1)
    report::print_error("tacho: {} is now {}\n", inputs[0], output);
  else
    report::print_error("tacho: {} traces are now {}\n", merged, output);
  return kOk;
}

}  // namespace tacho::cli
