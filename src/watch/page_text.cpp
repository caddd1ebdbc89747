// Composing the live page (page_text.h).
#include "watch/page_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/text/how_many.h"
#include "report/text.h"
#include "watch/metrics/telemetry.h"

namespace tacho::watch {
namespace {

using event::WatchKind;

bool is_work(const RowSums& row) {
  return row.kind == WatchKind::kKernel || row.kind == WatchKind::kGraph;
}

struct PageRow {
  const RowSums* row;
  std::optional<TimeEstimate> time;
  double launches_now = 0, time_now = 0;
};

struct Pace {
  double launches = 0, bytes = 0, waits = 0;             // a second
  double kernel_time = 0, copy_time = 0, wait_time = 0;  // s in a second; waits of all threads
};

double value_of(const PageRow& row, PageOrder order) {
  switch (order) {
    case PageOrder::kTimeNow:
      return row.time_now;
    case PageOrder::kTime:
      return row.time ? row.time->total_ns : -1;
    case PageOrder::kLaunches:
      return static_cast<double>(row.row->count);
    case PageOrder::kAverage:
      return row.time ? row.time->total_ns / static_cast<double>(row.row->count) : -1;
  }
  return 0;
}

std::string_view name_of(PageOrder order) {
  switch (order) {
    case PageOrder::kTimeNow:
      return "time now";
    case PageOrder::kTime:
      return "time";
    case PageOrder::kLaunches:
      return "launches";
    case PageOrder::kAverage:
      return "average";
  }
  return "";
}

std::string cost_line(const WatchMoment& moment) {
  const WatchSnapshot& now = moment.snapshot;
  std::string line = "cost";
  if (now.own_ns && now.seconds > 0) line += fmt::format("  host {:.2f} %", *now.own_ns * 1e-9 / now.seconds * 100);
  if (moment.gave_up)
    line += "  over the budget: counts only";
  else if (moment.counts_only)
    line += "  counts only";
  else if (moment.cost)
    line += fmt::format("  of the pace {:.1f} % to {:.1f} %, budget {:.1f} %", moment.cost->low * 100,
                        moment.cost->high * 100, moment.budget * 100);
  else
    line += "  of the pace: not measured yet";
  return line;
}

size_t number_of_gpus(const std::vector<vendor::GpuReading>& readings) {
  std::set<int> gpus;
  for (const vendor::GpuReading& reading : readings) gpus.insert(reading.gpu);
  return gpus.size();
}

// Estimates. Work of several queues may overlap, so what is left of one GPU's time is the least that it had nothing to
// do; of several GPUs nothing can be said.
std::string device_line(const Pace& pace, const WatchMoment& moment) {
  std::string line =
      fmt::format("device  kernels {:.0f} %  copies {:.0f} %", pace.kernel_time * 100, pace.copy_time * 100);
  const double rest = 1 - pace.kernel_time - pace.copy_time;
  if (moment.hosts.empty() && number_of_gpus(moment.gpus) <= 1 && !moment.counts_only && !moment.gave_up && rest > 0)
    line += fmt::format("  idle at least {:.0f} %", rest * 100);
  return line + fmt::format("   host waits for it {:.0f} %", pace.wait_time * 100);
}

// The GPUs of one machine, each behind `prefix`.
void collect_gpus(const std::vector<vendor::GpuReading>& readings, const std::string& prefix,
                  std::vector<std::string>& to) {
  // In this order, where a GPU tells them.
  static constexpr std::pair<std::string_view, std::string_view> kShown[] = {{"GFX Busy", "busy {:.0f} %"},
                                                                             {"Core Clock", "{:.0f} MHz"},
                                                                             {"Current Power", "{:.0f} W"},
                                                                             {"Temperature", "{:.0f} °C"}};
  std::map<int, std::string> gpus;
  for (const auto& [quantity, form] : kShown)
    for (const vendor::GpuReading& reading : readings)
      if (quantity_of(reading) == quantity) gpus[reading.gpu] += "  " + fmt::format(fmt::runtime(form), reading.value);
  for (const vendor::GpuReading& reading : readings)
    if (quantity_of(reading) == "Memory Usage")
      gpus[reading.gpu] += fmt::format("  {} in use", report::format_bytes(reading.value));
  for (const auto& [gpu, text] : gpus) to.push_back(fmt::format("{}GPU {}{}", prefix, gpu, text));
}

std::string name_of(const WatchHost& host) {
  return report::clean(host.name.empty() ? host.address : host.name);
}

void add_gpus(const WatchMoment& moment, const PageView& view, std::vector<std::string>& lines) {
  std::vector<std::string> gpus;
  collect_gpus(moment.gpus, "", gpus);
  for (const WatchHost& host : moment.hosts) collect_gpus(host.gpus, name_of(host) + "  ", gpus);
  const size_t room = std::max<size_t>(view.height / 6, 1);
  lines.insert(lines.end(), gpus.begin(), gpus.begin() + static_cast<ptrdiff_t>(std::min(room, gpus.size())));
  if (gpus.size() > room) lines.push_back("and " + how_many(gpus.size() - room, "more GPU", "more GPUs"));
}

// A line for each watch elsewhere, those that do not answer first: as many as fit into a third of the page.
void add_hosts(const WatchMoment& moment, const PageView& view, std::vector<std::string>& lines) {
  if (moment.hosts.empty()) return;
  std::vector<std::string> silent, others;
  for (const WatchHost& host : moment.hosts) {
    if (std::string sentence = silence(host); !sentence.empty()) silent.push_back("! " + sentence);
    if (!host.ago_s) continue;
    const std::string cost =
        host.own_ns && host.seconds > 0 ? fmt::format("{:.2f} %", *host.own_ns * 1e-9 / host.seconds * 100) : "—";
    others.push_back(report::padded_right(report::shortened(name_of(host), 18), 20) +
                     report::padded_right(host.address, 22) +
                     report::padded_left(report::format_si(static_cast<double>(host.launches), 1), 9) +
                     report::padded_left(fmt::format("{}", host.processes), 11) + report::padded_left(cost, 9) + "  " +
                     report::clean(host.title));
  }
  lines.push_back(report::padded_right("Host", 20) + report::padded_right("Address", 22) +
                  report::padded_left("Launches", 9) + report::padded_left("Processes", 11) +
                  report::padded_left("Cost", 9) + "  Program");
  silent.insert(silent.end(), others.begin(), others.end());
  const size_t room = std::max<size_t>(view.height / 3, 2);
  for (size_t i = 0; i < silent.size() && i < room; ++i) lines.push_back(silent[i]);
  if (silent.size() > room)
    lines.push_back("and " + how_many(silent.size() - room, "more line of hosts", "more lines of hosts"));
  lines.emplace_back();
}

std::string table_line(const PageRow& each, double all_now, size_t name_width, bool several) {
  const auto cell = [](const std::string& text, size_t width) { return report::padded_left(text, width); };
  const RowSums& row = *each.row;
  std::string relative = "—", total = "—", average = "—";
  if (const auto bound = estimate_bound(row.levels)) {
    total = "≤ " + report::format_duration(*bound);
    average = "≤ " + report::format_duration(*bound / static_cast<double>(row.count));
  }
  if (each.time) {
    total = report::format_duration(each.time->total_ns);
    average = report::format_duration(each.time->total_ns / static_cast<double>(row.count));
    if (each.time->interval_ns && each.time->total_ns > 0)
      relative = fmt::format("{:.1f}", *each.time->interval_ns / each.time->total_ns * 100);
  }
  const std::string share = all_now > 0 ? fmt::format("{:.0f}", each.time_now / all_now * 100) : "—";
  return report::padded_right(report::shortened(report::clean(row.title()), name_width), name_width) + cell(share, 7) +
         cell(report::format_si(each.launches_now, 1), 9) +
         cell(report::format_si(static_cast<double>(row.count), 1), 9) + cell(total, 13) + cell(relative, 7) +
         cell(average, 10) + (several ? cell(fmt::format("{}", row.hosts), 7) : "");
}

// A line for each process, where there are several: as many as fit into a third of the page.
void add_processes(const WatchSnapshot& before, const WatchSnapshot& now, const PageView& view,
                   std::vector<std::string>& lines) {
  const std::vector<const WatchedProcess*> order = by_device_time(now);
  if (order.size() < 2) return;
  const double seconds = std::max(now.seconds - before.seconds, 1e-3);
  std::map<uint32_t, const WatchedProcess*> earlier;
  for (const WatchedProcess& process : before.processes) earlier[process.pid] = &process;
  lines.push_back(report::padded_right("PID", 10) + report::padded_right("Program", 18) + report::padded_left("/s", 9) +
                  report::padded_left("Launches", 9) + report::padded_left("Copied", 12) +
                  report::padded_left("Time", 13));
  const size_t room = view.height / 3;
  for (size_t i = 0; i < order.size() && i < room; ++i) {
    const WatchedProcess& process = *order.at(i);
    const auto found = earlier.find(process.pid);
    const uint64_t was = found != earlier.end() ? found->second->launches : 0;
    lines.push_back(
        report::padded_right(fmt::format("{}", process.pid), 10) +
        report::padded_right(report::clean(process.name) + (process.ended ? " †" : ""), 18) +
        report::padded_left(report::format_si(static_cast<double>(process.launches - was) / seconds, 1), 9) +
        report::padded_left(report::format_si(static_cast<double>(process.launches), 1), 9) +
        report::padded_left(report::format_bytes(static_cast<double>(process.copied_bytes)), 12) +
        report::padded_left(
            process.time_ns > 0 ? report::format_duration(static_cast<double>(process.time_ns)) : std::string("—"),
            13));
  }
  if (order.size() > room) lines.push_back("and " + how_many(order.size() - room, "more process", "more processes"));
  lines.emplace_back();
}

// As many as a sentence with a path takes, and not more.
std::vector<std::string> note_lines(const PageView& view) {
  constexpr size_t kMostLines = 4;
  std::vector<std::string> lines;
  if (view.note.empty()) return lines;
  const std::string text = report::wrapped(report::clean(view.note), std::max<size_t>(view.width, 20));
  for (size_t at = 0; at <= text.size() && lines.size() < kMostLines;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Where threads of the host spend processor time, behind a heading; nothing where nobody samples or was seen.
std::vector<std::string> code_lines(const WatchMoment& moment) {
  std::vector<std::string> lines;
  if (!moment.host_code || moment.host_code->samples == 0) return lines;
  lines.push_back(fmt::format("Host code, last {} s, without the kernel's: {:.2f} processors", HostSampler::kSeconds,
                              moment.host_code->processors));
  const auto name_of_file = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  for (const HostLine& line : moment.host_code->lines) {
    const std::string place =
        line.line > 0 ? fmt::format("{}:{}", name_of_file(line.file), line.line) : name_of_file(line.module);
    lines.push_back(report::padded_left(fmt::format("{:.0f} %", line.share * 100), 6) + "  " +
                    report::clean(line.function.empty() ? place : fmt::format("{}  {}", line.function, place)));
  }
  return lines;
}

}  // namespace

std::vector<std::string> page_lines(const WatchSnapshot& before, const WatchMoment& moment, const PageView& view) {
  const WatchSnapshot& now = moment.snapshot;
  const double seconds = std::max(now.seconds - before.seconds, 1e-3);
  std::map<std::string, const RowSums*> earlier;
  // What another watch counted before it was heard of is not of now.
  const WatchSnapshot& known = before.generation == now.generation ? before : now;
  for (const RowSums& row : known.rows) earlier[fmt::format("{} {}", static_cast<int>(row.kind), row.title())] = &row;
  Pace pace;
  std::vector<PageRow> rows;
  double all_now = 0;
  for (const RowSums& row : now.rows) {
    const auto found = earlier.find(fmt::format("{} {}", static_cast<int>(row.kind), row.title()));
    const RowSums* const was = found != earlier.end() ? found->second : nullptr;
    const double count = static_cast<double>(row.count - (was != nullptr ? was->count : 0)) / seconds;
    const double time = row.time_since(was);
    if (row.kind == WatchKind::kCopy || row.kind == WatchKind::kFill) pace.copy_time += time * 1e-9 / seconds;
    if (row.kind == WatchKind::kCopy)
      pace.bytes += static_cast<double>(row.bytes - (was != nullptr ? was->bytes : 0)) / seconds;
    if (row.kind == WatchKind::kWait) pace.waits += count;
    if (row.kind == WatchKind::kWait) pace.wait_time += time * 1e-9 / seconds;
    if (!is_work(row)) continue;
    pace.launches += count;
    rows.push_back({&row, row.time(), count, time});
    all_now += time;
  }
  pace.kernel_time = all_now * 1e-9 / seconds;
  std::sort(rows.begin(), rows.end(), [&](const PageRow& a, const PageRow& b) {
    const double left = value_of(a, view.order), right = value_of(b, view.order);
    return left != right ? left > right : a.row->title() < b.row->title();
  });

  size_t running = 0;
  for (const WatchedProcess& process : now.processes) running += process.uses_devices && !process.ended ? 1 : 0;
  for (const WatchHost& host : moment.hosts) running += host.processes;
  const bool several = !moment.hosts.empty();
  constexpr size_t kNarrowest = 16;
  const size_t cells = 7 + 9 + 9 + 13 + 7 + 10 + (several ? 7 : 0);
  const size_t name_width = view.width > cells + kNarrowest ? view.width - cells : kNarrowest;
  std::vector<std::string> lines;
  const std::string mark =
      view.marked ? fmt::format("  (since {})", report::format_duration(before.seconds * 1e9)) : std::string();
  lines.push_back(fmt::format("tacho watch  {}  {}{}{}", report::format_duration(now.seconds * 1e9),
                              report::clean(view.command), mark, view.frozen ? "  (frozen)" : ""));
  lines.push_back(fmt::format("{} launches/s  {}/s copied  {} waits/s  {} process{}",
                              report::format_si(pace.launches, 1), report::format_bytes(pace.bytes),
                              report::format_si(pace.waits, 1), running, running == 1 ? "" : "es"));
  if (!several) lines.push_back(cost_line(moment));
  lines.push_back(device_line(pace, moment));
  add_gpus(moment, view, lines);
  lines.emplace_back();
  add_hosts(moment, view, lines);
  add_processes(before, now, view, lines);
  lines.push_back(report::padded_right("Kernel", name_width) + report::padded_left("Now %", 7) +
                  report::padded_left("/s", 9) + report::padded_left("Launches", 9) + report::padded_left("Time", 13) +
                  report::padded_left("± %", 7) + report::padded_left("Average", 10) +
                  (several ? report::padded_left("Hosts", 7) : ""));
  const std::vector<std::string> note = note_lines(view);
  const size_t room = view.height > note.size() + 1 ? view.height - note.size() - 1 : 0;
  const std::vector<std::string> code = code_lines(moment);
  // Kernels come first; a sixth of the page is for the host's lines in any case.
  const size_t below = code.empty() ? 0 : 1 + std::min(code.size(), 1 + view.height / 6);
  for (size_t i = 0; i < rows.size() && lines.size() + below < room; ++i)
    lines.push_back(table_line(rows[i], all_now, name_width, several));
  if (lines.size() + 2 < room && !code.empty()) lines.emplace_back();
  for (size_t i = 0; i < code.size() && lines.size() < room; ++i) lines.push_back(code[i]);
  lines.resize(room);
  if (view.height > note.size()) lines.insert(lines.end(), note.begin(), note.end());
  lines.resize(view.height > 0 ? view.height - 1 : 0);
  lines.push_back(fmt::format("q close   s order: {}   p {}   m {}{}", name_of(view.order),
                              view.frozen ? "go on" : "freeze", view.marked ? "forget the mark" : "mark",
                              moment.keeps ? "   r write a file" : ""));
  for (std::string& line : lines) line = report::shortened(line, view.width);
  return lines;
}

}  // namespace tacho::watch
