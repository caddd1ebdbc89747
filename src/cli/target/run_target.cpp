// A tracing run, from its request to the summary (run_target.h).
#include "cli/target/run_target.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "analysis/operators/operators.h"
#include "base/files/output_claim.h"
#include "base/files/output_file.h"
#include "base/files/run_name.h"
#include "base/job_rank.h"
#include "base/text/placeholders.h"
#include "cli/command.h"
#include "cli/files/export_trace.h"
#include "cli/files/hidden_recording.h"
#include "cli/files/writer_names.h"
#include "cli/output/findings.h"
#include "cli/output/serve_view.h"
#include "cli/output/summary.h"
#include "cli/shared/chosen_ranks.h"
#include "cli/target/debuggers.h"
#include "cli/target/static_mpi.h"
#include "format/rocprofv3_csv/rocprofv3_csv.h"
#include "format/source/names.h"
#include "launch/launcher.h"
#include "report/output.h"
#include "trace/trace.h"
#include "view/document.h"

namespace tacho::cli {

namespace {

// Files beside the trace, in the order of -f; their names were claimed before the start.
struct Extra {
  const format::Writer* writer;
  ExportPlace place;
  OutputClaim claim;
};

// The formats of -f, each once, or else that of -o's ending. What the recording cannot give is refused here, before the
// program starts.
Status choose_formats(TraceRequest& r) {
  std::vector<std::string> names;
  for (const std::string& name : r.formats)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  if (r.formats.empty() && format::without_packing(r.output).size() < r.output.size())
    return fail("-o {}: tacho packs no output; leave the ending off and pack the file afterwards", r.output);
  if (r.formats.empty())
    if (const format::Writer* const writer = writer_of_ending(r.output); writer != nullptr)
      names.emplace_back(writer->name);
  r.formats = std::move(names);
  const event::Configuration& target = r.launch.recording.target;
  for (const std::string& name : r.formats) {
    if (name == "tacho") continue;
    TACHO_ASSIGN(const format::Writer* const writer, writer_of(name));
    TACHO_TRY(
        format::check_recording(*writer, r.launch.recording.writer.aggregate, target.sampler != event::Sampler::kOff));
  }
  return {};
}

// A file of an earlier run in `folder` with that prefix; empty if there is none.
std::string csv_of_prefix(const std::string& folder, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto run = format::rocprofv3_csv::run_of_part(name);
    if (run && run->starts_with(prefix + "_")) return (std::filesystem::path(folder) / name).string();
  }
  return {};
}

// Always records the output itself; unless -f includes "tacho", that file is removed after the exports.
Status prepare_formats(const TraceRequest& r, std::vector<Extra>& extras) {
  namespace fs = std::filesystem;
  const fs::path output(r.launch.recording.output);
  const std::string stem = (output.parent_path() / without_ending(output.filename().string())).string();
  for (const std::string& name : r.formats) {
    if (name == "tacho") continue;
    TACHO_ASSIGN(const format::Writer* const writer, writer_of(name));
    Extra extra{writer, {output.string(), "", output.parent_path().string(), ""}, {}};
    if (!writer->folder) {
      const std::string file = stem + std::string(writer->extension);
      extra.place.file = file;
      if (file != r.launch.recording.output) {  // already claimed
        TACHO_ASSIGN(extra.claim, r.output.empty() && !r.overwrite ? OutputClaim::numbered(file)
                                                                   : OutputClaim::exactly(file, r.overwrite));
        extra.place.file = extra.claim.name();
      }
      extra.place.folder.clear();
    } else if (!r.output.empty()) {
      extra.place.prefix = fs::path(stem).filename().string();
      if (writer->name == "csv" && !r.overwrite)
        if (const std::string taken = csv_of_prefix(extra.place.folder, extra.place.prefix); !taken.empty())
          return fail("{} exists. Choose another -o or pass --overwrite", taken);
    }
    extras.push_back(std::move(extra));
  }
  return {};
}

bool keeps_trace(const TraceRequest& r) {
  return r.formats.empty() || std::find(r.formats.begin(), r.formats.end(), "tacho") != r.formats.end();
}

// -o x.json -f tacho,json: the ending is that of the other file.
std::string name_of_recording(const TraceRequest& r, const std::string& name) {
  if (!keeps_trace(r)) return name;
  const format::Writer* const writer = writer_of_ending(name);
  if (writer == nullptr || std::find(r.formats.begin(), r.formats.end(), writer->name) == r.formats.end()) return name;
  return name.substr(0, name.size() - writer->extension.size()) + ".tacho";
}

// The recording's name, reserved so that no other process takes it meanwhile.
Result<OutputClaim> choose_output(const TraceRequest& r) {
  if (is_standard_output(r.output))
    return fail("-o {}: standard output is the program's; give the recording a name", r.output);
  if (!r.output.empty() && !r.shown_as.empty()) return OutputClaim::exactly(r.output, r.overwrite);
  if (!r.output.empty()) {
    constexpr PlaceholderDialect kDialect = PlaceholderDialect::kFolders;
    if (r.output.find("%gpumodel%") != std::string::npos)
      return fail("-o {}: %gpumodel% is for folders of tacho profile; here are %rank%, %hostname% and %env{{X}}%",
                  r.output);
    const PlaceholderFacts facts = placeholder_facts(r.launch.command);
    const std::string name = expand_placeholders(r.output, kDialect, facts);
    if (name.empty()) return fail("-o {}: nothing is left when the placeholders are filled in", r.output);
    if (uses_rank(r.output, kDialect) && !facts.job.known())
      complain(kOk, "%rank% is ignored: no rank of an MPI launcher was detected");
    // A folder that placeholders name may be one of this job's own.
    if (const std::string folder = std::filesystem::path(name).parent_path().string();
        name != r.output && !folder.empty())
      TACHO_TRY(create_folders(folder));
    return OutputClaim::exactly(of_rank(name_of_recording(r, name)), r.overwrite);
  }
  const std::string base = of_rank(run_name(r.launch.command) + ".tacho");
  return r.overwrite ? OutputClaim::exactly(base, true) : OutputClaim::numbered(base);
}

// The folder of the output, which a program may remove and thereby tacho's unfinished file (trace/store/file.h).
class OutputFolder {
 public:
  explicit OutputFolder(const std::string& output) {
    std::error_code ignored;
    shown_ = std::filesystem::path(output).parent_path().string();
    current_ = std::filesystem::current_path(ignored).string();
    path_ = std::filesystem::absolute(shown_.empty() ? "." : shown_, ignored).string();
    if (stat(path_.c_str(), &before_) != 0) path_.clear();
  }
  /// Says that the folder is another one than before the start, and makes it the current one again where it was that.
  void tell_removed() const {
    struct stat now {};
    if (path_.empty() || stat(path_.c_str(), &now) != 0) return;
    if (now.st_ino == before_.st_ino && now.st_dev == before_.st_dev) return;
    std::error_code ignored;
    std::filesystem::current_path(current_, ignored);
    complain(kOk, fmt::format("{}: the program removed this folder while it ran; tacho made it again for its own files",
                              shown_.empty() ? path_ : shown_));
  }

