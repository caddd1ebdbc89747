// `tacho ranks FILE|DIR ...`: who made whom wait in a run of many processes; also `tacho report ranks`.
#include <malloc.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "ranks/answer/render.h"
#include "ranks/dataset.h"
#include "report/output.h"
#include "report/text.h"

namespace tacho::cli {

int run_ranks(int argc, char** argv) {
  CommandOptions app("Who made whom wait: collectives of all ranks of a run, put side by side.", "tacho ranks");
  std::vector<std::string> inputs;
  std::string format = "text", sql;
  size_t top = 16;
  int64_t step = event::kUnknown;
  bool arrivals = false;
  app.add_option("inputs", inputs, "traces of the ranks, or folders that hold them; any format that tacho reads")
      .required();
  app.add_option("--step", step, "show the critical path of this step (default: of the longest)");
  app.add_option("--top", top, "rows of each table; 0 = all").capture_default_str();
  app.add_option("--output-format", format, "text or json").one_of({"text", "json"}).capture_default_str();
  app.add_option(
         "--sql", sql,
         "print SQL that makes these tables from a Parquet dataset, which is the one input: duckdb or clickhouse")
      .one_of({"duckdb", "clickhouse"});
  app.add_flag("--arrivals", arrivals, "json: also each rank's part in each step, and when it came to each collective");
  app.footer("Examples:\n"
             "  tacho ranks ranks/                      all traces of a folder\n"
             "  tacho ranks rank*.json.gz --step 5      with the critical path of step 5\n"
             "docs/ranks.md defines every number.");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  const auto print = [](std::string_view text) {
    report::put(text);
    report::flush_output();
  };
  if (!sql.empty()) {
    if (inputs.size() != 1)
      return complain(kBadInput, "--sql takes one input, the folder of a Parquet dataset (tacho export -f parquet -d)");
    const auto script =
        ranks::dataset_sql(sql == "duckdb" ? ranks::SqlEngine::kDuckDb : ranks::SqlEngine::kClickHouse, inputs[0]);
    if (!script) return complain(kBadInput, script.error().message);
    print(*script);
    return kOk;
  }
  if (arrivals && format != "json")
    return complain(kBadInput, "--arrivals goes with --output-format json; tacho view shows arrivals as a plot");
  // Every rank's pass takes the same tens of megabytes: kept, they need not be mapped and cleared for each rank anew.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  ranks::Job job;
  if (const Status loaded = ranks::load_job(inputs, job); !loaded)
    return complain(kBadInput, none_is_a_trace(inputs, loaded.error().message));
  const auto report = ranks::answer(job, arrivals);
  if (!report) {
    for (const std::string& remark : job.remarks) complain(kOk, remark);
    return complain(kBadInput, report.error().message);
  }
  if (format == "json") {
    if (const Status made = ranks::to_json(job, *report, print); !made)
      return complain(kBadInput, made.error().message);
  } else {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    auto made = ranks::to_text(
        job, *report,
        {.width = screen.terminal ? screen.width : 80, .colour = screen.colour, .top = top, .step = step});
    if (!made) return complain(kBadInput, made.error().message);
    print(*made);
  }
  return kOk;
}

}  // namespace tacho::cli
