// Text and JSON of the answers (render.h).
#include "ranks/render.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/saturating.h"
#include "base/text/json_writer.h"
#include "ranks/match/late_senders.h"
#include "report/table.h"
#include "report/text.h"

namespace tacho::ranks {
namespace {

std::string time_text(int64_t time) {
  return report::format_duration(static_cast<double>(time));
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", part / whole * 100) : "—";
}

report::Cell bandwidth(double value) {
  return value > 0 ? report::Cell(value) : report::Cell();
}

// "0-4, 7-9"
std::string numbers(const std::vector<int64_t>& list) {
  std::string out;
  for (size_t i = 0; i < list.size();) {
    size_t k = i;
    while (k + 1 < list.size() && list[k + 1] == list[k] + 1) ++k;
    if (!out.empty()) out += ", ";
    out += std::to_string(list[i]);
    if (k > i) out += (k == i + 1 ? ", " : "-") + std::to_string(list[k]);
    i = k + 1;
  }
  return out;
}

std::string group_name(const Names& names, uint32_t communicator) {
  const Names::Communicator told = names.communicator(communicator);
  if (told.name.empty()) return "—";
  return told.description.empty() || told.description == told.name ? told.name : told.name + " " + told.description;
}

// What the bus bandwidth is compared with, as a sentence; "" where there is none.
std::string peak_text(const Group& group) {
  if (group.peak_of.empty()) return {};
  return group.peak > 0 ? fmt::format("Peak: {:g} GB/s, {}.", group.peak, group.peak_of)
                        : fmt::format("Peak: unknown; {}.", group.peak_of);
}

// What the answers come down to: how much ranks waited, and for whom.
std::vector<std::string> headlines(const Job& job, const Report& report) {
  std::vector<std::string> out;
  int64_t waited = 0, span = 0;
  for (size_t run = 0; run < job.runs.size(); ++run) {
    add_saturating(waited, report.ranks[run].waited);
    add_saturating(span, job.runs[run].total.span());
  }
  const size_t count = job.runs.size();
  // Of one rank alone no step has anything to compare.
  const size_t steps = count == 1 ? job.runs[0].steps : report.steps.size();
  std::string first =
      fmt::format("{} rank{}, {} step{}, {} collectives{}.", count, count == 1 ? "" : "s", steps, steps == 1 ? "" : "s",
                  report.collectives.size(),
                  report.messages.matched > 0 ? fmt::format(", {} messages", report.messages.matched) : std::string());
  if (count > 1 || waited > 0)
    first += fmt::format(" Ranks waited for others {} of their time ({} of {}).",
                         percent(static_cast<double>(waited), static_cast<double>(span)), time_text(waited),
                         time_text(span));
  out.push_back(std::move(first));
  size_t shown = 0;
  for (const Straggler& straggler : report.stragglers) {
    if (shown == 3 || straggler.waited * 20 < waited || straggler.waited == 0) break;
    ++shown;
    std::string steps;
    if (!straggler.steps.empty())
      steps = fmt::format(", most in step{} {}", straggler.steps.size() == 1 ? "" : "s", numbers(straggler.steps));
    std::string where;
    if (!report.collectives.empty())
      where = fmt::format("last to {} of {} collectives", straggler.collectives, report.collectives.size());
    if (straggler.for_messages > 0)
      where += fmt::format("{}{} of it for its messages", where.empty() ? "" : ", ", time_text(straggler.for_messages));
    out.push_back(fmt::format("Rank {} made them wait {} ({}): {}{}. Cause: {}.", straggler.rank,
                              time_text(straggler.waited),
                              percent(static_cast<double>(straggler.waited), static_cast<double>(waited)), where, steps,
                              cause_text(straggler.cause, job.names)));
  }
  if (shown == 0 && waited > 0)
    out.push_back(fmt::format("No rank stands out: they waited most for rank {}, and that is {} of all waiting.",
                              report.stragglers[0].rank,
                              percent(static_cast<double>(report.stragglers[0].waited), static_cast<double>(waited))));
  return out;
}

// How far the ranks' clocks agree; "" for one rank.
std::string clocks_text(const Job& job, const Report& report) {
  if (job.runs.size() < 2) return {};
  size_t corrected = 0;
  for (const RankAnswer& rank : report.ranks) corrected += rank.corrected ? 1 : 0;
  if (!report.aligned)
    return "Clocks: unaligned where ranks share no collective; arrivals are compared by the times in the files.";
  if (corrected == 0)
    return fmt::format("Clocks: agree; collectives end within {} of each other on all ranks (95 of 100).",
                       time_text(std::llround(report.clock_residual)));
  return fmt::format("Clocks: {} of {} ranks corrected by when collectives end, to within {} (95 of 100).", corrected,
                     job.runs.size(), time_text(std::llround(report.clock_residual)));
}

class Text {
 public:
  Text(const Job& job, const Report& report, const TextOptions& options)
      : job_(job), report_(report), options_(options) {}
  Result<std::string> all() {
    TACHO_TRY(choose_step());
    headline();
    stragglers();
    ranks();
    steps();
    groups();
    path();
    late_messages();
    bytes();
    message_bytes();
    files();
    clocks();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) {
    out_ += report::wrapped(text, options_.width == 0 ? SIZE_MAX : options_.width);
    out_ += '\n';
  }
  void heading(const std::string& text) {
    out_ += '\n';
    out_ += report::painted(text, report::Paint::kBold, options_.colour);
    out_ += '\n';
  }
  void table(report::Table& table, const char* more = "rows") {
    const size_t rows = table.rows.size();
    if (options_.top != 0 && rows > options_.top) table.rows.resize(options_.top);
    report::TextStyle style;
    style.width = options_.width;
    style.colour = options_.colour;
    out_ += report::to_text(table, style);
    if (table.rows.size() < rows) line(fmt::format("({} more {}: --top 0)", rows - table.rows.size(), more));
  }

