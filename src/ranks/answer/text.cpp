// The answers as text (render.h).
#include <algorithm>

#include "base/saturating.h"
#include "ranks/answer/render.h"
#include "ranks/answer/sentences.h"
#include "ranks/match/late_senders.h"
#include "report/sections.h"

namespace tacho::ranks {
namespace {

using report::Answer;
using report::Cell;
using report::Unit;

std::string group_name(const Names& names, uint32_t communicator) {
  const Names::Communicator about = names.communicator(communicator);
  constexpr size_t kShort = 24;  // bytes
  if (about.name.empty())
    return about.members.empty()            ? "—"
           : about.members.size() <= kShort ? about.members
                                            : fmt::format("{} ranks", members_of(about.members).size());
  return about.description.empty() || about.description == about.name ? about.name
                                                                      : about.name + " " + about.description;
}

class Text {
 public:
  Text(const Job& job, const Report& report, const RankTextOptions& options)
      : job_(job), report_(report), options_(options), out_({.width = options.width, .colour = options.colour}) {}
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
    return out_.take();
  }

 private:
  void line(const std::string& text) { out_.sentence(text, 0); }
  void heading(const std::string& text) { out_.heading(text); }
  void table(const Answer& answer, const char* more = "rows") {
    if (const size_t rows = out_.table(answer, options_.top); rows > 0)
      line(fmt::format("({} more {}: --top 0)", rows, more));
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
      return fail("--step {}: the traces mark no steps (docs/ranks.md says what marks one)", options_.step);
    return fail("--step {}: there is no such step; steps go from {} to {}", options_.step, report_.steps.front().number,
                report_.steps.back().number);
  }

  void headline() {
    for (const std::string& text : headlines(job_, report_)) line(text);
    const auto note = [&](const std::string& remark) {
      line(fmt::format("Note: {}{}", remark, remark.ends_with('?') ? "" : "."));
    };
    for (const std::string& remark : job_.remarks) note(remark);
    for (const std::string& remark : report_.remarks) note(remark);
  }

  void stragglers() {
    if (report_.stragglers.empty()) return;
    heading("Who made whom wait");
    Answer answer;
    answer.columns = {{.title = "Rank", .unit = Unit::kCount},
                      {.title = "Last to", .unit = Unit::kCount},
                      {.title = "Others waited", .unit = Unit::kNs},
                      {.title = "Steps", .leave_out = 1},
                      {.title = "Cause", .cut = report::Cut::kWrap}};
    for (const Straggler& straggler : report_.stragglers)
      answer.rows.push_back({straggler.rank, static_cast<int64_t>(straggler.collectives), straggler.waited,
                             numbers(straggler.steps), cause_text(straggler.cause, job_.names)});
    table(answer, "ranks");
  }

  void ranks() {
    heading("Time of the ranks");
    Answer answer;
    answer.columns = {{.title = "Rank", .unit = Unit::kCount},
                      {.title = "Span", .unit = Unit::kNs, .leave_out = 1},
                      {.title = "Compute", .unit = Unit::kNs},
                      {.title = "Comm", .unit = Unit::kNs},
                      {.title = "Exposed", .unit = Unit::kNs},
                      {.title = "Overlap", .unit = Unit::kNumber},
                      {.title = "Copies", .unit = Unit::kNs, .leave_out = 2},
                      {.title = "Idle", .unit = Unit::kNs},
                      {.title = "Launch", .unit = Unit::kNs},
                      {.title = "Waited", .unit = Unit::kNs}};
    for (size_t run = 0; run < job_.runs.size(); ++run) {
      const Times& times = job_.runs[run].total;
      const RankRun& of = job_.runs[run];
      answer.rows.push_back({of.rank, times.span(), times.compute, times.communication, times.exposed_communication(),
                             percent(static_cast<double>(times.overlap()), static_cast<double>(times.communication)),
                             times.exposed_copies(), times.idle(),
                             of.unlaunched == of.operations ? Cell() : Cell(times.launch_bound),
                             report_.ranks[run].waited});
    }
    table(answer, "ranks");
    line("Exposed: communication beside no compute. Launch: idle, as the host had not launched.");
  }

