// Answers about one run (run.h).
#include "view/run.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "analysis/accumulate.h"
#include "analysis/operators/places.h"
#include "analysis/stats.h"
#include "analysis/trim.h"
#include "base/saturating.h"
#include "base/text/json_writer.h"
#include "base/thread.h"
#include "event/times.h"
#include "report/table.h"
#include "view/answers/expression.h"
#include "walk/clock.h"
#include "walk/names.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr size_t kMostNamesOfSpan = 2000;
constexpr size_t kTop = 10;
constexpr size_t kOverviewBins = 400;
constexpr size_t kMostSqlRows = 10'000;
constexpr double kSqlSeconds = 60;
constexpr int kSearchMilliseconds = 150;

const auto kEverything = std::numeric_limits<int64_t>::max();

// Times of the trace may not fit in a double: they travel as text.
void put_time_text(JsonWriter& json, int64_t time) {
  json.value(fmt::format("{}", time));
}

}  // namespace

// By number of name.
struct Run::Sums {
  std::unordered_map<uint32_t, analysis::Sums> of;
  int64_t total = 0;
  std::vector<std::pair<uint32_t, analysis::Sums>> sorted() const {
    std::vector<std::pair<uint32_t, analysis::Sums>> list(of.begin(), of.end());
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return a.second.total != b.second.total ? a.second.total > b.second.total : a.first < b.first;
    });
    return list;
  }
};