  Status choose_step() {
    if (options_.step == kUnknown) {
      for (const StepReport& step : report_.steps)
        if (step_ == nullptr || step.end - step.begin > step_->end - step_->begin) step_ = &step;
      return {};
    }
    for (const StepReport& step : report_.steps)
      if (step.number == options_.step) step_ = &step;
    if (step_ != nullptr) return {};
    if (report_.steps.empty())
      return fail("--step {}: the traces tell no steps (docs/ranks.md says what marks one)", options_.step);
    return fail("--step {}: there is no such step; steps go from {} to {}", options_.step, report_.steps.front().number,
                report_.steps.back().number);
  }

  void headline() {
    for (const std::string& text : headlines(job_, report_)) line(text);
    for (const std::string& remark : job_.remarks) line("Note: " + remark + ".");
    for (const std::string& remark : report_.remarks) line("Note: " + remark + ".");
  }

  void stragglers() {
    if (report_.stragglers.empty()) return;
    heading("Who made whom wait");
    report::Table table;
    table.columns = {{"Rank"}, {"Last to"}, {"Others waited", report::Align::kRight}, {"Steps"}, {"Cause"}};
    table.columns[3].shrink = true;
    table.columns[3].leave_out = 1;
    table.columns[4].shrink = true;
    table.columns[4].cut = report::Cut::kWrap;
    for (const Straggler& straggler : report_.stragglers)
      table.rows.push_back({straggler.rank, static_cast<int64_t>(straggler.collectives), time_text(straggler.waited),
                            numbers(straggler.steps), cause_text(straggler.cause, job_.names)});
    this->table(table, "ranks");
  }

