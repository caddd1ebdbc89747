// A run, its findings and its part of the document (run.h).
#include "view/run.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "analysis/stats.h"
#include "analysis/sums/sums.h"
#include "analysis/trim.h"
#include "base/text/json_writer.h"
#include "base/thread.h"
#include "format/format.h"
#include "walk/time/clock.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;

namespace {

// Times of the trace may not fit in a double: they travel as text.
void put_time_text(JsonWriter& json, int64_t time) {
  json.value(fmt::format("{}", time));
}

}  // namespace

Run::Run(size_t id, std::string path, std::shared_ptr<const trace::Trace> trace, const Limits& limits,
         FindingsOf findings, const Growing& growing)
    : id_(id),
      generation_(growing.generation),
      naming_(growing.naming),
      live_(growing.live),
      path_(std::move(path)),
      trace_(std::move(trace)),
      tree_(*trace_),
      names_(*trace_, growing.before),
      index_(trace_, tree_, names_, limits),
      findings_of_(analysis::holds_sums(*trace_) ? nullptr : std::move(findings)) {  // sums have nothing to find in
  if (!names_.kept()) ++naming_;
  index_.start();
  if (findings_of_) finding_ = thread_without_signals([this] { find(); });
}

Run::~Run() {
  if (finding_.joinable()) finding_.join();
}

// Findings come after the timeline, which people wait for.
void Run::find() {
  if (!index_.wait() || index_.stopped()) return;
  finding_now_ = true;
  auto found = findings_of_(*trace_);
  finding_now_ = false;
  const std::lock_guard held(findings_lock_);
  if (!found) {
    findings_error_ = found.error().message;
    return;
  }
  for (analysis::TraceFinding& finding : found->findings)
    for (analysis::FindingSpan& span : finding.spans) {
      std::vector<int64_t> lines;
      for (const int64_t track : span.tracks) {
        int64_t line = tree_.line_of(Table::kApi, track);
        if (line < 0) line = tree_.line_of(Table::kSample, track);
        if (line >= 0 && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
      }
      span.tracks = std::move(lines);
    }
  findings_ = std::move(*found);
}

Status Run::wait() {
  TACHO_TRY(index_.wait());
  if (finding_.joinable()) finding_.join();
  const std::lock_guard held(findings_lock_);
  if (!findings_error_.empty()) return fail("{}", findings_error_);
  return {};
}

void Run::offer(std::string name, MakeView make) {
  view_names_.push_back(name);
  offers_[std::move(name)].make = std::move(make);
}

bool Run::offers(std::string_view name) const {
  return offers_.contains(name);
}

Result<std::string> Run::offered(std::string_view name) {
  const auto found = offers_.find(name);
  if (found == offers_.end()) return fail("there is no such data");
  Offer& offer = found->second;
  const std::lock_guard held(offer.lock);
  if (!offer.made) offer.made = offer.make();
  return *offer.made;
}

std::string Run::document(std::string_view summary) {
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object()
      .member("id", id_)
      .member("name", std::filesystem::path(path_).lexically_normal().filename().string())
      .member("path", path_)
      .member("command", std::string(trace_->property(Table::kEnd, 0, "command").value_or("")))
      .member("machine", std::string(trace_->property(Table::kEnd, 0, "machine").value_or("")));
  json.name("started");
  const auto clock = walk::OutputClock::make(*trace_, walk::OutputClock::Clock::kRealtime);
  if (!clock || !clock->known()) {
    json.null();
  } else {
    const time_t seconds = (*clock)(index_.t0()) / 1'000'000'000;
    tm parts{};
    char text[40];
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    json.value(std::string(text));
  }
  json.name("t0");
  put_time_text(json, index_.t0());
  json.member("length", index_.length())
      .member("run_begin", index_.run_begin())
      .member("run_length", index_.run_length())
      .member("complete", live_ || trace_->complete());
  if (const auto seconds = trace_->property(Table::kEnd, 0, "target_seconds"))
    json.member("program", std::strtod(std::string(*seconds).c_str(), nullptr));
  json.member("note", live_ ? std::string() : std::string(trace_->note()));
  if (!summary.empty()) json.member("summary", summary);
  json.name("losses").begin_array();
  if (const std::string sentence = analysis::unaligned_sentence(*trace_); !sentence.empty()) json.value(sentence);
  if (const std::string sentence = format::passes::sentence(*trace_); !sentence.empty()) json.value(sentence);
  for (const std::string& sentence : analysis::loss_sentences(*trace_)) json.value(sentence);
  for (const std::string& sentence : analysis::filter_sentences(*trace_)) json.value(sentence);
  json.end_array();
  int64_t events = 0;
  for (const Table table : slice_tables()) events += trace_->rows(table);
  events += trace_->rows(Table::kReading);
  const std::string clocks(trace_->property(Table::kEnd, 0, "clocks").value_or("single"));
  if (analysis::holds_sums(*trace_))
    if (const auto span = analysis::span_of_sums(*trace_)) json.member("sums", span->to - span->from);
  json.member("aggregated", trace_->aggregated())
      .member("live", live_)
      .member("generation", generation_)
      .member("naming", naming_)
      .member("events", events)
      .member("clock", clocks)
      .member("ready", index_.ready());
  if (const Status status = index_.status(); !status) json.member("error", status.error().message);
  json.name("dims").begin_object();
  for (const Table table : slice_tables())
    if (trace_->rows(table) > 0) json.key(event::table_info(table).name).value(trace_->rows(table));
  json.end_object();
  json.name("views").begin_array();
  for (const std::string& view : view_names_) json.value(view);
  json.end_array();
  json.name("kinds").begin_array();
  for (size_t kind = 0; kind < static_cast<size_t>(NameKind::kCount); ++kind)
    if (names_.any(static_cast<NameKind>(kind))) json.value(to_string(static_cast<NameKind>(kind)));
  json.end_array();
  json.name("tracks").begin_array();
  const auto& lines = tree_.lines();
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    json.newline().begin_object();
    json.member("id", i)
        .member("parent", line.parent)
        .member("kind", std::string(to_string(line.kind)))
        .member("name", line.name)
        .member("sort", i)
        .member("lanes", index_.lanes(i))
        .member("events", index_.events(i))
        .member("process", line.process);
    if (!line.unit.empty()) json.member("unit", line.unit);
    if (!line.device.empty()) json.member("device", line.device);
    if (line.rank != kUnknown) json.member("rank", line.rank);
    if (line.kind == LineKind::kQueue) json.member("busy", line.busy);
    if (line.helper) json.member("helper", true);
    if (line.rate) json.member("rate", true);
    if (line.kind == LineKind::kCounter) {
      const auto [least, most] = index_.range(i);
      json.member("min", least).member("max", most);
    }
    json.name("tables").begin_array();
    for (const event::TableInfo& info : event::all_tables())
      if ((line.tables >> static_cast<unsigned>(info.table) & 1) != 0) json.value(info.name);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace tacho::view
