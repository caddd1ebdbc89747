// Tables, lines and JSON of a moment (answer.h).
#include "watch/answer.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "report/text.h"
#include "report/value.h"
#include "watch/metrics/telemetry.h"

namespace tacho::watch {
namespace {

using event::WatchKind;
using report::Cell, report::Unit;

bool on_device(const RowSums& row) {
  return row.kind == WatchKind::kKernel || row.kind == WatchKind::kGraph;
}

Cell whole(uint64_t value) {
  return static_cast<int64_t>(value);
}
Cell number(const std::optional<double>& value) {
  return value ? Cell(*value) : Cell();
}

// Half the 95 % interval as a share of the total.
std::optional<double> relative(const TimeEstimate& estimate) {
  if (!estimate.interval_ns || estimate.total_ns <= 0) return std::nullopt;
  return *estimate.interval_ns / estimate.total_ns;
}

// A row and its time, or a bound of it.
struct TimedRow {
  const RowSums* row;
  std::optional<TimeEstimate> time;
  std::optional<double> bound;

  double order() const { return time ? time->total_ns : bound.value_or(-1); }
};
std::vector<TimedRow> by_time(const WatchSnapshot& snapshot, bool device) {
  std::vector<TimedRow> rows;
  for (const RowSums& row : snapshot.rows)
    if (on_device(row) == device) rows.push_back({&row, row.time(), estimate_bound(row.levels)});
  std::sort(rows.begin(), rows.end(), [](const TimedRow& a, const TimedRow& b) {
    const double left = a.order(), right = b.order();
    return left != right                  ? left > right
           : a.row->count != b.row->count ? a.row->count > b.row->count
                                          : a.row->title() < b.row->title();
  });
  return rows;
}

// A graph's kernels, and where their times are from.
void put_kernels(const TimedRow& timed, const KernelTimes& times, report::JsonValue& object) {
  using report::JsonValue;
  const GraphTimeShares shares =
      graph_shares(*timed.row, times, timed.time ? std::optional(timed.time->total_ns) : std::nullopt);
  JsonValue kernels = JsonValue::list();
  for (const GraphShare& share : shares.kernels)
    kernels.add(JsonValue::object({{"name", JsonValue(share.kernel->name)},
                                   {"title", JsonValue(share.kernel->title)},
                                   {"nodes", JsonValue(share.kernel->nodes)},
                                   {"launches", JsonValue(share.launches)},
                                   {"own_ns", share.kernel->own_ns ? JsonValue(*share.kernel->own_ns) : JsonValue()},
                                   {"share", share.share ? JsonValue(*share.share) : JsonValue()},
                                   {"total_ns", share.total_ns ? JsonValue(*share.total_ns) : JsonValue()}}));
  object.set("kernels", std::move(kernels));
  object.set("other_nodes", JsonValue(timed.row->other_nodes));
  object.set("shares_by", shares.unknown > 0 ? JsonValue()
                          : shares.by_trace  ? JsonValue("trace")
                                             : JsonValue("launches outside of graphs"));
}

// What times and quantiles are estimated from: levels and buckets that hold something, each behind its number.
void put_sums(const RowSums& row, report::JsonValue& object) {
  using report::JsonValue;
  object.set("level", JsonValue(row.level));
  object.set("each_ns", JsonValue(row.each_ns));
  JsonValue levels = JsonValue::list(), buckets = JsonValue::list();
  for (size_t i = 0; i < row.levels.size(); ++i) {
    const LevelSums& at = row.levels[i];
    if (at.count == 0 && at.timed == 0 && at.bounded == 0) continue;
    levels.add(JsonValue::list({JsonValue(i), JsonValue(at.count), JsonValue(at.timed), JsonValue(at.time),
                                JsonValue(at.squares), JsonValue(at.bounded), JsonValue(at.bound_time)}));
  }
  for (size_t i = 0; i < row.buckets.size(); ++i)
    if (row.buckets[i] != 0) buckets.add(JsonValue::list({JsonValue(i), JsonValue(row.buckets[i])}));
  object.set("levels", std::move(levels));
  object.set("buckets", std::move(buckets));
  object.set("stood_ns", JsonValue(row.stood_ns));
}

report::JsonValue json_of(const TimedRow& timed, const KernelTimes& times, bool sums) {
  using report::JsonValue;
  const RowSums& row = *timed.row;
  JsonValue object = JsonValue::object({{"kind", JsonValue(kind_name(row.kind))}, {"name", JsonValue(row.name)}});
  if (!row.any_shape()) {
    object.set("grid", JsonValue::list_of(row.grid));
    object.set("group", row.group[0] == 0 ? JsonValue() : JsonValue::list_of(row.group));
  }
  object.set("count", JsonValue(row.count));
  if (row.bytes != 0) object.set("bytes", JsonValue(row.bytes));
  if (row.kind == WatchKind::kAllocation) {
    if (row.hosts > 0) object.set("hosts", JsonValue(row.hosts));
    return object;
  }
  object.set("timed", JsonValue(timed.time ? timed.time->timed : 0));
  const auto value = [](const std::optional<double>& known) { return known ? JsonValue(*known) : JsonValue(); };
  object.set("total_ns", timed.time ? JsonValue(timed.time->total_ns) : JsonValue());
  if (timed.bound) object.set("at_most_ns", JsonValue(*timed.bound));
  uint64_t bounds = 0;
  for (const LevelSums& level : row.levels) bounds += level.bounded;
  if (bounds != 0) object.set("bounds", JsonValue(bounds));
  object.set("standard_error_ns", timed.time ? value(timed.time->error_ns) : JsonValue());
  object.set("interval_95_ns", timed.time ? value(timed.time->interval_ns) : JsonValue());
  object.set("p50_ns", value(estimate_quantile(row.buckets, 0.5)));
  object.set("p99_ns", value(estimate_quantile(row.buckets, 0.99)));
  if (timed.time) {
    object.set("shortest_ns", JsonValue(row.shortest_ns));
    object.set("longest_ns", JsonValue(row.longest_ns));
  }
  object.set("one_of", JsonValue(uint64_t{1} << row.level));
  if (!row.kernels.empty()) put_kernels(timed, times, object);
  if (sums) put_sums(row, object);
  if (row.hosts > 0) object.set("hosts", JsonValue(row.hosts));
  return object;
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", share * 100);
}

void say_pushes(const PushCounts& pushes, const std::string& to, std::vector<std::string>& sentences) {
  const uint64_t all = pushes.taken + pushes.refused + pushes.unanswered;
  if (pushes.taken < all)
    sentences.push_back(fmt::format("{} of {} pushes to {} failed: {} refused, {} without an answer; the last time {}.",
                                    all - pushes.taken, all, to, pushes.refused, pushes.unanswered, pushes.problem));
  if (pushes.rejected_points > 0)
    sentences.push_back(fmt::format("{} rejected {} of the numbers that tacho pushed.", to, pushes.rejected_points));
}

}  // namespace

report::Answer kernel_answer(const WatchSnapshot& snapshot) {
  report::Answer answer;
  answer.id = "kernels";
  answer.title = "Kernels";
  // Names last, as in the other tables: in a pipe they stay whole, and may have 2,000 letters.
  answer.columns = {{.name = "launches", .title = "Launches", .unit = Unit::kCount},
                    {.name = "total_ns", .title = "Time", .unit = Unit::kNs},
                    {.name = "interval", .title = "± %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "share", .title = "Share %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "average_ns", .title = "Average", .unit = Unit::kNs},
                    {.name = "p99_ns", .title = "p99", .unit = Unit::kNs, .leave_out = 1},
                    {.name = "longest_ns", .title = "Longest", .unit = Unit::kNs, .leave_out = 2},
                    {.name = "timed", .title = "Timed", .unit = Unit::kCount, .leave_out = 3},
                    {.name = "at_most_ns", .unit = Unit::kNs},
                    {.name = "name", .title = "Kernel"}};
  const bool several =
      std::any_of(snapshot.rows.begin(), snapshot.rows.end(), [](const RowSums& row) { return row.hosts > 0; });
  if (several)
    answer.columns.insert(answer.columns.end() - 1, {.name = "hosts", .title = "Hosts", .unit = Unit::kCount});
  answer.when_empty = "no kernel was launched";
  const std::vector<TimedRow> rows = by_time(snapshot, true);
  double all = 0;
  bool bounds = false;
  for (const TimedRow& each : rows) all += each.time ? each.time->total_ns : 0;
  for (const TimedRow& each : rows) {
    const RowSums& row = *each.row;
    std::vector<Cell> cells = {whole(row.count)};
    if (each.time) {
      const double total = each.time->total_ns;
      cells.insert(cells.end(), {Cell(total), number(relative(*each.time)), all > 0 ? Cell(total / all) : Cell(),
                                 Cell(total / static_cast<double>(row.count)),
                                 number(estimate_quantile(row.buckets, 0.99)), whole(row.longest_ns)});
    } else {
      cells.resize(cells.size() + 6);
    }
    cells.push_back(whole(each.time ? each.time->timed : 0));
    cells.push_back(number(each.bound));
    if (several) cells.push_back(whole(row.hosts));
    cells.emplace_back(row.title());
    bounds = bounds || each.bound;
    answer.rows.push_back(std::move(cells));
  }
  if (bounds) {
    answer.columns[answer.columns.size() - (several ? 3 : 2)].title = "At most";
    answer.notes.emplace_back(
        "At most: the device was waiting for this kernel each time that it was timed, so that only a bound is known.");
  }
  return answer;
}

report::Answer other_answer(const WatchSnapshot& snapshot) {
  report::Answer answer;
  answer.id = "other";
  answer.title = "Copies, waits and memory";
  answer.columns = {{.name = "kind", .title = "Kind"},
                    {.name = "name", .title = "Name"},
                    {.name = "count", .title = "Count", .unit = Unit::kCount},
                    {.name = "bytes", .title = "Bytes", .unit = Unit::kBytes, .dash_zero = true},
                    {.name = "total_ns", .title = "Time", .unit = Unit::kNs},
                    {.name = "interval", .title = "± %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "average_ns", .title = "Average", .unit = Unit::kNs}};
  answer.when_empty = "no copies, waits or allocations";
  for (const TimedRow& each : by_time(snapshot, false)) {
    const RowSums& row = *each.row;
    std::vector<Cell> cells = {std::string(kind_name(row.kind)), row.name, whole(row.count), whole(row.bytes)};
    if (each.time)
      cells.insert(cells.end(), {Cell(each.time->total_ns), number(relative(*each.time)),
                                 Cell(each.time->total_ns / static_cast<double>(row.count))});
    answer.rows.push_back(std::move(cells));
  }
  return answer;
}

report::Answer process_answer(const WatchSnapshot& snapshot) {
  report::Answer answer;
  answer.id = "processes";
  answer.title = "Processes";
  answer.columns = {{.name = "pid", .title = "PID"},
                    {.name = "name", .title = "Program"},
                    {.name = "launches", .title = "Launches", .unit = Unit::kCount},
                    {.name = "copied_bytes", .title = "Copied", .unit = Unit::kBytes, .dash_zero = true},
                    {.name = "time_ns", .title = "Time", .unit = Unit::kNs},
                    {.name = "ended", .title = "Ended", .leave_out = 1}};
  answer.when_empty = "no process used a device";
  for (const WatchedProcess* const process : by_device_time(snapshot))
    answer.rows.push_back({std::to_string(process->pid), process->name, whole(process->launches),
                           whole(process->copied_bytes),
                           process->time_ns > 0 ? Cell(static_cast<double>(process->time_ns)) : Cell(),
                           std::string(process->ended ? "yes" : "")});
  return answer;
}

std::vector<const WatchedProcess*> by_device_time(const WatchSnapshot& snapshot) {
  std::vector<const WatchedProcess*> order;
  for (const WatchedProcess& process : snapshot.processes)
    if (process.uses_devices) order.push_back(&process);
  std::stable_sort(order.begin(), order.end(), [](const WatchedProcess* a, const WatchedProcess* b) {
    return a->time_ns != b->time_ns ? a->time_ns > b->time_ns : a->launches > b->launches;
  });
  return order;
}

std::string silence(const WatchHost& host) {
  if (host.problem.empty()) return "";
  const std::string name =
      host.name.empty() ? host.address : fmt::format("{} ({})", report::clean(host.name), host.address);
  if (!host.ago_s) return fmt::format("{} has never answered: {}.", name, host.problem);
  return fmt::format("{} has not answered for {}: {}; its numbers are those of then.", name,
                     report::format_duration(*host.ago_s * 1e9), host.problem);
}

namespace {
// What GPUs, the kernel and a collector refused.
void say_of_machine(const WatchMoment& moment, bool at_the_end, std::vector<std::string>& sentences) {
  if (at_the_end) sentences.insert(sentences.end(), moment.gpu_problems.begin(), moment.gpu_problems.end());
  if (moment.host_code && !moment.host_code->problem.empty()) sentences.push_back(moment.host_code->problem);
  if (moment.pushes && at_the_end) say_pushes(*moment.pushes, moment.pushes_to, sentences);
}

// What the process did that watching does not see, or sees in another way.
void say_of_process(const WatchedProcess& process, std::vector<std::string>& sentences) {
  const auto say = [&](std::string sentence) { sentences.push_back(std::move(sentence)); };
  if (process.unseen_runtime)
    say(fmt::format("Process {} uses a runtime that tacho watch sees only in programs that it starts.", process.pid));
  if (process.unseen_queues > 0)
    say(fmt::format("Process {} made {} that tacho leaves as {}: what is in {} is in no count.", process.pid,
                    process.unseen_queues == 1 ? "a queue" : fmt::format("{} queues", process.unseen_queues),
                    process.unseen_queues == 1 ? "it is" : "they are", process.unseen_queues == 1 ? "it" : "them"));
  if (process.foreign_markers)
    say(fmt::format("Another tool takes markers that process {} sets: they are not kept.", process.pid));
  if (process.untimed_queues > 0)
    say(fmt::format("Process {} made {} without profiling before tacho came: what is in {} is counted, not timed.",
                    process.pid,
                    process.untimed_queues == 1 ? "a queue" : fmt::format("{} queues", process.untimed_queues),
                    process.untimed_queues == 1 ? "it" : "them"));
  if (process.forks > 0) {
    std::string forked = fmt::format("Process {} forked {} meanwhile", process.pid,
                                     process.forks == 1 ? "a child" : fmt::format("{} children", process.forks));
    const uint32_t watched = process.watched_children;
    if (watched == 0)
      forked += fmt::format(", which {} not watched.", process.forks == 1 ? "is" : "are");
    else
      forked += fmt::format(". {} of its children {} watched as well, from when tacho found {}; others are not.",
                            watched, watched == 1 ? "is" : "are", watched == 1 ? "it" : "them");
    say(forked);
  }
  if (process.closed_words > 0)
    say(fmt::format("Process {} has {} pointer{} to the driver's functions that may not be changed: calls by {} are "
                    "in no count.",
                    process.pid, process.closed_words, process.closed_words == 1 ? "" : "s",
                    process.closed_words == 1 ? "it" : "them"));
}

}  // namespace

std::vector<std::string> watch_sentences(const WatchMoment& moment, bool at_the_end) {
  const WatchSnapshot& snapshot = moment.snapshot;
  std::vector<std::string> sentences;
  for (const WatchHost& host : moment.hosts) {
    if (std::string sentence = silence(host); !sentence.empty()) sentences.push_back(std::move(sentence));
    for (const std::string& note : host.notes)
      sentences.push_back(fmt::format("{}: {}", report::clean(host.name.empty() ? host.address : host.name), note));
  }
  if (!moment.hosts.empty()) return sentences;
  const auto say = [&](std::string sentence) { sentences.push_back(std::move(sentence)); };
  const bool used = std::any_of(snapshot.processes.begin(), snapshot.processes.end(),
                                [](const WatchedProcess& process) { return process.uses_devices; });
  if (snapshot.processes.empty() && at_the_end)
    say("The program did not load tacho's library (it is linked statically, or may not be preloaded into): nothing was "
        "watched.");
  else if (!used && at_the_end)
    say("No process used a runtime that tacho watch knows.");
  if (snapshot.own_ns && snapshot.seconds > 0) {
    say(fmt::format("Watching took {} of host time in the program, {} of the run.",
                    report::format_duration(*snapshot.own_ns), percent(*snapshot.own_ns * 1e-9 / snapshot.seconds)));
    // Several processes have a budget each, and the account is of all.
    const auto users = std::count_if(snapshot.processes.begin(), snapshot.processes.end(),
                                     [](const WatchedProcess& process) { return process.uses_devices; });
    const double unshed = (*snapshot.own_ns - snapshot.timing_ns) * 1e-9 / snapshot.seconds;
    if (!moment.counts_only && moment.budget > 0 &&
        unshed > moment.budget * static_cast<double>(std::max<ptrdiff_t>(users, 1)))
      say(fmt::format("Counting {}operations took {} of the run: the budget of {} limits timing only{}.",
                      moment.keeps ? "and keeping " : "", percent(unshed), percent(moment.budget),
                      moment.keeps ? "; without --keep it takes less" : ""));
  }
  if (snapshot.device_ns > 0 && snapshot.seconds > 0)
    say(fmt::format("Events took at most {} of the device's time, {} of the run.",
                    report::format_duration(snapshot.device_ns),
                    percent(snapshot.device_ns * 1e-9 / snapshot.seconds)));
  if (moment.gave_up)
    say(fmt::format("Timing cost more than the budget of {}: tacho ended it, and counts only.",
                    percent(moment.budget)));
  else if (moment.cost && moment.cost->low <= moment.budget && moment.budget < moment.cost->high)
    say(fmt::format("The program's pace wavers more than timing costs: {} to {} of it (95 % interval, budget {}).",
                    percent(moment.cost->low), percent(moment.cost->high), percent(moment.budget)));
  else if (moment.cost)
    say(fmt::format("Timing cost {} of the program's pace (95 % interval {} to {}, budget {}).",
                    percent(moment.cost->share), percent(moment.cost->low), percent(moment.cost->high),
                    percent(moment.budget)));
  if (moment.setting.least_level > 0 && !moment.gave_up)
    say(fmt::format("To keep the budget, tacho times no more than 1 of {} operations of a kernel after its first {}.",
                    uint64_t{1} << moment.setting.least_level, event::kWatchFirst));
  if (used && !moment.cost && !moment.counts_only && !moment.gave_up && at_the_end)
    say("There were too few stretches of steady work to measure what timing cost.");
  const auto count = [&](uint64_t number, std::string_view one, std::string_view more) {
    if (number != 0) say(fmt::format("{} {}", number, number == 1 ? one : more));
  };
  count(snapshot.failed, "operation was refused by the runtime and is in no count.",
        "operations were refused by the runtime and are in no count.");
  count(snapshot.lost_rows, "operation found the table full and is in no count.",
        "operations found the table full and are in no count.");
  count(snapshot.lost_times, "operation was to be timed and was not: the runtime gave no times of it.",
        "operations were to be timed and were not: the runtime gave no times of them.");
  if (at_the_end)
    count(snapshot.pending,
          "operation was to be timed and had not ended, or was not asked for, when its program ended.",
          "operations were to be timed and had not ended, or were not asked for, when their programs ended.");
  count(moment.still_running, "process of the run goes on; nobody watches it any more.",
        "processes of the run go on; nobody watches them any more.");
  for (const WatchedProcess& process : snapshot.processes) say_of_process(process, sentences);
  count(snapshot.refused_processes, "process found no room in the list of processes; its operations are in the sums.",
        "processes found no room in the list of processes; their operations are in the sums.");
  say_of_machine(moment, at_the_end, sentences);
  return sentences;
}

std::string watch_line(const WatchSnapshot& before, const WatchSnapshot& now) {
  struct Sums {
    uint64_t count = 0;
    double time = 0;
  };
  std::map<std::string, Sums> kernels;
  uint64_t bytes = 0;
  std::map<std::string, const RowSums*> earlier;
  for (const RowSums& row : before.rows) earlier[fmt::format("{} {}", static_cast<int>(row.kind), row.title())] = &row;
  for (const RowSums& row : now.rows) {
    const auto found = earlier.find(fmt::format("{} {}", static_cast<int>(row.kind), row.title()));
    const RowSums* const was = found != earlier.end() ? found->second : nullptr;
    if (row.kind == WatchKind::kCopy) bytes += row.bytes - (was != nullptr ? was->bytes : 0);
    if (!on_device(row)) continue;
    Sums& sums = kernels[row.name];
    sums.count += row.count - (was != nullptr ? was->count : 0);
    sums.time += row.time_since(was);
  }
  const double seconds = std::max(now.seconds - before.seconds, 1e-9);
  uint64_t launches = 0;
  double all = 0;
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, sums] : kernels) {
    launches += sums.count;
    all += sums.time;
    if (sums.time > 0) order.emplace_back(sums.time, name);
  }
  std::sort(order.rbegin(), order.rend());
  std::string line = fmt::format("{:8.1f} s  {} launches/s  {}/s copied", now.seconds,
                                 report::format_si(static_cast<double>(launches) / seconds, 1),
                                 report::format_bytes(static_cast<double>(bytes) / seconds));
  for (size_t i = 0; i < order.size() && i < 3; ++i)
    line += fmt::format("{}{} {:.0f} %", i == 0 ? "  " : ", ", report::shortened(report::clean(order[i].second), 32),
                        order[i].first / all * 100);
  return line;
}

std::string watch_json(const WatchMoment& moment, bool at_the_end) {
  return watch_document(moment, at_the_end, false).text();
}

report::Answer host_answer(const WatchMoment& moment) {
  report::Answer answer;
  answer.id = "hosts";
  answer.title = "Hosts";
  answer.columns = {{.name = "launches", .title = "Launches", .unit = Unit::kCount},
                    {.name = "processes", .title = "Processes", .unit = Unit::kCount},
                    {.name = "seconds", .title = "Watched for", .unit = Unit::kNs},
                    {.name = "host_share", .title = "Cost %", .unit = Unit::kShare, .decimals = 2},
                    {.name = "address", .title = "Address"},
                    {.name = "host", .title = "Host"},
                    {.name = "program", .title = "Program"}};
  for (const WatchHost& host : moment.hosts) {
    std::vector<Cell> cells(4);
    if (host.ago_s) {
      cells = {whole(host.launches), whole(host.processes), Cell(host.seconds * 1e9), Cell()};
      if (host.own_ns && host.seconds > 0) cells.back() = Cell(*host.own_ns * 1e-9 / host.seconds);
    }
    cells.insert(cells.end(), {Cell(host.address), Cell(host.name), Cell(host.title)});
    answer.rows.push_back(std::move(cells));
  }
  return answer;
}

namespace {

report::JsonValue json_of(const std::vector<vendor::GpuReading>& readings) {
  using report::JsonValue;
  JsonValue gpus = JsonValue::list();
  for (const vendor::GpuReading& reading : readings)
    gpus.add(JsonValue::object({{"gpu", JsonValue(reading.gpu)},
                                {"name", JsonValue(quantity_of(reading))},
                                {"unit", JsonValue(reading.unit)},
                                {"value", JsonValue(reading.value)}}));
  return gpus;
}

report::JsonValue json_of(const std::optional<WatchCost>& cost) {
  using report::JsonValue;
  if (!cost) return {};
  return JsonValue::object({{"share", JsonValue(cost->share)},
                            {"low", JsonValue(cost->low)},
                            {"high", JsonValue(cost->high)},
                            {"pairs", JsonValue(cost->pairs)}});
}

report::JsonValue json_of(const WatchHost& host) {
  using report::JsonValue;
  return JsonValue::object({{"address", JsonValue(host.address)},
                            {"name", JsonValue(host.name)},
                            {"title", JsonValue(host.title)},
                            {"ago_s", host.ago_s ? JsonValue(*host.ago_s) : JsonValue()},
                            {"problem", JsonValue(host.problem)},
                            {"seconds", JsonValue(host.seconds)},
                            {"launches", JsonValue(host.launches)},
                            {"time_ns", JsonValue(host.time_ns)},
                            {"processes", JsonValue(host.processes)},
                            {"host_ns", host.own_ns ? JsonValue(*host.own_ns) : JsonValue()},
                            {"cost", json_of(host.cost)},
                            {"timing", JsonValue(host.timing)},
                            {"gpus", json_of(host.gpus)}});
}

report::JsonValue json_of(const HostLines& code) {
  using report::JsonValue;
  JsonValue lines = JsonValue::list();
  for (const HostLine& each : code.lines)
    lines.add(JsonValue::object({{"function", JsonValue(each.function)},
                                 {"file", JsonValue(each.file)},
                                 {"line", each.line > 0 ? JsonValue(each.line) : JsonValue()},
                                 {"module", JsonValue(each.module)},
                                 {"share", JsonValue(each.share)}}));
  return JsonValue::object(
      {{"samples", JsonValue(code.samples)}, {"processors", JsonValue(code.processors)}, {"lines", std::move(lines)}});
}

}  // namespace

report::JsonValue watch_document(const WatchMoment& moment, bool at_the_end, bool sums) {
  using report::JsonValue;
  const WatchSnapshot& snapshot = moment.snapshot;
  JsonValue rows = JsonValue::list(), processes = JsonValue::list(), sentences = JsonValue::list();
  for (const bool device : {true, false})
    for (const TimedRow& row : by_time(snapshot, device)) rows.add(json_of(row, moment.graph_times, sums));
  for (const WatchedProcess& process : snapshot.processes)
    processes.add(JsonValue::object({{"pid", JsonValue(process.pid)},
                                     {"name", JsonValue(process.name)},
                                     {"uses_devices", JsonValue(process.uses_devices)},
                                     {"launches", JsonValue(process.launches)},
                                     {"copied_bytes", JsonValue(process.copied_bytes)},
                                     {"time_ns", JsonValue(process.time_ns)},
                                     {"ended", JsonValue(process.ended)}}));
  for (const std::string& sentence : watch_sentences(moment, at_the_end)) sentences.add(JsonValue(sentence));
  JsonValue pushes;
  if (moment.pushes)
    pushes = JsonValue::object({{"taken", JsonValue(moment.pushes->taken)},
                                {"refused", JsonValue(moment.pushes->refused)},
                                {"unanswered", JsonValue(moment.pushes->unanswered)},
                                {"rejected_points", JsonValue(moment.pushes->rejected_points)}});
  JsonValue all = JsonValue::object({{"seconds", JsonValue(snapshot.seconds)},
                                     {"final", JsonValue(at_the_end)},
                                     {"rows", std::move(rows)},
                                     {"processes", std::move(processes)},
                                     {"gpus", json_of(moment.gpus)},
                                     {"otlp", std::move(pushes)},
                                     {"failed", JsonValue(snapshot.failed)},
                                     {"uncounted", JsonValue(snapshot.lost_rows)},
                                     {"lost_durations", JsonValue(snapshot.lost_times)},
                                     {"host_ns", snapshot.own_ns ? JsonValue(*snapshot.own_ns) : JsonValue()},
                                     {"host_timing_ns", JsonValue(snapshot.timing_ns)},
                                     {"device_ns", JsonValue(snapshot.device_ns)},
                                     {"budget", JsonValue(moment.budget)},
                                     {"timing", JsonValue(!moment.counts_only && !moment.gave_up)},
                                     {"least_one_of", JsonValue(uint64_t{1} << moment.setting.least_level)},
                                     {"cost", json_of(moment.cost)},
                                     {"notes", std::move(sentences)}});
  if (moment.host_code) all.set("host_code", json_of(*moment.host_code));
  if (moment.hosts.empty()) return all;
  JsonValue hosts = JsonValue::list();
  for (const WatchHost& host : moment.hosts) hosts.add(json_of(host));
  all.set("hosts", std::move(hosts));
  all.set("generation", JsonValue(snapshot.generation));
  return all;
}

}  // namespace tacho::watch