  void ranks() {
    heading("Time of the ranks");
    report::Table table;
    const auto right = report::Align::kRight;
    table.columns = {{"Rank"},           {"Span", right},   {"Compute", right}, {"Comm", right},   {"Exposed", right},
                     {"Overlap", right}, {"Copies", right}, {"Idle", right},    {"Launch", right}, {"Waited", right}};
    table.columns[6].leave_out = 2;
    table.columns[1].leave_out = 1;
    for (size_t run = 0; run < job_.runs.size(); ++run) {
      const Times& times = job_.runs[run].total;
      const RankRun& of = job_.runs[run];
      table.rows.push_back({of.rank, time_text(times.span()), time_text(times.compute), time_text(times.communication),
                            time_text(times.exposed_communication()),
                            percent(static_cast<double>(times.overlap()), static_cast<double>(times.communication)),
                            time_text(times.exposed_copies()), time_text(times.idle()),
                            of.unlaunched == of.operations ? std::string("—") : time_text(times.launch_bound),
                            time_text(report_.ranks[run].waited)});
    }
    this->table(table, "ranks");
    line("Exposed: communication beside no compute. Launch: idle, as the host had not launched.");
  }

  void steps() {
    if (report_.steps.empty()) {
      out_ += '\n';
      line("Steps: none. No ProfilerStep, Optimizer.step or step range is in "
           "the traces, and the collectives do not repeat.");
      return;
    }
    heading(fmt::format("Steps (from {})", job_.runs[0].steps_from));
    report::Table table;
    const auto right = report::Align::kRight;
    table.columns = {{"Step"},        {"Length", right}, {"Last rank"},        {"In"},
                     {"Late", right}, {"Waited", right}, {"Imbalance", right}, {"Cause"}};
    table.columns[3].leave_out = 1;
    table.columns[7].shrink = true;
    table.columns[7].cut = report::Cut::kWrap;
    for (const StepReport& step : report_.steps)
      table.rows.push_back({step.number, time_text(step.end - step.begin), step.last_rank,
                            fmt::format("{}/{}", step.last_in, step.collectives), time_text(step.late),
                            time_text(step.waited), fmt::format("{:.1f} %", step.imbalance),
                            cause_text(step.cause, job_.names)});
    this->table(table, "steps");
  }

  void groups() {
    heading("Collectives");
    report::Table table;
    const auto right = report::Align::kRight;
    table.columns = {{"Operation"},      {"Group"},           {"Message", right}, {"Count"},   {"Spread", right},
                     {"Longest", right}, {"Transfer", right}, {"Alg GB/s"},       {"Bus GB/s"}};
    const bool any_peak = std::ranges::any_of(report_.groups, [](const Group& group) { return group.peak > 0; });
    if (any_peak) table.columns.push_back({"Of peak", right});
    // Which group matters where there are several.
    bool several = false;
    for (const Group& group : report_.groups) several = several || group.communicator != report_.groups[0].communicator;
    table.columns[1].shrink = true;
    table.columns[1].leave_out = several ? 0 : 1;
    table.columns[5].leave_out = 2;
    table.columns[7].leave_out = 3;
    std::vector<std::string> peaks;  // sentences about them
    for (const Group& group : report_.groups) {
      table.rows.push_back({std::string(operation_name(group.operation)), group_name(job_.names, group.communicator),
                            group.bytes > 0 ? report::format_bytes(static_cast<double>(group.bytes)) : std::string("—"),
                            static_cast<int64_t>(group.count), time_text(group.median_spread),
                            time_text(group.most_spread), time_text(group.median_transfer),
                            bandwidth(group.algorithm_bandwidth), bandwidth(group.bus_bandwidth)});
      if (any_peak) table.rows.back().emplace_back(percent(group.bus_bandwidth, group.peak));
      if (std::string peak = peak_text(group); std::ranges::find(peaks, peak) == peaks.end())
        peaks.push_back(std::move(peak));
    }
    this->table(table, "kinds");
    std::string about =
        "Spread: from the first rank's arrival to the last's; Transfer: from then to the end (medians).";
    for (const std::string& peak : peaks)
      if (!peak.empty()) about += " " + peak;
    line(about);
  }