  void steps() {
    if (report_.steps.empty()) {
      out_.line("");
      line("Steps: none. No ProfilerStep, Optimizer.step or step range is in "
           "the traces, and the collectives do not repeat.");
      return;
    }
    heading(fmt::format("Steps (from {})", job_.runs[0].steps_from));
    Answer answer;
    answer.columns = {{.title = "Step", .unit = Unit::kCount},       {.title = "Length", .unit = Unit::kNs},
                      {.title = "Last rank", .unit = Unit::kCount},  {.title = "In", .leave_out = 1, .whole = true},
                      {.title = "Late", .unit = Unit::kNs},          {.title = "Waited", .unit = Unit::kNs},
                      {.title = "Imbalance", .unit = Unit::kNumber}, {.title = "Cause", .cut = report::Cut::kWrap}};
    for (const StepReport& step : report_.steps)
      answer.rows.push_back({step.number, step.end - step.begin, step.last_rank,
                             fmt::format("{}/{}", step.last_in, step.collectives), step.late, step.waited,
                             fmt::format("{:.1f} %", step.imbalance), cause_text(step.cause, job_.names)});
    table(answer, "steps");
  }

  void groups() {
    heading("Collectives");
    // Which group matters where there are several.
    bool several = false;
    for (const Group& group : report_.groups) several = several || group.communicator != report_.groups[0].communicator;
    const bool any_peak = std::ranges::any_of(report_.groups, [](const Group& group) { return group.peak > 0; });
    Answer answer;
    answer.columns = {{.title = "Operation", .whole = true},
                      {.title = "Group", .leave_out = several ? 0 : 1},
                      {.title = "Message", .unit = Unit::kBytes, .dash_zero = true},
                      {.title = "Count", .unit = Unit::kCount},
                      {.title = "Spread", .unit = Unit::kNs},
                      {.title = "Longest", .unit = Unit::kNs, .leave_out = 2},
                      {.title = "Transfer", .unit = Unit::kNs},
                      {.title = "Alg GB/s", .unit = Unit::kNumber, .leave_out = 3, .dash_zero = true},
                      {.title = "Bus GB/s", .unit = Unit::kNumber, .dash_zero = true},
                      {.title = any_peak ? "Of peak" : "", .unit = Unit::kNumber}};
    std::vector<std::string> peaks;  // sentences about them
    for (const Group& group : report_.groups) {
      answer.rows.push_back({std::string(operation_name(group.operation)), group_name(job_.names, group.communicator),
                             group.bytes, static_cast<int64_t>(group.count), group.median_spread, group.most_spread,
                             group.median_transfer, group.algorithm_bandwidth, group.bus_bandwidth,
                             percent(group.bus_bandwidth, group.peak)});
      if (std::string peak = peak_text(group); std::ranges::find(peaks, peak) == peaks.end())
        peaks.push_back(std::move(peak));
    }
    table(answer, "kinds");
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
    Answer answer;
    answer.columns = {{.title = "Rank", .unit = Unit::kCount},         {.title = "Compute", .unit = Unit::kNs},
                      {.title = "Copies", .unit = Unit::kNs},          {.title = "Idle", .unit = Unit::kNs},
                      {.title = "of it host", .unit = Unit::kNs},      {.title = "Transfer", .unit = Unit::kNs},
                      {.title = "Leads to", .cut = report::Cut::kWrap}};
    // A stretch and the transfer that it leads to make a line; lines of one rank and nothing but transfer become one.
    for (const PathPiece& piece : step_->path) {
      const std::string none;
      if (piece.kind == PathPiece::Kind::kTail)
        answer.rows.push_back({piece.rank, none, none, none, none, none,
                               "the step's end, " + time_text(piece.duration) + " after the last collective"});
      if (piece.kind != PathPiece::Kind::kStretch) continue;
      const Collective& to = report_.collectives[piece.collective];
      answer.rows.push_back({piece.rank, piece.compute, piece.copy, piece.idle, piece.host, to.transfer,
                             fmt::format("{} {}", operation_name(to.operation), to.sequence)});
    }
    table(answer, "stretches");
  }

