// Writing and reading moments (wire.h).
#include "watch/live/wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "format/json/tokens.h"
#include "report/value.h"

namespace tacho::watch {
namespace {

using event::WatchKind;
using format::json::JsonOutcome, format::json::JsonTokens;

constexpr int64_t kVersion = 1;
constexpr const char* kNoMoment = "its answer is no moment of tacho watch";

// One walk through the text. A function that reads a value returns false once anything is wrong.
class MomentReader {
 public:
  explicit MomentReader(std::string_view text) : text_(text) {
    text_.append(64, '\0');  // as JsonTokens wants it
    tokens_.emplace(text_.data(), text_.data() + text.size());
  }

  // Calls member(key), which reads the value, for each member of an object.
  template <typename Member>
  bool object(const Member& member) {
    if (!take('{')) return false;
    if (tokens_->peek() == '}') return take('}');
    for (;;) {
      std::string_view key;
      std::string buffer;
      if (tokens_->string(key, buffer) != JsonOutcome::kOk) return false;
      const std::string name(key);
      if (!take(':') || !member(name)) return false;
      if (tokens_->peek() == '}') return take('}');
      if (!take(',')) return false;
    }
  }
  template <typename Element>
  bool list(const Element& element) {
    if (!take('[')) return false;
    if (tokens_->peek() == ']') return take(']');
    for (;;) {
      if (!element()) return false;
      if (tokens_->peek() == ']') return take(']');
      if (!take(',')) return false;
    }
  }
  bool skip() { return tokens_->skip() == JsonOutcome::kOk; }
  bool text(std::string& to) {
    std::string_view found;
    std::string buffer;
    if (tokens_->string(found, buffer) != JsonOutcome::kOk) return false;
    to = found;
    return true;
  }
  // A whole number from 0 on.
  template <typename Number>
  bool whole(Number& to) {
    std::string_view word;
    int64_t value = 0;
    if (tokens_->word(word) != JsonOutcome::kOk || !format::json::integer(word, value) || value < 0) return false;
    to = static_cast<Number>(value);
    return static_cast<uint64_t>(to) == static_cast<uint64_t>(value);
  }
  bool real(double& to) {
    std::string_view word;
    return tokens_->word(word) == JsonOutcome::kOk && format::json::real(word, to);
  }
  bool real_or_null(std::optional<double>& to) {
    std::string_view word;
    if (tokens_->word(word) != JsonOutcome::kOk) return false;
    double value = 0;
    if (word == "null") return true;
    if (!format::json::real(word, value)) return false;
    to = value;
    return true;
  }
  bool boolean(bool& to) {
    std::string_view word;
    if (tokens_->word(word) != JsonOutcome::kOk || (word != "true" && word != "false")) return false;
    to = word == "true";
    return true;
  }
  bool is_null() { return tokens_->peek() == 'n'; }
  bool ends() { return tokens_->at_end(); }

