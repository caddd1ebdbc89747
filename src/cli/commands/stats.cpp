// `tacho stats FILE`: statistics per kernel, API call, copy direction, marker or domain.
#include "analysis/stats.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "analysis/operators/operators.h"
#include "analysis/operators/places.h"
#include "analysis/stacks/own_code.h"
#include "analysis/stacks/stacks.h"
#include "base/saturating.h"
#include "base/text/json_writer.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "format/format.h"
#include "report/output.h"
#include "report/table.h"
#include "walk/call_index.h"

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
    table.rows.push_back({row.name, row.count, whole(row.total), real(row.mean), real(row.percent), whole(row.min),
                          whole(row.max), real(row.stddev)});
    if (grouped) table.rows.back().emplace_back(row.group);
    if (bytes) table.rows.back().push_back(row.sized > 0 ? report::Cell(row.bytes) : report::Cell());
  }
  return table;
}

report::Table readable_table(std::span<const analysis::StatRow> rows, bool grouped, bool bytes) {
  report::Table table;
  table.columns = {{"Time", report::Align::kRight},  {"%", report::Align::kRight, 1}, {"Calls", report::Align::kRight},
                   {"Mean", report::Align::kRight},  {"Min", report::Align::kRight},  {"Max", report::Align::kRight},
                   {"StdDev", report::Align::kRight}};
  if (bytes) {
    table.columns.push_back({"Bytes", report::Align::kRight});
    table.columns.push_back({"GB/s", report::Align::kRight, 2});
  }
  // On narrow terminals, keeps the columns that say most.
  table.columns[4].leave_out = 1;
  table.columns[5].leave_out = 2;
  table.columns[6].leave_out = 3;
  if (grouped) {
    table.columns.push_back({"Group"});
    table.columns.back().leave_out = 4;
  }
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
      cells.push_back(row.sized > 0 ? report::Cell(report::format_bytes(static_cast<double>(row.bytes)))
                                    : report::Cell());
      cells.push_back(row.rate() ? report::Cell(*row.rate()) : report::Cell());
    }
    if (grouped) cells.emplace_back(row.group);
    cells.emplace_back(row.name);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// Call stacks

report::Table exact_stacks(const std::vector<analysis::StackRow>& rows, analysis::StackBy by) {
  report::Table table;
  table.columns = {{"Name"},       {"Samples"}, {"SelfNs"}, {"TotalNs"}, {"GpuSelfNs"},
                   {"GpuTotalNs"}, {"Kind"},    {"File"},   {"Line"},    {"Module"}};
  for (const analysis::StackRow& row : rows)
    table.rows.push_back({by == analysis::StackBy::kStack ? row.stack : row.frame.name, row.samples, row.self_ns,
                          row.total_ns, row.gpu_self_ns, row.gpu_ns, std::string(analysis::to_string(row.frame.part)),
                          row.frame.file, row.frame.line > 0 ? report::Cell(row.frame.line) : report::Cell(),
                          row.frame.module});
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
      table.columns.back().leave_out = 2;
      table.columns.push_back({"%", report::Align::kRight, 1});
      table.columns.back().leave_out = 3;
    }
  }
  if (gpu) {
    table.columns.push_back({stack ? "GPU" : "GPU self", report::Align::kRight});
    table.columns.push_back({"%", report::Align::kRight, 1});
    if (!stack) {
      table.columns.push_back({"GPU total", report::Align::kRight});
      table.columns.back().leave_out = 1;
    }
  }
  table.columns.push_back({stack ? "Stack" : "Function", report::Align::kLeft, -1, true});
  if (stack) table.columns.back().cut = report::Cut::kStack;
  if (!stack) {
    table.columns.push_back({"Where", report::Align::kLeft, -1, true});
    table.columns.back().cut = report::Cut::kPath;
  }
  const auto time = [](int64_t ns) {
    return ns > 0 ? report::Cell(report::format_duration(static_cast<double>(ns))) : report::Cell();
  };
  const auto share = [](int64_t ns, int64_t of) {
    return of > 0 && ns > 0 ? report::Cell(100.0 * static_cast<double>(ns) / static_cast<double>(of)) : report::Cell();
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
      cells.push_back(share(row.gpu_self_ns, tree.gpu_ns));
      if (!stack) cells.push_back(time(row.gpu_ns));
    }
    cells.emplace_back(stack ? row.stack : row.frame.name);
    if (!stack) cells.emplace_back(analysis::place_text(row.frame));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::string attribution_sentence(const analysis::StackTree& tree) {
  if (tree.gpu_ns <= 0) return {};
  const auto share = [&](int64_t ns) { return 100.0 * static_cast<double>(ns) / static_cast<double>(tree.gpu_ns); };
  return fmt::format("device time {}: {:.1f} % by the stack read at its launch, {:.1f} % by the nearest sample of the "
                     "thread, {:.1f} % without a stack{}",
                     report::format_duration(static_cast<double>(tree.gpu_ns)), share(tree.gpu_exact_ns),
                     share(tree.gpu_near_ns), share(tree.gpu_unknown_ns),
                     tree.forgotten > 0 ? "; " + walk::forgotten_sentence(tree.forgotten) : std::string());
}

