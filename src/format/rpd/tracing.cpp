// Writes Chrome JSON like rpd2tracing.py (tracing.h), without its mistakes: escapes names instead of stripping them,
// and correctly nests markers that begin where others end.
#include "format/rpd/tracing.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/files/output_file.h"
#include "base/files/sorted_file.h"
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

char* put(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
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
    int64_t pid, tid;
    std::string head;  // ,{"pid":"1","tid":"2",
    std::vector<Marker> stack;
    // The frame open on the GPU.
    bool open = false;
    Marker frame{};
    int64_t from = 0, to = 0, operations = 0;
    std::vector<uint32_t> places;
  };
  struct Place {
    int64_t gpu, queue;
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

  void text(std::string_view value) {
    while (!value.empty()) {
      const size_t take = std::min<size_t>(value.size(), 32768);
      std::memcpy(out_.reserve(take), value.data(), take);
      out_.advance(take);
      value.remove_prefix(take);
    }
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
  tsl::robin_map<uint64_t, uint32_t> thread_index_, place_index_;
  int64_t last_pid_ = kUnknown, last_tid_ = kUnknown, last_gpu_ = kUnknown, last_queue_ = kUnknown;
  uint32_t last_thread_ = 0, last_place_ = 0;
  SortedFile<Marker> markers_{12u << 20};
  SortedFile<Use> uses_{12u << 20};
  SortedFile<Step> begins_{6u << 20}, ends_{6u << 20};
  int64_t last_end_ = INT64_MIN;
};

uint64_t pair_key(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a) * 0x9e3779b97f4a7c15ULL ^ static_cast<uint64_t>(b);
}

uint32_t Tracer::thread(int64_t pid, int64_t tid) {
  if (last_thread_ < threads_.size() && pid == last_pid_ && tid == last_tid_) return last_thread_;
  uint64_t key = pair_key(pid, tid);
  while (true) {
    const auto [found, fresh] = thread_index_.try_emplace(key, static_cast<uint32_t>(threads_.size()));
    if (fresh) {
      Thread one;
      one.pid = pid;
      one.tid = tid;
      one.head = fmt::format(",{{\"pid\":\"{}\",\"tid\":\"{}\",", pid, tid);
      text(fmt::format(
          ",{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":\"{0}\",\"tid\":\"{1}\",\"args\":{{\"name\":\"Hip "
          "{1}\"}}}}\n"
          ",{{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":\"{0}\",\"tid\":\"{1}\",\"args\":{{\"sort_index\":\"{2}\"}}}}\n"
          "",
          pid, tid, static_cast<int64_t>(static_cast<uint64_t>(tid) * 2)));
      result_.events += 2;
      threads_.push_back(std::move(one));
    } else if (threads_[found->second].pid != pid || threads_[found->second].tid != tid) {
      ++key;  // another pair has this hash
      continue;
    }
    last_pid_ = pid;
    last_tid_ = tid;
    return last_thread_ = found->second;
  }
}