 private:
  bool take(char c) { return tokens_->expect(c) == JsonOutcome::kOk; }
  std::string text_;
  std::optional<JsonTokens> tokens_;
};

bool read_kind(MomentReader& in, WatchKind& kind) {
  std::string name;
  if (!in.text(name)) return false;
  for (uint32_t each = 1; each <= static_cast<uint32_t>(WatchKind::kAllocation); ++each)
    if (name == kind_name(static_cast<WatchKind>(each))) kind = static_cast<WatchKind>(each);
  return kind != WatchKind::kNone;
}

bool read_sizes(MomentReader& in, uint32_t (&to)[3]) {
  if (in.is_null()) return in.skip();
  size_t at = 0;
  return in.list([&] { return at < 3 && in.whole(to[at++]); }) && at == 3;
}

bool read_levels(MomentReader& in, AllLevels& to) {
  return in.list([&] {
    uint32_t index = event::kWatchLevels;
    LevelSums sums;
    size_t at = 0;
    const bool good = in.list([&] {
      switch (at++) {
        case 0:
          return in.whole(index);
        case 1:
          return in.whole(sums.count);
        case 2:
          return in.whole(sums.timed);
        case 3:
          return in.whole(sums.time);
        case 4:
          return in.real(sums.squares);
        case 5:
          return in.whole(sums.bounded);
        case 6:
          return in.whole(sums.bound_time);
        default:
          return false;
      }
    });
    if (!good || at != 7 || index >= event::kWatchLevels) return false;
    to[index] = sums;
    return true;
  });
}

bool read_buckets(MomentReader& in, AllBuckets& to) {
  return in.list([&] {
    uint32_t index = event::kWatchBuckets;
    uint64_t count = 0;
    size_t at = 0;
    const bool good = in.list([&] {
      ++at;
      return at == 1 ? in.whole(index) : at == 2 && in.whole(count);
    });
    if (!good || at != 2 || index >= event::kWatchBuckets) return false;
    to[index] = count;
    return true;
  });
}

bool read_kernels(MomentReader& in, std::vector<GraphKernel>& to) {
  return in.list([&] {
    GraphKernel& kernel = to.emplace_back();
    return in.object([&](const std::string& name) {
      if (name == "name") return in.text(kernel.name);
      if (name == "title") return in.text(kernel.title);
      if (name == "nodes") return in.whole(kernel.nodes);
      if (name == "own_ns") return in.real_or_null(kernel.own_ns);
      return in.skip();
    });
  });
}

bool read_row(MomentReader& in, RowSums& row) {
  bool sums = false;
  const bool good = in.object([&](const std::string& name) {
    if (name == "kind") return read_kind(in, row.kind);
    if (name == "name") return in.text(row.name);
    if (name == "grid") return read_sizes(in, row.grid);
    if (name == "group") return read_sizes(in, row.group);
    if (name == "count") return in.whole(row.count);
    if (name == "bytes") return in.whole(row.bytes);
    if (name == "level") return in.whole(row.level) && row.level < event::kWatchLevels;
    if (name == "shortest_ns") return in.whole(row.shortest_ns);
    if (name == "longest_ns") return in.whole(row.longest_ns);
    if (name == "each_ns") return in.real(row.each_ns);
    if (name == "levels") return sums = true, read_levels(in, row.levels);
    if (name == "stood_ns") return in.whole(row.stood_ns);
    if (name == "buckets") return read_buckets(in, row.buckets);
    if (name == "kernels") return read_kernels(in, row.kernels);
    if (name == "other_nodes") return in.whole(row.other_nodes);
    return in.skip();
  });
  return good && row.kind != WatchKind::kNone && (sums || row.kind == WatchKind::kAllocation);
}

bool read_process(MomentReader& in, WatchedProcess& process) {
  return in.object([&](const std::string& name) {
    if (name == "pid") return in.whole(process.pid);
    if (name == "name") return in.text(process.name);
    if (name == "uses_devices") return in.boolean(process.uses_devices);
    if (name == "ended") return in.boolean(process.ended);
    if (name == "launches") return in.whole(process.launches);
    if (name == "copied_bytes") return in.whole(process.copied_bytes);
    if (name == "time_ns") return in.whole(process.time_ns);
    return in.skip();
  });
}

bool read_gpu(MomentReader& in, vendor::GpuReading& reading) {
  std::string quantity;
  const bool good = in.object([&](const std::string& name) {
    if (name == "gpu") return in.whole(reading.gpu);
    if (name == "name") return in.text(quantity);
    if (name == "unit") return in.text(reading.unit);
    if (name == "value") return in.real(reading.value);
    return in.skip();
  });
  reading.name = fmt::format("GPU {} [{}]", quantity, reading.gpu);
  return good;
}

bool read_cost(MomentReader& in, std::optional<WatchCost>& to) {
  if (in.is_null()) return in.skip();
  WatchCost cost;
  const bool good = in.object([&](const std::string& name) {
    if (name == "share") return in.real(cost.share);
    if (name == "low") return in.real(cost.low);
    if (name == "high") return in.real(cost.high);
    if (name == "pairs") return in.whole(cost.pairs);
    return in.skip();
  });
  to = cost;
  return good;
}

}  // namespace

std::string moment_text(const WatchFacts& facts, const WatchMoment& moment) {
  report::JsonValue all = watch_document(moment, false, true);
  all.set("tacho_watch", report::JsonValue(kVersion));
  all.set("title", report::JsonValue(facts.title));
  all.set("host", report::JsonValue(facts.host));
  all.set("run", report::JsonValue(facts.run));
  return all.text();
}

Result<RemoteMoment> parse_moment_text(std::string_view text) {
  MomentReader in(text);
  RemoteMoment remote;
  WatchSnapshot& snapshot = remote.moment.snapshot;
  int64_t version = 0;
  bool timing = true;
  const bool good = in.object([&](const std::string& name) {
    if (name == "tacho_watch") return in.whole(version);
    if (name == "title") return in.text(remote.facts.title);
    if (name == "host") return in.text(remote.facts.host);
    if (name == "run") return in.text(remote.facts.run);
    if (name == "seconds") return in.real(snapshot.seconds);
    if (name == "rows") return in.list([&] { return read_row(in, snapshot.rows.emplace_back()); });
    if (name == "processes") return in.list([&] { return read_process(in, snapshot.processes.emplace_back()); });
    if (name == "gpus") return in.list([&] { return read_gpu(in, remote.moment.gpus.emplace_back()); });
    if (name == "failed") return in.whole(snapshot.failed);
    if (name == "uncounted") return in.whole(snapshot.lost_rows);
    if (name == "lost_durations") return in.whole(snapshot.lost_times);
    if (name == "host_ns") return in.real_or_null(snapshot.own_ns);
    if (name == "device_ns") return in.real(snapshot.device_ns);
    if (name == "budget") return in.real(remote.moment.budget);
    if (name == "timing") return in.boolean(timing);
    if (name == "cost") return read_cost(in, remote.moment.cost);
    if (name == "notes") return in.list([&] { return in.text(remote.notes.emplace_back()); });
    return in.skip();
  });
  if (!good || !in.ends() || version == 0) return fail("{}", kNoMoment);
  if (version != kVersion) return fail("it has another version of tacho, whose moments this one cannot read");
  remote.moment.counts_only = !timing;
  for (const RowSums& row : snapshot.rows) snapshot.operations += row.count;
  return remote;
}

}  // namespace tacho::watch
