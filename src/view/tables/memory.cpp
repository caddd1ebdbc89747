// The tab Memory as JSON (memory.h).
#include "view/tables/memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/memory/answers.h"
#include "analysis/memory/memory.h"
#include "base/text/json_writer.h"

namespace tacho::view {

namespace {

using analysis::MemoryBy;

// What a page holds; tables say how many rows there are in all.
constexpr size_t kBuckets = 240, kMostAreas = 10, kMostRows = 200;
constexpr std::pair<std::string_view, MemoryBy> kWays[] = {{"owner", MemoryBy::kOwnerOfModules},
                                                           {"category", MemoryBy::kUse},
                                                           {"line", MemoryBy::kLine},
                                                           {"module", MemoryBy::kModule},
                                                           {"operator", MemoryBy::kOperator}};

void put_table(JsonWriter& json, const report::Answer& answer) {
  json.begin_object().name("columns").begin_array();
  for (const auto& column : answer.columns)
    json.begin_object()
        .member("name", column.name)
        .member("title", column.title)
        .member("unit", report::to_string(column.unit))
        .end_object();
  json.end_array().name("rows").begin_array();
  for (size_t i = 0; i < std::min(answer.rows.size(), kMostRows); ++i) {
    json.newline().begin_array();
    for (const report::Cell& cell : answer.rows[i]) report::put_cell(json, cell);
    json.end_array();
  }
  json.end_array().member("count", answer.rows.size()).end_object();
}

void put_sentences(JsonWriter& json, std::string_view name, const std::vector<std::string>& sentences) {
  json.key(name).begin_array();
  for (const std::string& sentence : sentences) json.value(sentence);
  json.end_array();
}

void put_way(JsonWriter& json, const analysis::MemoryPlace& place, std::string_view name, MemoryBy by) {
  json.newline().begin_object().member("by", name);
  json.name("holders");
  put_table(json, analysis::memory_holders(place, by, 0));
  json.name("unfreed");
  put_table(json, analysis::memory_unfreed(place, by));
  json.name("areas").begin_array();
  for (const analysis::MemoryArea& area : analysis::memory_areas(place, by, kMostAreas)) {
    json.newline().begin_object().member("name", area.name).name("names").begin_array();
    for (const report::Cell& cell : area.names) report::put_cell(json, cell);
    json.end_array().name("live").begin_array();
    for (const int64_t value : area.live) json.value(value);
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

}  // namespace

Result<std::string> memory_tables(const Run& run) {
  TACHO_ASSIGN(const analysis::MemoryReport report,
               analysis::memory_report(run.trace(), {.buckets = kBuckets, .moments = {}, .owner_curves = true}));
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().member("from", report.from - run.t0()).member("to", report.to - run.t0());
  json.name("places").begin_array();
  for (const analysis::MemoryPlace& place : report.places) {
    json.newline()
        .begin_object()
        .member("name", place.name)
        .member("peak", place.peak)
        .member("peak_at", place.peak_time - run.t0());
    put_sentences(json, "sentences", analysis::memory_sentences(place, run.t0()));
    put_sentences(json, "findings", analysis::memory_findings(place, report));
    put_sentences(json, "doubts", analysis::memory_doubts(place, report));
    json.name("curve").begin_array();
    for (const auto& bucket : place.curve) {
      json.begin_array().value(bucket.live);
      bucket.reserved == event::kUnknown ? json.null() : json.value(bucket.reserved);
      json.end_array();
    }
    json.end_array().name("lifetimes");
    put_table(json, analysis::memory_lifetimes(place));
    json.name("by").begin_array();
    for (const auto& [name, by] : kWays) put_way(json, place, name, by);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace tacho::view