namespace {

// One entry of a table of names.
void put_sums(JsonWriter& json, const Names& names, uint32_t name, const analysis::Sums& sums, int64_t whole,
              bool bytes) {
  json.begin_object()
      .member("name", name)
      .member("text", names.text(name))
      .member("count", sums.count + sums.unknown)
      .member("total", sums.total);
  if (sums.count > 0)
    json.member("mean", static_cast<double>(sums.total) / static_cast<double>(sums.count))
        .member("min", sums.min)
        .member("max", sums.max);
  if (sums.unknown > 0) json.member("unknown", sums.unknown);
  json.member("share", whole > 0 ? static_cast<double>(sums.total) / static_cast<double>(whole) : 0.0);
  if (bytes) {
    if (sums.sized > 0) json.member("bytes", sums.bytes);
    if (sums.sized_ns > 0) json.member("rate", static_cast<double>(sums.bytes) / static_cast<double>(sums.sized_ns));
    if (sums.sized < sums.count + sums.unknown) json.member("unsized", sums.count + sums.unknown - sums.sized);
  }
  json.end_object();
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
      findings_of_(std::move(findings)) {
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
  json.member("length", index_.length()).member("complete", live_ || trace_->complete());
  json.member("note", live_ ? std::string() : std::string(trace_->note()));
  if (!summary.empty()) json.member("summary", summary);
  json.name("losses").begin_array();
  if (const std::string sentence = analysis::unaligned_sentence(*trace_); !sentence.empty()) json.value(sentence);
  for (const std::string& sentence : analysis::loss_sentences(*trace_)) json.value(sentence);
  for (const std::string& sentence : analysis::filter_sentences(*trace_)) json.value(sentence);
  json.end_array();
  int64_t events = 0;
  for (const Table table : slice_tables()) events += trace_->rows(table);
  events += trace_->rows(Table::kReading);
  const std::string clocks(trace_->property(Table::kEnd, 0, "clocks").value_or("single"));
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

// Busy shares in bins of `width` ns, averaged over devices, before the index knows them: the busy time of each chunk,
// spread evenly over the time between its first and last row.
std::vector<double> Run::estimated_busy(int64_t width, size_t bins) const {
  const auto wide = static_cast<double>(width);
  std::map<size_t, std::vector<double>> of_device;
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill})
    for (size_t chunk = 0; chunk < trace_->chunks(table).size(); ++chunk) {
      const auto entries = trace_->busy(table, chunk);
      if (!entries) continue;
      for (const trace::Busy& entry : *entries) {
        const int64_t line = tree_.line_of(table, entry.track);
        if (line < 0 || tree_.lines()[static_cast<size_t>(line)].kind != LineKind::kQueue) continue;
        std::vector<double>& busy = of_device[tree_.lines()[static_cast<size_t>(line)].device_number];
        busy.resize(bins);
        const auto first = static_cast<double>(entry.first - index_.t0());
        const auto last = std::max(static_cast<double>(entry.last - index_.t0()), first + 1);
        const double share = static_cast<double>(entry.busy) / (last - first);
        for (auto bin = static_cast<size_t>(std::max(first, 0.0) / wide);
             bin < bins && static_cast<double>(bin) * wide < last; ++bin) {
          const double begin = static_cast<double>(bin) * wide;
          busy[bin] += share * (std::min(last, begin + wide) - std::max(first, begin)) / wide;
        }
      }
    }
  std::vector<double> all(bins);
  for (const auto& [device, busy] : of_device)
    for (size_t bin = 0; bin < bins; ++bin)
      all[bin] += std::min(busy[bin], 1.0) / static_cast<double>(of_device.size());
  return all;
}

void Run::add_name(const NameSum& sum, Sums& to) {
  if (sum.count + sum.unknown == 0) return;
  trace::Summary entry;
  entry.count = sum.count;
  entry.unknown = sum.unknown;
  entry.sum = sum.total;
  entry.min = sum.min;
  entry.max = sum.max;
  to.of[sum.name].add(entry);
}

Result<std::string> Run::overview() {
  const bool ready = index_.ready() >= 1;
  TACHO_TRY(index_.status());
  const std::vector<size_t> devices = index_.devices();
  const int64_t length = index_.length();
  // Whole bins of the index, so that every share is exact.
  const int64_t fine = index_.activity_width();
  const int64_t width = fine * std::max<int64_t>(1, (length / fine + static_cast<int64_t>(kOverviewBins)) /
                                                        static_cast<int64_t>(kOverviewBins));
  const auto bins = static_cast<size_t>((length + width - 1) / width);
  std::vector<double> busy(bins), compute(bins), copies(bins), exposed(bins), collectives(bins), calls(bins);
  int64_t gpu_busy = 0, gpu_compute = 0, gpu_copy = 0, gpu_exposed = 0, gpu_collective = 0;
  for (const size_t device : devices) {
    if (ready) {
      TACHO_ASSIGN(const Activity whole, index_.activity(device, 0, length));
      gpu_busy += whole.busy;
      gpu_compute += whole.kernels;
      gpu_copy += whole.copies;
      gpu_exposed += whole.exposed;
      gpu_collective += whole.collectives;
      for (size_t bin = 0; bin < bins; ++bin) {
        const auto from = static_cast<int64_t>(bin) * width;
        const Activity part = index_.bins(device, from, from + width);
        const auto span = static_cast<double>(std::min(width, length - from)) * static_cast<double>(devices.size());
        busy[bin] += static_cast<double>(part.busy) / span;
        compute[bin] += static_cast<double>(part.kernels) / span;
        copies[bin] += static_cast<double>(part.copies) / span;
        exposed[bin] += static_cast<double>(part.exposed) / span;
        collectives[bin] += static_cast<double>(part.collectives) / span;
      }
    }
  }
  if (!ready) busy = estimated_busy(width, bins);
  for (size_t bin = 0; bin < bins && ready; ++bin) {
    const auto from = static_cast<int64_t>(bin) * width;
    calls[bin] = static_cast<double>(index_.calls_open(from, from + width)) /
                 static_cast<double>(std::min(width, length - from));
  }
  std::string out;
  JsonWriter json(out, kCompactJson);
  const auto put = [&](JsonLiteral name, const std::vector<double>& values) {
    json.name(name).begin_array();
    for (const double value : values) json.value(std::min(std::round(value * 1e6) / 1e6, 1.0));
    json.end_array();
  };
  json.begin_object();
  json.name("span").begin_array().value(0).value(length).end_array();
  json.member("bins", bins).member("bin_width", width).member("provisional", !ready).member("ready", index_.ready());
  put("busy", busy);
  if (ready) {
    put("compute", compute);
    put("copies", copies);
    put("exposed_copies", exposed);
    put("comm", collectives);
    put("calls", calls);
  }
  const auto whole_run = [&](Table table) -> Result<Sums> {
    if (trace_->aggregated()) {
      TACHO_ASSIGN(const Sums all, sums(table, 0, kEverything));
      return table == Table::kApi ? calls_of(all, false) : all;
    }
    // Of perhaps millions of names only the first are kept.
    Sums top;
    for (const NameSum& sum : index_.top_names(table, kTop, top.total)) add_name(sum, top);
    return top;
  };
  TACHO_ASSIGN(const Sums kernels, whole_run(Table::kDispatch));
  TACHO_ASSIGN(const Sums api, whole_run(Table::kApi));
  TACHO_ASSIGN(Sums moved, sums(Table::kCopy, 0, kEverything));
  TACHO_ASSIGN(const Sums filled, sums(Table::kFill, 0, kEverything));
  for (const auto& [name, of] : filled.of) moved.of[name].add(of);
  add_saturating(moved.total, filled.total);
  json.name("totals")
      .begin_object()
      .member("span", length)
      .member("devices", devices.size())
      .member("api", api.total)
      .member("kernels", kernels.total);
  if (ready)
    json.member("gpu_busy", gpu_busy)
        .member("gpu_idle", length * static_cast<int64_t>(devices.size()) - gpu_busy)
        .member("compute", gpu_compute)
        .member("copy", gpu_copy)
        .member("exposed_copy", gpu_exposed)
        .member("comm", gpu_collective);
  json.end_object();
  const auto put_top = [&](JsonLiteral name, const Sums& of, bool bytes) {
    json.name(name).begin_array();
    const auto sorted = of.sorted();
    for (size_t i = 0; i < sorted.size() && i < kTop; ++i) {
      json.newline();
      put_sums(json, names_, sorted[i].first, sorted[i].second, of.total, bytes);
    }
    json.end_array();
  };
  put_top("kernels", kernels, false);
  put_top("calls_top", api, false);
  put_top("copies_top", moved, true);
  {
    const std::lock_guard held(findings_lock_);
    json.member("findings_ready", findings_.has_value() || !findings_error_.empty() || !findings_of_);
    if (!findings_error_.empty()) json.member("findings_error", findings_error_);
    if (findings_) {
      analysis::put_findings(json, *findings_, index_.t0());
      json.name("remarks").begin_array();
      for (const std::string& remark : findings_->remarks) json.value(remark);
      json.end_array();
    }
  }
  json.end_object();
  return out;
}

Result<Run::Sums> Run::sums(Table table, int64_t from, int64_t to) {
  Sums result;
  const bool bytes = table == Table::kCopy || table == Table::kFill;  // which no summary holds with their number
  const int64_t t0 = index_.t0();
  const bool whole = from <= 0 && to >= index_.length();
  if (trace_->aggregated()) {
    TACHO_TRY(trace_->visit_summaries(table, [&](std::span<const trace::Summary> entries) {
      for (const trace::Summary& entry : entries) {
        analysis::Sums& sums = result.of[names_.of(table, entry.dim)];
        sums.add(entry);
        add_saturating(sums.bytes, entry.bytes);
      }
    }));
    for (auto& [name, sums] : result.of) sums.assume_sizes();
  } else if (whole && !bytes) {
    for (const NameSum& sum : index_.name_sums(table)) add_name(sum, result);
  } else {
    std::vector<int64_t> start, duration, dim, moved;
    const auto chunks = trace_->chunks(table);
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const trace::Chunk& zone = chunks[chunk];
      if (zone.rows == 0 || zone.min_start - t0 >= to || std::max(zone.max_end, zone.max_start) - t0 < from) continue;
      if (!bytes && zone.min_start - t0 >= from && zone.max_end - t0 <= to && zone.max_start - t0 < to) {
        if (const auto known = index_.name_sums(table, chunk)) {
          for (const NameSum& sum : *known) add_name(sum, result);
          continue;
        }
        TACHO_ASSIGN(const auto entries, trace_->summaries(table, chunk));
        for (const trace::Summary& entry : entries) result.of[names_.of(table, entry.dim)].add(entry);
        continue;
      }
      TACHO_TRY(trace_->decode(table, chunk, column::Fact::start, start));
      TACHO_TRY(trace_->decode(table, chunk, column::Fact::duration, duration));
      TACHO_TRY(trace_->decode(table, chunk, column::Fact::dim, dim));
      moved.assign(start.size(), kUnknown);
      if (table == Table::kCopy) TACHO_TRY(trace_->decode(table, chunk, column::Copy::bytes, moved));
      if (table == Table::kFill) TACHO_TRY(trace_->decode(table, chunk, column::Fill::bytes, moved));
      for (size_t i = 0; i < start.size(); ++i) {
        const int64_t begin = start[i] - t0, known = event::known_duration(duration[i]);
        const int64_t end = known == kUnknown ? begin : begin + known;
        if (begin >= to || (end <= from && begin < from)) continue;
        analysis::Sums& sums = result.of[names_.of(table, dim[i])];
        const int64_t inside = known == kUnknown ? kUnknown : std::min(end, to) - std::max(begin, from);
        if (inside == kUnknown)
          ++sums.unknown;
        else
          sums.add(inside);
        sums.add_size(moved[i], inside);
      }
    }
  }
  for (const auto& [name, sums] : result.of) add_saturating(result.total, sums.total);
  return result;
}

