// Writes log, terminal output and files of a profile run (session.h).
#include "cli/profile/session.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/clock.h"
#include "base/format.h"
#include "base/text/csv.h"
#include "cli/files/writer_names.h"
#include "counter/to_trace.h"
#include "report/output.h"
#include "trace/trace.h"

namespace tacho::cli {

using workload::csv_number;

namespace {

uint64_t product(const std::array<uint64_t, 3>& sizes) {
  uint64_t result = 1;
  for (const uint64_t size : sizes) result *= std::max<uint64_t>(1, size);
  return result;
}

// Numbers the kernels in order of appearance, for Kernel_ID.
class KernelNumbers {
 public:
  size_t of(const std::string& name) { return numbers_.try_emplace(name, numbers_.size()).first->second; }

 private:
  std::map<std::string, size_t> numbers_;
};

}  // namespace

std::string wide_csv(const counter::PassResult& result) {
  std::string out =
      "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Queue_ID,PID,TID,Correlation_ID,Kernel_ID"
      "";
  for (const std::string& counter : result.counters) out += "," + csv_field(counter);
  out += ",Start_Timestamp,End_Timestamp\n";
  KernelNumbers kernels;
  for (size_t row = 0; row < result.dispatches.size(); ++row) {
    const counter::ObservedDispatch& d = result.dispatches[row];
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", d.index, csv_field(d.kernel), d.gpu,
                       product(d.grid), product(d.workgroup), d.lds, d.scratch, d.arch_vgpr, d.accum_vgpr, d.sgpr,
                       d.queue, d.pid, d.tid, d.index + 1, kernels.of(d.kernel));
    for (size_t c = 0; c < result.counters.size(); ++c)
      out += "," + csv_number(result.values[row * result.counters.size() + c]);
    // An unknown time stays empty, since it is not zero.
    out += d.end > d.start ? fmt::format(",{},{}\n", d.start, d.end) : std::string(",,\n");
  }
  return out;
}

std::string long_csv(const counter::PassResult& result) {
  std::string out =
      "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Kernel_Name,Start_Timestamp,End_Timestamp,Kernel_ID,Counter_Name,Counter_Value\n"
      "";
  KernelNumbers kernels;
  for (size_t row = 0; row < result.dispatches.size(); ++row) {
    const counter::ObservedDispatch& d = result.dispatches[row];
    const std::string head =
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", d.gpu, d.index, product(d.grid), product(d.workgroup), d.lds,
                    d.scratch, d.arch_vgpr, d.accum_vgpr, d.sgpr, csv_field(d.kernel),
                    d.end > d.start ? fmt::format("{},{}", d.start, d.end) : std::string(","), kernels.of(d.kernel));
    for (size_t c = 0; c < result.counters.size(); ++c) {
      const double value = result.values[row * result.counters.size() + c];
      if (!std::isnan(value)) out += fmt::format("{},{},{}\n", head, csv_field(result.counters[c]), csv_number(value));
    }
  }
  return out;
}

std::string pc_samples_csv(const std::vector<counter::PcSample>& samples) {
  std::string out = "Dispatch_Id,Instruction,Instruction_Comment,Wave_Issued_Instruction,Stall_Reason,Samples\n";
  KernelNumbers kernels;
  for (const counter::PcSample& each : samples)
    out += fmt::format("{},{},{},{},{},{}\n", kernels.of(each.kernel), csv_field(each.instruction),
                       csv_field(each.source), each.issued ? 1 : 0, csv_field(each.reason), each.count);
  return out;
}

std::string pc_kernels_csv(const std::vector<counter::PcSample>& samples) {
  std::string out = "Dispatch_Id,Kernel_Name\n";
  KernelNumbers kernels;
  size_t told = 0;
  for (const counter::PcSample& each : samples)
    if (kernels.of(each.kernel) == told) out += fmt::format("{},{}\n", told++, csv_field(each.kernel));
  return out;
}

std::string timestamps_csv(std::string_view existing, int run,
                           const std::vector<counter::ObservedDispatch>& dispatches) {
  std::string out(existing);
  if (out.empty())
    out = "Run,Dispatch_ID,Kernel_Name,GPU_ID,Queue_ID,PID,Grid_Size,Workgroup_Size,Start_Timestamp,End_Timestamp\n";
  for (const counter::ObservedDispatch& d : dispatches)
    out += fmt::format("{},{},{},{},{},{},{},{},{}\n", run, d.index, csv_field(d.kernel), d.gpu, d.queue, d.pid,
                       product(d.grid), product(d.workgroup),
                       d.end > d.start ? fmt::format("{},{}", d.start, d.end) : std::string(","));
  return out;
}

