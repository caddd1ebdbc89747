// Passes of a program as one run: the passes of a folder, and how counters find their dispatch (format.h).
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/format.h"
#include "format/format.h"
#include "format/source/names.h"
#include "format/source/source.h"
#include "trace/read/rows.h"
#include "trace/write/copy.h"

namespace tacho::format::passes {
namespace {

namespace fs = std::filesystem;
namespace column = event::column;
namespace row = event::row;
using event::kUnknown;
using event::Table;

constexpr std::string_view kName = "passes";      // of the reader
constexpr std::string_view kProperty = "passes";  // of a whole trace: what sentence() gives
constexpr size_t kMostEntries = 10'000, kMostPasses = 1000;

struct Source {
  std::string path;
  const Reader* reader;
};

struct Pass {
  int64_t number;
  std::string name, folder;
  std::vector<Source> sources;
};

// What rocprofv3 writes. Other tools' traces in folders of such names are no passes.
bool is_of_passes(const Reader& reader) {
  static constexpr std::string_view kNames[] = {"rocpd", "rocprofv3", "rocprofv3 csv", "pftrace"};
  return std::find(std::begin(kNames), std::end(kNames), reader.name) != std::end(kNames);
}

const Reader* reader_for(const std::string& path, bool folder) {
  const std::string head = folder ? std::string() : source::peek(path).text;
  if (!folder && head.empty()) return nullptr;
  for (const Reader& reader : readers())
    if (reader.name != kName && reader.accepts(path, head, folder)) return is_of_passes(reader) ? &reader : nullptr;
  return nullptr;
}

// Names right below `folder`, of folders or of files.
std::vector<std::string> names_in(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  size_t entries = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && entries < kMostEntries;
       at.increment(error), ++entries) {
    std::error_code ignored;
    if (folders ? at->is_directory(ignored) && !at->is_symlink(ignored) : at->is_regular_file(ignored))
      names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void add_files(const std::string& folder, std::vector<Source>& found) {
  std::vector<std::string> files;
  for (const std::string& name : names_in(folder, false))
    if (named_like_a_trace(name)) files.push_back(folder + "/" + name);
  leave_out_repeated(files);
  for (const std::string& file : files)
    if (const Reader* const reader = reader_for(file, false)) found.push_back({file, reader});
}

// The folder as a whole, the folders of hosts below it, or single files in either.
std::vector<Source> sources_in(const std::string& folder) {
  if (const Reader* const reader = reader_for(folder, true)) return {{folder, reader}};
  std::vector<Source> found;
  add_files(folder, found);
  for (const std::string& name : names_in(folder, true)) {
    const std::string below = folder + "/" + name;
    if (const Reader* const reader = reader_for(below, true))
      found.push_back({below, reader});
    else
      add_files(below, found);
  }
  return found;
}

std::optional<int64_t> number_of(std::string_view name) {
  for (const std::string_view beginning : {"pass_", "pmc_"}) {
    if (!name.starts_with(beginning)) continue;
    int64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + beginning.size(), end, number);
    if (error == std::errc() && at == end && number > 0) return number;
  }
  return std::nullopt;
}

// Those that hold a trace, by number. A pass that failed leaves an empty folder.
std::vector<Pass> passes_in(const std::string& folder) {
  std::vector<Pass> found;
  for (const std::string& name : names_in(folder, true)) {
    const std::optional<int64_t> number = number_of(name);
    if (!number || found.size() >= kMostPasses) continue;
    Pass pass{*number, name, folder + "/" + name, {}};
    pass.sources = sources_in(pass.folder);
    if (!pass.sources.empty()) found.push_back(std::move(pass));
  }
  std::sort(found.begin(), found.end(),
            [](const Pass& a, const Pass& b) { return std::tie(a.number, a.name) < std::tie(b.number, b.name); });
  return found;
}

// Places of processes in the order of their hosts, ranks and pids: the same process of another run has the same place.
std::vector<int64_t> places_of(const trace::Trace& trace) {
  std::vector<int64_t> processes, places(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kProcess), 1)));
  std::vector<bool> works(places.size());
  static_cast<void>(trace.visit_summaries(Table::kDispatch, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries)
      works[static_cast<size_t>(trace::cell<column::Track::process>(trace, summary.track))] = true;
  }));
  for (size_t process = 0; process < works.size(); ++process)
    if (works[process]) processes.push_back(static_cast<int64_t>(process));
  const auto key = [&](int64_t process) {
    return std::tuple(trace::text<column::Process::host>(trace, process),
                      trace::cell<column::Process::rank>(trace, process),
                      trace::cell<column::Process::pid>(trace, process), process);
  };
  std::sort(processes.begin(), processes.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  for (size_t i = 0; i < processes.size(); ++i) places[static_cast<size_t>(processes[i])] = static_cast<int64_t>(i);
  return places;
}

