// Finding, opening and passing over the traces of a job (load.h).
#include "ranks/read/load.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "analysis/sums/sums.h"
#include "analysis/trim.h"
#include "base/files/temporary.h"
#include "base/text/how_many.h"
#include "format/format.h"
#include "format/source/names.h"
#include "ranks/match/identities.h"
#include "ranks/read/rank_pass.h"
#include "ranks/read/recordings.h"
#include "trace/read/rows.h"
#include "vendor/collective_kernels.h"

namespace tacho::ranks {
namespace {

using event::Table;
namespace column = event::column;
namespace fs = std::filesystem;

// Where the trace's clock stands against CLOCK_REALTIME.
Status find_realtime(const trace::Trace& trace, RankRun& run) {
  if (const auto base = trace.property(Table::kEnd, 0, "kineto.baseTimeNanoseconds")) {
    int64_t value = 0;
    if (std::from_chars(base->data(), base->data() + base->size(), value).ec == std::errc()) {
      run.clock_shift = value;
      run.has_realtime = true;
      return {};
    }
  }
  using C = column::Clock;
  Status status;
  for (const auto& clocks : trace::chunks<C::raw, C::realtime, C::device>(trace, status))
    for (size_t i = 0; i < clocks.size(); ++i)
      if (clocks.device[i] == 0 && clocks.realtime[i] != kUnknown && clocks.realtime[i] != 0) {
        run.clock_shift = clocks.realtime[i] - clocks.raw[i];
        run.has_realtime = true;
        return {};
      }
  return status;
}

// The GPU's name, if the rank has queues of one kind of GPU only.
std::string gpu_of(const trace::Trace& trace, int64_t process) {
  std::string found;
  for (int64_t track = 1; track < trace.rows(Table::kTrack); ++track) {
    const int64_t device = trace.cell(Table::kTrack, track, column::Track::device);
    if (device == 0 || (process != 0 && trace.cell(Table::kTrack, track, column::Track::process) != process) ||
        trace.cell(Table::kDevice, device, column::Device::kind) != static_cast<int64_t>(event::DeviceKind::kGpu) ||
        trace.cell(Table::kTrack, track, column::Track::kind) != static_cast<int64_t>(event::TrackKind::kQueue))
      continue;
    const std::string name(trace.text(Table::kDevice, device, column::Device::name));
    if (trace.property(Table::kDevice, device, "mig") || (!found.empty() && name != found)) return {};
    found = name;
  }
  return found;
}

// Calls work(i) for i in [0, count) on several threads.
void in_parallel(size_t count, const std::function<void(size_t)>& work) {
  const size_t threads = std::min<size_t>(count, std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16));
  std::atomic<size_t> next = 0;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(loop);
  loop();
  for (std::thread& thread : others) thread.join();
}

// The period of a run's collectives.
Result<Period> period_of_run(const RankRun& run, const Spool<Arrival>& spool) {
  constexpr size_t kEnough = 16384;
  std::vector<Arrival> arrivals(std::min(run.arrivals, kEnough));
  TACHO_TRY(spool.read(run.spool_at, arrivals.size(), arrivals.data()));
  std::vector<uint64_t> signatures;
  std::vector<int64_t> before;
  for (const Arrival& arrival : arrivals) {
    signatures.push_back((static_cast<uint64_t>(arrival.communicator) * 31 + static_cast<uint64_t>(arrival.operation)) *
                             0x9e3779b97f4a7c15ULL +
                         static_cast<uint64_t>(arrival.bytes));
    before.push_back(arrival.start - arrival.from);
  }
  return period_of(signatures, before);
}

}  // namespace

