// `tacho recover [POOL]`: saves the trace of a run whose tacho was killed.

#include <sys/stat.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>

#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "launch/launcher.h"
#include "report/answer.h"
#include "report/output.h"
#include "tape/pool.h"
#include "trace/store/file.h"
#include "trace/trace.h"

namespace tacho::cli {
namespace {

namespace fs = std::filesystem;

// "2026-11-26 20:23:05", in local time; empty for an unknown one.
std::string local_time(int64_t realtime_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const time_t seconds = realtime_ns / kSecond;
  tm parts{};
  char text[32];
  if (realtime_ns <= 0 || localtime_r(&seconds, &parts) == nullptr ||
      strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0)
    return {};
  return text;
}

// When each run began, how much memory its records take, its program, the trace it was to write, and its pool.
void list_pools(std::span<const std::string> pools) {
  report::Answer answer;
  answer.columns = {{.title = "Started", .whole = true},
                    {"", "Size", report::Unit::kBytes},
                    {.title = "Program"},
                    {.title = "Trace"},
                    {.title = "Pool", .whole = true}};
  answer.when_empty = "there is no abandoned pool of yours on this machine";
  for (const std::string& path : pools) {
    auto pool = tape::Pool::open(path);
    struct stat status {};
    const bool sized = stat(path.c_str(), &status) == 0;
    constexpr int64_t kBlock = 512;  // st_blocks counts them
    report::Cell size;
    if (sized) size = static_cast<int64_t>(status.st_blocks) * kBlock;
    std::string started, output, program;
    if (pool) {
      const tape::PoolHeader& header = pool->header();
      started = local_time(header.first_clocks.realtime);
      output.assign(header.output, strnlen(header.output, sizeof header.output));
      // The pool does not name the program; the file that its tacho had begun does.
      const std::string begun = output.empty() ? std::string() : trace::left_by_killed_writer(output);
      if (!begun.empty())
        if (const auto part = trace::Trace::open(begun))
          program = (*part)->property(event::Table::kEnd, 0, "command").value_or("");
    }
    answer.rows.push_back({started, size, program, output, path});
  }
  report::show(answer, {});
}

// What runs left in the current folder that has no pool any more: files that are traces as they are.
void list_recordings(std::span<const std::string> pools) {
  std::set<std::string> told;  // with their pools
  for (const std::string& path : pools) {
    auto pool = tape::Pool::open(path);
    if (!pool) continue;
    const tape::PoolHeader& header = pool->header();
    const std::string output(header.output, strnlen(header.output, sizeof header.output));
    if (!output.empty()) told.insert(fs::path(trace::left_by_killed_writer(output)).filename().string());
  }
  report::Answer answer;
  answer.columns = {{.title = "Left", .whole = true},
                    {"", "Events", report::Unit::kCount},
                    {.title = "Program"},
                    {.title = "Unfinished trace in this folder, without a pool", .whole = true}};
  for (const launch::LeftRecording& left : launch::left_recordings(""))
    if (!told.contains(left.path)) answer.rows.push_back({local_time(left.left), left.events, left.command, left.path});
  if (answer.rows.empty()) return;
  answer.remarks.emplace_back("these are traces as far as they go: read them as they are, as by tacho info");
  report::print("\n");
  report::show(answer, {});
}

}  // namespace

int run_recover(int argc, char** argv) {
  CommandOptions app("Take what is left in the shared memory of a run whose tacho was killed, together with its "
                     "unfinished trace file, and write a trace.",
                     "tacho recover");
  app.footer("Examples:\n"
             "  tacho recover --list               what runs left\n"
             "  tacho recover -o run.tacho");
  std::string pool, output;
  bool overwrite = false, list = false, keep = false;
  app.add_option("pool", pool, "pool file; without it the only abandoned one is taken");
  app.add_option("-o,--output", output, "trace file (default: recovered.tacho)");
  app.add_flag("--overwrite", overwrite, "replace an existing output");
  app.add_flag("--list", list, "only list abandoned pools");
  app.add_flag("--keep", keep, "do not remove the pool and the unfinished file afterwards");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (list || pool.empty()) {
    const std::vector<std::string> pools = launch::abandoned_pools();
    if (list) {
      list_pools(pools);
      list_recordings(pools);
      return kOk;
    }
    if (pools.empty()) return complain(kBadInput, "there is no abandoned pool of yours on this machine");
    if (pools.size() > 1)
      return complain(kBadInput, "there are several abandoned pools (tacho recover --list): name one");
    pool = pools.front();
  }
  if (trace::Trace::open(pool))
    return complain(kBadInput, fmt::format("{}: is a trace, which needs no recovery; did you mean: tacho info {}", pool,
                                           shell_word(pool)));
  if (output.empty()) output = overwrite ? "recovered.tacho" : free_name("recovered.tacho");
  std::vector<std::string> notes;
  if (const Status done = launch::recover(pool, output, overwrite, !keep, notes); !done)
    return complain(kBadInput, done.error().message);
  for (const std::string& note : notes) report::print("{}\n", note);
  print_outputs({&output, 1});
  return kOk;
}

}  // namespace tacho::cli