// Calls of APIs without operators of frameworks and functions of Python, or only those.
Run::Sums Run::calls_of(const Sums& all, bool framework) const {
  Sums calls;
  for (const auto& [name, sums] : all.of)
    if (names_.framework(name) == framework) {
      calls.of.emplace(name, sums);
      add_saturating(calls.total, sums.total);
    }
  return calls;
}

Result<std::string> Run::span(int64_t from, int64_t to) {
  if (to <= from) return fail("the span of time is empty: choose a `to` behind `from`");
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().member("from", from).member("to", to).member("provisional", index_.ready() < 1);
  const auto put = [&](JsonLiteral name, const Sums& of, bool bytes) {
    const auto rows = of.sorted();
    json.name(name).begin_array();
    for (size_t i = 0; i < rows.size() && i < kMostNamesOfSpan; ++i) {
      json.newline();
      put_sums(json, names_, rows[i].first, rows[i].second, of.total, bytes);
    }
    json.end_array();
  };
  TACHO_ASSIGN(const Sums kernels, sums(Table::kDispatch, from, to));
  TACHO_ASSIGN(const Sums calls, sums(Table::kApi, from, to));
  TACHO_ASSIGN(Sums copies, sums(Table::kCopy, from, to));
  TACHO_ASSIGN(const Sums fills, sums(Table::kFill, from, to));
  TACHO_ASSIGN(const Sums markers, sums(Table::kMarker, from, to));
  for (const auto& [name, sums] : fills.of) copies.of[name].add(sums);
  add_saturating(copies.total, fills.total);
  put("kernels", kernels, false);
  put("calls", calls_of(calls, false), false);
  put("operators", calls_of(calls, true), false);
  put("copies", copies, true);
  put("markers", markers, false);
  json.name("devices").begin_array();
  const int64_t begin = std::max<int64_t>(from, 0), end = std::min(to, index_.length());
  for (const size_t device : index_.devices()) {
    if (end <= begin) break;
    TACHO_ASSIGN(const Activity did, index_.activity(device, begin, end));
    json.begin_object()
        .member("text", tree_.lines()[index_.lines_of_device(device).front()].device)
        .member("busy", did.busy)
        .member("idle", end - begin - did.busy)
        .member("longest_gap", did.longest_gap())
        .member("copy", did.copies)
        .member("overlap_copy", did.copies - did.exposed)
        .member("exposed_copy", did.exposed)
        .member("comm", did.collectives)
        .end_object();
  }
  json.end_array().end_object();
  return out;
}