  void path() {
    if (step_ == nullptr || step_->path.empty()) return;
    int64_t whole = 0;
    for (const PathPiece& piece : step_->path) add_saturating(whole, piece.duration);
    heading(fmt::format("Critical path of step {}{}: {}", step_->number,
                        options_.step == kUnknown ? " (the longest)" : "", time_text(whole)));
    report::Table table;
    const auto right = report::Align::kRight;
    table.columns = {{"Rank"},        {"Compute", right},    {"Copies", right},
                     {"Idle", right}, {"of it host", right}, {"Transfer", right},
                     {"Leads to"}};
    table.columns[6].shrink = true;
    table.columns[6].cut = report::Cut::kWrap;
    // A stretch and the transfer that it leads to make a line; lines of one rank and nothing but transfer become one.
    for (size_t i = 0; i < step_->path.size(); ++i) {
      const PathPiece& piece = step_->path[i];
      if (piece.kind == PathPiece::Kind::kTail) {
        table.rows.push_back({piece.rank, std::string(), std::string(), std::string(), std::string(), std::string(),
                              "the step's end, " + time_text(piece.duration) + " after the last collective"});
        continue;
      }
      if (piece.kind != PathPiece::Kind::kStretch) continue;
      const Collective& to = report_.collectives[piece.collective];
      table.rows.push_back({piece.rank, time_text(piece.compute), time_text(piece.copy), time_text(piece.idle),
                            time_text(piece.host), time_text(to.transfer),
                            fmt::format("{} {}", operation_name(to.operation), to.sequence)});
    }
    this->table(table, "stretches");
  }

  void bytes() {
    if (report_.bytes.empty()) return;
    heading("Bytes between ranks (a model: rings in the order of each group; docs/ranks.md)");
    std::vector<int64_t> ranks;
    for (const RankRun& run : job_.runs) ranks.push_back(run.rank);
    report::Table table;
    if (ranks.size() <= 8) {
      table.columns = {{"From \\ to"}};
      for (const int64_t rank : ranks) table.columns.push_back({std::to_string(rank), report::Align::kRight});
      for (const int64_t from : ranks) {
        std::vector<report::Cell> row = {from};
        for (const int64_t to : ranks) {
          const auto found = report_.bytes.find({from, to});
          row.emplace_back(found == report_.bytes.end() ? std::string("—")
                                                        : report::format_bytes(static_cast<double>(found->second)));
        }
        table.rows.push_back(std::move(row));
      }
    } else {
      table.columns = {{"From"}, {"To"}, {"Bytes", report::Align::kRight}};
      std::vector<std::pair<std::pair<int64_t, int64_t>, int64_t>> pairs(report_.bytes.begin(), report_.bytes.end());
      std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
      for (const auto& [pair, count] : pairs)
        table.rows.push_back({pair.first, pair.second, report::format_bytes(static_cast<double>(count))});
    }
    this->table(table, "pairs");
  }

  void late_messages() {
    if (report_.messages.late.empty()) return;
    heading("Messages that their receivers waited longest for");
    report::Table table;
    const auto right = report::Align::kRight;
    table.columns = {{"From"}, {"To"},     {"Waited", right}, {"Bytes", right},
                     {"Tag"},  {"Number"}, {"Communicator"},  {"Sender meanwhile"}};
    table.columns[6].shrink = true;
    table.columns[6].leave_out = 1;
    table.columns[7].shrink = true;
    table.columns[7].cut = report::Cut::kWrap;
    size_t most = 5;
    if (options_.top == 0 || options_.top > most) most = options_.top == 0 ? report_.messages.late.size() : most;
    for (const LateMessage& message : report_.messages.late) {
      if (table.rows.size() == most) break;
      table.rows.push_back(
          {job_.runs[message.from].rank, job_.runs[message.to].rank, time_text(message.waited),
           message.bytes >= 0 ? report::format_bytes(static_cast<double>(message.bytes)) : std::string("—"),
           message.tag == INT32_MIN ? report::Cell() : report::Cell(static_cast<int64_t>(message.tag)),
           static_cast<int64_t>(message.number), group_name(job_.names, message.communicator),
           meanwhile_text(message.meanwhile, job_.names)});
    }
    this->table(table, "messages");
    line("Waited: the receiver's call had begun, and the sender's had not. Number: of its pair and tag, from 0.");
  }