Status list_traces(const std::vector<std::string>& inputs, std::vector<std::string>& files,
                   std::vector<std::string>& remarks) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::is_directory(input, error)) {
      files.push_back(input);
      continue;
    }
    if (format::passes::accepts(input, {}, true)) {
      files.push_back(input);
      continue;
    }
    std::vector<std::string> found;
    size_t others = 0;
    fs::recursive_directory_iterator at(input, fs::directory_options::skip_permission_denied, error), end;
    if (error) return fail("{}: {}", input, error.message());
    while (at != end) {
      if (at->is_regular_file(error)) {
        if (format::named_like_a_trace(at->path().filename().string()))
          found.push_back(at->path().string());
        else
          ++others;
      }
      at.increment(error);
      if (error) return fail("{}: {}", input, error.message());
    }
    format::leave_out_repeated(found);
    std::sort(found.begin(), found.end());
    // rocprofv3's CSV files are one trace together.
    const auto readable = [&](const format::Reader& reader) { return reader.accepts(input, {}, true); };
    if (found.empty() && std::ranges::any_of(format::readers(), readable)) {
      files.push_back(input);
      continue;
    }
    if (found.empty())
      return fail(
          "{}: no trace lies in this folder ({} other file{}); traces end in .tacho, .json, .rpd, .db, .sqlite, .pftrace or "
          ".perfetto-trace, and packed ones in .gz or .zst behind that",
          input, others, others == 1 ? "" : "s");
    if (others > 0)
      remarks.push_back(fmt::format("{}: {} file{} whose name is no trace's {} left out", input, others,
                                    others == 1 ? "" : "s", others == 1 ? "was" : "were"));
    files.insert(files.end(), found.begin(), found.end());
  }
  return {};
}

Result<std::vector<RankRun>> runs_of(const trace::Trace& trace, const std::string& file) {
  std::vector<RankRun> runs;
  std::set<int64_t> seen;
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process) {
    const int64_t rank = trace.cell(Table::kProcess, process, column::Process::rank);
    if (rank == kUnknown || !seen.insert(rank).second) continue;
    RankRun run;
    run.rank = rank;
    run.process = process;
    run.host = trace.text(Table::kProcess, process, column::Process::host);
    run.program = trace.text(Table::kProcess, process, column::Process::name);
    runs.push_back(std::move(run));
  }
  if (runs.size() <= 1) {
    RankRun run = runs.empty() ? RankRun{} : std::move(runs[0]);
    run.process = 0;  // with all processes of this rank
    if (run.rank == kUnknown) run.rank = rank_in_path(file);
    for (int64_t process = 1; process < trace.rows(Table::kProcess) && run.host.empty(); ++process)
      run.host = trace.text(Table::kProcess, process, column::Process::host);
    runs.clear();
    runs.push_back(std::move(run));
  }
  TACHO_ASSIGN(const analysis::TracedMachine machine, analysis::traced_machine(trace));
  for (RankRun& run : runs) {
    run.file = file;
    run.booted = machine.booted;
    run.device = gpu_of(trace, run.process);
    TACHO_TRY(find_realtime(trace, run));
    if (const auto world = trace.property(Table::kEnd, 0, "kineto.world_size"))
      std::from_chars(world->data(), world->data() + world->size(), run.world);
  }
  return runs;
}

Result<PassedTrace> pass_over_runs(const trace::Trace& trace, const std::string& file, const Period& period,
                                   Names& names, Spools& spools) {
  PassedTrace passed{.file = file};
  TACHO_ASSIGN(passed.runs, runs_of(trace, file));
  bool tells_host = trace.rows(Table::kSample) > 0;
  for (int64_t row = 1; row < trace.rows(Table::kFunction) && !tells_host; ++row)
    tells_host =
        trace.cell(Table::kFunction, row, column::Function::domain) == static_cast<int64_t>(event::Domain::kPython);
  for (RankRun& run : passed.runs) {
    run.tells_host = tells_host;
    TACHO_TRY(pass_over(trace, period, names, spools, run));
  }
  std::set<int64_t> recordings;
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    recordings.insert(trace.cell(Table::kProcess, process, column::Process::run));
  passed.recordings = std::max<size_t>(recordings.size(), 1);
  return passed;
}

void keep_machines_apart(std::span<RankRun* const> runs) {
  std::map<std::string, std::vector<analysis::TracedMachine>> known;  // by name
  for (RankRun* const run : runs) {
    if (run->host.empty()) continue;
    const analysis::TracedMachine machine{run->host, run->booted};
    std::vector<analysis::TracedMachine>& of_name = known[run->host];
    auto same = std::ranges::find_if(of_name, [&](const auto& each) { return each.is(machine); });
    if (same == of_name.end()) same = of_name.insert(same, machine);
    if (same != of_name.begin()) run->host += fmt::format(" ({})", same - of_name.begin() + 1);
  }
}

bool tells_of_ranks(const trace::Trace& trace) {
  if (trace.rows(Table::kMessage) > 0) return true;
  std::set<int64_t> ranks;
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    if (const int64_t rank = trace.cell(Table::kProcess, process, column::Process::rank); rank != kUnknown)
      ranks.insert(rank);
  if (ranks.size() > 1) return true;
  for (int64_t kernel = 1; kernel < trace.rows(Table::kKernel); ++kernel)
    if (vendor::is_collective_kernel(trace.text(Table::kKernel, kernel, column::Kernel::name))) return true;
  return false;
}