Result<std::string> Run::search(const std::string& expression, bool match_case, size_t limit, std::string_view after) {
  TACHO_ASSIGN(const auto pattern, Expression::compile(expression, match_case));
  int64_t start = std::numeric_limits<int64_t>::min();
  uint64_t row = std::numeric_limits<uint64_t>::max();
  if (!after.empty()) {
    const char* const end = after.data() + after.size();
    const auto first = std::from_chars(after.data(), end, start);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':' ||
        std::from_chars(first.ptr + 1, end, row).ptr != end)
      return fail("after={}: is no place that an earlier answer gave as \"more\"", after);
  }
  std::vector<bool> wanted(names_.size());
  std::vector<uint32_t> found;
  for (uint32_t name = 1; name < names_.size(); ++name)
    if (pattern->matches(names_.text(name))) {
      wanted[name] = true;
      found.push_back(name);
    }
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object();
  if (after.empty()) {
    // Sums of names over all tables that use them, the longest first.
    std::vector<NameSum> sums(names_.size());
    for (const Table table : slice_tables()) {
      const auto of_table = index_.name_sums(table);
      for (size_t i = 0; i < of_table.size(); ++i) sums[i].add(of_table[i]);
    }
    std::sort(found.begin(), found.end(), [&](uint32_t a, uint32_t b) {
      const auto &x = sums[a], &y = sums[b];
      return x.total != y.total ? x.total > y.total : x.count != y.count ? x.count > y.count : a < b;
    });
    json.member("matching_names", found.size());
    json.name("names").begin_array();
    for (size_t i = 0; i < found.size() && i < limit; ++i)
      json.newline()
          .begin_object()
          .member("name", found[i])
          .member("text", names_.text(found[i]))
          .member("kind", std::string(event::table_info(names_.table(found[i])).name))
          .member("count", sums[found[i]].count + sums[found[i]].unknown)
          .member("total", sums[found[i]].total)
          .end_object();
    json.end_array();
  }
  TileIndex::Hits hits;
  if (!found.empty()) {
    TACHO_ASSIGN(hits, index_.find(wanted, start, row, limit, kSearchMilliseconds));
  }
  json.name("hits").begin_array();
  for (const TileIndex::Hit& hit : hits.hits)
    json.newline()
        .begin_object()
        .member("row", fmt::format("{}", hit.slice.row))
        .member("track", hit.line)
        .member("lane", hit.slice.lane)
        .member("start", hit.slice.start)
        .member("duration", hit.slice.end == kOpenEnd ? -1 : hit.slice.end - hit.slice.start)
        .member("name", hit.slice.name)
        .end_object();
  json.end_array().name("more");
  if (hits.more)
    json.value(fmt::format("{}:{}", hits.start, hits.row));
  else
    json.null();
  json.end_object();
  return out;
}

