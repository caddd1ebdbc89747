// `tacho top FILE`: GPU operations by total time; `tacho busy FILE`: how busy each GPU was. .rpd files are read in place.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

#include "analysis/top.h"
#include "cli/command.h"
#include "cli/convert.h"
#include "cli/run_target.h"
#include "cli/suggest.h"
#include "format/format.h"
#include "query/rpd_file.h"
#include "report/table.h"

namespace tacho::cli {
namespace {

struct Output {
  std::string format = "text";
  void options(CLI::App& app) {
    app.add_option("--output-format", format, "text, json or csv")->check(CLI::IsMember({"text", "json", "csv"}))->capture_default_str();
  }
  void print(const report::Table& readable, const report::Table& exact, const std::string& when_empty) const {
    std::string out;
    if (format == "csv") {
      out = report::to_csv(exact);
    } else if (format == "json") {
      report::JsonWriter writer(out);
      report::to_json(exact, writer);
      out += "\n";
    } else if (exact.rows.empty()) {
      out = when_empty + "\n";
    } else {
      const report::Screen screen = report::screen_of(STDOUT_FILENO);
      report::TextStyle style;
      style.width = screen.terminal ? screen.width : 0;
      style.colour = screen.colour;
      out = report::to_text(readable, style);
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
};

int parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return complain(kBadInput, option_error(app, error));
  }
  return -1;
}

struct TopRow {
  std::string name;
  int64_t calls, total;
  double percent;
};

std::string unusable_times(int64_t count) {
  return fmt::format("{} operation{} left out: {} times are no times, or end before they start", count, count == 1 ? " is" : "s are", count == 1 ? "its" : "their");
}

}  // namespace

int run_top(int argc, char** argv) {
  CLI::App app("GPU operations (kernels, copies, fills) by total time.", "tacho top");
  std::string file;
  size_t most = 0;
  bool kernels = false;
  analysis::StatOptions options;
  Output output;
  app.add_option("file", file, "trace of any format that tacho reads")->required();
  app.add_option("--top", most, "only the first N rows; 0 = all")->capture_default_str();
  app.add_flag("--kernels", kernels, "kernels only");
  app.add_flag("-M,--mangled-kernels", options.mangled, "kernel names as the runtime gives them");
  app.add_flag("-T,--truncate-kernels", options.truncate, "kernel names without arguments and templates");
  output.options(app);
  if (const int code = parse(app, argc, argv); code >= 0) return code;

  std::vector<TopRow> rows;
  std::vector<std::string> remarks;
  if (is_rpd(file) && !kernels && !options.truncate) {
    const auto database = sqlite::Database::open(file);
    if (!database) return complain(kBadInput, database.error().message);
    const auto top = query::rpd_top(*database, false);
    if (!top) return complain(kBadInput, top.error().message);
    for (const query::RpdTop::Row& row : top->rows)
      rows.push_back({row.name, row.calls, row.total, top->total > 0 ? static_cast<double>(row.total) / static_cast<double>(top->total) * 100.0 : 0.0});
    std::sort(rows.begin(), rows.end(), [](const TopRow& a, const TopRow& b) { return a.total != b.total ? a.total > b.total : a.name < b.name; });
    if (top->unusable > 0) remarks.push_back(unusable_times(top->unusable));
    if (top->duplicates > 0)
      remarks.push_back(fmt::format("rpd.top counts {} operation{} less: upstream's view drops those that equal another one in name, start and end",
                                    top->duplicates, top->duplicates == 1 ? "" : "s"));
  } else {
    const auto trace = format::open_any(file);
    if (!trace) return complain(kBadInput, trace.error().message);
    const auto top = kernels ? analysis::statistics(**trace, analysis::By::kKernel, options) : analysis::top(**trace, options);
    if (!top) return complain(kBadInput, top.error().message);
    for (const analysis::StatRow& row : *top) rows.push_back({row.name, row.count, row.total, row.percent});
    remarks = analysis::loss_sentences(**trace);
  }
  if (most != 0 && rows.size() > most) rows.resize(most);
  report::Table readable, exact;
  readable.columns = {{"Time", report::Align::Right}, {"%", report::Align::Right, 1}, {"Calls", report::Align::Right}, {"Mean", report::Align::Right},
                      {"Name", report::Align::Left, -1, true}};
  exact.columns = {{"Name"}, {"Calls"}, {"TotalDurationNs"}, {"AverageNs"}, {"Percentage"}};
  for (const TopRow& row : rows) {
    const double mean = row.calls > 0 ? static_cast<double>(row.total) / static_cast<double>(row.calls) : 0.0;
    readable.rows.push_back({report::format_duration(static_cast<double>(row.total)), row.percent, row.calls, report::format_duration(mean), row.name});
    exact.rows.push_back({row.name, row.calls, row.total, mean, row.percent});
  }
  output.print(readable, exact, file + ": no GPU operations");
  for (const std::string& sentence : remarks) complain(0, sentence);
  return kOk;
}

int run_busy(int argc, char** argv) {
  CLI::App app("How busy each GPU was: time in which at least one kernel, copy or fill ran.", "tacho busy");
  std::string file;
  Output output;
  app.add_option("file", file, "trace of any format that tacho reads")->required();
  output.options(app);
  if (const int code = parse(app, argc, argv); code >= 0) return code;

  struct Row {
    int64_t gpu;
    std::string name;
    int64_t busy, sum;
  };
  std::vector<Row> rows;
  int64_t first = INT64_MAX, last = INT64_MIN;
  std::vector<std::string> remarks;
  if (is_rpd(file)) {
    const auto database = sqlite::Database::open(file);
    if (!database) return complain(kBadInput, database.error().message);
    const auto busy = query::rpd_busy(*database, false);
    if (!busy) return complain(kBadInput, busy.error().message);
    for (const query::RpdBusy::Row& row : busy->rows) rows.push_back({row.gpu, fmt::format("GPU {}", row.gpu), row.busy, row.sum});
    first = busy->first;
    last = busy->last;
    if (busy->unusable > 0) remarks.push_back(unusable_times(busy->unusable));
  } else {
    const auto trace = format::open_any(file);
    if (!trace) return complain(kBadInput, trace.error().message);
    const auto loads = analysis::device_load(**trace);
    if (!loads) return complain(kBadInput, loads.error().message);
    for (const analysis::DeviceLoad& load : *loads) {
      rows.push_back({load.index, load.name, load.busy, load.sum});
      first = std::min(first, load.first);
      last = std::max(last, load.last);
    }
    remarks = analysis::loss_sentences(**trace);
  }
  report::Table readable, exact;
  readable.columns = {{"GPU", report::Align::Right}, {"Busy", report::Align::Right}, {"of", report::Align::Right}, {"%", report::Align::Right, 2}, {"Name", report::Align::Left, -1, true}};
  exact.columns = {{"Gpu"}, {"BusyNs"}, {"WallNs"}, {"Busy"}, {"SumNs"}, {"Name"}};
  const int64_t wall = rows.empty() ? 0 : last - first;
  for (const Row& row : rows) {
    const report::Cell share = wall > 0 ? report::Cell(static_cast<double>(row.busy) / static_cast<double>(wall)) : report::Cell();
    readable.rows.push_back({row.gpu, report::format_duration(static_cast<double>(row.busy)), report::format_duration(static_cast<double>(wall)),
                             wall > 0 ? report::Cell(static_cast<double>(row.busy) / static_cast<double>(wall) * 100.0) : report::Cell(), row.name});
    exact.rows.push_back({row.gpu, row.busy, wall, share, row.sum, row.name});
    if (row.sum != row.busy && wall > 0)
      remarks.push_back(fmt::format("GPU {}: rpd.busy says {} ns, not {} ns: upstream's view counts operations that overlap twice", row.gpu, row.sum, row.busy));
  }
  output.print(readable, exact, file + ": no GPU operations");
  for (const std::string& sentence : remarks) complain(0, sentence);
  return kOk;
}

}  // namespace tacho::cli
