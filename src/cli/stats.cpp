// `tacho stats FILE`: statistics per kernel, API call, copy direction, marker or domain.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cstdio>

#include "analysis/stats.h"
#include "cli/command.h"
#include "cli/run_target.h"
#include "format/format.h"
#include "report/table.h"

namespace tacho::cli {
namespace {

report::Table exact_table(const std::vector<analysis::StatRow>& rows, bool grouped, bool bytes) {
  report::Table table;
  table.columns = {{"Name"}, {"Calls"}, {"TotalDurationNs"}, {"AverageNs"}, {"Percentage"}, {"MinNs"}, {"MaxNs"}, {"StdDev"}};
  if (grouped) table.columns.push_back({"Group"});
  if (bytes) table.columns.push_back({"Bytes"});
  for (const analysis::StatRow& row : rows) {
    const bool timed = row.count > row.unknown;
    const auto whole = [&](int64_t value) { return timed ? report::Cell(value) : report::Cell(); };
    const auto real = [&](double value) { return timed ? report::Cell(value) : report::Cell(); };
    table.rows.push_back({row.name, row.count, whole(row.total), real(row.mean), real(row.percent), whole(row.min),
                          whole(row.max), real(row.stddev)});
    if (grouped) table.rows.back().emplace_back(row.group);
    if (bytes) table.rows.back().emplace_back(row.bytes);
  }
  return table;
}

report::Table readable_table(const std::vector<analysis::StatRow>& rows, bool grouped, bool bytes) {
  report::Table table;
  table.columns = {{"Time", report::Align::Right}, {"%", report::Align::Right, 1}, {"Calls", report::Align::Right},
                   {"Mean", report::Align::Right}, {"Min", report::Align::Right}, {"Max", report::Align::Right},
                   {"StdDev", report::Align::Right}};
  if (bytes) {
    table.columns.push_back({"Bytes", report::Align::Right});
    table.columns.push_back({"GB/s", report::Align::Right, 2});
  }
  if (grouped) table.columns.push_back({"Group"});
  table.columns.push_back({"Name", report::Align::Left, -1, true});
  for (const analysis::StatRow& row : rows) {
    const bool timed = row.count > row.unknown;
    const auto time = [&](double value) { return timed ? report::Cell(report::format_duration(value)) : report::Cell(); };
    std::vector<report::Cell> cells = {time(static_cast<double>(row.total)), row.percent, row.count, time(row.mean),
                                       time(static_cast<double>(row.min)), time(static_cast<double>(row.max)), time(row.stddev)};
    if (bytes) {
      cells.emplace_back(report::format_bytes(static_cast<double>(row.bytes)));
      cells.emplace_back(row.total > 0 ? report::Cell(static_cast<double>(row.bytes) / static_cast<double>(row.total)) : report::Cell());
    }
    if (grouped) cells.emplace_back(row.group);
    cells.emplace_back(row.name);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

int run_stats(int argc, char** argv) {
  CLI::App app("Statistics of a trace: calls, total, mean, min, max per name.", "tacho stats");
  std::string file, by_text = "kernel", format = "text";
  analysis::StatOptions options;
  size_t top = 0;
  app.add_option("file", file, "trace")->required();
  app.add_option("--by", by_text, "kernel, api, copy, fill, marker, domain, sync, overhead or allocation")->capture_default_str();
  app.add_option("--output-format", format, "text, json or csv")->check(CLI::IsMember({"text", "json", "csv"}))->capture_default_str();
  app.add_option("--top", top, "only the first N rows; 0 = all")->capture_default_str();
  app.add_flag("-M,--mangled-kernels", options.mangled, "kernel names as the runtime gives them");
  app.add_flag("-T,--truncate-kernels", options.truncate, "kernel names without arguments and templates");
  app.add_flag("--shapes", options.per_shape, "kernels: one row per launch shape");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return complain(kBadInput, option_error(app, error));
  }
  const auto by = analysis::parse_by(by_text);
  if (!by) return complain(kBadInput, by.error().message);
  const auto trace = format::open_any(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  auto rows = analysis::statistics(**trace, *by, options);
  if (!rows) return complain(kBadInput, rows.error().message);
  if (top != 0 && rows->size() > top) rows->resize(top);
  const bool grouped = std::any_of(rows->begin(), rows->end(), [](const auto& row) { return !row.group.empty(); });
  const bool bytes = *by == analysis::By::kCopy || *by == analysis::By::kFill;
  std::string out;
  if (format == "csv") {
    out = report::to_csv(exact_table(*rows, grouped, bytes));
  } else if (format == "json") {
    report::JsonWriter writer(out);
    report::to_json(exact_table(*rows, grouped, bytes), writer);
    out += "\n";
  } else if (rows->empty()) {
    out = fmt::format("{}: no {} records\n", file, by_text);
  } else {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    report::TextStyle style;
    style.width = screen.terminal ? screen.width : 0;
    style.colour = screen.colour;
    out = report::to_text(readable_table(*rows, grouped, bytes), style);
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  for (const std::string& sentence : analysis::loss_sentences(**trace)) complain(0, sentence);
  return kOk;
}

}  // namespace tacho::cli
