// `tacho convert A B`: converts a trace to the format that B's name implies.
#include "cli/files/convert.h"

#include "analysis/trim.h"
#include "cli/command.h"
#include "cli/files/export_trace.h"
#include "cli/files/open_trace.h"
#include "cli/files/writer_names.h"
#include "cli/shared/command_line.h"
#include "format/format.h"

namespace tacho::cli {

int run_convert(int argc, char** argv) {
  CommandOptions app("Write a trace in another format. The ending of the output's name says which.", "tacho convert");
  app.footer("Examples:\n"
             "  tacho convert run.rpd run.tacho\n"
             "  tacho convert run.tacho run.pftrace\n"
             "  tacho convert run.json.gz tables -f csv     CSV files in the folder tables");
  std::string input, output, format;
  bool overwrite = false;
  app.add_option("input", input, "trace of any format that tacho reads").required();
  app.add_option("output", output,
                 "file to write (.tacho, .rpd, .db, .json, .pftrace); a folder for formats of several files")
      .required();
  app.add_option("-f,--format", format, "format of the output, when its name does not say it");
  app.add_flag("--overwrite", overwrite, "replace an existing output");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (same_file(input, output)) return complain(kBadInput, output + ": is the input; choose another name");
  ignore_output_signals();
  const format::Writer* folder = nullptr;
  if (!format.empty() && format != "tacho") {
    const auto writer = writer_of(format);
    if (!writer) return complain(kBadInput, writer.error().message);
    if ((*writer)->folder) folder = *writer;
  }
  if (folder != nullptr) {
    const auto trace = open_trace(input);
    if (!trace) return complain(kBadInput, trace.error().message);
    format::ExportOptions options;
    options.overwrite = overwrite;
    std::vector<std::string> written, remarks;
    options.remarks = &remarks;
    if (const Status done = export_trace(**trace, *folder, {input, "", output, ""}, options, written); !done)
      return complain(kBadInput, done.error().message);
    print_outputs(written);
    for (const std::string& remark : remarks) complain(kOk, remark);
    return kOk;
  }
  const Status done =
      write_converted(output, format, overwrite, [&](trace::TraceWriter& writer) { return copy_trace(input, writer); });
  if (!done) return complain(kBadInput, done.error().message);
  print_outputs(std::vector{output});
  return kOk;
}

}  // namespace tacho::cli
