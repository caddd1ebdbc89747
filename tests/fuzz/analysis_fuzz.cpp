// Fuzzes what tacho answers about a .tacho file: statistics, operators, stacks, findings, comparisons, ranks and what
// `tacho view` sends to its page, one of them for each input. The inputs are those of trace_mutator.h: their checksums
// fit, and their times, sizes, codes and references need not. Sums over them must stay sums (UBSan), and an answer is
// one or a sentence.
#include <string>

#include "analysis/diff.h"
#include "analysis/findings/findings.h"
#include "analysis/operators/operators.h"
#include "analysis/operators/places.h"
#include "analysis/questions.h"
#include "analysis/stacks/own_code.h"
#include "analysis/stacks/stacks.h"
#include "analysis/stats.h"
#include "analysis/time/activity.h"
#include "analysis/time/run_facts.h"
#include "analysis/top.h"
#include "analysis/trim.h"
#include "fuzz/checking_writer.h"
#include "fuzz/trace_mutator.h"
#include "ranks/answer/answers.h"
#include "ranks/answer/render.h"
#include "ranks/match/lateness.h"
#include "ranks/read/align.h"
#include "ranks/read/load.h"
#include "view/document.h"
#include "view/page/embedded.h"

namespace {

using tacho::Result;
using tacho::trace::Trace;

uint64_t hash_of(const uint8_t* data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 0x100000001b3ULL;
  return hash ^ hash >> 31;
}

template <typename T>
bool answered(const Result<T>& result) {
  if (!result && (result.error().message.empty() || result.error().message.size() > 8192)) abort();
  return static_cast<bool>(result);
}

void statistics(const Trace& trace, uint64_t choice) {
  using tacho::analysis::By;
  constexpr By kBy[] = {By::kKernel, By::kApi,  By::kCopy,     By::kFill,      By::kMarker,
                        By::kDomain, By::kSync, By::kOverhead, By::kAllocation};
  for (const By by : kBy) {
    tacho::analysis::StatOptions options;
    options.per_shape = choice % 2 == 0;
    options.groups = choice / 2 % 2 == 0;
    answered(tacho::analysis::statistics(trace, by, options));
  }
  answered(tacho::analysis::device_busy(trace));
  answered(tacho::analysis::device_load(trace));
  answered(tacho::analysis::activity(trace));
  answered(tacho::analysis::run_facts(trace));
  tacho::analysis::loss_sentences(trace);
  tacho::analysis::filter_sentences(trace);
}

void places(const Trace& trace) {
  using tacho::analysis::Place;
  for (const Place place : {Place::kProcess, Place::kRank, Place::kThread, Place::kDevice, Place::kStream})
    answered(tacho::analysis::by_place(trace, place));
  answered(tacho::analysis::gaps(trace));
  answered(tacho::analysis::launch_delay(trace));
  answered(tacho::analysis::queue_depth(trace));
  answered(tacho::analysis::overlap(trace));
  answered(tacho::analysis::exclusive(trace));
  constexpr int64_t kBounds[] = {1000, 10'000, 100'000};
  answered(tacho::analysis::bins(trace, kBounds));
}

void operators(const Trace& trace) {
  using tacho::analysis::OperatorBy;
  const auto shares = tacho::analysis::graph_shares(trace);
  answered(shares);
  for (const bool shapes : {false, true}) {
    const auto tree = tacho::analysis::operator_tree(trace, {}, shares ? &*shares : nullptr, shapes);
    if (!answered(tree)) continue;
    for (const OperatorBy by : {OperatorBy::kOperator, OperatorBy::kModule}) tacho::analysis::operator_rows(*tree, by);
  }
  answered(tacho::analysis::torch_sentence(trace));
}

void stacks(const Trace& trace, uint64_t choice) {
  using tacho::analysis::StackBy;
  tacho::analysis::StackOptions options;
  options.threads = choice % 2 == 0;
  options.startup = choice / 2 % 2 == 0;
  options.lines = choice / 4 % 2 == 0;
  const auto tree = tacho::analysis::stack_tree(trace, options);
  if (!answered(tree)) return;
  tacho::analysis::stack_rows(*tree, StackBy::kStack);
  tacho::analysis::stack_rows(*tree, StackBy::kFunction);
  if (options.lines) tacho::analysis::stack_rows(*tree, StackBy::kLine);
  const auto drop = [](std::string_view) {};
  tacho::analysis::folded_stacks(*tree, choice / 8 % 2 == 0, drop);
  tacho::analysis::speedscope_json(*tree, "input", drop);
  tacho::analysis::stack_rows(tacho::analysis::own_code(*tree), StackBy::kFunction);
}

void findings(const Trace& trace) {
  const auto found = tacho::analysis::find(trace);
  if (answered(found)) tacho::analysis::findings_answer(*found);
}

void comparison(const Trace& trace, uint64_t choice) {
  using tacho::analysis::DiffBy;
  constexpr DiffBy kBy[] = {DiffBy::kKernel, DiffBy::kApi, DiffBy::kMarker, DiffBy::kCopy, DiffBy::kOperator};
  const auto diff = tacho::analysis::diff(trace, trace, kBy[choice % std::size(kBy)]);
  if (answered(diff)) tacho::analysis::diff_answer(*diff);
}

void pieces(const std::shared_ptr<const Trace>& trace, uint64_t choice) {
  tacho::fuzz::CheckingWriter writer;
  if (choice % 2 == 0) {
    std::vector<std::string> notes;
    const tacho::analysis::MergeInput inputs[] = {{trace, "a"}, {trace, "b"}};
    tacho::fuzz::expect_sentence(tacho::analysis::merge_into({std::begin(inputs), std::end(inputs)}, writer, notes));
  } else {
    tacho::analysis::TrimCounts counts;
    tacho::fuzz::expect_sentence(tacho::analysis::trim_into(*trace, writer, 20'000, 60'000, counts));
  }
}

void ranks(const std::shared_ptr<const Trace>& trace, const std::string& path) {
  answered(tacho::ranks::lateness(*trace));
  const std::shared_ptr<const Trace> traces[] = {trace, trace};
  const std::string names[] = {path, path};
  tacho::ranks::TraceSurvey surveyed;
  const tacho::Status looked = tacho::ranks::survey(traces, names, surveyed);
  tacho::fuzz::expect_sentence(looked);
  if (looked) {
    const size_t both[] = {0, 1};
    answered(tacho::ranks::align(surveyed, both));
    std::vector<std::string> remarks;
    static_cast<void>(tacho::ranks::without_repeated(surveyed.traces, remarks));
    static_cast<void>(tacho::ranks::jobs_of(surveyed.traces, surveyed.names));
  }
  tacho::ranks::Job job;
  const tacho::Status loaded = tacho::ranks::load_job({path}, job);
  tacho::fuzz::expect_sentence(loaded);
  if (!loaded) return;
  const auto report = tacho::ranks::answer(job);
  if (!answered(report)) return;
  answered(tacho::ranks::to_text(job, *report, {}));
  tacho::fuzz::expect_sentence(tacho::ranks::to_json(job, *report, [](std::string_view) {}));
}

void page(const std::shared_ptr<const Trace>& trace, uint64_t choice) {
  tacho::view::Document document;
  tacho::view::Run& run = document.add("input", trace, {}, [](const Trace& of) { return tacho::analysis::find(of); });
  const tacho::Status ready = run.wait();
  tacho::fuzz::expect_sentence(ready);
  if (!ready) return;
  if (choice % 4 == 0)
    return tacho::fuzz::expect_sentence(tacho::view::embedded_page(document, [](std::string_view) {}));
  answered(run.overview());
  const auto at = static_cast<int64_t>(choice % 100'000);
  answered(run.span(at, at + 50'000));
  answered(run.kernel(static_cast<uint32_t>(choice % 16), 0, 100'000));
  answered(run.search("a", false, 20, ""));
  for (const tacho::event::TableInfo& info : tacho::event::all_tables())
    if (tacho::event::is_fact(info.table) && trace->rows(info.table) > 0)
      answered(run.slice(tacho::view::row_id(info.table, static_cast<int64_t>(choice) % trace->rows(info.table))));
  for (const char* const path : {"/api/document", "/api/overview", "/api/tiles"}) {
    tacho::report::HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.query["run"] = "0";
    document.answer(request);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  const auto trace = tacho::trace::open_bytes({data, size}, "input");
  if (!trace) return 0;
  int64_t rows = 0;  // a few bytes can stand for 64 Ki rows, which only costs time
  for (const tacho::event::TableInfo& info : tacho::event::all_tables()) rows += (*trace)->rows(info.table);
  if (rows > 20'000) return 0;
  const uint64_t choice = hash_of(data, size);
  const uint64_t more = choice / 16;
  switch (choice % 9) {
    case 0:
      statistics(**trace, more);
      break;
    case 1:
      places(**trace);
      break;
    case 2:
      operators(**trace);
      break;
    case 3:
      stacks(**trace, more);
      break;
    case 4:
      findings(**trace);
      break;
    case 5:
      comparison(**trace, more);
      break;
    case 6:
      pieces(*trace, more);
      break;
    case 7:
      ranks(*trace, file.write(data, size));
      break;
    default:
      page(*trace, more);
  }
  return 0;
}