namespace {

// What the page needs to know of a column to show its values with units.
std::string_view type_text(event::Type type) {
  static constexpr std::string_view kTexts[] = {"integer", "time", "duration", "bytes", "double",
                                                "enum",    "id",   "text",     "row"};
  return kTexts[static_cast<size_t>(type)];
}

}  // namespace

Result<std::string> Run::sql(const std::string& statement, std::string_view dialect) {
  const std::lock_guard held(sql_lock_);
  TACHO_TRY(open_session(dialect));
  const auto began = std::chrono::steady_clock::now();
  std::string rows, names;
  JsonWriter row_json(rows, kCompactJson), name_json(names, kCompactJson);
  std::vector<std::string> types;
  size_t count = 0;
  bool cut = false;
  name_json.begin_array();
  row_json.begin_array();
  const query::RowSink sink{[&](std::span<const std::string> columns) {
                              for (const std::string& name : columns) name_json.value(name);
                              types.assign(columns.size(), "null");
                            },
                            [&](std::span<const report::Cell> row) {
                              if (count == kMostSqlRows || rows.size() > (size_t{16} << 20)) {
                                cut = true;
                                return false;
                              }
                              ++count;
                              row_json.newline().begin_array();
                              for (size_t i = 0; i < row.size(); ++i) {
                                static constexpr std::string_view kTypes[] = {"null", "integer", "real", "text"};
                                if (i < types.size() && types[i] == "null") types[i] = kTypes[row[i].index()];
                                report::put_cell(row_json, row[i]);
                              }
                              row_json.end_array();
                              return true;
                            }};
  TACHO_TRY(session_->run(statement, sink));
  name_json.end_array();
  row_json.end_array();
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().name("columns").ready(names.empty() ? "[]" : names).name("types").begin_array();
  for (const std::string& type : types) json.value(type);
  json.end_array().name("rows").ready(rows).member("cut", cut);
  json.member("seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  json.end_object();
  return out;
}

Status Run::open_session(std::string_view dialect) {
  if (session_ && session_dialect_ == dialect) return {};
  TACHO_ASSIGN(session_, query::Session::over(trace_, dialect));
  session_->limit(kSqlSeconds);
  session_dialect_ = dialect;
  return {};
}

Result<std::string> Run::schema() {
  const std::lock_guard held(sql_lock_);
  TACHO_TRY(open_session(session_dialect_));
  TACHO_ASSIGN(const report::Table table, session_->schema());
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().name("tables").begin_array();
  const auto text = [](const report::Cell& cell) {
    const auto* const value = std::get_if<std::string>(&cell);
    return value != nullptr ? *value : std::string();
  };
  for (const auto& row : table.rows) {
    json.newline()
        .begin_object()
        .member("name", text(row[0]))
        .member("kind", text(row[1]))
        .name("columns")
        .begin_array();
    const std::string columns = text(row[2]);
    for (size_t at = 0; at < columns.size();) {
      const size_t end = std::min(columns.find(", ", at), columns.size());
      json.begin_object().member("name", columns.substr(at, end - at)).end_object();
      at = end + 2;
    }
    json.end_array().end_object();
  }
  for (const event::TableInfo& info : event::all_tables()) {
    json.newline()
        .begin_object()
        .member("name", fmt::format("tacho.{}", info.name))
        .member("kind", "table")
        .member("meaning", std::string(info.text))
        .name("columns")
        .begin_array();
    for (const event::Column& each : info.columns)
      json.begin_object()
          .member("name", std::string(each.name))
          .member("type", type_text(each.type))
          .member("meaning", std::string(each.text))
          .end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace tacho::view
