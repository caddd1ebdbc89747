// rocmProfileData's command lines: runTracer.sh records a program to an .rpd file, rpd2tracing(.py) converts one to
// Chrome JSON or to a Perfetto file.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files/output_file.h"
#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "cli/target/run_target.h"
#include "format/format.h"
#include "format/rpd/tracing.h"
#include "report/output.h"

namespace tacho::cli {
namespace {

namespace fs = std::filesystem;

bool in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (true) {
    const size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    if (::access(((folder.empty() ? "." : folder) + "/" + name).c_str(), X_OK) == 0) return true;
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

// The first of NAME.1, NAME.2 ... that does not exist.
std::string first_free(const std::string& name) {
  std::error_code error;
  for (int i = 1;; ++i) {
    std::string candidate = fmt::format("{}.{}", name, i);
    if (!fs::exists(fs::symlink_status(candidate, error))) return candidate;
  }
}

}  // namespace

// runTracer.sh [-o FILE.rpd] COMMAND ...: -o comes only first, as in the original script.
int personality_run_tracer(int argc, char** argv) {
  std::string output = "trace.rpd";
  int at = 1;
  constexpr const char* kUsage = "usage: runTracer.sh [-o FILE.rpd] COMMAND [ARGUMENTS ...]";
  if (at < argc && (std::string_view(argv[at]) == "--help" || std::string_view(argv[at]) == "-h")) {
    report::print("{}\n\nRuns COMMAND and records its GPU kernels, copies, API calls "
                  "and markers to FILE.rpd (default trace.rpd).\n"
                  "An existing file is renamed to FILE.rpd.1, .2 and so on.\n",
                  kUsage);
    return kOk;
  }
  if (at < argc && std::string_view(argv[at]) == "-o") {
    if (at + 1 >= argc) return complain(kOwnError, std::string("-o wants a file name; ") + kUsage);
    output = argv[at + 1];
    at += 2;
  }
  if (at >= argc) return complain(kOwnError, std::string("no command to run; ") + kUsage);
  if (is_standard_output(output))
    return complain(kOwnError, "-o " + output + ": standard output is the program's; give the .rpd a name");
  TraceRequest request;
  for (; at < argc; ++at) request.launch.command.emplace_back(argv[at]);
  const std::string& program = request.launch.command[0];
  if (program == "python" && !in_path("python"))
    return complain(kNotFound,
                    in_path("python3")
                        ? "there is no command 'python' here, but there is python3: write python3 in its place"
                        : "there is no command 'python' here: install Python (apt-get install python3)");
  output = of_rank(output);
  std::error_code error;
  if (fs::is_directory(output, error)) return complain(kOwnError, output + ": is a folder");
  const fs::path folder = fs::path(output).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error))
    return complain(kOwnError, fmt::format("{}: the folder {} does not exist", output, folder.string()));
  // The recording has a temporary name and moves to its place when it is complete.
  const std::string building =
      (folder / fmt::format(".{}.{}.rpd", fs::path(output).filename().string(), ::getpid())).string();
  request.output = building;
  request.shown_as = output;
  request.formats = {"rpd"};
  const int code = run_target(request);
  if (!fs::exists(building, error)) return code;
  if (fs::exists(fs::symlink_status(output, error))) {
    const std::string kept = first_free(output);
    fs::rename(output, kept, error);
    if (error)
      return complain(code, fmt::format("{} could not be renamed to {} ({}); the new recording is in {}", output, kept,
                                        error.message(), building));
    complain(code, fmt::format("the older {} is now {}", output, kept));
  }
  fs::rename(building, output, error);
  if (error) return complain(code, fmt::format("{}: {}; the recording is in {}", output, error.message(), building));
  return code;
}

// rpd2tracing IN.rpd [OUT.json] [--start S] [--end E] [--format object|array]
int personality_rpd2tracing(int argc, char** argv) {
  CommandOptions app("convert RPD to json for chrome tracing", "rpd2tracing");
  std::string input, output;
  format::rpd::TracingOptions options;
  std::string format = "object";
  app.add_option("input_rpd", input, "input rpd db").required();
  app.add_option("output_json", output,
                 "chrome tracing json output, or .pftrace for Perfetto's own "
                 "format (default: the input's name with .json)");
  app.add_option("--start", options.start,
                 "first moment to show: microseconds, a share of the trace "
                 "(25%), or a number with a unit (ns, us, ms, s)");
  app.add_option("--end", options.end, "last moment to show, likewise");
  app.add_option("--format", format, "array or object").one_of({"object", "array"}).capture_default_str();
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  options.array = format == "array";
  if (output.empty()) output = fs::path(input).replace_extension(".json").string();
  if (same_file(input, output)) return complain(kBadInput, output + ": is the input itself; choose another name");
  if (fs::path(output).extension() == ".pftrace") {
    if (!options.start.empty() || !options.end.empty())
      return complain(kBadInput, "for a part as .pftrace use: tacho trim IN.rpd OUT.pftrace --start --end");
    const auto trace = open_trace(input);
    if (!trace) return complain(kBadInput, trace.error().message);
    format::ExportOptions export_options;
    export_options.overwrite = true;
    std::vector<std::string> written;
    for (const format::Writer& writer : format::writers())
      if (writer.name == "pftrace")
        if (const Status done = writer.write(**trace, {output, {}, {}}, export_options, written); !done)
          return complain(kBadInput, done.error().message);
    return kOk;
  }
  const auto result = format::rpd::write_tracing(input, output, options);
  if (!result) return complain(kBadInput, result.error().message);
  const report::Stream out = message_stream({&output, 1});
  if (result->version < 3) report::print(out, "Schema: v{}\n", result->version);
  report::print(out,
                "Timestamps:\n\t    first: \t{} us\n\t     last: \t{} us\n\t "
                "duration: \t{} seconds\n\nOutput duration: {} seconds\n",
                static_cast<double>(result->first) / 1000, static_cast<double>(result->last) / 1000,
                static_cast<double>(result->last - result->first) / 1e9, (result->to - result->from) / 1e6);
  if (!result->has_monitor) report::print(out, "Did not find SMI data\n");
  return kOk;
}

}  // namespace tacho::cli