 private:
  std::string shown_, path_, current_;
  struct stat before_ {};
};

// Writes the files beside the recording. `remarks` gets what they lack.
Status write_extras(const trace::Trace& trace, const TraceRequest& request, const std::vector<Extra>& extras,
                    std::vector<std::string>& written, std::vector<std::string>& remarks) {
  for (const Extra& extra : extras) {
    if (extra.writer->stacks && trace.rows(event::Table::kSample) == 0) {
      remarks.push_back(
          fmt::format("-f {}: no call stack was sampled, so there is no {}", extra.writer->name, extra.place.file));
      continue;
    }
    format::ExportOptions options;
    options.overwrite = request.overwrite;
    options.statistics = true;
    options.remarks = &remarks;
    options.rpd_schema = static_cast<int>(request.rpd_schema);
    const size_t before = written.size();
    TACHO_TRY(export_trace(trace, *extra.writer, extra.place, options, written));
    if (written.size() == before)
      remarks.push_back(
          fmt::format("-f {}: nothing was recorded that it could hold, so there is no file", extra.writer->name));
  }
  return {};
}

// Counters of whole GPUs say by whom they were read (decode/rocm/decoder.cpp).
bool read_device_counters(const trace::Trace& trace) {
  for (int64_t row = 1; row < trace.rows(event::Table::kCounter); ++row)
    if (trace.text(event::Table::kCounter, row, event::column::Counter::block) == "rocprofiler-sdk") return true;
  return false;
}

}  // namespace

std::string of_rank(const std::string& path) {
  const JobRank job = job_rank();
  if (!job.known() || job.rank < 0 || job.size == 1) return path;
  const std::filesystem::path whole(path);
  const std::string name = whole.filename().string();
  for (size_t at = 0; at < name.size();) {
    int64_t number = -1;  // a minus before it is a dash
    const auto [end, error] = name[at] == '-' ? std::from_chars_result{name.data() + at, std::errc::invalid_argument}
                                              : std::from_chars(name.data() + at, name.data() + name.size(), number);
    if (error == std::errc() && number == job.rank) return path;
    at = error == std::errc() ? static_cast<size_t>(end - name.data()) : at + 1;
  }
  return (whole.parent_path() / fmt::format("{}.{}{}", whole.stem().string(), job.rank, whole.extension().string()))
      .string();
}