// One row for each dispatch, counter and unit; a cell is empty where the counter does not have that dimension.
std::string instances_csv(const counter::PassResult& result) {
  std::string out = "Dispatch_ID,Counter_Name,XCC,AID,SE,SA,WGP,Instance,Counter_Value\n";
  for (const auto& each : result.instances) {
    out += fmt::format("{},{}", each.index, each.counter);
    for (const int16_t position : each.position) out += position < 0 ? "," : fmt::format(",{}", position);
    out += "," + workload::csv_number(each.value) + "\n";
  }
  return out;
}

ProfileSession::ProfileSession(const workload::FolderWriter& folder, const counter::PassPlan& plan, Options options)
    : folder_(folder), plan_(plan), options_(std::move(options)), began_(raw_now()), run_began_(began_) {
  log_ = std::fopen((folder.folder() + "/log.txt").c_str(), "ae");
  terminal_ = isatty(STDERR_FILENO) == 1;
}

ProfileSession::~ProfileSession() {
  finish();
  if (log_ != nullptr) std::fclose(log_);
}

std::string ProfileSession::file_stem(size_t pass) const {
  return folder_.stem(plan_.passes[pass].name, options_.rocpd);
}

Status ProfileSession::write_inputs(const counter::Filter& filter) {
  for (size_t i = 0; i < plan_.passes.size(); ++i) {
    std::string text = "pmc:";
    for (const std::string& counter : plan_.passes[i].counters) text += " " + counter;
    text += "\n\ngpu:\nrange:";
    for (const counter::Filter::Range& range : filter.dispatches)
      text +=
          range.first == range.last ? fmt::format(" {}", range.first) : fmt::format(" {}:{}", range.first, range.last);
    text += "\nkernel:";
    for (size_t k = 0; k < filter.kernels.size(); ++k) text += (k == 0 ? " " : ",") + filter.kernels[k];
    text += "\n";
    const std::string stem = "perfmon/" + file_stem(i);
    TACHO_TRY(folder_.write(stem + ".txt", text, true));
    if (!plan_.passes[i].definitions.empty())
      TACHO_TRY(folder_.write(stem + ".yaml", plan_.passes[i].definitions, true));
  }
  return {};
}

void ProfileSession::log(std::string_view line) {
  if (log_ == nullptr) return;
  std::fwrite(line.data(), 1, line.size(), log_);
  std::fputc('\n', log_);
  std::fflush(log_);
}

void ProfileSession::clear_bar() {
  if (bar_) {
    report::print_error("\r\033[K");
  }
  bar_ = false;
  drawn_percent_ = -1;
}

void ProfileSession::show(std::string_view line) {
  clear_bar();
  if (options_.face == ProfileFace::kTacho)
    report::warn(line);
  else
    report::print_error("{}\n", line);
}

void ProfileSession::header(std::string_view line) {
  const std::lock_guard guard(lock_);
  log(line);
  if (!options_.quiet && options_.face == ProfileFace::kRocprofCompute) report::print_error("{}\n", line);
}

void ProfileSession::run_begins(std::span<const size_t> passes, size_t number, size_t total) {
  const std::lock_guard guard(lock_);
  run_ = number - 1;
  runs_ = total;
  run_began_ = raw_now();
  if (passes.empty()) return;
  std::string line = passes.size() == 1 ? " [profiling] Current input file: " : " [profiling] Current input files: ";
  for (size_t i = 0; i < passes.size(); ++i)
    line += fmt::format("{}{}/perfmon/{}.txt", i > 0 ? ", " : "", folder_.folder(), file_stem(passes[i]));
  log(line);
  if (options_.quiet) return;
  if (options_.face == ProfileFace::kRocprofCompute)
    show(line);
  else
    show(total > 1 ? fmt::format("run {} of {}", number, total) : std::string("one run"));
}

void ProfileSession::note(std::string_view line) {
  const std::lock_guard guard(lock_);
  log(fmt::format(" [profiling] {}", line));
  if (!options_.quiet)
    show(options_.face == ProfileFace::kTacho ? std::string(line) : fmt::format(" [profiling] {}", line));
}

void ProfileSession::warn(std::string_view sentence) {
  const std::lock_guard guard(lock_);
  log(fmt::format(" [warning] {}", sentence));
  show(options_.face == ProfileFace::kTacho ? std::string(sentence) : fmt::format(" [warning] {}", sentence));
}

void ProfileSession::target_writes() {
  const std::lock_guard guard(lock_);
  clear_bar();
  line_taken_ = true;
}