uint32_t Tracer::place(int64_t gpu, int64_t queue) {
  if (last_place_ < places_.size() && gpu == last_gpu_ && queue == last_queue_) return last_place_;
  uint64_t key = pair_key(gpu, queue);
  while (true) {
    const auto [found, fresh] = place_index_.try_emplace(key, static_cast<uint32_t>(places_.size()));
    if (fresh) {
      const auto known = std::find(gpus_.begin(), gpus_.end(), gpu);
      Place one{gpu, queue, static_cast<uint32_t>(known - gpus_.begin()),
                fmt::format(",{{\"pid\":\"{}\",\"tid\":\"{}\",", gpu, queue)};
      if (known == gpus_.end()) {
        gpus_.push_back(gpu);
        text(fmt::format(",{{\"name\": \"process_name\", \"ph\": \"M\", "
                         "\"pid\":\"{0}\",\"args\":{{\"name\":\"GPU{0}\"}}}}\n"
                         ",{{\"name\": \"process_sort_index\", \"ph\": \"M\", "
                         "\"pid\":\"{0}\",\"args\":{{\"sort_index\":\"{1}\"}}}}\n",
                         gpu, static_cast<int64_t>(static_cast<uint64_t>(gpu) + 1000000)));
        result_.events += 2;
      }
      places_.push_back(std::move(one));
    } else if (places_[found->second].gpu != gpu || places_[found->second].queue != queue) {
      ++key;
      continue;
    }
    last_gpu_ = gpu;
    last_queue_ = queue;
    return last_place_ = found->second;
  }
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
    int64_t key[3] = {kUnknown, 0, 0};
    std::string front, back;
  };
  tsl::robin_map<uint64_t, uint32_t> index;
  std::vector<Line> lines;
  uint32_t last = 0;
  while (scan.next()) {
    const uint32_t at = place(scan.number(0), scan.number(1));
    if (gpus_.size() > kMostGpus)
      return fail("{}: operations on more than {} GPUs: damaged", db_.file().path(), kMostGpus);
    const int64_t start = scan.number(2), end = scan.number(3);
    last_end_ = std::max(last_end_, end);
    if (!window_.holds(start)) continue;
    const int64_t description = scan.number(4), type = scan.number(5);
    if (lines.empty() || lines[last].key[0] != at || lines[last].key[1] != description || lines[last].key[2] != type) {
      if (lines.size() >= kMostKeptTexts) {
        index.clear();
        lines.clear();
      }
      uint64_t key = pair_key(static_cast<int64_t>(pair_key(at, description)), type);
      while (true) {
        const auto [found, fresh] = index.try_emplace(key, static_cast<uint32_t>(lines.size()));
        if (fresh) {
          const std::string word = name(type);
          const std::string& described = name(description);
          lines.push_back({{at, description, type},
                           places_[at].head + "\"name\":\"" + (described.empty() ? word : described) + "\",\"ts\":\"",
                           "\",\"ph\":\"X\",\"args\":{\"desc\":\"" + word + "\"}}\n"});
        }
        const Line& line = lines[found->second];
        if (line.key[0] == at && line.key[1] == description && line.key[2] == type) {
          last = found->second;
          break;
        }
        ++key;
      }
    }
    const Line& line = lines[last];
    if (line.front.size() + line.back.size() > 60000) {
      text(line.front);
      char* to = out_.reserve(64);
      char* const begin = to;
      to = put_us(to, start);
      to = put(to, "\",\"dur\":\"");
      to = put_us(to, end - start);
      out_.advance(static_cast<size_t>(to - begin));
      text(line.back);
    } else {
      char* to = out_.reserve(line.front.size() + line.back.size() + 80);
      char* const begin = to;
      to = put(to, line.front);
      to = put_us(to, start);
      to = put(to, "\",\"dur\":\"");
      to = put_us(to, end - start);
      to = put(to, line.back);
      out_.advance(static_cast<size_t>(to - begin));
    }
    ++result_.events;
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
    char ts[32], dur[32];
    *put_us(ts, number(3)) = '\0';
    *put_us(dur, number(4)) = '\0';
    text(fmt::format(",{{\"pid\":\"{}\",\"tid\":\"{}\",\"name\":\"Graph "
                     "{}\",\"ts\":\"{}\",\"dur\":\"{}\",\"ph\":\"X\",\"args\":{{\"kernels\":\"{}\"}}}}\n",
                     number(1), number(2), escaped(graph != nullptr ? graph : ""), ts, dur, number(5)));
    ++result_.events;
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
        user_marker = names.number(0);
        break;
      }
  }
  std::string buffer;
  int64_t empty = kUnknown;  // the empty text's id: most calls have no arguments
  result_.first = INT64_MAX;
  result_.last = INT64_MIN;
  while (scan.next()) {
    const int64_t start = scan.number(3), end = scan.number(4);
    const uint32_t at = thread(scan.number(1), scan.number(2));
    result_.first = std::min(result_.first, start);
    result_.last = std::max(result_.last, end);
    last_end_ = std::max(last_end_, end);
    if (!window_.holds(start)) continue;
    ++result_.events;
    const int64_t name_id = scan.number(5), args = scan.number(6);
    if (name_id == user_marker) {
      const std::string_view value = argument(args, buffer);
      const Thread& of = threads_[at];
      if (start != end) markers_.add({start, end, args, at});
      if (value.size() > 20000) {
        std::string line = of.head + "\"name\":\"" + std::string(value) + "\",\"ts\":\"";
        char digits[64];
        char* to = put_us(digits, start);
        if (start == end)
          to = put(to, "\",\"ph\":\"i\",\"s\":\"p\"");
        else
          to = put(put_us(put(to, "\",\"dur\":\""), end - start), "\",\"ph\":\"X\"");
        line.append(digits, to);
        text(line + ",\"args\":{\"desc\":\"" + std::string(value) + "\"}}\n");
        continue;
      }
      char* to = out_.reserve(of.head.size() + 2 * value.size() + 160);
      char* const begin = to;
      to = put(put(put(to, of.head), "\"name\":\""), value);
      to = put_us(put(to, "\",\"ts\":\""), start);
      if (start == end)
        to = put(to, "\",\"ph\":\"i\",\"s\":\"p\"");
      else
        to = put(put_us(put(to, "\",\"dur\":\""), end - start), "\",\"ph\":\"X\"");
      to = put(put(put(to, ",\"args\":{\"desc\":\""), value), "\"}}\n");
      out_.advance(static_cast<size_t>(to - begin));
      continue;
    }
    Line& line = recent[(static_cast<size_t>(name_id) * 31 + at) & 1023];
    if (line.name != name_id || line.thread != at || line.front.empty()) {
      line.name = name_id;
      line.thread = at;
      line.front = threads_[at].head + "\"name\":\"" + name(name_id) + "\",\"ts\":\"";
    }
    const std::string_view value = args == empty ? std::string_view() : argument(args, buffer);
    if (value.empty()) empty = args;
    if (value.size() + line.front.size() > 40000) {
      char digits[64];
      text(line.front);
      char* to = put_us(put(put_us(digits, start), "\",\"dur\":\""), end - start);
      text(std::string(digits, to) + "\",\"ph\":\"X\",\"args\":{\"desc\":\"" + std::string(value) + "\"}}\n");
      continue;
    }
    char* to = out_.reserve(line.front.size() + value.size() + 120);
    char* const begin = to;
    to = put_us(put(to, line.front), start);
    to = put_us(put(to, "\",\"dur\":\""), end - start);
    to = put(put(put(to, "\",\"ph\":\"X\",\"args\":{\"desc\":\""), value), "\"}}\n");
    out_.advance(static_cast<size_t>(to - begin));
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
    if (!find(call, scan.number(1)) || !find(op, scan.number(2))) continue;
    const int64_t call_start = call.number(2), call_end = call.number(3), start = op.number(2), end = op.number(3);
    const uint32_t from = thread(call.number(0), call.number(1)), to = place(op.number(0), op.number(1));
    if (window_.holds(start)) {
      begins_.add({call_start, places_[to].gpu_number});
      ends_.add({end, places_[to].gpu_number});
    }
    if (!window_.holds(call_start)) continue;
    uses_.add({call_start, start, end, from, to});
    const std::string& head = threads_[from].head;
    const std::string& tail = places_[to].head;
    char* at = out_.reserve(head.size() + tail.size() + 260);
    char* const begin = at;
    at = put_us(put(put(at, head), "\"cat\":\"api_op\",\"name\":\"api_op\",\"ts\":\""),
                std::min(call_end - 2000, start));
    char digits[kMostDigits];
    const std::string_view id(digits, static_cast<size_t>(write_signed(digits, scan.number(0)) - digits));
    at = put(put(put(at, "\",\"id\":\""), id), "\",\"ph\":\"s\"}\n");
    at = put_us(put(put(at, tail), "\"cat\":\"api_op\",\"name\":\"api_op\",\"ts\":\""), start);
    at = put(put(put(at, "\",\"id\":\""), id), "\",\"ph\":\"f\", \"bp\":\"e\"}\n");
    out_.advance(static_cast<size_t>(at - begin));
    result_.events += 2;
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
  const auto line = [&](const std::string& head, std::string_view time, std::string_view what, int64_t value) {
    char* to = out_.reserve(head.size() + 100);
    char* const begin = to;
    to = put(put(put(to, head), time), what);
    to = put(write_signed(to, value), "}}\n");
    out_.advance(static_cast<size_t>(to - begin));
    ++result_.events;
  };
  Step up, down;
  bool more_up = begins_.next(up), more_down = ends_.next(down);
  while (more_up || more_down) {
    // At equal times, beginnings come first.
    const bool rises = more_up && (!more_down || up.time <= down.time);
    const Step& step = rises ? up : down;
    Gpu& gpu = gpus[step.gpu];
    char digits[32];
    const std::string_view time(digits, static_cast<size_t>(put_us(digits, step.time) - digits));
    if (gpu.idle && rises) {
      gpu.idle = false;
      line(gpu.idle_head, time, ",\"args\":{\"idle\":", 0);
    }
    if (gpu.depth == 1 && !rises) {
      gpu.idle = true;
      line(gpu.idle_head, time, ",\"args\":{\"idle\":", 1);
    }
    gpu.depth += rises ? 1 : -1;
    line(gpu.depth_head, time, ",\"args\":{\"depth\":", gpu.depth);
    if (rises)
      more_up = begins_.next(up);
    else
      more_down = ends_.next(down);
  }
  const std::string last = window_.has_to ? fmt::format("{}", window_.to) : std::to_string(last_end_ / 1000);
  if (last_end_ / 1000 > 0)
    for (const Gpu& gpu : gpus) {
      line(gpu.idle_head, last, ",\"args\":{\"idle\":", gpu.idle ? 1 : 0);
      line(gpu.depth_head, last, ",\"args\":{\"depth\":", gpu.depth);
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
  const auto line = [&](const Series& of, int64_t time) {
    char ts[32];
    *put_us(ts, time) = '\0';
    text(fmt::format(",{{\"pid\":\"{}\",\"name\":\"{}\",\"ph\":\"C\",\"ts\":{},\"args\":{{\"{}\":{}}}}}\n", of.device,
                     of.type, ts, of.type, of.value));
    ++result_.events;
  };
  while (scan.next()) {
    result_.has_monitor = true;
    const int64_t start = scan.number(2), end = scan.number(3);
    if (!window_.holds(start)) continue;
    const int64_t device = scan.number(0);
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
    line(now, start);
    if (end >= of->last) {
      of->last = end;
      of->value = now.value;
    }
  }
  for (const Series& of : series) line(of, of.last);
  return scan.status();
}

void Tracer::close_frame(Thread& thread) {
  if (!thread.open) return;
  thread.open = false;
  std::string buffer;
  const std::string value(argument(thread.frame.text, buffer));
  for (const uint32_t place : thread.places) {
    char ts[32], dur[32];
    *put_us(ts, thread.from - 1000) = '\0';
    *put_us(dur, thread.to - thread.from + 1000) = '\0';
    text(places_[place].head + "\"name\":\"" + value);
    text(fmt::format(
        "\",\"ts\":\"{}\",\"dur\":\"{}\",\"ph\":\"X\",\"args\":{{\"desc\":\"UserMarker frame: {} ops\"}}}}\n", ts, dur,
        thread.operations));
    ++result_.events;
  }
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
      result_.first = std::min(result_.first, scan.number(0));
      result_.last = std::max(result_.last, scan.number(1));
    }
    TACHO_TRY(scan.status());
  }
  TACHO_TRY(window());
  if (window_.has_from && window_.has_to && window_.from > window_.to)
    return fail("--start {} lies after --end {}", options_.start, options_.end);
  text(options_.array ? "[ {}\n" : "{\"traceEvents\": [ {}\n");
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
  text("]\n");
  if (!options_.array) text("} \n");
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