struct Launch {
  int64_t place, ordinal;
  auto operator<=>(const Launch&) const = default;
};
struct Launched {
  int64_t track, start, name;  // the name: a string of its trace
};

class Launches {
 public:
  explicit Launches(const trace::Trace& trace) : trace_(trace), places_(places_of(trace)) {}

  Status read() {
    using D = column::Dispatch;
    Status status;
    for (const auto& work : trace::chunks<D::track, D::start, D::dim, D::ordinal>(trace_, status))
      for (size_t i = 0; i < work.size(); ++i)
        if (work.ordinal[i] != kUnknown)
          index_.add({place(work.track[i]), work.ordinal[i]},
                     {work.track[i], work.start[i], trace::cell<column::Kernel::name>(trace_, work.dim[i])});
    TACHO_TRY(status);
    return index_.finish();
  }
  const Launched* find(const Launch& launch) {
    const auto* const entry = index_.find(launch);
    return entry == nullptr ? nullptr : &entry->value;
  }
  int64_t place(int64_t track) const {
    return places_[static_cast<size_t>(trace::cell<column::Track::process>(trace_, track))];
  }
  std::string_view name(const Launched& launched) const { return trace_.string(launched.name); }

 private:
  const trace::Trace& trace_;
  std::vector<int64_t> places_;
  KeyIndex<Launched, Launch> index_;
};

struct Joined {
  int64_t values = 0, lost = 0;
  int64_t passes = 0;  // one more than the last pass that a value names
};

// Adds the counter values of `trace` to the dispatches of `run`, whose tracks became those of `tracks`.
Result<Joined> join(const trace::Trace& trace, Launches& run, const std::map<int64_t, int64_t>& tracks,
                    int64_t first_pass, trace::TraceWriter& writer) {
  Joined joined;
  Launches own(trace);
  TACHO_TRY(own.read());
  std::map<int64_t, int64_t> counters;
  const auto counter = [&](int64_t from) {
    const auto [at, fresh] = counters.try_emplace(from, 0);
    if (fresh) {
      auto cells = trace::row<row::Counter>(trace, from);
      for (int64_t* const text : {&cells.name, &cells.unit, &cells.text, &cells.block})
        *text = writer.string(trace.string(*text));
      at->second = writer.dimension(cells);
    }
    return at->second;
  };
  using C = column::CounterValue;
  Status status;
  for (const auto& read : trace::chunks<C::track, C::ordinal, C::dim, C::instance, C::pass, C::value>(trace, status))
    for (size_t i = 0; i < read.size(); ++i) {
      ++joined.values;
      const Launch launch{own.place(read.track[i]), read.ordinal[i]};
      const Launched* const here = own.find(launch);
      const Launched* const there = here == nullptr ? nullptr : run.find(launch);
      const auto track = there == nullptr ? tracks.end() : tracks.find(there->track);
      if (track == tracks.end() || own.name(*here) != run.name(*there)) {
        ++joined.lost;
        continue;
      }
      joined.passes = std::max(joined.passes, read.pass[i] + 1);
      writer.add(row::CounterValue{.track = track->second,
                                   .start = there->start,
                                   .ordinal = launch.ordinal,
                                   .dim = counter(read.dim[i]),
                                   .instance = read.instance[i],
                                   .pass = first_pass + read.pass[i],
                                   .value = static_cast<event::Double>(read.value[i]).cell});
    }
  TACHO_TRY(status);
  if (joined.lost > 0) writer.lose(0, Table::kCounterValue, event::LossReason::kBadInput, joined.lost);
  return joined;
}