  void message_bytes() {
    if (report_.messages.pairs.empty()) return;
    heading("Bytes of messages and one-sided operations between ranks");
    const size_t count = job_.runs.size();
    report::Table table;
    const auto& pairs = report_.messages.pairs;
    if (count <= 8) {
      table.columns = {{"From \\ to"}};
      for (const RankRun& run : job_.runs) table.columns.push_back({std::to_string(run.rank), report::Align::kRight});
      for (uint32_t from = 0; from < count; ++from) {
        std::vector<report::Cell> row = {job_.runs[from].rank};
        for (uint32_t to = 0; to < count; ++to) {
          const auto found = pairs.find({from, to});
          row.emplace_back(found == pairs.end() ? std::string("—")
                                                : report::format_bytes(static_cast<double>(found->second.second)));
        }
        table.rows.push_back(std::move(row));
      }
    } else {
      table.columns = {{"From"}, {"To"}, {"Messages", report::Align::kRight}, {"Bytes", report::Align::kRight}};
      std::vector<std::pair<std::pair<uint32_t, uint32_t>, std::pair<int64_t, int64_t>>> sorted(pairs.begin(),
                                                                                                pairs.end());
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
      for (const auto& [pair, sums] : sorted)
        table.rows.push_back({job_.runs[pair.first].rank, job_.runs[pair.second].rank, sums.first,
                              report::format_bytes(static_cast<double>(sums.second))});
    }
    this->table(table, "pairs");
  }

  void files() {
    report::Table table;
    table.columns = {{"Rank"}, {"Read", report::Align::kRight}, {"Written", report::Align::kRight}};
    for (const RankRun& run : job_.runs)
      if (run.file_read > 0 || run.file_written > 0)
        table.rows.push_back({run.rank, report::format_bytes(static_cast<double>(run.file_read)),
                              report::format_bytes(static_cast<double>(run.file_written))});
    if (table.rows.empty()) return;
    heading("Bytes of files, by MPI_File_*");
    this->table(table, "ranks");
  }

  void clocks() {
    const std::string text = clocks_text(job_, report_);
    if (text.empty()) return;
    out_ += '\n';
    line(text);
  }

  const Job& job_;
  const Report& report_;
  const TextOptions& options_;
  const StepReport* step_ = nullptr;
  std::string out_;
};

void put_meanwhile(JsonWriter& json, const Meanwhile& meanwhile, const Names& names) {
  static constexpr const char* kKinds[] = {"unknown", "own code", "kernels", "copies", "call", "mpi", "messages"};
  json.name("meanwhile");
  if (meanwhile.kind == Meanwhile::Kind::kUnknown) {
    json.null();
    return;
  }
  json.begin_object();
  json.member("kind", kKinds[static_cast<size_t>(meanwhile.kind)]);
  json.member("text", meanwhile_text(meanwhile, names)).member("time_ns", meanwhile.time);
  if (meanwhile.kind == Meanwhile::Kind::kMessages) json.member("peer", meanwhile.peer);
  if (meanwhile.name != 0) json.member("name", names.text(meanwhile.name)).member("name_ns", meanwhile.name_time);
  json.end_object();
}

void put_cause(JsonWriter& json, const Cause& cause, const Names& names) {
  static constexpr const char* kKinds[] = {"none", "more kernels", "longer kernel", "copies",
                                           "host", "idle",         "earlier",       "messages",
                                           "mpi",  "late sends",   "began later",   "unknown"};
  json.begin_object();
  json.member("kind", kKinds[static_cast<size_t>(cause.kind)]);
  json.member("text", cause_text(cause, names));
  json.member("explained_ns", cause.time);
  if (cause.kind == Cause::Kind::kMoreKernels) json.member("kernels", cause.kernels);
  if (cause.kind == Cause::Kind::kMessages || cause.kind == Cause::Kind::kLateSends) json.member("peer", cause.peer);
  if (cause.name != 0) json.member("name", names.text(cause.name)).member("name_ns", cause.name_time);
  json.member("carried", cause.carried);
  if (cause.kind == Cause::Kind::kLateSends) put_meanwhile(json, cause.meanwhile, names);
  json.end_object();
}

void put_times(JsonWriter& json, const Times& times) {
  json.member("span_ns", times.span())
      .member("busy_ns", times.busy)
      .member("idle_ns", times.idle())
      .member("compute_ns", times.compute)
      .member("communication_ns", times.communication)
      .member("exposed_communication_ns", times.exposed_communication())
      .member("overlap_ns", times.overlap())
      .member("copies_ns", times.copies)
      .member("exposed_copies_ns", times.exposed_copies())
      .member("launch_bound_ns", times.launch_bound);
}

// Unmarks what goes beyond `most` in weight, what was waited least in first.
template <typename Entry>
void keep_most(const std::vector<Entry>& entries, const std::vector<size_t>& weights, size_t most,
               std::vector<bool>& kept) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return entries[a].waited > entries[b].waited; });
  size_t sum = 0;
  for (const size_t i : order) {
    sum += weights[i];
    kept[i] = sum <= most;
  }
}

