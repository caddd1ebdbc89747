// The requests of the page (document.h).
#include "view/document.h"

#include <algorithm>
#include <charconv>

#include "base/text/json_writer.h"
#include "base/version.h"
#include "view/answers/compare.h"
#include "view/answers/flame.h"
#include "view/index/tile_bytes.h"
#include "view/tables/code.h"
#include "view/tables/memory.h"

namespace tacho::view {

extern const std::string_view kViewPage;

namespace {

constexpr size_t kMostTracksOfRequest = 4096;
constexpr size_t kMostNamesOfRequest = 10'000;
constexpr size_t kMostHits = 10'000;

// A whole number in a request's query.
template <typename T>
Result<T> number_of(const report::HttpRequest& request, std::string_view name, std::optional<T> unset = std::nullopt) {
  const std::string_view text = request.parameter(name);
  if (text.empty() && unset) return *unset;
  T value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    return fail("{}={}: is not a number", name, text);
  return value;
}

// A list of numbers with commas between them.
template <typename T>
Result<std::vector<T>> numbers_of(const report::HttpRequest& request, std::string_view name, size_t most) {
  std::vector<T> list;
  std::string_view text = request.parameter(name);
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    T value{};
    const auto read = std::from_chars(one.data(), one.data() + one.size(), value);
    if (read.ec != std::errc() || read.ptr != one.data() + one.size()) return fail("{}={}: is not a number", name, one);
    if (list.size() == most) return fail("{}: lists more than {} numbers", name, most);
    list.push_back(value);
  }
  return list;
}

// Times of a page may have a fraction, and lie anywhere.
Result<int64_t> time_of(const report::HttpRequest& request, std::string_view name, int64_t unset) {
  const std::string_view text = request.parameter(name);
  if (text.empty()) return unset;
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !(value > -4e18 && value < 4e18))
    return fail("{}={}: is not a time in ns", name, text);
  return static_cast<int64_t>(value);
}

std::string names_json(const SliceNames& names, const std::vector<uint32_t>& ids) {
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().name("names").begin_array();
  std::vector<uint32_t> colours;
  for (const uint32_t id : ids) {
    const std::string text = names.text(id);
    json.value(text);
    colours.push_back(colour_of(text, names.kind(id)));
  }
  json.end_array().name("colors").begin_array();
  for (const uint32_t colour : colours) json.value(colour);
  json.end_array().end_object();
  return out;
}

}  // namespace

void put_compared(JsonWriter& json, const std::optional<std::pair<size_t, size_t>>& compared) {
  json.name("compare");
  compared ? json.begin_object().member("a", compared->first).member("b", compared->second).end_object() : json.null();
}

std::string served_page() {
  std::string page(kViewPage);
  const auto replace = [&](std::string_view what, const std::string& by) {
    if (const size_t at = page.find(what); at != std::string::npos) page.replace(at, what.size(), by);
  };
  replace("/*TACHO_START*/null",
          fmt::format("{{\"served\": true, \"version\": {}, \"live\": false}}", json_quoted(kProgramVersion)));
  replace("/*TACHO_DATA*/", "");
  replace("connect-src 'none'", "connect-src 'self'");
  return page;
}

Run& Document::add(const std::string& path, std::shared_ptr<const trace::Trace> trace, const Limits& limits,
                   FindingsOf findings, const Growing& growing) {
  runs_.push_back(std::make_unique<Run>(runs_.size(), path, std::move(trace), limits, std::move(findings), growing));
  Run& run = *runs_.back();
  // Tables of a run that goes on would be of a moment that is over when they come.
  if (growing.live) return run;
  if (const std::string_view code = code_view(run.trace()); !code.empty())
    run.offer(std::string(code), [&run] { return code_tables(run); });
  if (run.trace().rows(event::Table::kAllocation) > 0) run.offer("memory", [&run] { return memory_tables(run); });
  return run;
}

bool Document::computing() {
  return jobs_.busy() || std::any_of(runs_.begin(), runs_.end(), [](const auto& run) { return run->finding(); });
}

std::string Document::document() {
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().member("version", std::string(kProgramVersion)).name("runs").begin_array();
  for (const auto& run : runs_) json.newline().ready(run->document());
  json.end_array().name("views").begin_array().value("kernel").value("sql").value("flame");
  if (runs_.size() > 1) json.value("diff");
  json.end_array();
  put_compared(json, compared_);
  json.end_object();
  return out;
}

Result<std::string> Document::tiles(Run& run, const report::HttpRequest& request) {
  TACHO_ASSIGN(const auto level, number_of<unsigned>(request, "level"));
  TACHO_ASSIGN(const auto index, number_of<int64_t>(request, "index"));
  TACHO_ASSIGN(const auto tracks, numbers_of<size_t>(request, "tracks", kMostTracksOfRequest));
  std::string out;
  for (const size_t track : tracks) {
    TACHO_ASSIGN(const Tile tile, run.index().tile(track, level, index));
    append_tile(out, track, level, tile);
  }
  return out;
}

// Answers that take their time: the page asks again until they are ready.
Result<std::string> Document::background(const std::string& key, const Jobs::Work& work) {
  const Jobs::Answer answer = jobs_.ask(key, work);
  if (answer != nullptr) return *answer;
  return fmt::format(R"({{"pending": true, "done": {:.3f}}})", std::clamp(jobs_.done(key), 0.0, 1.0));
}

// The run that `run` is compared with.
Result<const Run*> Document::base_of(const report::HttpRequest& request) const {
  TACHO_ASSIGN(const auto number, number_of<size_t>(request, "base"));
  if (number >= runs_.size()) return fail("there is no run {}", number);
  return runs_[number].get();
}

