// `tacho view FILE...`: a page in the browser with everything that a trace holds.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "base/files/output_file.h"
#include "cli/command.h"
#include "cli/files/merge_files.h"
#include "cli/files/open_trace.h"
#include "cli/output/findings.h"
#include "cli/output/serve_view.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "metric/analysis/analysis.h"
#include "metric/render/page/json.h"
#include "ranks/answer/render.h"
#include "ranks/read/load.h"
#include "view/document.h"
#include "view/page/embedded.h"
#include "workload/workload.h"

namespace tacho::cli {
namespace {

int write_page(view::Document& document, const std::string& output, bool overwrite) {
  auto target = OutputFile::create(output, overwrite);
  if (!target) return complain(kBadInput, target.error().message);
  if (const Status made = view::embedded_page(document, [&](std::string_view text) { target->write(text); }); !made)
    return complain(kBadInput, made.error().message);
  if (const Status done = target->commit(); !done) return complain(kBadInput, done.error().message);
  print_outputs({&output, 1});
  return kOk;
}

// One run that a path of the command line stands for.
struct Opened {
  std::string path;
  std::shared_ptr<const trace::Trace> trace;
  std::vector<std::string> files;  // that `trace` was made of
  std::string profile;             // folder with counters; "" = none
};

// The runs in a folder: the ranks of a job on one timeline, as `tacho merge` joins them, and traces that nothing ties
// to each other as runs of their own.
Result<std::vector<Opened>> open_jobs(const std::string& path) {
  constexpr size_t kMostRuns = 16;
  std::vector<std::string> files, notes;
  TACHO_TRY(ranks::list_traces({path}, files, notes));
  std::vector<Opened> runs;
  if (files.size() == 1) {
    TACHO_ASSIGN(auto trace, open_trace(files.front()));
    runs.push_back({path, std::move(trace), files, {}});
    return runs;
  }
  TACHO_ASSIGN(const TraceFiles traces, TraceFiles::open(files, true, notes));
  std::vector<std::vector<size_t>> jobs = traces.jobs();
  if (jobs.size() > 1)
    notes.push_back(fmt::format("{}: {} runs, which no rank number, collective or message ties to one job{}", path,
                                jobs.size(),
                                jobs.size() > kMostRuns ? fmt::format("; the first {} are shown", kMostRuns) : ""));
  if (jobs.size() > kMostRuns) jobs.resize(kMostRuns);
  for (const std::vector<size_t>& job : jobs) {
    Opened& run = runs.emplace_back();
    run.path = jobs.size() == 1 ? path : traces.name(job[0]);
    for (const size_t at : job) run.files.push_back(traces.name(at));
    if (job.size() == 1) {
      run.trace = traces.trace(job[0]);
      continue;
    }
    TACHO_ASSIGN(const auto writer, trace::TraceWriter::create_temporary());
    TACHO_TRY(traces.merge(job, *writer, notes));
    TACHO_ASSIGN(run.trace, writer->finish_and_open(run.path));
  }
  for (const std::string& note : notes) complain(kOk, note);
  return runs;
}

// A trace, a folder of them, or a profile folder; a trace within a profile folder brings its counters along.
Result<std::vector<Opened>> open_runs(const std::string& path) {
  std::vector<Opened> opened(1);
  opened[0].path = path;
  opened[0].files = {path};
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    TACHO_ASSIGN(opened[0].trace, open_trace(path));
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty() && workload::is_workload(folder.string())) opened[0].profile = folder.string();
    return opened;
  }
  const auto profile = workload::find_workload(path);
  const std::string own = profile && workload::is_workload(path) ? *profile : std::string();
  if (auto trace = open_trace(path)) {  // a folder of rocprofv3's CSV
    opened[0].trace = std::move(*trace);
    opened[0].profile = own;
    return opened;
  }
  auto jobs = open_jobs(path);
  if (jobs) {
    jobs->front().profile = own;
    return jobs;
  }
  if (!profile && is_profile(path)) return fail("{}", profile.error().message);
  if (!profile) return fail("{}; a profile folder holds pmc_perf.csv", jobs.error().message);
  opened[0].profile = *profile;
  TACHO_ASSIGN(const auto writer, trace::TraceWriter::create_temporary());
  TACHO_ASSIGN(opened[0].trace, writer->finish_and_open(path));
  return opened;
}