void put_bandwidth(JsonWriter& json, double algorithm, double bus) {
  json.name("algorithm_gb_s");
  algorithm > 0 ? json.value(algorithm) : json.null();
  json.name("bus_gb_s");
  bus > 0 ? json.value(bus) : json.null();
}

}  // namespace

Result<std::string> to_text(const Job& job, const Report& report, const TextOptions& options) {
  return Text(job, report, options).all();
}

Status to_json(const Job& job, const Report& report, const std::function<void(std::string_view)>& put,
               const JsonOptions& options) {
  // Steps and collectives that there is room for.
  std::vector<bool> step_kept(report.steps.size(), true), collective_kept(report.collectives.size(), true);
  std::set<int64_t> steps_kept;
  if (options.most > 0) {
    std::vector<size_t> weights(report.steps.size(), job.runs.size());
    keep_most(report.steps, weights, options.most, step_kept);
    weights.clear();
    for (const Collective& collective : report.collectives) weights.push_back(collective.ranks);
    keep_most(report.collectives, weights, options.most, collective_kept);
    for (size_t i = 0; i < report.steps.size(); ++i)
      if (step_kept[i]) steps_kept.insert(report.steps[i].number);
  }
  const bool all_steps = std::find(step_kept.begin(), step_kept.end(), false) == step_kept.end();
  std::string out;
  JsonWriter json(out);
  constexpr size_t kPiece = 1 << 20;
  // Begins a row of a list.
  const auto next_row = [&]() -> JsonWriter& {
    if (out.size() >= kPiece) {
      put(out);
      out.clear();
    }
    return json.newline();
  };
  json.begin_object();
  json.member("schema", "tacho-ranks/1");
  json.name("remarks").begin_array();
  for (const std::string& remark : job.remarks) json.value(remark);
  for (const std::string& remark : report.remarks) json.value(remark);
  json.end_array();
  json.name("sentences").begin_array();
  for (const std::string& sentence : headlines(job, report)) json.value(sentence);
  json.end_array();
  json.name("clocks").begin_object();
  json.member("text", clocks_text(job, report)).member("aligned", report.aligned);
  json.member("residual_ns", report.clock_residual);
  json.end_object();
  json.member("steps_from", job.runs[0].steps_from);
  json.name("missing_ranks").begin_array();
  for (const int64_t rank : report.missing) json.value(rank);
  json.end_array();
  json.name("ranks").begin_array();
  for (size_t run = 0; run < job.runs.size(); ++run) {
    const RankRun& of = job.runs[run];
    const RankAnswer& rank = report.ranks[run];
    next_row().begin_object();
    json.member("rank", of.rank).member("file", of.file).member("host", of.host);
    json.member("kernels", of.kernels).member("collectives", of.arrivals);
    put_times(json, of.total);
    json.member("mpi_calls", of.calls).member("mpi_ns", of.mpi).member("mpi_waiting_ns", of.mpi_waiting);
    json.member("messages", of.messages);
    json.member("file_read_bytes", of.file_read).member("file_written_bytes", of.file_written);
    json.member("launches_known", of.unlaunched != of.operations);
    json.member("waited_ns", rank.waited).member("caused_ns", rank.caused).member("last_in", rank.last_in);
    json.member("clock_offset_ns", rank.clock_offset).member("clock_corrected", rank.corrected);
    json.name("clock_residual_ns");
    rank.related ? json.value(rank.clock_residual) : json.null();
    json.name("steps").begin_array();
    TACHO_ASSIGN(const std::vector<Times> steps, steps_of(of, job.spools));
    for (size_t step = 0; step < steps.size(); ++step) {
      if (steps[step].first == kUnknown) continue;
      const int64_t number = of.first_step + static_cast<int64_t>(step);
      if (!all_steps && !steps_kept.contains(number)) continue;
      json.begin_object();
      json.member("step", number);
      put_times(json, steps[step]);
      if (step < rank.steps.size()) {
        const RankStep& with_others = rank.steps[step];
        json.member("begin_ns", with_others.begin - options.zero)
            .member("end_ns", with_others.end - options.zero)
            .member("late_ns", with_others.late)
            .member("waited_ns", with_others.waited)
            .member("caused_ns", with_others.caused);
      }
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.name("stragglers").begin_array();
  for (const Straggler& straggler : report.stragglers) {
    next_row().begin_object();
    json.member("rank", straggler.rank)
        .member("last_in", straggler.collectives)
        .member("waited_ns", straggler.waited)
        .member("waited_for_messages_ns", straggler.for_messages);
    json.name("steps").begin_array();
    for (const int64_t step : straggler.steps) json.value(step);
    json.end_array();
    json.name("cause");
    put_cause(json, straggler.cause, job.names);
    json.end_object();
  }
  json.end_array();
  json.name("steps").begin_array();
  for (size_t i = 0; i < report.steps.size(); ++i) {
    if (!step_kept[i]) continue;
    const StepReport& step = report.steps[i];
    next_row().begin_object();
    json.member("step", step.number)
        .member("begin_ns", step.begin - options.zero)
        .member("length_ns", step.end - step.begin);
    json.member("collectives", step.collectives).member("last_rank", step.last_rank).member("last_in", step.last_in);
    json.member("late_ns", step.late).member("waited_ns", step.waited).member("imbalance_percent", step.imbalance);
    json.name("cause");
    put_cause(json, step.cause, job.names);
    json.name("path").begin_array();
    for (const PathPiece& piece : step.path) {
      static constexpr const char* kKinds[] = {"stretch", "transfer", "tail"};
      json.begin_object();
      json.member("rank", piece.rank).member("kind", kKinds[static_cast<size_t>(piece.kind)]);
      json.member("duration_ns", piece.duration);
      if (piece.kind == PathPiece::Kind::kStretch)
        json.member("compute_ns", piece.compute)
            .member("copies_ns", piece.copy)
            .member("idle_ns", piece.idle)
            .member("host_ns", piece.host);
      json.member("collective", piece.collective);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.name("collectives").begin_array();
  std::vector<RankArrival> arrivals;
  for (size_t i = 0; i < report.collectives.size(); ++i) {
    if (!collective_kept[i]) continue;
    const Collective& collective = report.collectives[i];
    next_row().begin_object();
    const Names::Communicator told = job.names.communicator(collective.communicator);
    json.member("index", i).member("group", told.name).member("number", collective.sequence);
    json.member("operation", operation_name(collective.operation));
    json.name("message_bytes");
    collective.bytes > 0 ? json.value(collective.bytes) : json.null();
    json.name("step");
    collective.step >= 0 ? json.value(job.runs[0].first_step + collective.step) : json.null();
    json.member("ranks", collective.ranks).member("complete", collective.complete);
    json.member("last_rank", collective.last_rank);
    json.member("blamed_rank", job.runs[collective.blamed_run].rank)
        .member("first_start_ns", collective.first_start - options.zero);
    json.member("spread_ns", collective.spread).member("late_ns", collective.late);
    json.member("waited_ns", collective.waited).member("transfer_ns", collective.transfer);
    put_bandwidth(json, collective.algorithm_bandwidth, collective.bus_bandwidth);
    json.name("cause");
    put_cause(json, collective.cause, job.names);
    if (report.arrivals) {
      arrivals.resize(collective.ranks);
      TACHO_TRY(report.arrivals->read(collective.arrivals_at, arrivals.size(), arrivals.data()));
      json.name("arrivals").begin_array();
      for (const RankArrival& arrival : arrivals)
        json.begin_array()
            .value(job.runs[arrival.run].rank)
            .value(arrival.start - collective.first_start)
            .value(collective.last_start - arrival.start)
            .value(arrival.end - collective.first_start)
            .end_array();
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
  json.member("steps_left_out", std::count(step_kept.begin(), step_kept.end(), false))
      .member("collectives_left_out", std::count(collective_kept.begin(), collective_kept.end(), false));
  json.name("kinds").begin_array();
  for (const Group& group : report.groups) {
    next_row().begin_object();
    const Names::Communicator told = job.names.communicator(group.communicator);
    json.member("operation", operation_name(group.operation)).member("group", told.name);
    json.member("members", told.members).member("message_bytes", group.bytes).member("count", group.count);
    json.member("median_spread_ns", group.median_spread).member("longest_spread_ns", group.most_spread);
    json.member("median_transfer_ns", group.median_transfer).member("waited_ns", group.waited);
    put_bandwidth(json, group.algorithm_bandwidth, group.bus_bandwidth);
    json.name("peak_gb_s");
    group.peak > 0 ? json.value(group.peak) : json.null();
    json.member("peak", peak_text(group));
    json.end_object();
  }
  json.end_array();
  json.name("late_messages").begin_array();
  for (const LateMessage& message : report.messages.late) {
    next_row().begin_object();
    json.member("from", job.runs[message.from].rank).member("to", job.runs[message.to].rank);
    json.member("communicator", job.names.communicator(message.communicator).name);
    json.name("tag");
    message.tag != INT32_MIN ? json.value(message.tag) : json.null();
    json.member("number", message.number).member("bytes", message.bytes);
    json.member("sent_ns", message.sent_at - options.zero).member("waited_ns", message.waited);
    put_meanwhile(json, message.meanwhile, job.names);
    json.end_object();
  }
  json.end_array();
  json.name("messages").begin_array();
  for (const auto& [pair, sums] : report.messages.pairs) {
    next_row().begin_object();
    json.member("from", job.runs[pair.first].rank).member("to", job.runs[pair.second].rank);
    json.member("messages", sums.first).member("bytes", sums.second);
    json.end_object();
  }
  json.end_array();
  json.name("bytes").begin_array();
  for (const auto& [pair, count] : report.bytes) {
    next_row().begin_object();
    json.member("from", pair.first).member("to", pair.second).member("bytes", count);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += "\n";
  put(out);
  return {};
}

Result<std::string> page_json(const std::vector<std::string>& inputs, int64_t t0) {
  Job job;
  TACHO_TRY(load_job(inputs, job));
  TACHO_ASSIGN(const Report report, answer(job, true));
  // The merged trace has the clock of the first file.
  size_t first = 0;
  for (size_t run = 1; run < job.runs.size(); ++run)
    if (job.runs[run].file < job.runs[first].file) first = run;
  constexpr size_t kMostOfPage = 60'000;
  std::string page;
  TACHO_TRY(
      to_json(job, report, [&](std::string_view piece) { page += piece; },
              {.zero = t0 + job.runs[first].clock_shift - report.ranks[first].clock_offset, .most = kMostOfPage}));
  return page;
}

}  // namespace tacho::ranks