int run_target(TraceRequest& request) {
  if (!request.ranks.empty()) {
    std::string warning;
    const auto chosen = is_chosen_rank(request.ranks, warning);
    if (!chosen) return complain(kOwnError, chosen.error().message);
    if (!warning.empty()) complain(kOk, warning);
    if (!*chosen) return run_as_it_is(request.launch.command);
  }
  if (const Status ready = complete(request); !ready) return complain(kOwnError, ready.error().message);
  if (const Status chosen = choose_formats(request); !chosen) return complain(kOwnError, chosen.error().message);
  const auto output = choose_output(request);
  if (!output) return complain(kOwnError, output.error().message);
  request.launch.recording.output = output->name();
  std::vector<Extra> extras;
  if (const Status ready = prepare_formats(request, extras); !ready) return complain(kOwnError, ready.error().message);
  const bool keep = keeps_trace(request);
  std::optional<HiddenRecording> hidden;
  if (!keep) {
    // Exports are named after the output; the recording is hidden beside it and removed at the end.
    hidden.emplace(output->name());
    request.launch.recording.output = hidden->path();
    request.launch.recording.writer.durable = false;
  }
  std::unique_ptr<LiveView> live;
  if (request.view)
    request.launch.started = [&](const std::string& recording) {
      live = LiveView::begin(recording, request.launch.recording.output);
    };
  const auto samples = set_up_samples(request.device_counters);
  if (!samples) return complain(kOwnError, samples.error().message);
  request.launch.samples = samples->get();
  if (const std::string sentence = debugger_sentence(request.launch.command, request.launch.recording.target.sampler);
      !sentence.empty())
    complain(kOk, sentence);
  const OutputFolder folder(request.launch.recording.output);
  const auto outcome = launch::run(request.launch);
  if (!outcome) return complain(outcome.error().exit_code, outcome.error().message);
  folder.tell_removed();
  ignore_output_signals();
  if (!outcome->written) return complain_of_recording(*outcome, request.launch.recording.output, hidden);
  const auto trace = trace::Trace::open(request.launch.recording.output);
  if (!trace) return complain(kOwnError, trace.error().message);
  SummaryOptions options;
  options.kept = keep;
  std::vector<std::string> remarks;
  if (const Status done = write_extras(**trace, request, extras, options.written, remarks); !done) {
    const std::string kept = hidden ? hidden->keep() : request.launch.recording.output;
    return complain(kOwnError, fmt::format("{}; the recording is kept in {} (tacho export writes it anew)",
                                           done.error().message, kept));
  }
  if (!request.shown_as.empty()) options.written = {request.shown_as};
  if (!request.quiet) {
    const std::string text = summary_of_run(**trace, options, request.ranks);
    report::put(text, report::Stream::kError);
  }
  for (const std::string& remark : remarks) complain(kOk, remark);
  if ((*trace)->rows(event::Table::kCommunicator) <= 1) {
    const auto program = launch::find_executable(request.launch.command.front());
    if (program && holds_mpi(*program))
      complain(kOk, fmt::format("{}: MPI is linked into this program statically, so its calls of MPI are not recorded; "
                                "link it to MPI's shared library",
                                request.launch.command.front()));
  }
  tell_no_samples(samples->get());
  if (!request.launch.recording.target.device_counters.empty() && !read_device_counters(**trace))
    complain(kOk,
             "--device-counters: nothing was read; where the notes of tacho info give no reason, no process used an "
             "AMD GPU through rocprofiler-sdk");
  // --memory brings the operators along: a program without PyTorch lacks nothing that was asked for.
  const bool asked = !request.launch.recording.target.memory ||
                     std::find(request.given.begin(), request.given.end(), "--torch-trace") != request.given.end();
  if (request.launch.torch_trace && asked) {
    const auto sentence = analysis::torch_sentence(**trace);
    if (!sentence) return complain(kOwnError, sentence.error().message);
    if (!sentence->empty()) complain(0, *sentence);
  }
  if (live != nullptr) {
    live->finish(*trace);
    if (live->computing()) {
      // Findings that are under way cannot be stopped, and nobody waits for them any more.
      hidden.reset();
      report::flush_output();
      _exit(outcome->exit_code);
    }
  }
  return outcome->exit_code;
}

}  // namespace tacho::cli