Result<std::string> Document::flame_graph(Run& run, const report::HttpRequest& request) {
  const Run* base = nullptr;
  FlameChoice choice;
  if (!request.parameter("base").empty()) {
    TACHO_ASSIGN(base, base_of(request));
    choice.by = analysis::FramesBy::kFunction;  // lines move from one build to the next
  }
  TACHO_ASSIGN(choice.from, time_of(request, "from", choice.from));
  TACHO_ASSIGN(choice.to, time_of(request, "to", choice.to));
  choice.threads = request.parameter("threads") == "1";
  if (const std::string_view by = request.parameter("by"); !by.empty()) {
    TACHO_ASSIGN(choice.by, analysis::parse_frames_by(by));
  }
  return background(fmt::format("flame {} {} {} {} {} {}", run.number(), base == nullptr ? SIZE_MAX : base->number(),
                                choice.from, choice.to, choice.threads, static_cast<int>(choice.by)),
                    [&run, base, choice](const Jobs::GivenUp& given_up) {
                      FlameChoice until = choice;
                      until.given_up = given_up;
                      return flame(run, base, until);
                    });
}

Result<std::string> Document::difference(Run& run, const report::HttpRequest& request) {
  TACHO_ASSIGN(const Run* const base, base_of(request));
  std::string by(request.parameter("by"));
  if (by.empty()) by = "kernel";
  return background(fmt::format("diff {} {} {}", base->number(), run.number(), by),
                    [base, &run, by](const auto&) { return compare(*base, run, by); });
}

Result<std::string> Document::aligned(Run& run, const report::HttpRequest& request) {
  TACHO_ASSIGN(const Run* const base, base_of(request));
  return background(fmt::format("align {} {}", base->number(), run.number()),
                    [base, &run](const auto&) { return alignment(*base, run); });
}

// Requests of the page about a run. Other names are those of the run's offers.
const Document::Route* Document::route_of(std::string_view name) {
  using Request = report::HttpRequest;
  static constexpr Route kRoutes[] = {
      {"tiles", [](Document& document, Run& run, const Request& request) { return document.tiles(run, request); }},
      {"names",
       [](Document&, Run& run, const Request& request) -> Result<std::string> {
         TACHO_ASSIGN(const auto ids, numbers_of<uint32_t>(request, "ids", kMostNamesOfRequest));
         return names_json(run.names(), ids);
       }},
      {"overview", [](Document&, Run& run, const Request&) { return run.overview(); }},
      {"span",
       [](Document&, Run& run, const Request& request) -> Result<std::string> {
         TACHO_ASSIGN(const int64_t from, time_of(request, "from", 0));
         TACHO_ASSIGN(const int64_t to, time_of(request, "to", run.index().length()));
         return run.span(from, to);
       }},
      {"kernel",
       [](Document&, Run& run, const Request& request) -> Result<std::string> {
         TACHO_ASSIGN(const int64_t from, time_of(request, "from", 0));
         TACHO_ASSIGN(const int64_t to, time_of(request, "to", run.index().length()));
         TACHO_ASSIGN(const auto name, number_of<uint32_t>(request, "name"));
         return run.kernel(name, from, to);
       }},
      {"slice",
       [](Document&, Run& run, const Request& request) -> Result<std::string> {
         TACHO_ASSIGN(const auto row, number_of<uint64_t>(request, "row"));
         return run.slice(row);
       }},
      {"search",
       [](Document&, Run& run, const Request& request) -> Result<std::string> {
         TACHO_ASSIGN(const auto limit, number_of<size_t>(request, "limit", 1000));
         return run.search(std::string(request.parameter("q")), request.parameter("case") == "1",
                           std::min(std::max<size_t>(limit, 1), kMostHits), request.parameter("after"));
       }},
      {"flame",
       [](Document& document, Run& run, const Request& request) { return document.flame_graph(run, request); }},
      {"diff", [](Document& document, Run& run, const Request& request) { return document.difference(run, request); }},
      {"align", [](Document& document, Run& run, const Request& request) { return document.aligned(run, request); }},
      {"schema", [](Document&, Run& run, const Request&) { return run.schema(); }},
      {"query",
       [](Document&, Run& run, const Request& request) { return run.sql(request.body, request.parameter("dialect")); }},
  };
  const auto* const found =
      std::find_if(std::begin(kRoutes), std::end(kRoutes), [&](const Route& route) { return route.name == name; });
  return found == std::end(kRoutes) ? nullptr : found;
}

report::HttpResponse Document::answer(const report::HttpRequest& request) {
  const std::string& path = request.path;
  const bool query = path == "/api/query", read = request.method == "GET" || request.method == "HEAD";
  if (query ? request.method != "POST" : !read)
    return report::http_error(405, query ? "a query is a POST" : "only GET");
  report::HttpResponse response;
  if (path == "/") {
    response.type = "text/html";
    response.body = served_page();
    return response;
  }
  if (!path.starts_with("/api/")) return report::http_error(404, "there is one page and its data");
  const std::string_view what = std::string_view(path).substr(5);
  if (what == "document") {
    response.body = document();
    return response;
  }
  const auto number = number_of<size_t>(request, "run", 0);
  if (!number) return report::http_error(400, number.error().message);
  if (*number >= runs_.size()) return report::http_error(404, fmt::format("there is no run {}", *number));
  Run& run = *runs_[*number];
  const Route* const route = route_of(what);
  if (route == nullptr && !run.offers(what)) return report::http_error(404, "there is no such data");
  Result<std::string> body = route != nullptr ? route->answer(*this, run, request) : run.offered(what);
  if (!body) return report::http_error(400, body.error().message);
  if (what == "tiles") response.type = "application/octet-stream";
  response.body = std::move(*body);
  return response;
}

}  // namespace tacho::view