int64_t rank_in_path(const std::string& path) {
  const fs::path whole(path);
  std::string name = whole.filename().string();
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const auto number_at = [](const std::string& text, size_t at) {
    int64_t value = kUnknown;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    return error == std::errc() && value >= 0 && value <= INT32_MAX ? value : kUnknown;
  };
  for (size_t at = name.find("rank"); at != std::string::npos; at = name.find("rank", at + 1)) {
    size_t digit = at + 4;
    while (digit < name.size() &&
           (name[digit] == '_' || name[digit] == '-' || name[digit] == '.' || name[digit] == '=' || name[digit] == ' '))
      ++digit;
    if (digit < name.size() && name[digit] >= '0' && name[digit] <= '9')
      if (const int64_t rank = number_at(name, digit); rank != kUnknown) return rank;
  }
  for (fs::path folder = whole.parent_path(); !folder.empty() && folder != folder.root_path();
       folder = folder.parent_path()) {
    std::string part = folder.filename().string();
    if (part.starts_with("rank")) part.erase(0, part.find_first_of("0123456789"));
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) return number_at(part, 0);
  }
  return kUnknown;
}

std::vector<int64_t> ranks_in_paths(const std::vector<std::string>& paths) {
  constexpr std::string_view kDigits = "0123456789";
  std::vector<std::vector<int64_t>> numbers;  // of each path
  std::string text;                           // of the first, with # for a number
  for (const std::string& path : paths) {
    std::string here;
    std::vector<int64_t>& of_path = numbers.emplace_back();
    for (size_t at = 0; at < path.size();) {
      const size_t digit = path.find_first_of(kDigits, at);
      here += path.substr(at, digit - at);
      if (digit == std::string::npos) break;
      at = std::min(path.find_first_not_of(kDigits, digit), path.size());
      here += '#';
      const auto [end, error] = std::from_chars(path.data() + digit, path.data() + at, of_path.emplace_back());
      if (error != std::errc()) return {};
    }
    if (numbers.size() > 1 && here != text) return {};
    text = std::move(here);
  }
  std::vector<int64_t> ranks;
  for (size_t i = 0; !numbers.empty() && i < numbers[0].size(); ++i) {
    std::vector<int64_t> column;
    for (const std::vector<int64_t>& of_path : numbers) column.push_back(of_path[i]);
    const std::set<int64_t> different(column.begin(), column.end());
    if (different.size() == 1) continue;
    if (!ranks.empty() || different.size() != column.size() || *different.begin() != 0) return {};
    ranks = std::move(column);
  }
  return ranks;
}