// What `tacho analyze -p FOLDER... --output-format html` puts into its page.
Result<std::string> analysis_of(const std::vector<std::string>& folders) {
  metric::AnalysisOptions options;
  options.every_normalisation = true;
  options.errors = true;
  std::vector<metric::Analysis> runs;
  for (const std::string& folder : folders) {
    TACHO_ASSIGN(metric::Analysis analysis, metric::Analysis::run(folder, options));
    runs.push_back(std::move(analysis));
  }
  return metric::to_json(runs, {.per_kernel = false, .page = true});
}

// Computed by whoever asks first; several runs show the same.
view::MakeView once(view::MakeView make) {
  struct Made {
    std::mutex lock;
    std::optional<Result<std::string>> answer;
  };
  return [make = std::move(make), made = std::make_shared<Made>()] {
    const std::lock_guard held(made->lock);
    if (!made->answer) made->answer = make();
    return *made->answer;
  };
}

}  // namespace

int run_view(int argc, char** argv) {
  CommandOptions app(
      "A page in the browser: overview, timeline, flame graph, ranks, counters, search and SQL over traces of any "
      "format and size and over profile folders; what changed between two. It serves on 127.0.0.1 until Ctrl-C.",
      "tacho view");
  app.footer("Examples:\n"
             "  tacho view app.tacho\n"
             "  tacho view ranks/                        the ranks of a job on one timeline\n"
             "  tacho view workloads/app/MI300X_A1       the counters of a profile folder\n"
             "  tacho view before.tacho after.tacho      both in one page, and compared\n"
             "  tacho view app.tacho -o app.html         a page to send to somebody; of two runs it compares them\n"
             "On another machine: ssh -L 8050:127.0.0.1:8050 HOST, then open the printed address here.");
  std::vector<std::string> files;
  std::optional<uint16_t> port;
  std::string output;
  bool no_open = false, overwrite = false;
  app.add_option("file", files, "traces, folders with the ranks of a job, profile folders").required();
  app.add_option("--port", port, "port on 127.0.0.1 (default: 8050, or any free one if that is taken)");
  app.add_flag("--no-open", no_open, "print the address and open no browser");
  app.add_option("-o,--output", output, "write one page that needs no server, and end");
  app.add_flag("--overwrite", overwrite, "replace an existing page");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  view::Document document;
  std::vector<std::string> profiles;
  std::vector<view::Run*> profiled;
  std::vector<size_t> firsts;  // runs of each path
  for (const std::string& file : files) {
    auto runs = open_runs(file);
    if (!runs) return complain(kBadInput, runs.error().message);
    firsts.push_back(document.runs().size());
    for (Opened& opened : *runs) {
      const bool ranks = ranks::tells_of_ranks(*opened.trace);
      view::Run& run = document.add(opened.path, std::move(opened.trace), {}, findings_of);
      if (ranks) run.offer("ranks", [of = opened.files, t0 = run.index().t0()] { return ranks::page_json(of, t0); });
      if (opened.profile.empty()) continue;
      run.offer("analysis", [folder = opened.profile] { return analysis_of({folder}); });
      profiled.push_back(&run);
      if (std::find(profiles.begin(), profiles.end(), opened.profile) == profiles.end())
        profiles.push_back(opened.profile);
    }
  }
  if (firsts.size() >= 2) document.compare_first(firsts[0], firsts[1]);
  if (profiles.size() > 1) {
    const view::MakeView all = once([profiles] { return analysis_of(profiles); });
    for (view::Run* const run : profiled) run->offer("analyses", all);
  }
  if (!output.empty()) return write_page(document, output, overwrite);
  const int code = serve_view(document, port, !no_open, kBadInput);
  report::flush_output();
  // Findings that are under way cannot be stopped, and nobody waits for them any more.
  if (document.computing()) _exit(code);
  return code;
}

}  // namespace tacho::cli
