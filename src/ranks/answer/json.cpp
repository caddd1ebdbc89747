// The answers as JSON, tacho-ranks/1 (render.h).
#include <algorithm>
#include <numeric>
#include <set>

#include "ranks/answer/render.h"
#include "ranks/answer/sentences.h"
#include "ranks/match/late_senders.h"
#include "report/value.h"

namespace tacho::ranks {
namespace {

using report::JsonValue;

// A number that is only known where it is positive.
template <typename Number>
JsonValue known(Number value) {
  return value > 0 ? JsonValue(value) : JsonValue();
}

JsonValue value_of(const Meanwhile& meanwhile, const Names& names) {
  static constexpr const char* kKinds[] = {"unknown", "own code", "kernels", "copies", "call", "mpi", "messages"};
  if (meanwhile.kind == Meanwhile::Kind::kUnknown) return {};
  JsonValue out = JsonValue::object({{"kind", kKinds[static_cast<size_t>(meanwhile.kind)]},
                                     {"text", meanwhile_text(meanwhile, names)},
                                     {"time_ns", meanwhile.time}});
  if (meanwhile.kind == Meanwhile::Kind::kMessages) out.set("peer", meanwhile.peer);
  if (meanwhile.name != 0) {
    out.set("name", names.text(meanwhile.name));
    out.set("name_ns", meanwhile.name_time);
  }
  return out;
}

JsonValue value_of(const Cause& cause, const Names& names) {
  static constexpr const char* kKinds[] = {"none", "more kernels", "longer kernel", "copies",
                                           "host", "idle",         "earlier",       "messages",
                                           "mpi",  "late sends",   "began later",   "unknown"};
  JsonValue out = JsonValue::object({{"kind", kKinds[static_cast<size_t>(cause.kind)]},
                                     {"text", cause_text(cause, names)},
                                     {"explained_ns", cause.time}});
  if (cause.kind == Cause::Kind::kMoreKernels) out.set("kernels", cause.kernels);
  if (cause.kind == Cause::Kind::kMessages || cause.kind == Cause::Kind::kLateSends) out.set("peer", cause.peer);
  if (cause.place != 0) {
    out.set("place", names.text(cause.place));
    out.set("place_ns", cause.place_time);
  }
  if (cause.part_name != 0) {
    out.set("part_name", names.text(cause.part_name));
    out.set("part_percent", 100 * cause.part);
  }
  if (cause.name != 0) {
    out.set("name", names.text(cause.name));
    out.set("name_ns", cause.name_time);
  }
  out.set("carried", cause.carried);
  if (cause.kind == Cause::Kind::kLateSends) out.set("meanwhile", value_of(cause.meanwhile, names));
  return out;
}

void set_times(JsonValue& out, const Times& times) {
  out.set("span_ns", times.span());
  out.set("busy_ns", times.busy);
  out.set("idle_ns", times.idle());
  out.set("compute_ns", times.compute);
  out.set("communication_ns", times.communication);
  out.set("exposed_communication_ns", times.exposed_communication());
  out.set("overlap_ns", times.overlap());
  out.set("copies_ns", times.copies);
  out.set("exposed_copies_ns", times.exposed_copies());
  out.set("launch_bound_ns", times.launch_bound);
}

// Unmarks the entries with the least waiting until the weight of the rest is at most `most`.
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

class Json {
 public:
  Json(const Job& job, const Report& report, const std::function<void(std::string_view)>& put,
       const RankJsonOptions& options)
      : job_(job),
        report_(report),
        options_(options),
        out_(put),
        step_kept_(report.steps.size(), true),
        collective_kept_(report.collectives.size(), true) {
    if (options.most == 0) return;
    std::vector<size_t> weights(report.steps.size(), job.runs.size());
    keep_most(report.steps, weights, options.most, step_kept_);
    weights.clear();
    for (const Collective& collective : report.collectives) weights.push_back(collective.ranks);
    keep_most(report.collectives, weights, options.most, collective_kept_);
  }

  Status all() {
    head();
    TACHO_TRY(ranks());
    stragglers();
    steps();
    TACHO_TRY(collectives());
    out_.set("steps_left_out", std::count(step_kept_.begin(), step_kept_.end(), false));
    out_.set("collectives_left_out", std::count(collective_kept_.begin(), collective_kept_.end(), false));
    kinds();
    messages();
    out_.end();
    return {};
  }

 private:
  // A moment of the common clock.
  int64_t moment(int64_t time) const { return time - options_.zero; }

