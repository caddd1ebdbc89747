// Writes Chrome JSON like rpd2tracing.py (tracing.h), without its mistakes: escapes names instead of stripping them,
// and correctly nests markers that begin where others end.
#include "format/rpd/tracing.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/files/output_file.h"
#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "base/text/decimal.h"
#include "base/text/json_writer.h"
#include "format/rpd/rpd.h"
#include "format/sqlite/database.h"
#include "report/text.h"

namespace tacho::format::rpd {
namespace {

using event::kUnknown;
using sqlite::Database;
using sqlite::NamedScan;

// Digits of the whole seconds of the last time printed: times ascend, so they seldom change.
struct Seconds {
  uint64_t value = ~0ull;
  uint32_t length = 0;
  char digits[kMostDigits];
};

// ns as microseconds, printed like Python's quotient: at least one decimal, no trailing zeros.
char* put_us(char* at, int64_t ns) {
  static Seconds last;
  uint64_t value = static_cast<uint64_t>(ns);
  if (ns < 0) {
    *at++ = '-';
    value = ~value + 1;
  }
  uint32_t below;  // the part below a second, ns
  if (value < 1'000'000'000) {
    below = static_cast<uint32_t>(value);
    at = write_unsigned(at, below / 1000);
  } else {
    const uint64_t seconds = value / 1'000'000'000;
    below = static_cast<uint32_t>(value - seconds * 1'000'000'000);
    if (seconds != last.value) {
      last.value = seconds;
      last.length = static_cast<uint32_t>(write_unsigned(last.digits, seconds) - last.digits);
    }
    std::memcpy(at, last.digits, sizeof last.digits);
    at += last.length;
    const uint32_t us = below / 1000, high = us / 10000, low = us % 10000;
    std::memcpy(at, decimal_internal::kPairs + high * 2, 2);
    std::memcpy(at + 2, decimal_internal::kPairs + low / 100 * 2, 2);
    std::memcpy(at + 4, decimal_internal::kPairs + low % 100 * 2, 2);
    at += 6;
  }
  const uint32_t rest = below % 1000, pair = rest % 100;
  at[0] = '.';
  at[1] = static_cast<char>('0' + rest / 100);
  std::memcpy(at + 2, decimal_internal::kPairs + pair * 2, 2);
  return at + (pair == 0 ? 2 : pair % 10 == 0 ? 3 : 4);
}

// The parts of a line: text as it is, whole numbers, and times in nanoseconds, printed as microseconds.
struct Us {
  int64_t ns;
};
size_t room_for(std::string_view text) {
  return text.size();
}
size_t room_for(int64_t) {
  return kMostDigits;
}
size_t room_for(Us) {
  return 2 * kMostDigits;
}
char* put(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}
char* put(char* at, int64_t number) {
  return write_signed(at, number);
}
char* put(char* at, Us time) {
  return put_us(at, time.ns);
}

// A JSON string without its quotes.
std::string escaped(std::string_view text) {
  std::string quoted = json_quoted(text);
  return quoted.substr(1, quoted.size() - 2);
}

bool plain(std::string_view text) {
  for (const char c : text)
    if (static_cast<signed char>(c) < 0x20 || c == '"' || c == '\\' || c == 0x7f)
      return false;  // including bytes above 0x7f
  return true;
}

constexpr size_t kMostKeptTexts = 1 << 16;  // texts and beginnings of lines to cache

struct Window {
  bool has_from = false, has_to = false;
  double from = 0, to = 0;  // us
  // Upstream compares truncated whole microseconds with the bounds.
  bool holds(int64_t ns) const {
    const auto us = static_cast<double>(ns / 1000);
    return (!has_from || us >= from) && (!has_to || us <= to);
  }
};

class Tracer {
 public:
  Tracer(const Database& database, OutputFile& out, const TracingOptions& options)
      : db_(database), out_(out), options_(options) {}
  Result<TracingResult> run();

 private:
  struct Marker {
    int64_t start, end, text;  // text: row in the table of texts
    uint32_t thread;
    int64_t sort_key() const { return start; }
    bool operator<(const Marker& other) const { return start < other.start; }
  };
  struct Use {  // an operation, by the thread that launched it
    int64_t call, start, end;
    uint32_t thread, place;
    int64_t sort_key() const { return call; }
    bool operator<(const Use& other) const { return call < other.call; }
  };
  struct Step {  // a change of a queue's depth
    int64_t time;
    uint32_t gpu;
    int64_t sort_key() const { return time; }
    bool operator<(const Step& other) const { return time < other.time; }
  };
  struct Thread {
    std::string head;  // ,{"pid":"1","tid":"2",
    std::vector<Marker> stack;
    // The frame open on the GPU.
    bool open = false;
    Marker frame{};
    int64_t from = 0, to = 0, operations = 0;
    std::vector<uint32_t> places;
  };
  struct Place {
    uint32_t gpu_number;
    std::string head;
  };

  Status window();
  Status operations();
  Status graphs();
  Status calls();
  Status links();
  Status counters();
  Status monitor();
  Status frames();

  /// Writes an event, in one piece where it is not very long.
  template <typename... Parts>
  void line(const Parts&... parts) {
    ++result_.events;
    constexpr size_t kMostAtOnce = 60000;
    const auto together = [&](const auto&... few) {
      char* const begin = out_.reserve((room_for(few) + ...));
      char* at = begin;
      ((at = put(at, few)), ...);
      out_.advance(static_cast<size_t>(at - begin));
    };
    if ((room_for(parts) + ...) <= kMostAtOnce) return together(parts...);
    const auto alone = [&](const auto& part) {
      if constexpr (std::is_convertible_v<decltype(part), std::string_view>)
        out_.write(part);
      else
        together(part);
    };
    (alone(parts), ...);
  }
  uint32_t thread(int64_t pid, int64_t tid);
  uint32_t place(int64_t gpu, int64_t queue);
  const std::string& name(int64_t id);  // escaped text of rocpd_string, valid until the next call
  std::string_view argument(int64_t id, std::string& buffer);
  void close_frame(Thread& thread);

  const Database& db_;
  OutputFile& out_;
  const TracingOptions& options_;
  TracingResult result_;
  Window window_;
  std::unique_ptr<NamedScan> strings_, ustrings_;
  tsl::robin_map<int64_t, std::string> names_;
  std::vector<Thread> threads_;
  std::vector<Place> places_;
  std::vector<int64_t> gpus_;
  NumberMap<2> thread_index_, place_index_;
  int64_t last_pid_ = kUnknown, last_tid_ = kUnknown, last_gpu_ = kUnknown, last_queue_ = kUnknown;
  uint32_t last_thread_ = 0, last_place_ = 0;
  SortedFile<Marker> markers_{12u << 20};
  SortedFile<Use> uses_{12u << 20};
  SortedFile<Step> begins_{6u << 20}, ends_{6u << 20};
  int64_t last_end_ = INT64_MIN;
};

uint32_t Tracer::thread(int64_t pid, int64_t tid) {
  if (last_thread_ < threads_.size() && pid == last_pid_ && tid == last_tid_) return last_thread_;
  const auto [found, fresh] = thread_index_.try_emplace({pid, tid}, static_cast<int64_t>(threads_.size()));
  if (fresh) {
    Thread& one = threads_.emplace_back();
    one.head = fmt::format(",{{\"pid\":\"{}\",\"tid\":\"{}\",", pid, tid);
    line(",{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":\"", pid, "\",\"tid\":\"", tid,
         "\",\"args\":{\"name\":\"Hip ", tid, "\"}}\n");
    line(",{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":\"", pid, "\",\"tid\":\"", tid,
         "\",\"args\":{\"sort_index\":\"", static_cast<int64_t>(static_cast<uint64_t>(tid) * 2), "\"}}\n");
  }
  last_pid_ = pid;
  last_tid_ = tid;
  return last_thread_ = static_cast<uint32_t>(found->second);
}

uint32_t Tracer::place(int64_t gpu, int64_t queue) {
  if (last_place_ < places_.size() && gpu == last_gpu_ && queue == last_queue_) return last_place_;
  const auto [found, fresh] = place_index_.try_emplace({gpu, queue}, static_cast<int64_t>(places_.size()));
  if (fresh) {
    const auto known = std::find(gpus_.begin(), gpus_.end(), gpu);
    places_.push_back(
        {static_cast<uint32_t>(known - gpus_.begin()), fmt::format(",{{\"pid\":\"{}\",\"tid\":\"{}\",", gpu, queue)});
    if (known == gpus_.end()) {
      gpus_.push_back(gpu);
      line(",{\"name\": \"process_name\", \"ph\": \"M\", \"pid\":\"", gpu, "\",\"args\":{\"name\":\"GPU", gpu,
           "\"}}\n");
      line(",{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\":\"", gpu, "\",\"args\":{\"sort_index\":\"",
           static_cast<int64_t>(static_cast<uint64_t>(gpu) + 1000000), "\"}}\n");
    }
  }
  last_gpu_ = gpu;
  last_queue_ = queue;
  return last_place_ = static_cast<uint32_t>(found->second);
}

const std::string& Tracer::name(int64_t id) {
  const auto found = names_.find(id);
  if (found != names_.end()) return found->second;
  if (names_.size() >= kMostKeptTexts) names_.clear();
  return names_.emplace(id, strings_->seek(id) ? escaped(strings_->string(1)) : std::string()).first->second;
}

std::string_view Tracer::argument(int64_t id, std::string& buffer) {
  NamedScan& scan = ustrings_ ? *ustrings_ : *strings_;
  if (scan.rowid() != id || scan.rows() == 0) {
    const bool next = scan.rowid() == id - 1 && scan.rows() > 0 && scan.next() && scan.rowid() == id;
    if (!next && !scan.seek(id)) return {};
  }
  const std::string_view value = scan.string(1);
  if (plain(value)) return value;
  buffer = escaped(value);
  return buffer;
}

Status Tracer::window() {
  const auto value = [&](const std::string& text, std::string_view option, double& us) -> Status {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(stop, static_cast<size_t>(text.data() + text.size() - stop));
    if (error == std::errc() && std::isfinite(number)) {
      if (unit == "%") {
        us = (static_cast<double>(result_.last - result_.first) * (number / 100) + static_cast<double>(result_.first)) /
             1000;
        return {};
      }
      const double scale = unit.empty() || unit == "us" ? 1
                           : unit == "ns"               ? 1e-3
                           : unit == "ms"               ? 1e3
                           : unit == "s"                ? 1e6
                                                        : 0;
      if (scale != 0) {
        us = number * scale;
        return {};
      }
    }
    return fail("{} {}: write a share of the trace (25%), microseconds, or a number with a unit (ns, us, ms, s)",
                option, text);
  };
  result_.from = static_cast<double>(result_.first) / 1000;
  result_.to = static_cast<double>(result_.last) / 1000;
  if (!options_.start.empty()) {
    TACHO_TRY(value(options_.start, "--start", result_.from));
    window_.has_from = true;
    window_.from = result_.from;
  }
  if (!options_.end.empty()) {
    TACHO_TRY(value(options_.end, "--end", result_.to));
    window_.has_to = true;
    window_.to = result_.to;
  }
  return {};
}

Status Tracer::operations() {
  TACHO_ASSIGN(const sqlite::StoredTable* const table, db_.required("rocpd_op"));
  NamedScan scan(db_, *table, {"gpuId", "queueId", "start", "end", "description_id", "opType_id"});
  // Everything in a line except its times, by place, name and type.
  struct Line {
    std::string front, back;
  };
  NumberMap<3> index;
  std::vector<Line> lines;
  std::array<int64_t, 3> last_key = {kUnknown, 0, 0};
  size_t last = 0;
  while (scan.next()) {
    const uint32_t at = place(scan.id(0), scan.id(1));
    if (gpus_.size() > kMostGpus)
      return fail("{}: operations on more than {} GPUs: damaged", db_.file().path(), kMostGpus);
    const int64_t start = scan.id(2), end = scan.id(3);
    last_end_ = std::max(last_end_, end);
    if (!window_.holds(start)) continue;
    const int64_t description = scan.id(4), type = scan.id(5);
    if (const std::array<int64_t, 3> key = {at, description, type}; key != last_key) {
      if (lines.size() >= kMostKeptTexts) {
        index.clear();
        lines.clear();
      }
      const auto [found, fresh] = index.try_emplace(key, static_cast<int64_t>(lines.size()));
      if (fresh) {
        const std::string word = name(type);
        const std::string& described = name(description);
        lines.push_back({places_[at].head + "\"name\":\"" + (described.empty() ? word : described) + "\",\"ts\":\"",
                         "\",\"ph\":\"X\",\"args\":{\"desc\":\"" + word + "\"}}\n"});
      }
      last = static_cast<size_t>(found->second);
      last_key = key;
    }
    line(lines[last].front, Us{start}, "\",\"dur\":\"", Us{end - start}, lines[last].back);
  }
  return scan.status();
}

// Graph launches, in files that upstream's rocpd.graph has processed.
Status Tracer::graphs() {
  if (db_.table("rocpd_graphLaunchapi") == nullptr || db_.table("rocpd_graphLaunchapi")->column("graphExec") < 0)
    return {};
  TACHO_ASSIGN(const sqlite::Statement list,
               sqlite::prepare(db_.connection(),
                               "SELECT graphExec, gpuId, queueId, min(start), max(end) - min(start), count(*) FROM "
                               "rocpd_graphLaunchapi A JOIN rocpd_api_ops B ON B.api_id = A.api_ptr_id JOIN rocpd_op C "
                               "ON C.id = B.op_id GROUP BY api_ptr_id"));
  while (sqlite3_step(list.get()) == SQLITE_ROW) {
    const auto number = [&](int column) { return static_cast<int64_t>(sqlite3_column_int64(list.get(), column)); };
    if (!window_.holds(number(3))) continue;
    const auto* const graph = reinterpret_cast<const char*>(sqlite3_column_text(list.get(), 0));
    line(",{\"pid\":\"", number(1), "\",\"tid\":\"", number(2), "\",\"name\":\"Graph ",
         escaped(graph != nullptr ? graph : ""), "\",\"ts\":\"", Us{number(3)}, "\",\"dur\":\"", Us{number(4)},
         "\",\"ph\":\"X\",\"args\":{\"kernels\":\"", number(5), "\"}}\n");
  }
  return {};
}

Status Tracer::calls() {
  TACHO_ASSIGN(const sqlite::StoredTable* const table, db_.required("rocpd_api"));
  NamedScan scan(db_, *table, {"id", "pid", "tid", "start", "end", "apiName_id", "args_id"});
  // Calls without arguments: everything in a line except its times, by thread and name.
  struct Line {
    uint32_t thread = 0;
    int64_t name = kUnknown;
    std::string front;
  };
  std::vector<Line> recent(1024);
  int64_t user_marker = kUnknown;
  {
    NamedScan names(db_, *db_.table("rocpd_string"), {"id", "string"});
    while (names.next())
      if (names.string(1) == "UserMarker") {
        user_marker = names.id(0);
        break;
      }
  }
  std::string buffer;
  int64_t empty = kUnknown;  // the empty text's id: most calls have no arguments
  result_.first = INT64_MAX;
  result_.last = INT64_MIN;
  while (scan.next()) {
    const int64_t start = scan.id(3), end = scan.id(4);
    const uint32_t at = thread(scan.id(1), scan.id(2));
    result_.first = std::min(result_.first, start);
    result_.last = std::max(result_.last, end);
    last_end_ = std::max(last_end_, end);
    if (!window_.holds(start)) continue;
    const int64_t name_id = scan.id(5), args = scan.id(6);
    if (name_id == user_marker) {
      const std::string_view value = argument(args, buffer);
      const Thread& of = threads_[at];
      if (start != end) markers_.add({start, end, args, at});
      constexpr std::string_view kText = ",\"args\":{\"desc\":\"", kEnd = "\"}}\n";
      if (start == end)
        line(of.head, "\"name\":\"", value, "\",\"ts\":\"", Us{start}, "\",\"ph\":\"i\",\"s\":\"p\"", kText, value,
             kEnd);
      else
        line(of.head, "\"name\":\"", value, "\",\"ts\":\"", Us{start}, "\",\"dur\":\"", Us{end - start},
             "\",\"ph\":\"X\"", kText, value, kEnd);
      continue;
    }
    Line& known = recent[(static_cast<size_t>(name_id) * 31 + at) & 1023];
    if (known.name != name_id || known.thread != at || known.front.empty()) {
      known.name = name_id;
      known.thread = at;
      known.front = threads_[at].head + "\"name\":\"" + name(name_id) + "\",\"ts\":\"";
    }
    const std::string_view value = args == empty ? std::string_view() : argument(args, buffer);
    if (value.empty()) empty = args;
    line(known.front, Us{start}, "\",\"dur\":\"", Us{end - start}, "\",\"ph\":\"X\",\"args\":{\"desc\":\"", value,
         "\"}}\n");
  }
  TACHO_TRY(strings_->status());
  if (ustrings_) TACHO_TRY(ustrings_->status());
  return scan.status();
}

Status Tracer::links() {
  const sqlite::StoredTable* const table = db_.table("rocpd_api_ops");
  if (table == nullptr) return {};
  TACHO_ASSIGN(const sqlite::StoredTable* const calls, db_.required("rocpd_api"));
  TACHO_ASSIGN(const sqlite::StoredTable* const ops, db_.required("rocpd_op"));
  NamedScan scan(db_, *table, {"id", "api_id", "op_id"});
  NamedScan call(db_, *calls, {"pid", "tid", "start", "end"}), op(db_, *ops, {"gpuId", "queueId", "start", "end"});
  // Rows of the three tables come in about the same order, so the wanted row is usually the next one.
  const auto find = [](NamedScan& in, int64_t id) {
    if (in.rows() > 0 && in.rowid() == id) return true;
    if (in.rows() > 0 && in.rowid() == id - 1 && in.next() && in.rowid() == id) return true;
    return in.seek(id);
  };
  while (scan.next()) {
    if (!find(call, scan.id(1)) || !find(op, scan.id(2))) continue;
    const int64_t call_start = call.id(2), call_end = call.id(3), start = op.id(2), end = op.id(3);
    const uint32_t from = thread(call.id(0), call.id(1)), to = place(op.id(0), op.id(1));
    if (window_.holds(start)) {
      begins_.add({call_start, places_[to].gpu_number});
      ends_.add({end, places_[to].gpu_number});
    }
    if (!window_.holds(call_start)) continue;
    uses_.add({call_start, start, end, from, to});
    const int64_t id = scan.id(0);
    line(threads_[from].head, "\"cat\":\"api_op\",\"name\":\"api_op\",\"ts\":\"", Us{std::min(call_end - 2000, start)},
         "\",\"id\":\"", id, "\",\"ph\":\"s\"}\n");
    line(places_[to].head, "\"cat\":\"api_op\",\"name\":\"api_op\",\"ts\":\"", Us{start}, "\",\"id\":\"", id,
         "\",\"ph\":\"f\", \"bp\":\"e\"}\n");
  }
  TACHO_TRY(call.status());
  TACHO_TRY(op.status());
  return scan.status();
}

// Each GPU's queue depth, and whether it is idle: up at the call, down at the operation's end.
Status Tracer::counters() {
  TACHO_TRY(begins_.finish());
  TACHO_TRY(ends_.finish());
  struct Gpu {
    std::string depth_head, idle_head;
    int64_t depth = 0;
    bool idle = true;
  };
  std::vector<Gpu> gpus;
  for (const int64_t gpu : gpus_)
    gpus.push_back({fmt::format(",{{\"pid\":\"{}\",\"name\":\"QueueDepth\",\"ph\":\"C\",\"ts\":", gpu),
                    fmt::format(",{{\"pid\":\"{}\",\"name\":\"Idle\",\"ph\":\"C\",\"ts\":", gpu)});
  const auto idle = [&](const Gpu& gpu, auto time) {
    line(gpu.idle_head, time, ",\"args\":{\"idle\":", int64_t{gpu.idle}, "}}\n");
  };
  const auto depth = [&](const Gpu& gpu, auto time) {
    line(gpu.depth_head, time, ",\"args\":{\"depth\":", gpu.depth, "}}\n");
  };
  Step up, down;
  bool more_up = begins_.next(up), more_down = ends_.next(down);
  while (more_up || more_down) {
    // At equal times, beginnings come first.
    const bool rises = more_up && (!more_down || up.time <= down.time);
    const Step& step = rises ? up : down;
    Gpu& gpu = gpus[step.gpu];
    if (gpu.idle && rises) {
      gpu.idle = false;
      idle(gpu, Us{step.time});
    }
    if (gpu.depth == 1 && !rises) {
      gpu.idle = true;
      idle(gpu, Us{step.time});
    }
    gpu.depth += rises ? 1 : -1;
    depth(gpu, Us{step.time});
    if (rises)
      more_up = begins_.next(up);
    else
      more_down = ends_.next(down);
  }
  const std::string last = window_.has_to ? fmt::format("{}", window_.to) : std::to_string(last_end_ / 1000);
  if (last_end_ / 1000 > 0)
    for (const Gpu& gpu : gpus) {
      idle(gpu, std::string_view(last));
      depth(gpu, std::string_view(last));
    }
  return {};
}

Status Tracer::monitor() {
  const sqlite::StoredTable* const table = db_.table("rocpd_monitor");
  if (table == nullptr) return {};
  NamedScan scan(db_, *table, {"deviceId", "monitorType", "start", "end", "value", "deviceType"});
  struct Series {
    int64_t device, last = INT64_MIN;
    std::string type, value, owner;
  };
  std::vector<Series> series;
  const auto reading = [&](const Series& of, int64_t time) {
    line(",{\"pid\":\"", of.device, "\",\"name\":\"", of.type, "\",\"ph\":\"C\",\"ts\":", Us{time}, ",\"args\":{\"",
         of.type, "\":", of.value, "}}\n");
  };
  while (scan.next()) {
    result_.has_monitor = true;
    const int64_t start = scan.id(2), end = scan.id(3);
    if (!window_.holds(start)) continue;
    const int64_t device = scan.id(0);
    const std::string type = escaped(scan.string(1)), owner(scan.string(5));
    Series* of = nullptr;
    for (Series& one : series)
      if (one.device == device && one.type == type && one.owner == owner) of = &one;
    if (of == nullptr) {
      if (series.size() >= 4096)
        return fail("{}: rocpd_monitor has more than 4096 series: not a trace", db_.file().path());
      of = &series.emplace_back(Series{device, INT64_MIN, type, {}, owner});
    }
    // A value is text in the file; anything but a number would break the JSON.
    const double number = scan.decimal(4, __builtin_nan(""));
    Series now = *of;
    now.value = std::isfinite(number) ? fmt::format("{}", number) : "0";
    reading(now, start);
    if (end >= of->last) {
      of->last = end;
      of->value = now.value;
    }
  }
  for (const Series& of : series) reading(of, of.last);
  return scan.status();
}

void Tracer::close_frame(Thread& thread) {
  if (!thread.open) return;
  thread.open = false;
  std::string buffer;
  const std::string value(argument(thread.frame.text, buffer));
  for (const uint32_t place : thread.places)
    line(places_[place].head, "\"name\":\"", value, "\",\"ts\":\"", Us{thread.from - 1000}, "\",\"dur\":\"",
         Us{thread.to - thread.from + 1000},
         "\",\"ph\":\"X\",\"args\":{\"desc\":\"UserMarker frame: ", thread.operations, " ops\"}}\n");
}

// On the GPU's line, a frame with the marker's name surrounds operations launched under the same innermost marker that
// follow each other within 200 us.
Status Tracer::frames() {
  TACHO_TRY(markers_.finish());
  TACHO_TRY(uses_.finish());
  constexpr int64_t kNear = 200'000;
  Marker marker;
  Use use;
  bool more_marker = markers_.next(marker), more_use = uses_.next(use);
  std::vector<Marker> together;
  while (more_use) {
    // Markers that have begun by now; of those that began together, the longest is outermost.
    while (more_marker && marker.start <= use.call) {
      together.clear();
      const int64_t start = marker.start;
      while (more_marker && marker.start == start) {
        together.push_back(marker);
        more_marker = markers_.next(marker);
      }
      if (together.size() > 1)
        std::stable_sort(together.begin(), together.end(),
                         [](const Marker& a, const Marker& b) { return a.end > b.end; });
      for (const Marker& one : together) {
        std::vector<Marker>& stack = threads_[one.thread].stack;
        while (!stack.empty() && stack.back().end <= one.start) stack.pop_back();
        stack.push_back(one);
      }
    }
    Thread& thread = threads_[use.thread];
    while (!thread.stack.empty() && thread.stack.back().end <= use.call) thread.stack.pop_back();
    if (!thread.stack.empty()) {
      const Marker& inner = thread.stack.back();
      const bool same = thread.open && thread.frame.start == inner.start && thread.frame.text == inner.text &&
                        (std::llabs(use.start - thread.to) < kNear || std::llabs(thread.from - use.end) < kNear);
      if (same) {
        thread.from = std::min(thread.from, use.start);
        thread.to = std::max(thread.to, use.end);
        if (std::find(thread.places.begin(), thread.places.end(), use.place) == thread.places.end())
          thread.places.push_back(use.place);
        ++thread.operations;
      } else {
        close_frame(thread);
        thread.open = true;
        thread.frame = inner;
        thread.from = use.start;
        thread.to = use.end;
        thread.places.assign(1, use.place);
        thread.operations = 1;
      }
    }
    more_use = uses_.next(use);
  }
  for (Thread& thread : threads_) close_frame(thread);
  return {};
}

Result<TracingResult> Tracer::run() {
  result_.version = schema_version(db_);
  if (result_.version == 0)
    return fail("{}: not an .rpd file; tacho export -f json converts other traces", db_.file().path());
  TACHO_ASSIGN(const sqlite::StoredTable* const strings, db_.required("rocpd_string"));
  strings_ = std::make_unique<NamedScan>(db_, *strings, std::initializer_list<std::string_view>{"id", "string"});
  if (const sqlite::StoredTable* const ustrings = db_.table("rocpd_ustring"))
    ustrings_ = std::make_unique<NamedScan>(db_, *ustrings, std::initializer_list<std::string_view>{"id", "string"});
  if (options_.start.find('%') != std::string::npos || options_.end.find('%') != std::string::npos) {
    TACHO_ASSIGN(const sqlite::StoredTable* const calls, db_.required("rocpd_api"));
    NamedScan scan(db_, *calls, {"start", "end"});
    result_.first = INT64_MAX;
    result_.last = INT64_MIN;
    while (scan.next()) {
      result_.first = std::min(result_.first, scan.id(0));
      result_.last = std::max(result_.last, scan.id(1));
    }
    TACHO_TRY(scan.status());
  }
  TACHO_TRY(window());
  if (window_.has_from && window_.has_to && window_.from > window_.to)
    return fail("--start {} lies after --end {}", options_.start, options_.end);
  out_.write(options_.array ? "[ {}\n" : "{\"traceEvents\": [ {}\n");
  TACHO_TRY(operations());
  TACHO_TRY(graphs());
  TACHO_TRY(calls());
  if (result_.first > result_.last) return fail("{}: Trace file is empty.", db_.file().path());
  if (!window_.has_from) result_.from = static_cast<double>(result_.first) / 1000;
  if (!window_.has_to) result_.to = static_cast<double>(result_.last) / 1000;
  TACHO_TRY(links());
  TACHO_TRY(counters());
  TACHO_TRY(monitor());
  TACHO_TRY(frames());
  out_.write("]\n");
  if (!options_.array) out_.write("} \n");
  return result_;
}

}  // namespace

Result<TracingResult> write_tracing(const std::string& input, const std::string& output,
                                    const TracingOptions& options) {
  TACHO_ASSIGN(const Database database, Database::open(input));
  TACHO_ASSIGN(OutputFile out, OutputFile::create(output, options.overwrite));
  TACHO_ASSIGN(const TracingResult result, Tracer(database, out, options).run());
  TACHO_TRY(out.commit());
  return result;
}

}  // namespace tacho::format::rpd
