// `tacho stats FILE`: statistics per kernel, API call, copy direction, marker or domain.
#include "analysis/stats.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <span>

#include "analysis/stacks.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/open_trace.h"
#include "format/format.h"
#include "report/table.h"

namespace tacho::cli {
namespace {

report::Table exact_table(std::span<const analysis::StatRow> rows, bool grouped, bool bytes) {
  report::Table table;
  table.columns = {{"Name"},       {"Calls"}, {"TotalDurationNs"}, {"AverageNs"},
                   {"Percentage"}, {"MinNs"}, {"MaxNs"},           {"StdDev"}};
  if (grouped) table.columns.push_back({"Group"});
  if (bytes) table.columns.push_back({"Bytes"});
  for (const analysis::StatRow& row : rows) {
    const bool timed = row.count > row.unknown;
    const auto whole = [&](int64_t value) { return timed ? report::Cell(value) : report::Cell(); };
    const auto real = [&](double value) { return timed ? report::Cell(value) : report::Cell(); };
    table.rows.push_back({row.name, row.count, whole(row.total), real(row.mean), real(row.percent),
                          whole(row.min), whole(row.max), real(row.stddev)});
    if (grouped) table.rows.back().emplace_back(row.group);
    if (bytes) table.rows.back().emplace_back(row.bytes);
  }
  return table;
}

report::Table readable_table(std::span<const analysis::StatRow> rows, bool grouped, bool bytes) {
  report::Table table;
  table.columns = {{"Time", report::Align::kRight},  {"%", report::Align::kRight, 1},
                   {"Calls", report::Align::kRight}, {"Mean", report::Align::kRight},
                   {"Min", report::Align::kRight},   {"Max", report::Align::kRight},
                   {"StdDev", report::Align::kRight}};
  if (bytes) {
    table.columns.push_back({"Bytes", report::Align::kRight});
    table.columns.push_back({"GB/s", report::Align::kRight, 2});
  }
  if (grouped) table.columns.push_back({"Group"});
  table.columns.push_back({"Name", report::Align::kLeft, -1, true});
  for (const analysis::StatRow& row : rows) {
    const bool timed = row.count > row.unknown;
    const auto time = [&](double value) {
      return timed ? report::Cell(report::format_duration(value)) : report::Cell();
    };
    std::vector<report::Cell> cells = {time(static_cast<double>(row.total)),
                                       row.percent,
                                       row.count,
                                       time(row.mean),
                                       time(static_cast<double>(row.min)),
                                       time(static_cast<double>(row.max)),
                                       time(row.stddev)};
    if (bytes) {
      cells.emplace_back(report::format_bytes(static_cast<double>(row.bytes)));
      cells.emplace_back(row.total > 0
                             ? report::Cell(static_cast<double>(row.bytes) / static_cast<double>(row.total))
                             : report::Cell());
    }
    if (grouped) cells.emplace_back(row.group);
    cells.emplace_back(row.name);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// ---- call stacks

std::string place_of(const analysis::StackFrame& frame) {
  if (!frame.file.empty()) return frame.line > 0 ? fmt::format("{}:{}", frame.file, frame.line) : frame.file;
  return frame.module;
}

report::Table exact_stacks(const std::vector<analysis::StackRow>& rows, analysis::StackBy by) {
  report::Table table;
  table.columns = {{"Name"},       {"Samples"}, {"SelfNs"}, {"TotalNs"}, {"GpuSelfNs"},
                   {"GpuTotalNs"}, {"Kind"},    {"File"},   {"Line"},    {"Module"}};
  for (const analysis::StackRow& row : rows)
    table.rows.push_back(
        {by == analysis::StackBy::kStack ? row.stack : row.frame.name, row.samples, row.self_ns, row.total_ns,
         row.gpu_self_ns, row.gpu_ns, std::string(analysis::to_string(row.frame.part)), row.frame.file,
         row.frame.line > 0 ? report::Cell(row.frame.line) : report::Cell(), row.frame.module});
  return table;
}

report::Table readable_stacks(const std::vector<analysis::StackRow>& rows, const analysis::StackTree& tree,
                              analysis::StackBy by) {
  report::Table table;
  const bool host = tree.host_ns > 0, gpu = tree.gpu_ns > 0, stack = by == analysis::StackBy::kStack;
  if (host) {
    table.columns.push_back({"Self", report::Align::kRight});
    table.columns.push_back({"%", report::Align::kRight, 1});
    if (!stack) {
      table.columns.push_back({"Total", report::Align::kRight});
      table.columns.push_back({"%", report::Align::kRight, 1});
    }
  }
  if (gpu) {
    table.columns.push_back({stack ? "GPU" : "GPU self", report::Align::kRight});
    if (!stack) table.columns.push_back({"GPU total", report::Align::kRight});
    table.columns.push_back({"%", report::Align::kRight, 1});
  }
  table.columns.push_back({stack ? "Stack" : "Function", report::Align::kLeft, -1, true});
  if (!stack) table.columns.push_back({"Where", report::Align::kLeft, -1, true});
  const auto time = [](int64_t ns) {
    return ns > 0 ? report::Cell(report::format_duration(static_cast<double>(ns))) : report::Cell();
  };
  const auto share = [](int64_t ns, int64_t of) {
    return of > 0 && ns > 0 ? report::Cell(100.0 * static_cast<double>(ns) / static_cast<double>(of))
                            : report::Cell();
  };
  for (const analysis::StackRow& row : rows) {
    std::vector<report::Cell> cells;
    if (host) {
      cells.push_back(time(row.self_ns));
      cells.push_back(share(row.self_ns, tree.host_ns));
      if (!stack) {
        cells.push_back(time(row.total_ns));
        cells.push_back(share(row.total_ns, tree.host_ns));
      }
    }
    if (gpu) {
      cells.push_back(time(row.gpu_self_ns));
      if (!stack) cells.push_back(time(row.gpu_ns));
      cells.push_back(share(stack ? row.gpu_self_ns : row.gpu_ns, tree.gpu_ns));
    }
    cells.emplace_back(stack ? row.stack : row.frame.name);
    if (!stack) cells.emplace_back(place_of(row.frame));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::string attribution_sentence(const analysis::StackTree& tree) {
  if (tree.gpu_ns <= 0) return {};
  const auto share = [&](int64_t ns) {
    return 100.0 * static_cast<double>(ns) / static_cast<double>(tree.gpu_ns);
  };
  return fmt::format(
      "device time {}: {:.1f} % by the stack read at its launch, {:.1f} % by the nearest sample of the "
      "thread, {:.1f} % without a stack",
      report::format_duration(static_cast<double>(tree.gpu_ns)), share(tree.gpu_exact_ns),
      share(tree.gpu_near_ns), share(tree.gpu_unknown_ns));
}

namespace {

int stack_stats(const std::string& file, const std::string& by_text, const std::string& format, size_t top,
                analysis::StackOptions options) {
  const auto by = by_text == "stack"      ? analysis::StackBy::kStack
                  : by_text == "function" ? analysis::StackBy::kFunction
                                          : analysis::StackBy::kLine;
  options.lines = by != analysis::StackBy::kFunction;
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  const auto tree = analysis::stack_tree(**trace, options);
  if (!tree) return complain(kBadInput, tree.error().message);
  std::vector<analysis::StackRow> rows = analysis::stack_rows(*tree, by);
  if (top != 0 && rows.size() > top) rows.resize(top);
  std::string out;
  if (format == "csv") {
    out = report::to_csv(exact_stacks(rows, by));
  } else if (format == "json") {
    JsonWriter writer(out);
    report::to_json(exact_stacks(rows, by), writer);
    out += "\n";
  } else if (rows.empty()) {
    out = fmt::format(
        "{}: no call stacks; record them with tacho sys sample, or tacho trace --sampler timer\n", file);
  } else {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    report::TextStyle style;
    style.width = screen.terminal ? screen.width : 0;
    style.colour = screen.colour;
    out = report::to_text(readable_stacks(rows, *tree, by), style);
    if (tree->samples > 0)
      out += fmt::format("\n{} samples of {}: {}\n", tree->samples,
                         tree->wall ? tree->cpu ? "CPU and wall time" : "wall time" : "CPU time",
                         report::format_duration(static_cast<double>(tree->host_ns)));
    if (const std::string sentence = attribution_sentence(*tree); !sentence.empty()) out += sentence + "\n";
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  for (const std::string& sentence : analysis::loss_sentences(**trace)) complain(0, sentence);
  return kOk;
}

// The first `count` rows, a page at a time: there may be millions. Every page of text has a header, and
// columns as wide as the page needs.
void print_rows(const analysis::StatTable& table, size_t count, bool bytes, const std::string& format,
                const std::string& nothing) {
  constexpr size_t kPage = 10'000;
  std::string out;
  JsonWriter writer(out);
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  report::TextStyle style;
  style.width = screen.terminal ? screen.width : 0;
  style.colour = screen.colour;
  std::vector<analysis::StatRow> page;
  size_t done = 0;
  do {
    const size_t first = done;
    page.clear();
    for (; done < count && page.size() < kPage; ++done) page.push_back(table.row(done));
    if (format == "csv") {
      out += report::to_csv(exact_table(page, table.grouped(), bytes), first == 0);
    } else if (format == "json") {
      const report::Table part = exact_table(page, table.grouped(), bytes);
      if (first == 0) report::begin_json(part, writer);
      report::rows_json(part, writer);
      if (done == count) {
        report::end_json(writer);
        out += "\n";
      }
    } else {
      out += count == 0 ? nothing : report::to_text(readable_table(page, table.grouped(), bytes), style);
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
    out.clear();
  } while (done < count);
}

}  // namespace

int run_stats(int argc, char** argv) {
  CLI::App app("Statistics of a trace: calls, total, mean, min, max per name.", "tacho stats");
  std::string file, by_text = "kernel", format = "text";
  analysis::StatOptions options;
  size_t top = 0;
  app.add_option("file", file, "trace")->required();
  app.add_option("--by", by_text,
                 "kernel, api, copy, fill, marker, domain, sync, overhead, allocation; call stacks: stack, "
                 "function, line")
      ->capture_default_str();
  app.add_option("--output-format", format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  app.add_option("--top", top, "only the first N rows; 0 = all")->capture_default_str();
  app.add_flag("-M,--mangled-kernels", options.mangled, "kernel names as the runtime gives them");
  app.add_flag("-T,--truncate-kernels", options.truncate, "kernel names without arguments and templates");
  app.add_flag("--shapes", options.per_shape, "kernels: one row per launch shape");
  analysis::StackOptions stack_options;
  app.add_flag("--startup", stack_options.startup,
               "call stacks: keep what lies outside of the outermost Python frame");
  app.add_flag("--threads", stack_options.threads, "call stacks: tell threads apart");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return complain(kBadInput, option_error(app, error));
  }
  if (by_text == "stack" || by_text == "function" || by_text == "line")
    return stack_stats(file, by_text, format, top, stack_options);
  const auto by = analysis::parse_by(by_text);
  if (!by) return complain(kBadInput, by.error().message);
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  const auto table = analysis::StatTable::make(**trace, *by, options);
  if (!table) return complain(kBadInput, table.error().message);
  const bool bytes = *by == analysis::By::kCopy || *by == analysis::By::kFill;
  const size_t count = top != 0 ? std::min(top, table->size()) : table->size();
  print_rows(*table, count, bytes, format,
             count == 0 ? fmt::format("{}: no {} records\n", file, by_text) : std::string());
  for (const std::string& sentence : analysis::loss_sentences(**trace)) complain(0, sentence);
  return kOk;
}

}  // namespace tacho::cli