  void head() {
    JsonValue remarks = JsonValue::list_of(job_.remarks);
    for (const std::string& remark : report_.remarks) remarks.add(remark);
    out_.set("schema", "tacho-ranks/1");
    out_.set("remarks", remarks);
    out_.set("sentences", JsonValue::list_of(headlines(job_, report_)));
    out_.set("clocks", JsonValue::object({{"text", clocks_text(job_, report_)},
                                          {"aligned", report_.aligned},
                                          {"residual_ns", report_.clock_residual}}));
    out_.set("steps_from", job_.runs[0].steps_from);
    out_.set("missing_ranks", JsonValue::list_of(report_.missing));
  }

  Status ranks() {
    const bool all_steps = std::find(step_kept_.begin(), step_kept_.end(), false) == step_kept_.end();
    std::set<int64_t> kept;
    for (size_t i = 0; i < report_.steps.size(); ++i)
      if (step_kept_[i]) kept.insert(report_.steps[i].number);
    out_.begin_lines("ranks");
    for (size_t run = 0; run < job_.runs.size(); ++run) {
      const RankRun& of = job_.runs[run];
      const RankAnswer& rank = report_.ranks[run];
      JsonValue row = JsonValue::object({{"rank", of.rank},
                                         {"file", of.file},
                                         {"host", of.host},
                                         {"kernels", of.kernels},
                                         {"collectives", of.arrivals}});
      set_times(row, of.total);
      row.set("mpi_calls", of.calls);
      row.set("mpi_ns", of.mpi);
      row.set("mpi_waiting_ns", of.mpi_waiting);
      row.set("messages", of.messages);
      row.set("file_read_bytes", of.file_read);
      row.set("file_written_bytes", of.file_written);
      row.set("launches_known", of.unlaunched != of.operations);
      row.set("waited_ns", rank.waited);
      row.set("caused_ns", rank.caused);
      row.set("last_in", rank.last_in);
      row.set("clock_offset_ns", rank.clock_offset);
      row.set("clock_corrected", rank.corrected);
      row.set("clock_residual_ns", rank.related ? JsonValue(rank.clock_residual) : JsonValue());
      TACHO_ASSIGN(const std::vector<Times> steps, steps_of(of, job_.spools));
      JsonValue list = JsonValue::list();
      for (size_t step = 0; step < steps.size(); ++step) {
        const int64_t number = of.first_step + static_cast<int64_t>(step);
        if (steps[step].first == kUnknown || (!all_steps && !kept.contains(number))) continue;
        list.add(rank_step(number, steps[step], step < rank.steps.size() ? &rank.steps[step] : nullptr));
      }
      row.set("steps", std::move(list));
      out_.add(row);
    }
    out_.end_lines();
    return {};
  }

  JsonValue rank_step(int64_t number, const Times& times, const RankStep* with_others) const {
    JsonValue out = JsonValue::object({{"step", number}});
    set_times(out, times);
    if (with_others == nullptr) return out;
    out.set("begin_ns", moment(with_others->begin));
    out.set("end_ns", moment(with_others->end));
    out.set("late_ns", with_others->late);
    out.set("waited_ns", with_others->waited);
    out.set("caused_ns", with_others->caused);
    return out;
  }

  void stragglers() {
    out_.begin_lines("stragglers");
    for (const Straggler& straggler : report_.stragglers)
      out_.add(JsonValue::object({{"rank", straggler.rank},
                                  {"last_in", straggler.collectives},
                                  {"waited_ns", straggler.waited},
                                  {"waited_for_messages_ns", straggler.for_messages},
                                  {"steps", JsonValue::list_of(straggler.steps)},
                                  {"cause", value_of(straggler.cause, job_.names)}}));
    out_.end_lines();
  }

  void steps() {
    out_.begin_lines("steps");
    for (size_t i = 0; i < report_.steps.size(); ++i) {
      if (!step_kept_[i]) continue;
      const StepReport& step = report_.steps[i];
      JsonValue path = JsonValue::list();
      for (const PathPiece& piece : step.path) {
        static constexpr const char* kKinds[] = {"stretch", "transfer", "tail"};
        JsonValue part = JsonValue::object(
            {{"rank", piece.rank}, {"kind", kKinds[static_cast<size_t>(piece.kind)]}, {"duration_ns", piece.duration}});
        if (piece.kind == PathPiece::Kind::kStretch) {
          part.set("compute_ns", piece.compute);
          part.set("copies_ns", piece.copy);
          part.set("idle_ns", piece.idle);
          part.set("host_ns", piece.host);
        }
        part.set("collective", piece.collective);
        path.add(std::move(part));
      }
      out_.add(JsonValue::object({{"step", step.number},
                                  {"begin_ns", moment(step.begin)},
                                  {"length_ns", step.end - step.begin},
                                  {"collectives", step.collectives},
                                  {"last_rank", step.last_rank},
                                  {"last_in", step.last_in},
                                  {"late_ns", step.late},
                                  {"waited_ns", step.waited},
                                  {"imbalance_percent", step.imbalance},
                                  {"cause", value_of(step.cause, job_.names)},
                                  {"path", std::move(path)}}));
    }
    out_.end_lines();
  }