namespace {

// Which frames a table of call stacks shows.
enum class Code : uint8_t {
  kByFormat,  // own code as text, all in csv and json
  kOwn,
  kAll
};

// "Max, StdDev: wider terminal ..."
std::string left_out_sentence(const std::vector<std::string>& titles) {
  if (titles.empty()) return {};
  std::string names;
  for (auto title = titles.rbegin(); title != titles.rend(); ++title)
    if (*title != "%") names += (names.empty() ? "" : ", ") + *title;
  return fmt::format("{} left out: widen the terminal, or use --output-format csv", names);
}

int stack_stats(const std::string& file, const std::string& by_text, const std::string& format,
                std::optional<size_t> top, Code code, analysis::StackOptions options) {
  constexpr size_t kRows = 20;
  const auto by = by_text == "stack"      ? analysis::StackBy::kStack
                  : by_text == "function" ? analysis::StackBy::kFunction
                                          : analysis::StackBy::kLine;
  options.lines = by != analysis::StackBy::kFunction;
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  auto tree = analysis::stack_tree(**trace, options);
  if (!tree) return complain(kBadInput, tree.error().message);
  const bool text = format == "text";
  const bool wants_own = code == Code::kOwn || (code == Code::kByFormat && text);
  const analysis::OwnShare own = analysis::own_share(*tree);
  const bool filtered = wants_own && (own.host_ns > 0 || own.gpu_ns > 0);
  if (filtered) *tree = analysis::own_code(*tree);
  std::vector<analysis::StackRow> rows = analysis::stack_rows(*tree, by);
  // A line without time of its own only calls others; in text it would be a row of dashes.
  if (text && by == analysis::StackBy::kLine)
    std::erase_if(rows, [](const analysis::StackRow& row) { return row.self_ns == 0 && row.gpu_self_ns == 0; });
  const size_t all = rows.size(), most = top.value_or(text ? kRows : 0);
  if (most != 0 && all > most) rows.resize(most);
  std::string out;
  if (format == "csv") {
    out = report::to_csv(exact_stacks(rows, by));
  } else if (format == "json") {
    JsonWriter writer(out);
    report::to_json(exact_stacks(rows, by), writer);
    out += "\n";
  } else if (rows.empty()) {
    out = fmt::format("{}: no call stacks; record them with tacho sys sample, or tacho trace --sampler timer\n", file);
  } else {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    std::vector<std::string> left_out;
    report::TextStyle style;
    style.width = screen.terminal ? screen.width : 0;
    style.colour = screen.colour;
    style.left_out = &left_out;
    out = report::to_text(readable_stacks(rows, *tree, by), style) + "\n";
    const auto say = [&](const std::string& sentence) {
      if (!sentence.empty()) out += (screen.terminal ? report::wrapped(sentence, screen.width, 2) : sentence) + "\n";
    };
    if (rows.size() < all)
      say(fmt::format("The first {} of {} {}s; --top 0 shows all, --top N the first N.", rows.size(), all, by_text));
    if (filtered)
      say(fmt::format("Your own code only: time in libraries and the interpreter counts for the "
                      "{} that called them. --all-code shows every frame.",
                      by == analysis::StackBy::kLine ? "line" : "function"));
    else if (wants_own)
      say("No sample is in code of your own, so all code is shown.");
    say(left_out_sentence(left_out));
    if (tree->samples > 0)
      say(fmt::format("{} samples of {}: {}", tree->samples,
                      tree->wall ? tree->cpu ? "CPU and wall time" : "wall time" : "CPU time",
                      report::format_duration(static_cast<double>(tree->host_ns))));
    say(attribution_sentence(*tree));
  }
  report::put(out);
  for (const std::string& sentence : analysis::loss_sentences(**trace)) complain(0, sentence);
  return kOk;
}

// By place

report::Table exact_places(const std::vector<analysis::PlaceRow>& rows) {
  report::Table table;
  table.columns = {{"Name"},      {"Kernels"},  {"KernelNs"}, {"Copies"},  {"CopyNs"},
                   {"CopyBytes"}, {"ApiCalls"}, {"ApiNs"},    {"Samples"}, {"SampleNs"}};
  for (const analysis::PlaceRow& row : rows)
    table.rows.push_back({row.name, row.kernels, row.kernel_ns, row.copies, row.copy_ns, row.bytes, row.calls,
                          row.call_ns, row.samples, row.sample_ns});
  return table;
}

report::Table readable_places(const std::vector<analysis::PlaceRow>& rows) {
  report::Table table;
  const auto any = [&](int64_t analysis::PlaceRow::*member) {
    return std::any_of(rows.begin(), rows.end(), [&](const analysis::PlaceRow& row) { return row.*member > 0; });
  };
  const bool kernels = any(&analysis::PlaceRow::kernels), copies = any(&analysis::PlaceRow::copies),
             calls = any(&analysis::PlaceRow::calls), samples = any(&analysis::PlaceRow::samples);
  const auto column = [&](const char* title, int leave_out = 0) {
    table.columns.push_back({title, report::Align::kRight});
    table.columns.back().leave_out = leave_out;
  };
  if (kernels) {
    column("Kernel time");
    column("Kernels", 4);
  }
  if (copies) {
    column("Copy time");
    column("Copies", 5);
    column("Bytes", 2);
  }
  if (calls) {
    column("API time");
    column("Calls", 3);
  }
  if (samples) column("Sampled", 1);
  table.columns.push_back({"Name", report::Align::kLeft, -1, true});
  const auto time = [](int64_t count, int64_t ns) {
    return count > 0 ? report::Cell(report::format_duration(static_cast<double>(ns))) : report::Cell();
  };
  for (const analysis::PlaceRow& row : rows) {
    std::vector<report::Cell> cells;
    if (kernels) {
      cells.push_back(time(row.kernels, row.kernel_ns));
      cells.emplace_back(row.kernels);
    }
    if (copies) {
      cells.push_back(time(row.copies, row.copy_ns));
      cells.emplace_back(row.copies);
      cells.push_back(row.copies > 0 ? report::Cell(report::format_bytes(static_cast<double>(row.bytes)))
                                     : report::Cell());
    }
    if (calls) {
      cells.push_back(time(row.calls, row.call_ns));
      cells.emplace_back(row.calls);
    }
    if (samples) cells.push_back(time(row.samples, row.sample_ns));
    cells.emplace_back(row.name);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

int place_stats(const std::string& file, analysis::Place place, const std::string& by_text, const std::string& format,
                size_t top) {
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  auto rows = analysis::by_place(**trace, place);
  if (!rows) return complain(kBadInput, rows.error().message);
  if (top != 0 && rows->size() > top) rows->resize(top);
  std::string out;
  if (format == "csv") {
    out = report::to_csv(exact_places(*rows));
  } else if (format == "json") {
    JsonWriter writer(out);
    report::to_json(exact_places(*rows), writer);
    out += "\n";
  } else if (rows->empty()) {
    out = fmt::format("{}: nothing was recorded by {}\n", file, by_text);
  } else {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    std::vector<std::string> left_out;
    report::TextStyle style;
    style.width = screen.terminal ? screen.width : 0;
    style.colour = screen.colour;
    style.left_out = &left_out;
    out = report::to_text(readable_places(*rows), style);
    if (const std::string sentence = left_out_sentence(left_out); !sentence.empty())
      out += "\n" + report::wrapped(sentence, screen.width, 2) + "\n";
  }
  report::put(out);
  for (const std::string& sentence : analysis::loss_sentences(**trace)) complain(0, sentence);
  return kOk;
}

// By operator

report::Table exact_operators(const std::vector<analysis::OperatorRow>& rows, bool modules) {
  report::Table table;
  table.columns = {{"Name"},          {"Phase"},       {"Calls"},   {"SelfHostNs"}, {"TotalHostNs"}, {"SelfDeviceNs"},
                   {"TotalDeviceNs"}, {"SelfKernels"}, {"Kernels"}, {"Launches"},   {"BytesCopied"}};
  table.columns.insert(table.columns.begin() + 1, {modules ? "Class" : "MadeOf"});
  for (const analysis::OperatorRow& row : rows) {
    table.rows.push_back({row.name, std::string(analysis::to_string(row.phase)), row.calls, row.host_self,
                          row.host_total, row.self.ns, row.total.ns, row.self.kernels, row.total.kernels,
                          row.total.launches, row.total.bytes});
    table.rows.back().insert(table.rows.back().begin() + 1, row.kind);
  }
  return table;
}

report::Table readable_operators(const std::vector<analysis::OperatorRow>& rows, int64_t whole, bool modules) {
  report::Table table;
  const auto any = [&](const auto& value) {
    return std::any_of(rows.begin(), rows.end(), [&](const analysis::OperatorRow& row) { return value(row) > 0; });
  };
  const bool device = any([](const auto&row) { return row.total.ns; }),
             copies = any([](const auto&row) { return row.total.bytes; });
  const auto column = [&](const char* title, int leave_out = 0, int decimals = -1) {
    table.columns.push_back({title, report::Align::kRight, decimals});
    table.columns.back().leave_out = leave_out;
  };
  if (device) {
    column("GPU self");
    column("%", 5, 1);
    column("GPU total");
    column("Kernels", 3);
    column("Launches", 6);
  }
  if (copies) column("Copied", 7);
  column("Host self", device ? 4 : 0);
  column("Host total", device ? 2 : 0);
  column("Calls", 1);
  table.columns.push_back({"Phase", report::Align::kLeft});
  table.columns.push_back({modules ? "Module" : "Operator", report::Align::kLeft, -1, true});
  if (modules) {
    table.columns.push_back({"Class", report::Align::kLeft, -1, true});
    table.columns.back().leave_out = 4;
  }
  const auto time = [](int64_t ns) {
    return ns > 0 ? report::Cell(report::format_duration(static_cast<double>(ns))) : report::Cell();
  };
  const auto number = [](int64_t value) { return value > 0 ? report::Cell(value) : report::Cell(); };
  for (const analysis::OperatorRow& row : rows) {
    std::vector<report::Cell> cells;
    if (device) {
      cells.push_back(time(row.self.ns));
      cells.push_back(row.self.ns > 0 && whole > 0
                          ? report::Cell(100.0 * static_cast<double>(row.self.ns) / static_cast<double>(whole))
                          : report::Cell());
      cells.push_back(time(row.total.ns));
      cells.push_back(number(row.total.kernels));
      cells.push_back(number(row.total.launches));
    }
    if (copies)
      cells.push_back(row.total.bytes > 0 ? report::Cell(report::format_bytes(static_cast<double>(row.total.bytes)))
                                          : report::Cell());
    cells.push_back(time(row.host_self));
    cells.push_back(time(row.host_total));
    cells.push_back(number(row.calls));
    // Outside of every operator nothing tells the phase.
    cells.push_back(row.name.starts_with("(no ") ? report::Cell()
                                                 : report::Cell(std::string(analysis::to_string(row.phase))));
    cells.emplace_back(row.name);
    if (modules) cells.emplace_back(row.kind);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// What compiled kernels were made of, below the table: names and lists of operators are too long for a column. The
// first `most` of them, 0 for all, also those whose rows the table leaves out.
std::string fused_text(const std::vector<analysis::OperatorRow>& rows, size_t most, const report::Screen& screen) {
  std::map<std::string_view, int64_t> time;  // by name: forward and backward calls are rows of their own
  for (const analysis::OperatorRow& row : rows)
    if (!row.kind.empty()) add_saturating(time[row.name], row.self.ns);
  std::string out;
  std::set<std::string_view> told;
  for (const analysis::OperatorRow& row : rows) {
    if (row.kind.empty() || !told.insert(row.name).second || (most != 0 && told.size() > most)) continue;
    // "aten.add,aten.relu train.py:31,train.py:32", each "-" where it is not known.
    const size_t space = std::min(row.kind.find(' '), row.kind.size());
    const auto list = [&](std::string_view words) {
      std::string text;
      for (const char c : words) text += c == ',' ? std::string(", ") : std::string(1, c);
      return report::clean(text);
    };
    const std::string operators = list(row.kind.substr(0, space));
    const std::string lines = list(std::string_view(row.kind).substr(std::min(space + 1, row.kind.size())));
    const auto say = [&](size_t indent, const std::string& text) {
      const std::string margin(indent, ' ');
      out += margin + (screen.terminal ? report::wrapped(text, screen.width - indent, indent) : text) + "\n";
    };
    const std::string name = report::clean(row.name);
    const int64_t ns = time[row.name];
    say(2, ns > 0 ? fmt::format("{}: {}", name, report::format_duration(static_cast<double>(ns))) : name);
    say(4, operators == "-" ? "operators not known" : operators);
    say(4, lines == "-" || lines.empty() ? "line of the model not known" : lines);
  }
  if (out.empty()) return out;
  if (most != 0 && told.size() > most) out += fmt::format("  … and {} more: --top 0\n", told.size() - most);
  return "Kernels that torch.compile made, the operators fused in them, the model's lines\n" + out;
}

int operator_stats(const std::string& file, bool modules, const std::string& format, std::optional<size_t> top,
                   const std::string& graph_nodes) {
  constexpr size_t kRows = 30;
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  std::optional<analysis::GraphShares> shares;
  if (!graph_nodes.empty()) {
    const auto nodes = open_trace(graph_nodes);
    if (!nodes) return complain(kBadInput, nodes.error().message);
    auto read = analysis::graph_shares(**nodes);
    if (!read) return complain(kBadInput, read.error().message);
    shares = std::move(*read);
  }
  const auto tree = analysis::operator_tree(**trace, {}, shares ? &*shares : nullptr);
  if (!tree) return complain(kBadInput, tree.error().message);
  std::vector<analysis::OperatorRow> rows;
  if (tree->any())
    rows = analysis::operator_rows(*tree, modules ? analysis::OperatorBy::kModule : analysis::OperatorBy::kOperator);
  const bool text = format == "text";
  const size_t all = rows.size(), most = top.value_or(text ? kRows : 0);
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  const std::string fused = modules || !text ? std::string() : fused_text(rows, most, screen);
  if (most != 0 && all > most) rows.resize(most);
  std::string out;
  if (format == "csv") {
    out = report::to_csv(exact_operators(rows, modules));
  } else if (format == "json") {
    JsonWriter writer(out);
    report::to_json(exact_operators(rows, modules), writer);
    out += "\n";
  } else if (!tree->any()) {
    out = fmt::format("{}: no operators of PyTorch; record them with tacho trace --torch-trace\n", file);
  } else {
    std::vector<std::string> left_out;
    report::TextStyle style;
    style.width = screen.terminal ? screen.width : 0;
    style.colour = screen.colour;
    style.left_out = &left_out;
    out = report::to_text(readable_operators(rows, tree->whole.ns, modules), style) + "\n";
    const auto say = [&](const std::string& sentence) {
      if (!sentence.empty()) out += (screen.terminal ? report::wrapped(sentence, screen.width, 2) : sentence) + "\n";
    };
    if (rows.size() < all)
      say(fmt::format("The first {} of {} rows; --top 0 shows all, --top N the first N.", rows.size(), all));
    say(left_out_sentence(left_out));
    if (!fused.empty()) out += fused + "\n";
    if (tree->whole.ns > 0)
      say(fmt::format(
          "GPU time {}: {:.1f} % of it was launched within an operator.",
          report::format_duration(static_cast<double>(tree->whole.ns)),
          100.0 * static_cast<double>(tree->whole.ns - tree->nodes[0].work.ns) / static_cast<double>(tree->whole.ns)));
    if (tree->spans_divided > 0)
      say(fmt::format("Of it {} is estimated: {} {} of CUDA graphs, divided by "
                      "what their nodes took in {} ({} {} at least).",
                      report::format_duration(static_cast<double>(tree->estimated.ns)), tree->spans_divided,
                      tree->spans_divided == 1 ? "launch" : "launches", graph_nodes, tree->estimated_from,
                      tree->estimated_from == 1 ? "launch" : "launches"));
    if (tree->spans_undivided > 0)
      say(fmt::format("{} {} of CUDA graphs {} not in {}; {} time is charged to the launch.", tree->spans_undivided,
                      tree->spans_undivided == 1 ? "launch" : "launches", tree->spans_undivided == 1 ? "is" : "are",
                      graph_nodes, tree->spans_undivided == 1 ? "its" : "their"));
    if (tree->graph_unnamed > 0)
      say(fmt::format(
          "{} executed {} of CUDA graphs {} no known operator; {} time is charged to the launch of the graph.",
          tree->graph_unnamed, tree->graph_unnamed == 1 ? "node" : "nodes", tree->graph_unnamed == 1 ? "has" : "have",
          tree->graph_unnamed == 1 ? "its" : "their"));
    if (tree->backward_alone > 0)
      say(fmt::format("{} calls of backward operators have no known forward operator; they are listed by themselves.",
                      tree->backward_alone));
    if (tree->forgotten > 0) say(walk::forgotten_sentence(tree->forgotten) + ".");
  }
  report::put(out);
  if (const auto sentence = analysis::torch_sentence(**trace); sentence && !sentence->empty()) complain(0, *sentence);
  for (const std::string& sentence : analysis::loss_sentences(**trace)) complain(0, sentence);
  return kOk;
}

// Prints the first `count` rows page by page, since there may be millions. Each page of text has a header and its own
// column widths.
void print_rows(const analysis::StatTable& table, size_t count, bool bytes, const std::string& format,
                const std::string& nothing) {
  constexpr size_t kPage = 10'000;
  std::string out;
  JsonWriter writer(out);
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  report::TextStyle style;
  style.width = screen.terminal ? screen.width : 0;
  style.colour = screen.colour;
  std::vector<std::string> left_out;
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
      left_out.clear();
      style.left_out = &left_out;
      out += count == 0 ? nothing : report::to_text(readable_table(page, table.grouped(), bytes), style);
      if (const std::string sentence = left_out_sentence(left_out); !sentence.empty() && done == count)
        out += "\n" + report::wrapped(sentence, screen.width, 2) + "\n";
    }
    report::put(out);
    out.clear();
  } while (done < count);
}

}  // namespace

int run_stats(int argc, char** argv) {
  CommandOptions app("Statistics of a trace: calls, total, mean, min, max per name.", "tacho stats");
  std::string file, by_text = "kernel", format = "text";
  analysis::StatOptions options;
  std::optional<size_t> top;
  bool own_code = false, all_code = false;
  std::string graph_nodes;
  app.add_option("file", file, "trace").required();
  app.add_option(
         "--by", by_text,
         "kernel, api, copy, fill, marker, domain, sync, overhead, allocation; process, rank, thread, device, stream; "
         "call stacks: line, function, stack; PyTorch: operator, module")
      .capture_default_str();
  app.add_option("--output-format", format, "text, json or csv").one_of({"text", "json", "csv"}).capture_default_str();
  app.add_option("--top", top, "only the first N rows; 0 = all (default: all; 20 of call stacks as text)");
  app.add_flag("-M,--mangled-kernels", options.mangled, "kernel names as the runtime gives them");
  app.add_flag("-T,--truncate-kernels", options.truncate, "kernel names without arguments and templates");
  app.add_flag("--shapes", options.per_shape, "kernels: one row per launch shape");
  analysis::StackOptions stack_options;
  app.add_flag("--startup", stack_options.startup, "call stacks: keep what lies outside of the outermost Python frame");
  app.add_flag("--threads", stack_options.threads, "call stacks: tell threads apart");
  const CommandOption all =
      app.add_flag("--all-code", all_code,
                   "call stacks: every frame (default as text: your own code, without libraries and the interpreter)");
  app.add_flag("--own-code", own_code, "call stacks: your own code in csv and json, too").excludes(all);
  app.add_option("--graph-nodes", graph_nodes,
                 "operators, modules: a trace of the same program with --graph-trace node, by whose nodes launches of "
                 "CUDA graphs that are one span here are divided");
  app.footer("Examples:\n"
             "  tacho stats app.tacho                     kernels by their time\n"
             "  tacho stats app.tacho --by line           lines of your code, by host and GPU time\n"
             "  tacho stats app.tacho --by rank --output-format csv");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (by_text == "stack" || by_text == "function" || by_text == "line")
    return stack_stats(file, by_text, format, top,
                       all_code   ? Code::kAll
                       : own_code ? Code::kOwn
                                  : Code::kByFormat,
                       stack_options);
  if (by_text == "operator" || by_text == "module")
    return operator_stats(file, by_text == "module", format, top, graph_nodes);
  if (!graph_nodes.empty())
    return complain(kBadInput,
                    fmt::format("--graph-nodes goes with --by operator or module, not with --by {}", by_text));
  if (const auto place = analysis::parse_place(by_text))
    return place_stats(file, *place, by_text, format, top.value_or(0));
  const auto by = analysis::parse_by(by_text);
  if (!by) return complain(kBadInput, by.error().message);
  const auto trace = open_trace(file);
  if (!trace) return complain(kBadInput, trace.error().message);
  const auto table = analysis::StatTable::make(**trace, *by, options);
  if (!table) return complain(kBadInput, table.error().message);
  const bool bytes = *by == analysis::By::kCopy || *by == analysis::By::kFill;
  const size_t most = top.value_or(0), count = most != 0 ? std::min(most, table->size()) : table->size();
  print_rows(*table, count, bytes, format,
             count == 0 ? fmt::format("{}: no {} records\n", file, by_text) : std::string());
  if (bytes) {
    std::vector<analysis::StatRow> rows;
    for (size_t i = 0; i < table->size(); ++i) rows.push_back(table->row(i));
    if (const std::string unsized = analysis::unsized_sentence(rows); !unsized.empty())
      complain(0, fmt::format("{}: {}", *by == analysis::By::kCopy ? "copies" : "fills", unsized));
  }
  for (const std::string& sentence : analysis::loss_sentences(**trace)) complain(0, sentence);
  return kOk;
}

}  // namespace tacho::cli