void ProfileSession::target_output(int stream, std::string_view bytes) {
  const std::lock_guard guard(lock_);
  line_taken_ = !bytes.ends_with('\n');
  std::string& partial = partial_[std::clamp(stream, 0, 2)];
  partial += bytes;
  for (size_t from = 0;;) {
    const size_t to = partial.find('\n', from);
    if (to == std::string::npos) {
      partial.erase(0, from);
      break;
    }
    log(fmt::format("    |-> [{}] {}", options_.tool, std::string_view(partial).substr(from, to - from)));
    from = to + 1;
  }
  // A program that writes no newlines fills the log and not the memory.
  if (partial.size() > 1 << 16) {
    log(fmt::format("    |-> [{}] {}", options_.tool, partial));
    partial.clear();
  }
}

void ProfileSession::draw_bar(double share, std::string_view behind) {
  const int percent = static_cast<int>(100 * share);
  if (line_taken_ || percent == drawn_percent_) return;
  drawn_percent_ = percent;
  bar_ = true;
  const auto filled = static_cast<size_t>(percent * 40 / 100);
  report::print_error("\r\033[K{:3}% [{}{}]{}", percent, std::string(filled, '|'), std::string(40 - filled, ' '),
                      behind);
}

void ProfileSession::progress(uint64_t done, uint64_t total) {
  // rocprof-compute has a bar with --quiet only.
  if (!terminal_ || total == 0 || (options_.face == ProfileFace::kRocprofCompute && !options_.quiet)) return;
  const std::lock_guard guard(lock_);
  const double of_run = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const double runs = static_cast<double>(std::max<size_t>(1, runs_)), run = static_cast<double>(run_);
  std::string left;
  if (options_.face == ProfileFace::kRocprofCompute) {
    const double share = (run + of_run) / runs, passed = static_cast<double>(raw_now() - began_) * 1e-9;
    if (share > 0.02 && passed > 2) left = fmt::format(" {:.0f} s left", passed / share * (1 - share));
    return draw_bar(share, left);
  }
  // Runs differ in length, so the rest is estimated from this one: what is left of it, and the runs to come.
  const double passed = static_cast<double>(raw_now() - run_began_) * 1e-9;
  if (of_run > 0.02 && passed > 1) {
    const double seconds = passed / of_run * (1 - of_run + std::max(0.0, runs - run - 1));
    left = fmt::format(" about {:.0f} s left", std::ceil(seconds));
  }
  draw_bar(of_run, left);
}

Status ProfileSession::pass_done(const counter::PassResult& result) {
  const std::string name = file_stem(result.pass) + ".csv";
  TACHO_TRY(folder_.write(name, options_.rocpd ? long_csv(result) : wide_csv(result)));
  if (options_.retain_rocpd) TACHO_TRY(write_database(result));
  if (!result.extrapolated.empty()) {
    std::string text = plan_.passes[result.pass].definitions + "extrapolated:\n";
    for (const std::string& counter : result.extrapolated) text += fmt::format("  - {}\n", counter);
    TACHO_TRY(folder_.write("perfmon/" + file_stem(result.pass) + ".yaml", text, true));
  }
  if (!result.instances.empty())
    TACHO_TRY(folder_.write("perfmon/" + file_stem(result.pass) + ".instances.csv", instances_csv(result)));
  const std::lock_guard guard(lock_);
  log(fmt::format("   |-> [{}] {} dispatch{}, {} counter{} in {}", options_.tool, result.dispatches.size(),
                  result.dispatches.size() == 1 ? "" : "es", result.counters.size(),
                  result.counters.size() == 1 ? "" : "s", name));
  files_.push_back(name);
  if (dispatches_.empty()) dispatches_ = result.dispatches;
  return {};
}

Status ProfileSession::write_database(const counter::PassResult& result) const {
  const std::string trace_path = fmt::format("{}/.tacho-{}-pass.tacho", folder_.folder(), getpid());
  TACHO_TRY(counter::write_counter_trace(trace_path, options_.device, options_.command, {&result, 1}));
  const auto done = [&]() -> Status {
    TACHO_ASSIGN(const auto trace, trace::Trace::open(trace_path));
    TACHO_ASSIGN(const format::Writer* const writer, writer_of("rocpd"));
    format::ExportTarget target;
    target.file = folder_.folder() + "/" + file_stem(result.pass) + ".db";
    std::vector<std::string> written;
    return writer->write(*trace, target, {}, written);
  }();
  unlink(trace_path.c_str());
  return done;
}

void ProfileSession::finish() {
  const std::lock_guard guard(lock_);
  for (std::string& partial : partial_) {
    if (!partial.empty()) log(fmt::format("    |-> [{}] {}", options_.tool, partial));
    partial.clear();
  }
  clear_bar();
}

}  // namespace tacho::cli
