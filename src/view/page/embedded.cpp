// The self-contained page (embedded.h): the server's answers about the whole run, and columns for the rest.
#include "view/page/embedded.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "base/version.h"
#include "view/answers/compare.h"
#include "view/answers/flame.h"
#include "view/page/lines.h"
#include "view/page/packed.h"

namespace tacho::view {

extern const std::string_view kViewPage;

using event::Table;

namespace {

void put_names(JsonWriter& json, Packed& packed, const SliceNames& names) {
  const auto list = [&](JsonLiteral name, auto value_of) {
    json.name(name).begin_array();
    for (uint32_t i = 0; i < names.size(); ++i) {
      value_of(i);
      packed.written();
    }
    json.end_array();
  };
  json.name("names").begin_object();
  list("texts", [&](uint32_t i) { json.value(names.text(i)); });
  list("colors", [&](uint32_t i) { json.value(colour_of(names.text(i), names.kind(i))); });
  list("kinds", [&](uint32_t i) {
    json.value(names.table(i) == Table::kEnd ? std::string_view() : event::table_info(names.table(i)).name);
  });
  const auto those = [&](JsonLiteral name, auto wanted) {
    list(name, [&](uint32_t i) {
      if (wanted(i)) json.value(i);
    });
  };
  those("framework", [&](uint32_t i) { return names.framework(i); });
  those("communicates", [&](uint32_t i) { return names.communicates(i); });
  json.end_object();
}

// What a page of several runs holds besides them: what changed between the first and each other one, both ways.
Status put_comparisons(JsonWriter& json, Packed& packed, const Document& document) {
  const auto& runs = document.runs();
  json.name("comparisons").begin_array();
  for (size_t i = 1; i < runs.size(); ++i)
    for (const bool back : {false, true}) {
      Run &a = back ? *runs[i] : *runs[0], &b = back ? *runs[0] : *runs[i];
      json.newline().begin_object().member("a", a.number()).member("b", b.number());
      TACHO_ASSIGN(const std::string aligned, alignment(a, b));
      json.name("align").ready(aligned);
      json.name("diff").begin_object();
      for (const std::string_view by : {"kernel", "operator", "api", "copy", "marker", "function", "line"}) {
        const Result<std::string> difference = compare(a, b, by);
        json.key(by);
        difference ? json.ready(*difference)
                   : json.begin_object().member("error", difference.error().message).end_object();
        packed.written();
      }
      json.end_object();
      FlameChoice choice;
      choice.by = analysis::FramesBy::kFunction;
      TACHO_ASSIGN(const std::string stacks, flame(b, &a, choice, kMostFlameNodesEmbedded));
      json.name("flame").ready(stacks).end_object();
      packed.written();
    }
  json.end_array();
  return {};
}

struct Embedded {
  const Document& document;
  std::set<std::pair<std::string, size_t>> views;  // further views that the page holds: name and hash
};

Status put_header(JsonWriter& json, Packed& packed, Run& run, PageLines& lines, const std::string& summary,
                  Embedded& page) {
  json.begin_object().name("document").begin_object().member("version", kProgramVersion);
  json.name("runs").begin_array().ready(run.document(summary)).end_array();
  json.name("views").begin_array();
  if (summary.empty()) json.value("kernel");
  json.value("flame");
  if (page.document.runs().size() > 1) json.value("diff");
  json.end_array();
  put_compared(json, page.document.compared());
  json.end_object();
  TACHO_ASSIGN(const std::string overview, run.overview());
  json.name("overview").ready(overview);
  TACHO_ASSIGN(const std::string stacks, flame(run, nullptr, {}, kMostFlameNodesEmbedded));
  json.name("flame").ready(stacks);
  put_names(json, packed, run.names());
  json.name("tables").begin_array();
  for (const event::TableInfo& info : event::all_tables())
    if (event::is_fact(info.table)) json.value(info.name);
  json.end_array();
  lines.put(json);
  // Why there is nothing to see in a view is something to see. What several runs share stands once.
  json.name("extras").begin_object();
  for (const std::string& view : run.views()) {
    const Result<std::string> made = run.offered(view);
    if (made && !page.views.emplace(view, std::hash<std::string>()(*made)).second) continue;
    json.key(view);
    made ? json.ready(*made) : json.begin_object().member("error", made.error().message).end_object();
    packed.written();
  }
  json.end_object();
  if (&run == page.document.runs().front().get() && page.document.runs().size() > 1)
    TACHO_TRY(put_comparisons(json, packed, page.document));
  json.end_object();
  return {};
}

Status put_run(Run& run, const std::function<void(std::string_view)>& put, int64_t most, Embedded& page) {
  int64_t slices = 0;
  for (const Table table : slice_tables()) slices += run.trace().rows(table);
  const std::string summary =
      slices <= most
          ? std::string()
          : fmt::format(
                "This page holds a summary: the run has {} events, a page holds {}. `tacho view {}` shows every one.",
                slices, most, run.path());
  Packed packed(put);
  TACHO_TRY(packed.begin());
  PageLines lines(run, packed);
  TACHO_TRY(lines.pack(!summary.empty()));
  JsonWriter json(packed.json, kCompactJson);
  TACHO_TRY(put_header(json, packed, run, lines, summary, page));
  return packed.finish();
}

}  // namespace

Status embedded_page(const Document& document, const std::function<void(std::string_view)>& put, int64_t most) {
  for (const auto& run : document.runs()) TACHO_TRY(run->wait());
  constexpr std::string_view kStart = "/*TACHO_START*/null", kData = "/*TACHO_DATA*/";
  const size_t start = kViewPage.find(kStart), data = kViewPage.find(kData);
  if (start == std::string_view::npos || data == std::string_view::npos || data < start)
    return fail("the page has no place for its data");
  put(kViewPage.substr(0, start));
  put(fmt::format("{{\"served\": false, \"version\": {}, \"live\": false}}", json_quoted(kProgramVersion)));
  const size_t after = start + kStart.size();
  put(kViewPage.substr(after, data - after));
  Embedded page{document, {}};
  for (const auto& run : document.runs()) {
    TACHO_TRY(put_run(*run, put, most, page));
    put("\n");
  }
  put(kViewPage.substr(data + kData.size()));
  return {};
}

}  // namespace tacho::view
