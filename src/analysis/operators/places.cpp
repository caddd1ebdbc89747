// Sums by process, rank, thread, device and stream (places.h).
#include "analysis/operators/places.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/files/run_name.h"
#include "base/format.h"
#include "base/saturating.h"
#include "event/schema.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

// Rows of `place` by key.
struct Key {
  int64_t first = 0, second = 0;
  bool operator<(const Key& other) const { return std::tie(first, second) < std::tie(other.first, other.second); }
};

struct Names {
  const trace::Trace& trace;
  const DeviceNumbers devices;
  bool several_processes = trace.rows(Table::kProcess) > 2;

  int64_t cell(Table table, int64_t row, int at) const { return trace.cell(table, row, at); }
  int64_t rank(int64_t process) const { return cell(Table::kProcess, process, column::Process::rank); }

  std::string process(int64_t row) const {
    if (row == 0) return "no process";
    std::string name = process_name(trace, row);
    const int64_t pid = cell(Table::kProcess, row, column::Process::pid);
    std::string more = pid > 0 ? fmt::format("pid {}", pid) : std::string();
    if (const int64_t number = rank(row); number != kUnknown)
      more += fmt::format("{}rank {}", more.empty() ? "" : ", ", number);
    if (const int64_t run = cell(Table::kProcess, row, column::Process::run); run > 0)
      more += fmt::format("{}run {}", more.empty() ? "" : ", ", run);
    if (name.empty()) return more.empty() ? fmt::format("process {}", row) : more;
    return more.empty() ? name : fmt::format("{} ({})", name, more);
  }
  // " of rank 3", where more than one process is there to be meant
  std::string of_process(int64_t row) const {
    if (!several_processes || row == 0) return {};
    const int64_t number = rank(row), pid = cell(Table::kProcess, row, column::Process::pid);
    if (number != kUnknown) return fmt::format(" of rank {}", number);
    return pid > 0 ? fmt::format(" of pid {}", pid) : fmt::format(" of process {}", row);
  }
  std::string thread(int64_t row) const {
    const std::string name(trace.text(Table::kThread, row, column::Thread::name));
    const int64_t tid = cell(Table::kThread, row, column::Thread::tid);
    return (name.empty() ? "thread" : name) + (tid > 0 ? fmt::format(" {}", tid) : std::string()) +
           of_process(cell(Table::kThread, row, column::Thread::process));
  }
  std::string device(int64_t row) const {
    const std::string_view name = trace.text(Table::kDevice, row, column::Device::name);
    return name.empty() ? devices.text(row) : fmt::format("{}: {}", devices.text(row), name);
  }
  std::string stream(int64_t track) const {
    const std::string_view given = trace.text(Table::kTrack, track, column::Track::name);
    const int64_t native = cell(Table::kTrack, track, column::Track::native);
    const int64_t device = cell(Table::kTrack, track, column::Track::device);
    std::string name = given.empty()
                           ? fmt::format("{} {}",
                                         trace.text(Table::kTrack, track, column::Track::category).find("stream") !=
                                                 std::string_view::npos
                                             ? "stream"
                                             : "queue",
                                         native)
                           : std::string(given);
    if (device != 0) name += " on " + devices.text(device);
    return name + of_process(cell(Table::kTrack, track, column::Track::process));
  }
};

}  // namespace

std::optional<Place> parse_place(std::string_view text) {
  static constexpr std::pair<std::string_view, Place> kPlaces[] = {{"process", Place::kProcess},
                                                                   {"rank", Place::kRank},
                                                                   {"thread", Place::kThread},
                                                                   {"device", Place::kDevice},
                                                                   {"stream", Place::kStream}};
  for (const auto& [name, place] : kPlaces)
    if (name == text) return place;
  return std::nullopt;
}