  // A matrix for few ranks, for many the pairs with the most bytes first.
  struct Pair {
    int64_t from, to, messages, bytes;
  };
  void pairs(std::vector<Pair>& pairs, bool with_messages) {
    Answer answer;
    if (job_.runs.size() <= 8) {
      answer.columns = {{.title = "From \\ to", .unit = Unit::kCount}};
      for (const RankRun& run : job_.runs) answer.columns.push_back({"", std::to_string(run.rank), Unit::kBytes});
      for (const RankRun& from : job_.runs) {
        std::vector<Cell>& row = answer.rows.emplace_back();
        row.emplace_back(from.rank);
        for (const RankRun& to : job_.runs) {
          const auto found = std::ranges::find_if(
              pairs, [&](const Pair& pair) { return pair.from == from.rank && pair.to == to.rank; });
          if (found == pairs.end())
            row.emplace_back();
          else
            row.emplace_back(found->bytes);
        }
      }
    } else {
      answer.columns = {{.title = "From", .unit = Unit::kCount},
                        {.title = "To", .unit = Unit::kCount},
                        {.title = with_messages ? "Messages" : "", .unit = Unit::kCount},
                        {.title = "Bytes", .unit = Unit::kBytes}};
      std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) { return a.bytes > b.bytes; });
      for (const Pair& pair : pairs) answer.rows.push_back({pair.from, pair.to, pair.messages, pair.bytes});
    }
    table(answer, "pairs");
  }

  void bytes() {
    if (report_.bytes.empty()) return;
    heading("Bytes between ranks (a model: rings in the order of each group; docs/ranks.md)");
    std::vector<Pair> all;
    for (const auto& [pair, count] : report_.bytes) all.push_back({pair.first, pair.second, 0, count});
    pairs(all, false);
  }

  void late_messages() {
    if (report_.messages.late.empty()) return;
    heading("Messages that their receivers waited longest for");
    Answer answer;
    answer.columns = {
        {.title = "From", .unit = Unit::kCount},   {.title = "To", .unit = Unit::kCount},
        {.title = "Waited", .unit = Unit::kNs},    {.title = "Bytes", .unit = Unit::kBytes},
        {.title = "Tag", .unit = Unit::kCount},    {.title = "Number", .unit = Unit::kCount},
        {.title = "Communicator", .leave_out = 1}, {.title = "Sender meanwhile", .cut = report::Cut::kWrap}};
    size_t most = 5;
    if (options_.top == 0) most = report_.messages.late.size();
    for (const LateMessage& message : report_.messages.late) {
      if (answer.rows.size() == most) break;
      answer.rows.push_back({job_.runs[message.from].rank, job_.runs[message.to].rank, message.waited,
                             message.bytes >= 0 ? Cell(message.bytes) : Cell(),
                             message.tag == INT32_MIN ? Cell() : Cell(static_cast<int64_t>(message.tag)),
                             static_cast<int64_t>(message.number), group_name(job_.names, message.communicator),
                             meanwhile_text(message.meanwhile, job_.names)});
    }
    table(answer, "messages");
    line("Waited: the receiver's call had begun, and the sender's had not. Number: of its pair and tag, from 0.");
  }

  void message_bytes() {
    if (report_.messages.pairs.empty()) return;
    heading("Bytes of messages and one-sided operations between ranks");
    std::vector<Pair> all;
    for (const auto& [pair, sums] : report_.messages.pairs)
      all.push_back({job_.runs[pair.first].rank, job_.runs[pair.second].rank, sums.first, sums.second});
    pairs(all, true);
  }

  void files() {
    Answer answer;
    answer.columns = {{.title = "Rank", .unit = Unit::kCount},
                      {.title = "Read", .unit = Unit::kBytes},
                      {.title = "Written", .unit = Unit::kBytes}};
    for (const RankRun& run : job_.runs)
      if (run.file_read > 0 || run.file_written > 0) answer.rows.push_back({run.rank, run.file_read, run.file_written});
    if (answer.rows.empty()) return;
    heading("Bytes of files, by MPI_File_*");
    table(answer, "ranks");
  }

  void clocks() {
    const std::string text = clocks_text(job_, report_);
    if (text.empty()) return;
    out_.line("");
    line(text);
  }

  const Job& job_;
  const Report& report_;
  const RankTextOptions& options_;
  const StepReport* step_ = nullptr;
  report::Sections out_;
};

}  // namespace

Result<std::string> to_text(const Job& job, const Report& report, const RankTextOptions& options) {
  return Text(job, report, options).all();
}

}  // namespace tacho::ranks