// "pass_1 and pass_2", "pass_1, pass_2 and pass_3", "pass_1 to pass_12"
std::string listed(const std::vector<Pass>& passes) {
  if (passes.size() > 4) return fmt::format("{} to {}", passes.front().name, passes.back().name);
  std::string list;
  for (size_t i = 0; i < passes.size(); ++i)
    list += (i == 0 ? "" : i + 1 == passes.size() ? " and " : ", ") + passes[i].name;
  return list;
}

// The pass whose run is shown: see read() in passes.h.
size_t chosen(const std::vector<std::shared_ptr<const trace::Trace>>& traces) {
  const auto find = [&](auto&& fits) {
    return static_cast<size_t>(std::find_if(traces.begin(), traces.end(), fits) - traces.begin());
  };
  const auto works = [](const auto& trace) { return trace->rows(Table::kDispatch) > 0; };
  const size_t plain = find([&](const auto& t) { return works(t) && t->rows(Table::kCounterValue) == 0; });
  if (plain < traces.size()) return plain;
  const size_t any = find(works);
  return any < traces.size() ? any : 0;
}

int64_t passes_of(const trace::Trace& trace, Status& status) {
  int64_t count = 1;
  for (const auto& values : trace::chunks<column::CounterValue::pass>(trace, status))
    for (const int64_t pass : values.pass) count = std::max(count, pass + 1);
  return count;
}

}  // namespace

bool accepts(std::string_view path, std::string_view, bool folder) {
  return folder && passes_in(std::string(path)).size() > 1;
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  const std::vector<Pass> found = passes_in(path);
  if (found.size() < 2) return fail("{}: no traces in two folders pass_1, pass_2 ...", path);
  std::vector<std::shared_ptr<const trace::Trace>> traces;
  for (const Pass& pass : found) {
    if (pass.sources.size() > 1)
      return fail(
          "{}: a pass with several traces, {}, {} and the like: name one, or record with -f csv or rocpd, whose files "
          "of one pass are read together",
          pass.folder, pass.sources[0].path, pass.sources[1].path);
    TACHO_ASSIGN(auto trace, pass.sources[0].reader->read(pass.sources[0].path));
    traces.push_back(std::move(trace));
  }
  const size_t base = chosen(traces);
  std::map<int64_t, int64_t> tracks;
  trace::CopyOptions options;
  options.track = [&](int64_t from, int64_t to) { tracks[from] = to; };
  TACHO_TRY(trace::copy_into(*traces[base], writer, options));
  Launches run(*traces[base]);
  TACHO_TRY(run.read());
  Status status;
  int64_t next = passes_of(*traces[base], status);
  TACHO_TRY(status);
  std::string text = fmt::format("{} are runs of one program: times are those of {}", listed(found), found[base].name);
  std::string lost;
  int64_t joined = 0;
  for (size_t i = 0; i < traces.size(); ++i) {
    if (i == base) continue;
    TACHO_ASSIGN(const Joined more, join(*traces[i], run, tracks, next, writer));
    next += more.passes;
    joined += more.values - more.lost;
    if (more.lost > 0)
      lost += fmt::format("; {} of {} counter values of {} belong to no dispatch of {} and are left out", more.lost,
                          more.values, found[i].name, found[base].name);
  }
  if (joined > 0) text += ", counters those of all";
  writer.property(Table::kEnd, 0, "source_file", path);
  writer.property(Table::kEnd, 0, kProperty, text + lost);
  return {};
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

std::string sentence(const trace::Trace& trace) {
  return std::string(trace.property(Table::kEnd, 0, kProperty).value_or(""));
}

}  // namespace tacho::format::passes
