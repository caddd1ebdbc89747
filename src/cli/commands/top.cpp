// `tacho top FILE`: GPU operations by total time; `tacho busy FILE`: how busy each GPU was. .rpd in place.
#include "analysis/top.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/stats.h"
#include "cli/command.h"
#include "cli/files/convert.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "cli/shared/suggest.h"
#include "format/format.h"
#include "query/dialect/rpd_file.h"
#include "report/answer.h"

namespace tacho::cli {
namespace {

using report::Answer;
using report::Cell;
using report::Unit;

struct TopRow {
  std::string name;
  int64_t calls;
  int64_t timed;  // of them, with a known duration
  int64_t total;  // ns
};
// Gives the rows one by one, longest first; false when there are no more.
using TopSource = std::function<bool(TopRow&)>;

// Merges several sorted tables of statistics into one.
TopSource merged(std::vector<std::pair<std::string, analysis::StatTable>>&& tables) {
  struct Head {
    std::string prefix;
    analysis::StatTable table;
    size_t next = 0;
    bool loaded = false;
    analysis::StatRow row{};
  };
  const auto heads = std::make_shared<std::vector<Head>>();
  for (auto& [prefix, table] : tables) heads->push_back({prefix, std::move(table)});
  return [heads](TopRow& row) {
    Head* best = nullptr;
    for (Head& head : *heads) {
      if (!head.loaded && head.next < head.table.size()) {
        head.row = head.table.row(head.next++);
        head.row.name = head.prefix + head.row.name;
        head.loaded = true;
      }
      if (!head.loaded) continue;
      if (best == nullptr || head.row.total > best->row.total ||
          (head.row.total == best->row.total && head.row.name < best->row.name))
        best = &head;
    }
    if (best == nullptr) return false;
    best->loaded = false;
    row = {best->row.name, best->row.count, best->row.count - best->row.unknown, best->row.total};
    return true;
  };
}

Answer top_answer(TopSource source, double total, bool kernels, const std::string& file) {
  Answer answer;
  answer.columns = {{"Name", "Name"},
                    {"Calls", "Calls", Unit::kCount},
                    {"TotalDurationNs", "Time", Unit::kNs},
                    {"AverageNs", "Mean", Unit::kNs},
                    {"Percentage", kernels ? "% of kernels" : "% of work", Unit::kPercent}};
  answer.shown = {2, 4, 1, 3, 0};
  answer.when_empty = file + ": no GPU operations";
  answer.next = [source = std::move(source), total](std::vector<Cell>& cells) {
    TopRow row;
    if (!source(row)) return false;
    const double ns = static_cast<double>(row.total);
    // Without a known duration the sum and the mean are empty.
    cells = {row.name, row.calls, row.timed > 0 ? Cell(row.total) : Cell(),
             row.timed > 0 ? Cell(ns / static_cast<double>(row.timed)) : Cell(), total > 0 ? ns / total * 100.0 : 0.0};
    return true;
  };
  return answer;
}

std::string unusable_times(int64_t count) {
  return fmt::format("{} operation{} left out: {} times are no times", count, count == 1 ? " is" : "s are",
                     count == 1 ? "its" : "their");
}
std::string disordered_times(int64_t count) {
  return count == 1 ? std::string("1 operation ends before it starts: its duration is not known")
                    : fmt::format("{} operations end before they start: their durations are not known", count);
}
std::string unmeasured_times(int64_t count) {
  return count == 1 ? std::string("1 operation was not measured: it has no times")
                    : fmt::format("{} operations were not measured: they have no times", count);
}

}  // namespace

int run_top(int argc, char** argv) {
  CommandOptions app("GPU operations (kernels, copies, fills) by total time.", "tacho top");
  app.examples("  tacho top app.tacho\n"
               "  tacho top app.tacho --kernels --top 10");
  std::string file;
  size_t most = 0;
  bool kernels = false;
  analysis::StatOptions options;
  std::string format = "text";
  app.add_option("file", file, "trace of any format that tacho reads").required();
  app.add_option("--top", most, "only the first N rows; 0 = all").capture_default_str();
  app.add_flag("--kernels", kernels, "kernels only");
  app.add_flag("-M,--mangled-kernels", options.mangled, "kernel names as the runtime gives them");
  app.add_flag("-T,--truncate-kernels", options.truncate, "kernel names without arguments and templates");
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;

  TopSource source;
  double total = 0;
  std::vector<std::string> remarks;
  std::shared_ptr<const trace::Trace> trace;  // must outlive its tables
  if (is_rpd(file) && !kernels && !options.truncate) {
    auto opened = sqlite::Database::open(file);
    if (!opened) return complain(kBadInput, opened.error().message);
    const auto top = query::rpd_top(std::make_shared<const sqlite::Database>(std::move(*opened)), false);
    if (!top) return complain(kBadInput, top.error().message);
    total = static_cast<double>(top->total);
    source = [rows = top->rows, at = size_t{0}, scratch = std::string()](TopRow& row) mutable {
      if (at >= rows->size()) return false;
      const query::NamedSums::Row next = rows->row(at++);
      row = {std::string(rows->name(next.code, scratch)), next.calls, next.timed, next.total};
      return true;
    };
    if (top->unusable > 0) remarks.push_back(unusable_times(top->unusable));
    if (top->disordered > 0) remarks.push_back(disordered_times(top->disordered));
    if (top->unmeasured > 0) remarks.push_back(unmeasured_times(top->unmeasured));
    if (top->duplicates > 0)
      remarks.push_back(fmt::format("rpd.top counts {} operation{} less: upstream's view drops those that equal "
                                    "another one in name, start and end",
                                    top->duplicates, top->duplicates == 1 ? "" : "s"));
  } else {
    const auto opened = open_events(file);
    if (!opened) return complain(kBadInput, opened.error().message);
    trace = *opened;
    std::vector<std::pair<std::string, analysis::StatTable>> tables;
    options.sizes = false;
    for (const analysis::By by : {analysis::By::kKernel, analysis::By::kCopy, analysis::By::kFill}) {
      if (kernels && by != analysis::By::kKernel) continue;
      auto table = analysis::StatTable::make(*trace, by, options);
      if (!table) return complain(kBadInput, table.error().message);
      total += static_cast<double>(table->total());
      tables.emplace_back(by == analysis::By::kCopy ? "copy " : "", std::move(*table));
    }
    source = merged(std::move(tables));
    remarks = analysis::loss_sentences(*trace);
  }
  Answer answer = top_answer(std::move(source), total, kernels, file);
  answer.remarks = std::move(remarks);
  report::show(answer, {.face = report::face_of(format), .most = most});
  return kOk;
}

int run_busy(int argc, char** argv) {
  CommandOptions app("How busy each GPU was: time in which at least one kernel, copy or fill ran.", "tacho busy");
  app.examples("  tacho busy app.tacho");
  std::string file;
  std::string format = "text";
  app.add_option("file", file, "trace of any format that tacho reads").required();
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;

  struct Row {
    int64_t gpu;
    std::string name;
    int64_t busy, sum;
    walk::WorkOwner owner = {};
  };
  bool several_owners = false;
  std::vector<Row> rows;
  int64_t first = INT64_MAX, last = INT64_MIN;
  std::vector<std::string> remarks;
  if (is_rpd(file)) {
    const auto database = sqlite::Database::open(file);
    if (!database) return complain(kBadInput, database.error().message);
    const auto busy = query::rpd_busy(*database, false);
    if (!busy) return complain(kBadInput, busy.error().message);
    for (const query::RpdBusy::Row& row : busy->rows)
      rows.push_back({row.gpu, fmt::format("GPU {}", row.gpu), row.busy, row.sum});
    first = busy->first;
    last = busy->last;
    if (busy->unusable > 0) remarks.push_back(unusable_times(busy->unusable));
    if (busy->disordered > 0) remarks.push_back(disordered_times(busy->disordered));
    if (busy->unmeasured > 0) remarks.push_back(unmeasured_times(busy->unmeasured));
  } else {
    const auto trace = open_events(file);
    if (!trace) return complain(kBadInput, trace.error().message);
    several_owners = walk::has_several_owners(**trace);
    const auto loads = analysis::device_load(**trace);
    if (!loads) return complain(kBadInput, loads.error().message);
    for (const analysis::DeviceLoad& load : *loads) {
      rows.push_back({load.index, load.name, load.busy, load.sum, load.owner});
      first = std::min(first, load.first);
      last = std::max(last, load.last);
    }
    remarks = analysis::loss_sentences(**trace);
  }
  Answer answer;
  answer.columns = {
      {"Gpu", "GPU", Unit::kCount},      {"BusyNs", "Busy", Unit::kNs}, {"WallNs", "Span of all", Unit::kNs},
      {"Busy", "% of it", Unit::kShare}, {"SumNs", "", Unit::kNs},      {"Name", "Name"}};
  if (several_owners) {
    answer.columns.push_back({"Host", "Host"});
    answer.columns.push_back({"Rank", "Rank", Unit::kCount});
    answer.shown = {0, 1, 2, 3, 6, 7, 5};
  }
  answer.when_empty = file + ": no GPU operations";
  const int64_t wall = rows.empty() ? 0 : last - first;
  for (const Row& row : rows) {
    answer.rows.push_back({row.gpu, row.busy, wall,
                           wall > 0 ? Cell(static_cast<double>(row.busy) / static_cast<double>(wall)) : Cell(), row.sum,
                           row.name});
    if (several_owners) {
      answer.rows.back().push_back(row.owner.host());
      answer.rows.back().push_back(row.owner.rank() == event::kUnknown ? Cell() : Cell(row.owner.rank()));
    }
    if (row.sum != row.busy && wall > 0)
      remarks.push_back(
          fmt::format("GPU {}: rpd.busy says {} more: upstream's view counts operations that overlap twice", row.gpu,
                      report::format_duration(static_cast<double>(row.sum - row.busy))));
  }
  answer.remarks = std::move(remarks);
  report::show(answer, {.face = report::face_of(format)});
  return kOk;
}

}  // namespace tacho::cli
