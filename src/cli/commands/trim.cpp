// `tacho trim IN OUT --start --end`: cuts a time span out of a trace, into the same or another format.
#include "analysis/trim.h"

#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "cli/shared/suggest.h"
#include "cli/shared/time_text.h"
#include "format/format.h"
#include "format/rpd/rpd.h"
#include "format/rpd/trim.h"
#include "report/output.h"

namespace tacho::cli {
namespace {

struct TrimRequest {
  std::string in, out, start, end, format;
  bool overwrite = false;
};

Result<std::pair<int64_t, int64_t>> span_of(const TrimRequest& request, int64_t first, int64_t last) {
  int64_t from = first, to = last;
  if (!request.start.empty()) {
    TACHO_ASSIGN(from, parse_moment(request.start, first, last, "--start"));
  }
  if (!request.end.empty()) {
    TACHO_ASSIGN(to, parse_moment(request.end, first, last, "--end"));
  }
  if (from > to) return fail("--start {} lies after --end {}: nothing would be left", request.start, request.end);
  return std::pair{from, to};
}

// From .rpd to .rpd, copies rows as they are stored; everything else goes through a trace.
Status trim_rpd(const TrimRequest& request) {
  std::pair<int64_t, int64_t> range{0, INT64_MAX};
  if (!is_absolute(request.start) || !is_absolute(request.end)) {
    TACHO_ASSIGN(range, format::rpd::time_range(request.in));
  }
  TACHO_ASSIGN(const auto span, span_of(request, range.first, range.second));
  TACHO_ASSIGN(const format::rpd::TrimResult result,
               format::rpd::trim(request.in, request.out, span.first, span.second, request.overwrite));
  report::print_error("tacho: kept {} of {} API calls and {} of {} GPU operations\n", result.calls_kept, result.calls,
                      result.operations_kept, result.operations);
  return {};
}

Status trim_trace(const TrimRequest& request) {
  TACHO_ASSIGN(const auto trace, open_events(request.in));
  if (trace->aggregated()) return fail("{}: recorded with --aggregate: it holds no events to choose from", request.in);
  const auto [first, last] = trace->time_range();
  TACHO_ASSIGN(const auto span, span_of(request, first, last));
  analysis::TrimCounts counts;
  TACHO_TRY(write_converted(request.out, request.format, request.overwrite, [&](trace::TraceWriter& writer) {
    return analysis::trim_into(*trace, writer, span.first, span.second, counts);
  }));
  report::print_error("tacho: kept {} of {} events\n", counts.kept, counts.kept + counts.dropped);
  return {};
}

}  // namespace

int run_trim(int argc, char** argv) {
  CommandOptions app("Cut a span of time out of a trace. GPU work goes with the API call that caused it; nothing is "
                     "left that refers to what went.",
                     "tacho trim");
  app.footer("Examples:\n"
             "  tacho trim app.tacho step.tacho --start 40% --end 60%\n"
             "  tacho trim app.tacho end.tacho --start -2s              the last two seconds\n"
             "  tacho trim app.tacho part.json --start +1.5s --end +2s  for Perfetto");
  TrimRequest request;
  app.add_option("input", request.in, "trace of any format that tacho reads").required();
  app.add_option("output", request.out,
                 "file to write; its ending says the format (.tacho, .rpd, .db, .json, .pftrace)")
      .required();
  app.add_option("--start", request.start,
                 "first moment to keep: 25%, +1.5s (after the first event), -1s (before the last), or ns")
      .type_name("WHEN");
  app.add_option("--end", request.end, "last moment to keep, likewise").type_name("WHEN");
  app.add_option("-f,--format", request.format, "format of the output, when its name does not say it");
  app.add_flag("--overwrite", request.overwrite, "replace an existing output");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (request.start.empty() && request.end.empty()) return complain(kBadInput, "give --start, --end or both");
  if (same_file(request.in, request.out))
    return complain(kBadInput, request.out + ": is the input itself; choose another name");
  const auto format = output_format(request.out, request.format);
  if (!format) return complain(kBadInput, format.error().message);
  const Status done = *format == "rpd" && is_rpd(request.in) ? trim_rpd(request) : trim_trace(request);
  return done ? static_cast<int>(kOk) : complain(kBadInput, done.error().message);
}

}  // namespace tacho::cli
