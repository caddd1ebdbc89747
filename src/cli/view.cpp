// `tacho view FILE...`: a page in the browser with everything that a trace holds.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/findings.h"
#include "cli/shared/merge_files.h"
#include "cli/shared/open_trace.h"
#include "cli/shared/serve_view.h"
#include "ranks/align.h"
#include "view/document.h"

namespace tacho::cli {
namespace {

int write_page(view::Document& document, const std::string& output, bool overwrite) {
  if (document.runs().size() > 1)
    return complain(kBadInput,
                    "-o writes one run into a page; give one trace, or leave -o out to look at several");
  auto target = OutputFile::create(output, overwrite);
  if (!target) return complain(kBadInput, target.error().message);
  if (const Status made = view::embedded_page(document, [&](std::string_view text) { target->write(text); });
      !made)
    return complain(kBadInput, made.error().message);
  if (const Status done = target->commit(); !done) return complain(kBadInput, done.error().message);
  print_outputs({&output, 1});
  return kOk;
}

// A trace, or a folder of them: the ranks of a job on one timeline, as `tacho merge` joins them.
Result<std::shared_ptr<const trace::Trace>> open_run(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return open_trace(path);
  if (auto one = open_trace(path)) return one;  // a folder of rocprofv3's CSV
  std::vector<std::string> files, notes;
  TACHO_TRY(ranks::list_traces({path}, files, notes));
  if (files.size() == 1) return open_trace(files.front());
  TACHO_ASSIGN(const auto writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(merge_files(files, *writer, notes));
  for (const std::string& note : notes) complain(kOk, note);
  return writer->finish_and_open(path);
}

}  // namespace

int run_view(int argc, char** argv) {
  CLI::App app(
      "A page in the browser: overview, timeline, flame graph, search and SQL over traces of any format and "
      "size; what changed between two. It serves on 127.0.0.1 until Ctrl-C.",
      "tacho view");
  app.footer(
      "Examples:\n"
      "  tacho view app.tacho\n"
      "  tacho view ranks/                        the ranks of a job on one timeline\n"
      "  tacho view before.tacho after.tacho      both in one page, and compared\n"
      "  tacho view app.tacho -o app.html         a page to send to somebody\n"
      "On another machine: ssh -L 8050:127.0.0.1:8050 HOST, then open the printed address here.");
  std::vector<std::string> files;
  std::optional<uint16_t> port;
  std::string output;
  bool no_open = false, overwrite = false;
  app.add_option("file", files, "traces, or folders with the ranks of a job")->required();
  app.add_option("--port", port, "port on 127.0.0.1 (default: 8050, or any free one if that is taken)");
  app.add_flag("--no-open", no_open, "print the address and open no browser");
  app.add_option("-o,--output", output, "write one page that needs no server, and end");
  app.add_flag("--overwrite", overwrite, "replace an existing page");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  view::Document document;
  for (const std::string& file : files) {
    auto trace = open_run(file);
    if (!trace) return complain(kBadInput, trace.error().message);
    document.add(file, std::move(*trace), {}, findings_of);
  }
  if (!output.empty()) return write_page(document, output, overwrite);
  const int code = serve_view(document, port, !no_open, kBadInput);
  std::fflush(nullptr);
  // Findings that are under way cannot be stopped, and nobody waits for them any more.
  if (document.computing()) _exit(code);
  return code;
}

}  // namespace tacho::cli