std::string process_name(const trace::Trace& trace, int64_t process) {
  const std::string_view command = trace.text(Table::kProcess, process, column::Process::command);
  const std::string name(trace.text(Table::kProcess, process, column::Process::name));
  std::vector<std::string> words;
  for (size_t begin = 0; begin < command.size();) {
    const size_t end = std::min(command.find(' ', begin), command.size());
    if (end > begin) words.emplace_back(command.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!words.empty() && runs_script(words)) return run_name(words);
  return name;
}

namespace {

// Whose numbers the index of a device is one of: its owner's host, else rank, else the owner itself. "" for devices
// that no process owns.
std::string machine_of(const trace::Trace& trace, int64_t device) {
  const int64_t owner = trace.cell(Table::kDevice, device, column::Device::process);
  if (owner <= 0) return {};
  if (const std::string_view host = trace.text(Table::kProcess, owner, column::Process::host); !host.empty())
    return fmt::format("host {}", host);
  if (const int64_t rank = trace.cell(Table::kProcess, owner, column::Process::rank); rank != kUnknown)
    return fmt::format("rank {}", rank);
  return fmt::format("process {}", owner);
}

}  // namespace

DeviceNumbers::DeviceNumbers(const trace::Trace& trace) {
  struct Facts {
    int64_t kind, index;
    std::string text;
  };
  std::vector<Facts> unique;
  std::map<std::tuple<int64_t, int64_t, std::string>, size_t> known;
  const int64_t rows = std::max<int64_t>(trace.rows(Table::kDevice), 1);
  devices_.assign(1, 0);
  unique.push_back({-1, 0, "device"});
  for (int64_t row = 1; row < rows; ++row) {
    const int64_t kind = trace.cell(Table::kDevice, row, column::Device::kind);
    const int64_t index = trace.cell(Table::kDevice, row, column::Device::index);
    const std::string uuid(trace.text(Table::kDevice, row, column::Device::uuid));
    // A rank may see its GPU as number 0, so compare the unique id, else where the number is counted.
    const auto key = uuid.empty() ? std::tuple(kind, index,
                                               fmt::format("{} {}", machine_of(trace, row),
                                                           trace.text(Table::kDevice, row, column::Device::name)))
                                  : std::tuple(kind, int64_t{-1}, uuid);
    const auto [at, fresh] = known.try_emplace(key, unique.size());
    if (fresh) unique.push_back({kind, index, ""});
    devices_.push_back(at->second);
  }
  std::map<int64_t, std::set<int64_t>> indexes;
  std::map<int64_t, size_t> count, next;
  for (size_t i = 1; i < unique.size(); ++i) {
    ++count[unique[i].kind];
    if (unique[i].index >= 0) indexes[unique[i].kind].insert(unique[i].index);
  }
  for (size_t i = 1; i < unique.size(); ++i) {
    Facts& facts = unique[i];
    const bool own = indexes[facts.kind].size() == count[facts.kind];
    const auto kind = static_cast<event::DeviceKind>(facts.kind);
    facts.text =
        fmt::format("{} {}", kind == event::DeviceKind::kUnknown ? std::string_view("device") : event::to_string(kind),
                    own ? facts.index : static_cast<int64_t>(next[facts.kind]++));
  }
  for (const size_t device : devices_) texts_.push_back(unique[device].text);
}

Result<std::vector<PlaceRow>> by_place(const trace::Trace& trace, Place place) {
  const Names names{trace, DeviceNumbers(trace)};
  const auto cell = [&](Table table, int64_t row, int at) { return trace.cell(table, row, at); };
  struct Entry {
    PlaceRow row;
    int64_t example = 0;  // a row of the table that names it
  };
  std::map<Key, Entry> entries;
  std::vector<Entry*> of_track(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)), nullptr);
  Entry unused;
  const auto entry_of = [&](int64_t track) -> Entry* {
    const auto at = static_cast<size_t>(track);
    if (of_track[at] != nullptr) return of_track[at];
    const int64_t process = cell(Table::kTrack, track, column::Track::process),
                  thread = cell(Table::kTrack, track, column::Track::thread),
                  device = cell(Table::kTrack, track, column::Track::device);
    Entry* entry = &unused;
    const auto take = [&](Key key, int64_t example) {
      entry = &entries[key];
      if (entry->example == 0) entry->example = example;
    };
    switch (place) {
      case Place::kProcess:
        take({process, 0}, process);
        break;
      case Place::kRank: {
        const int64_t rank = names.rank(process);
        if (process != 0 && rank != kUnknown)
          take({0, rank}, process);
        else
          take({1, process}, process);
        break;
      }
      case Place::kThread:
        if (thread != 0) take({thread, 0}, thread);
        break;
      case Place::kDevice:
        if (thread == 0) take({static_cast<int64_t>(names.devices.device(device)), 0}, device);
        break;
      case Place::kStream:
        if (thread == 0) take({track, 0}, track);
        break;
    }
    return of_track[at] = entry;
  };
  struct Source {
    Table table;
    int64_t PlaceRow::*count;
    int64_t PlaceRow::*time;
  };
  static constexpr Source kSources[] = {{Table::kDispatch, &PlaceRow::kernels, &PlaceRow::kernel_ns},
                                        {Table::kCopy, &PlaceRow::copies, &PlaceRow::copy_ns},
                                        {Table::kFill, &PlaceRow::copies, &PlaceRow::copy_ns},
                                        {Table::kApi, &PlaceRow::calls, &PlaceRow::call_ns},
                                        {Table::kSample, &PlaceRow::samples, &PlaceRow::sample_ns}};
  for (const Source& source : kSources)
    TACHO_TRY(trace.visit_summaries(source.table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries) {
        PlaceRow& row = entry_of(summary.track)->row;
        row.*source.count += summary.count + summary.unknown;
        add_saturating(row.*source.time, summary.sum);
        add_saturating(row.bytes, summary.bytes);
      }
    }));
  std::vector<PlaceRow> rows;
  for (auto& [key, entry] : entries) {
    PlaceRow& row = entry.row;
    if (row.kernels == 0 && row.copies == 0 && row.calls == 0 && row.samples == 0) continue;
    switch (place) {
      case Place::kProcess:
        row.name = names.process(entry.example);
        break;
      case Place::kRank:
        row.name = key.first == 0 ? fmt::format("rank {}", key.second) : names.process(entry.example);
        break;
      case Place::kThread:
        row.name = names.thread(entry.example);
        break;
      case Place::kDevice:
        row.name = names.device(entry.example);
        break;
      case Place::kStream:
        row.name = names.stream(entry.example);
        break;
    }
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const PlaceRow& a, const PlaceRow& b) {
    const int64_t x = saturating_add(a.kernel_ns, a.copy_ns), y = saturating_add(b.kernel_ns, b.copy_ns);
    return std::tuple(x, a.call_ns, a.sample_ns) > std::tuple(y, b.call_ns, b.sample_ns);
  });
  return rows;
}

}  // namespace tacho::analysis