namespace {

struct OpenedFile {
  std::shared_ptr<const trace::Trace> trace;  // kept while another pass may be needed
  Period passed_with;
  PassedTrace passed;
  Status status;
};

constexpr size_t kKeptOpen = 64;  // keep none open if there are more files

Status open_and_pass(const std::string& file, bool keep, Job& job, OpenedFile& opened) {
  TACHO_ASSIGN(std::shared_ptr<const trace::Trace> trace, format::open_any(file));
  if (trace->aggregated())
    return fail("{}: recorded with --aggregate: it holds no events to compare between ranks", file);
  if (analysis::holds_sums(*trace)) return fail("{}", analysis::sums_sentence(file));
  TACHO_ASSIGN(opened.passed, pass_over_runs(*trace, file, opened.passed_with, job.names, job.spools));
  std::vector<RankRun>& runs = opened.passed.runs;
  for (RankRun& run : runs) {
    if (std::string cut = analysis::cut_off_sentence(*trace, file); !cut.empty()) run.remarks.push_back(std::move(cut));
    if (const std::string passes = format::passes::sentence(*trace); !passes.empty())
      run.remarks.push_back(fmt::format("{}: {}", file, passes));
  }
  const bool marks_steps = std::ranges::any_of(runs, [](const RankRun& run) { return !run.steps_from.empty(); });
  if (keep && !marks_steps) opened.trace = std::move(trace);
  return {};
}

// Opens all files and passes over their runs. If no file marks steps, all runs use the period of one of them. Opening
// many files again is expensive, so the first of many gives a guess of that period.
Result<std::vector<OpenedFile>> open_all(const std::vector<std::string>& files, Job& job) {
  std::vector<OpenedFile> opened(files.size());
  const bool keep = files.size() <= kKeptOpen;
  const auto open = [&](size_t i) { opened[i].status = open_and_pass(files[i], keep, job, opened[i]); };
  const size_t first_of_many = keep ? 0 : 1;
  if (first_of_many > 0) {
    open(0);
    if (opened[0].status && opened[0].passed.runs[0].steps_from.empty()) {
      TACHO_ASSIGN(const Period guess, period_of_run(opened[0].passed.runs[0], job.spools.arrivals));
      for (size_t i = first_of_many; i < files.size(); ++i) opened[i].passed_with = guess;
    }
  }
  in_parallel(files.size() - first_of_many, [&](size_t i) { open(i + first_of_many); });
  return opened;
}

// The readable ones of `opened`; the others become remarks. Fails if none is left.
Result<std::vector<OpenedFile*>> readable_of(std::vector<OpenedFile>& opened, Job& job) {
  std::vector<OpenedFile*> readable;
  std::string first_error;
  size_t unreadable = 0;
  for (OpenedFile& file : opened) {
    if (file.status) {
      readable.push_back(&file);
      continue;
    }
    if (first_error.empty()) first_error = file.status.error().message;
    if (++unreadable <= 5) job.remarks.push_back("left out: " + file.status.error().message);
  }
  if (readable.empty()) return tl::unexpected<Error>(Error{first_error});
  if (unreadable > 5)
    job.remarks.push_back("left out: " + how_many(unreadable - 5, "more file", "more files") + " that cannot be read");
  return readable;
}

// Takes recordings that come twice out of `files` and, if they are what lies in `folder`, traces of other jobs. Fails
// if no job, or no one job, has several ranks.
Status keep_one_job(const std::string& folder, std::vector<OpenedFile*>& files, Job& job) {
  const auto choose = [&files](const std::vector<size_t>& places) {
    std::vector<OpenedFile*> chosen;
    for (const size_t place : places) chosen.push_back(files[place]);
    files = std::move(chosen);
  };
  const auto passed = [&files] {
    std::vector<PassedTrace> all;
    for (const OpenedFile* const file : files) all.push_back(file->passed);
    return all;
  };
  if (files.size() < 2) return {};
  choose(without_repeated(passed(), job.remarks));
  if (folder.empty() || files.size() < 2) return {};
  const std::vector<std::vector<size_t>> jobs = jobs_of(passed(), job.names);
  if (jobs.size() == 1) return {};
  const std::vector<size_t>* several = nullptr;
  size_t jobs_of_several = 0;
  for (const std::vector<size_t>& one : jobs)
    if (one.size() > 1 || files[one[0]]->passed.runs.size() > 1) {
      ++jobs_of_several;
      several = &one;
    }
  const auto name = [&](size_t place) {
    return fs::path(files[place]->passed.file).lexically_relative(folder).string();
  };
  if (jobs_of_several != 1) {
    std::string list;
    for (size_t i = 0; i < jobs.size() && i < 8; ++i)
      list += fmt::format("{}{}{}", i > 0 ? "; " : "", name(jobs[i][0]),
                          jobs[i].size() > 1 ? fmt::format(" and {} more", jobs[i].size() - 1) : "");
    if (jobs.size() > 8) list += "; and " + how_many(jobs.size() - 8, "more run", "more runs");
    return fail(
        "{}: the traces are of {} runs, which no rank number, collective or message ties to one job ({}); give the "
        "files of one job, or look at all runs with tacho view {}",
        folder, jobs.size(), list, folder);
  }
  size_t others = 0;
  for (size_t place = 0; place < files.size(); ++place) {
    if (std::ranges::find(*several, place) != several->end()) continue;
    if (++others <= 5)
      job.remarks.push_back(
          fmt::format("left out: {}: no rank number, collective or message ties it to the other traces",
                      files[place]->passed.file));
  }
  if (others > 5)
    job.remarks.push_back("left out: " + how_many(others - 5, "more trace", "more traces") + " of other runs");
  choose(*several);
  return {};
}

// Gives the ranks that only the names of all files tell.
void take_ranks_of_names(const std::vector<OpenedFile*>& files, Job& job) {
  std::vector<std::string> paths;
  for (const OpenedFile* const file : files) {
    if (file->passed.runs.size() != 1 || file->passed.runs[0].rank != kUnknown) return;
    paths.push_back(file->passed.file);
  }
  const std::vector<int64_t> ranks = ranks_in_paths(paths);
  for (size_t i = 0; i < ranks.size(); ++i) files[i]->passed.runs[0].rank = ranks[i];
  if (!ranks.empty())
    job.remarks.push_back("no file gives its rank: tacho takes the numbers in which their names differ");
}

// Moves the runs of `files` into the job by rank. Second files of a rank become remarks. Returns the file of each run
// of the job.
std::vector<OpenedFile*> take_runs(const std::vector<OpenedFile*>& from, Job& job) {
  take_ranks_of_names(from, job);
  std::map<int64_t, std::pair<RankRun, OpenedFile*>> by_rank;
  size_t nameless = 0;
  for (OpenedFile* const file : from)
    for (RankRun& run : file->passed.runs) {
      if (run.rank == kUnknown) continue;
      const auto [found, fresh] = by_rank.try_emplace(run.rank);
      if (fresh)
        found->second = {std::move(run), file};
      else
        job.remarks.push_back(
            fmt::format("left out: {}: rank {} has a file already: {}", run.file, run.rank, found->second.first.file));
    }
  // The others get numbers that no file gives.
  int64_t free = 0;
  for (OpenedFile* const file : from)
    for (RankRun& run : file->passed.runs) {
      if (run.rank != kUnknown) continue;
      while (by_rank.contains(free)) ++free;
      run.rank = free;
      by_rank.emplace(free, std::pair(std::move(run), file));
      ++nameless;
    }
  if (nameless > 0)
    job.remarks.push_back(
        fmt::format("{} file{} no rank, neither inside nor in {}: tacho numbers {} in the order of names", nameless,
                    nameless == 1 ? " gives" : "s give", nameless == 1 ? "its name" : "their names",
                    nameless == 1 ? "it" : "them"));
  std::vector<OpenedFile*> files;
  for (auto& [rank, found] : by_rank) {
    auto& [run, file] = found;
    job.remarks.insert(job.remarks.end(), run.remarks.begin(), run.remarks.end());
    job.runs.push_back(std::move(run));
    files.push_back(file);
  }
  return files;
}

// Finds steps by period if no file marks them. `files`: of the job's runs.
Status pass_by_period(const std::vector<OpenedFile*>& files, Job& job) {
  const bool steps_known = std::ranges::any_of(job.runs, [](const RankRun& run) { return !run.steps_from.empty(); });
  Period period;
  if (!steps_known) {
    TACHO_ASSIGN(period, period_of_run(job.runs[0], job.spools.arrivals));
  }
  Status failed;
  std::mutex mutex;
  in_parallel(job.runs.size(), [&](size_t i) {
    RankRun& run = job.runs[i];
    if (!run.steps_from.empty()) return;
    const auto again = [&]() -> Status {
      std::shared_ptr<const trace::Trace> trace = files[i]->trace;
      if (trace == nullptr) {
        TACHO_ASSIGN(trace, format::open_any(run.file));
      }
      return pass_over(*trace, period, job.names, job.spools, run);
    };
    if (files[i]->passed_with != period)
      if (Status done = again(); !done) {
        const std::lock_guard lock(mutex);
        failed = std::move(done);
      }
    if (period.collectives > 0) run.steps_from = "periodicity";
  });
  return failed;
}

}  // namespace

Status load_job(const std::vector<std::string>& inputs, Job& job) {
  std::vector<std::string> files;
  TACHO_TRY(list_traces(inputs, files, job.remarks));
  TACHO_ASSIGN(job.spools, Spools::create());
  TACHO_ASSIGN(std::vector<OpenedFile> opened, open_all(files, job));
  TACHO_ASSIGN(std::vector<OpenedFile*> readable, readable_of(opened, job));
  std::vector<RankRun*> passed;
  for (OpenedFile* const file : readable)
    for (RankRun& run : file->passed.runs) passed.push_back(&run);
  keep_machines_apart(passed);
  std::error_code error;
  const bool folder = inputs.size() == 1 && fs::is_directory(inputs[0], error);
  TACHO_TRY(keep_one_job(folder ? inputs[0] : std::string(), readable, job));
  TACHO_TRY(pass_by_period(take_runs(readable, job), job));
  std::vector<RankRun*> runs;
  for (RankRun& run : job.runs) runs.push_back(&run);
  return match_by_identity(runs, job.spools, job.names);
}

}  // namespace tacho::ranks