  Status collectives() {
    out_.begin_lines("collectives");
    std::vector<RankArrival> arrivals;
    for (size_t i = 0; i < report_.collectives.size(); ++i) {
      if (!collective_kept_[i]) continue;
      const Collective& collective = report_.collectives[i];
      JsonValue row = JsonValue::object(
          {{"index", i},
           {"group", job_.names.communicator(collective.communicator).name},
           {"number", collective.sequence},
           {"operation", operation_name(collective.operation)},
           {"message_bytes", known(collective.bytes)},
           {"step", collective.step >= 0 ? JsonValue(job_.runs[0].first_step + collective.step) : JsonValue()},
           {"ranks", collective.ranks},
           {"complete", collective.complete},
           {"last_rank", collective.last_rank},
           {"blamed_rank", job_.runs[collective.blamed_run].rank},
           {"first_start_ns", moment(collective.first_start)},
           {"spread_ns", collective.spread},
           {"late_ns", collective.late},
           {"waited_ns", collective.waited},
           {"transfer_ns", collective.transfer},
           {"algorithm_gb_s", known(collective.algorithm_bandwidth)},
           {"bus_gb_s", known(collective.bus_bandwidth)},
           {"cause", value_of(collective.cause, job_.names)}});
      if (report_.arrivals) {
        arrivals.resize(collective.ranks);
        TACHO_TRY(report_.arrivals->read(collective.arrivals_at, arrivals.size(), arrivals.data()));
        JsonValue list = JsonValue::list();
        for (const RankArrival& arrival : arrivals)
          list.add(JsonValue::list({job_.runs[arrival.run].rank, arrival.start - collective.first_start,
                                    collective.last_start - arrival.start, arrival.end - collective.first_start}));
        row.set("arrivals", std::move(list));
      }
      out_.add(row);
    }
    out_.end_lines();
    return {};
  }

  void kinds() {
    out_.begin_lines("kinds");
    for (const Group& group : report_.groups) {
      const Names::Communicator told = job_.names.communicator(group.communicator);
      out_.add(JsonValue::object({{"operation", operation_name(group.operation)},
                                  {"group", told.name},
                                  {"members", told.members},
                                  {"message_bytes", group.bytes},
                                  {"count", group.count},
                                  {"median_spread_ns", group.median_spread},
                                  {"longest_spread_ns", group.most_spread},
                                  {"median_transfer_ns", group.median_transfer},
                                  {"waited_ns", group.waited},
                                  {"algorithm_gb_s", known(group.algorithm_bandwidth)},
                                  {"bus_gb_s", known(group.bus_bandwidth)},
                                  {"peak_gb_s", known(group.peak)},
                                  {"peak", peak_text(group)}}));
    }
    out_.end_lines();
  }

  void messages() {
    out_.begin_lines("late_messages");
    for (const LateMessage& message : report_.messages.late)
      out_.add(JsonValue::object({{"from", job_.runs[message.from].rank},
                                  {"to", job_.runs[message.to].rank},
                                  {"communicator", job_.names.communicator(message.communicator).name},
                                  {"tag", message.tag != INT32_MIN ? JsonValue(message.tag) : JsonValue()},
                                  {"number", message.number},
                                  {"bytes", message.bytes},
                                  {"sent_ns", moment(message.sent_at)},
                                  {"waited_ns", message.waited},
                                  {"meanwhile", value_of(message.meanwhile, job_.names)}}));
    out_.end_lines();
    out_.begin_lines("messages");
    for (const auto& [pair, sums] : report_.messages.pairs)
      out_.add(JsonValue::object({{"from", job_.runs[pair.first].rank},
                                  {"to", job_.runs[pair.second].rank},
                                  {"messages", sums.first},
                                  {"bytes", sums.second}}));
    out_.end_lines();
    out_.begin_lines("bytes");
    for (const auto& [pair, count] : report_.bytes)
      out_.add(JsonValue::object({{"from", pair.first}, {"to", pair.second}, {"bytes", count}}));
    out_.end_lines();
  }

  const Job& job_;
  const Report& report_;
  const RankJsonOptions& options_;
  report::DocumentStream out_;
  std::vector<bool> step_kept_, collective_kept_;  // that there is room for
};

}  // namespace

Status to_json(const Job& job, const Report& report, const std::function<void(std::string_view)>& put,
               const RankJsonOptions& options) {
  return Json(job, report, put, options).all();
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
