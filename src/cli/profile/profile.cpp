// `tacho profile [options] -- command`: collects counters of a program's kernels into a folder for analyze.
#include "cli/profile/profile.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "base/job_rank.h"
#include "base/text/how_many.h"
#include "base/text/placeholders.h"
#include "cli/command.h"
#include "cli/profile/not_matched.h"
#include "cli/profile/options.h"
#include "cli/profile/selection.h"
#include "cli/profile/session.h"
#include "cli/profile/specs.h"
#include "cli/profile/torch_files.h"
#include "cli/shared/chosen_ranks.h"
#include "cli/shared/command_line.h"
#include "cli/shared/devices.h"
#include "counter/sampled_run.h"
#include "counter/wanted.h"
#include "launch/torch_hooks.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/catalog.h"
#include "report/output.h"
#include "roofline/ceilings_file.h"
#include "roofline/suite.h"
#include "workload/pc_samples/pc_sources.h"
#include "workload/writer.h"

namespace tacho::cli {

namespace {

namespace fs = std::filesystem;
using profiling::ProfileArguments;
using profiling::Selected;

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i > 0 ? std::string(separator) : "") + words[i];
  return out;
}

// ['10', '7'], or None.
std::string python_list(const std::vector<std::string>& words) {
  if (words.empty()) return "None";
  std::string out = "[";
  for (size_t i = 0; i < words.size(); ++i) out += fmt::format("{}'{}'", i > 0 ? ", " : "", words[i]);
  return out + "]";
}

Result<std::vector<counter::Filter::Range>> parse_dispatches(const std::vector<std::string>& texts) {
  std::vector<counter::Filter::Range> ranges;
  for (const std::string& text : texts) {
    counter::Filter::Range range;
    const char* const end = text.data() + text.size();
    auto [at, error] = std::from_chars(text.data(), end, range.first);
    range.last = range.first;
    if (error == std::errc() && at != end && (*at == ':' || *at == '-')) {
      const auto second = std::from_chars(at + 1, end, range.last);
      at = second.ptr;
      error = second.ec;
    }
    if (error != std::errc() || at != end)
      return fail("-d '{}': expected the number of a dispatch, from 0, or a range such as 0:9", text);
    if (range.last < range.first) return fail("-d '{}': the range ends before it begins", text);
    ranges.push_back(range);
  }
  return ranges;
}

// The provider whose own replay has this name; nullptr = none.
const counter::Provider* owner_of_replay(std::string_view name) {
  for (const auto& provider : counter::providers())
    if (const auto own = provider->own_replay(); own && own->name == name) return provider.get();
  return nullptr;
}

Status check_conflicts(const ProfileArguments& a) {
  const auto both = [](std::string_view one, std::string_view other) {
    return fail("{} and {} cannot be used together", one, other);
  };
  if (!a.blocks.empty() && !a.set.empty()) return both("-b/--block", "--set");
  if (!a.blocks.empty() && a.roof_only) return both("-b/--block", "--roof-only");
  if (!a.set.empty() && a.roof_only) return both("--set", "--roof-only");
  if (a.roof_only && a.no_roof) return both("--roof-only", "--no-roof");
  if (a.bench_only) {
    if (!a.blocks.empty()) return both("-b/--block", "--bench-only");
    if (!a.set.empty()) return both("--set", "--bench-only");
    if (a.roof_only) return both("--roof-only", "--bench-only");
    if (a.no_roof) return both("--no-roof", "--bench-only");
    if (a.pc_sampling) return both("--pc-sampling", "--bench-only");
    if (a.torch_trace) return both("--torch-trace", "--bench-only");
    if (a.dry_run) return both("--dry-run", "--bench-only");
  }
  if (a.multiplexing && a.exact) return both("--iteration-multiplexing", "--exact");
  if (a.multiplexing && a.no_native_tool) return both("--iteration-multiplexing", "--no-native-tool");
  if (a.multiplexing && a.attach_pid != 0) return both("--iteration-multiplexing", "--attach-pid");
  if (a.multiplexing && *a.multiplexing != "kernel" && *a.multiplexing != "kernel_launch_params")
    return fail("--iteration-multiplexing {}: the policies are kernel and kernel_launch_params", *a.multiplexing);
  if (a.multiplexing && !a.replay.empty() && a.replay != "application")
    return fail("--iteration-multiplexing runs every kernel once; it cannot be used with --replay {}", a.replay);
  if (const counter::Provider* const owner = owner_of_replay(a.replay); a.cache_control == "all" && owner != nullptr)
    return fail("--cache-control all goes with --replay kernel: {}'s own replay leaves the caches alone",
                owner->tool());
  if (a.cache_control == "all" && (a.multiplexing || a.replay == "application"))
    return fail("--cache-control all goes with kernel replay: {} measures kernels as they come",
                a.multiplexing ? "--iteration-multiplexing" : "--replay application");
  if (a.attach_pid != 0)
    return fail("--attach-pid {}: counters have to be set up before the program's first kernel; start it with "
                "`profile ... -- command`, or record its kernels' times with `tacho attach {}`",
                a.attach_pid, a.attach_pid);
  if (a.retain_rocpd && a.format != "rocpd") return fail("--retain-rocpd-output needs --format-rocprof-output rocpd");
  if (a.name.find('/') != std::string::npos)
    return fail("-n '{}': a name holds no '/'; --output-directory takes a path", a.name);
  if (a.name == "." || a.name == "..") return fail("-n '{}': not a name for a folder", a.name);
  if (std::any_of(a.name.begin(), a.name.end(), [](unsigned char c) { return std::iscntrl(c); }))
    return fail("-n: a name holds no line ends and no other control characters");
  if (!a.subpath.empty() && a.path.empty())
    return fail("--subpath belongs to --path; --output-directory has placeholders");
  return {};
}

Status check_command(const ProfileArguments& a, std::string_view program) {
  if (a.command.empty()) return fail("which program? give it after --, as in: {} -n vcopy -- ./vcopy", program);
  if (const auto found = find_launcher(a.command)) {
    const std::vector<std::string>& words = found->words;
    // Behind the launcher's options; one may have a file as its value.
    const auto is_program = [](const std::string& word) {
      return launch::find_executable(word).has_value() || (word.find('/') != std::string::npos && !fs::exists(word));
    };
    const auto app = std::find_if(words.begin() + 1, words.end(), is_program);
    const std::string name = a.name.empty() ? "NAME" : a.name;
    const std::string before = found->before.empty() ? "" : joined(found->before, " ") + " ";
    return fail(
        "an MPI launcher after -- would profile the launcher; it must wrap the profiler instead: {}{} {} -n {} -- {} "
        "(CORRECT), not {} -n {} -- {} (WRONG)",
        before, app == words.end() ? words[0] + " ..." : joined({words.begin(), app}, " "), program, name,
        app == words.end() ? "./app" : joined({app, words.end()}, " "), program, name, joined(a.command, " "));
  }
  return {};
}

// Chooses the run's folder; `warnings` gets what the user should know about the choice.
Result<std::string> choose_folder(const ProfileArguments& a, const counter::Device& device,
                                  std::vector<std::string>& warnings) {
  constexpr PlaceholderDialect kDialect = PlaceholderDialect::kFolders;
  PlaceholderFacts values = placeholder_facts();
  values.gpu_model = device.model;
  const std::string rank = values.job.known() ? fmt::format("{}", values.job.rank) : "";
  std::string folder = a.output_directory;
  if (!a.path.empty()) {
    warnings.push_back("-p/--path is deprecated for profile mode and will be removed; use "
                       "--output-directory with placeholders instead");
    if (!a.output_directory.empty())
      return fail("--path and --output-directory both say where the profile goes: choose one");
    folder = a.path;
    if (a.subpath == "node_name") folder += "/" + values.host;
    if (a.subpath == "gpu_model" || a.subpath == "gpu") folder += "/" + values.gpu_model;
  }
  if (!a.subpath.empty())
    warnings.push_back("--subpath is deprecated for profile mode and will be removed; use "
                       "--output-directory with placeholders instead");
  if (folder.empty()) {
    if (a.name.empty()) return fail("give the workload a name with -n NAME, or a folder with --output-directory");
    return "workloads/" + a.name + "/" + (rank.empty() ? values.gpu_model : rank);
  }
  if (!a.name.empty())
    warnings.push_back(
        fmt::format("--name is ignored, because {} is given", a.path.empty() ? "--output-directory" : "--path"));
  const bool rank_used = uses_rank(folder, kDialect);
  folder = expand_placeholders(folder, kDialect, values);
  if (folder.empty())
    return fail("--output-directory {}: nothing is left when the placeholders are filled in", a.output_directory);
  if (rank_used && rank.empty()) warnings.push_back("%rank% is ignored: no rank of an MPI launcher was detected");
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (!rank_used && !rank.empty()) folder += "/" + rank;
  return folder;
}

// For paths that outlive a change of the working directory, and for people who copy the line.
std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

void print_header(const ProfileArguments& a, ProfileFace face, const counter::Chosen& chosen, const std::string& folder,
                  const Selected& selected, ProfileSession& session) {
  if (face == ProfileFace::kRocprofCompute)
    session.header(fmt::format("rocprofiler-compute personality of tacho {}", TACHO_PROGRAM_VERSION));
  session.header(fmt::format("Profiler choice: {}", chosen.provider->tool()));
  session.header(fmt::format("Path: {}", folder));
  session.header(fmt::format("Target: {}", chosen.device.model));
  session.header(fmt::format("Command: {}", joined(a.command, " ")));
  if (a.torch_trace) session.header("Torch Trace: Enabled");
  session.header(fmt::format("Kernel Selection: {}", python_list(a.kernels)));
  session.header(fmt::format("Dispatch Selection: {}", python_list(a.dispatches)));
  if (!a.set.empty()) {
    session.header(fmt::format("Set Selection: {}", a.set));
    session.header(fmt::format("Report Sections: {}", python_list(selected.recorded)));
  } else if (!a.blocks.empty()) {
    session.header("Hardware Blocks: []");
    session.header(fmt::format("Report Sections: {}", python_list(a.blocks)));
  } else {
    session.header("Hardware Blocks: All");
  }
  if (a.multiplexing) session.header(fmt::format("Iteration multiplexing: {}", *a.multiplexing));
  if (a.roof_only) session.header("Roofline only: True");
  session.header("");
  session.header("~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~");
  session.header("Collecting Performance Counters");
  session.header("~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~");
  session.header("");
}

std::string plan_text(const counter::PassPlan& plan) {
  std::string out;
  for (const counter::PlannedPass& pass : plan.passes)
    out +=
        fmt::format("{} ({} counter{}{}): {}\n", pass.name, pass.counters.size(), pass.counters.size() == 1 ? "" : "s",
                    pass.executions > 1 ? fmt::format(", {} executions of each kernel", pass.executions) : "",
                    joined(pass.counters, " "));
  return out;
}

std::string not_available(const counter::Device& device, const counter::PassPlan& plan) {
  return fmt::format("{} does not have the counter{} {}: metrics that need {} are not computed", device.name,
                     plan.unavailable.size() == 1 ? "" : "s", joined(plan.unavailable, ", "),
                     plan.unavailable.size() == 1 ? "it" : "them");
}

// PC samples take a separate run, so only on explicit request.
bool wants_pc_samples(const counter::Provider& provider, const Selected& selected) {
  return provider.can_sample_pc() &&
         std::any_of(selected.selections.begin(), selected.selections.end(),
                     [](const metric::Selection& each) { return each.block != nullptr && each.block->number == 21; });
}

Result<int> print_lists(const ProfileArguments& a, const std::string& program) {
  TACHO_ASSIGN(const metric::Catalog catalog, profiling::catalog_for_lists(a, a.list_metrics  ? a.list_metrics_arch
                                                                              : a.list_blocks ? a.list_blocks_arch
                                                                                              : ""));
  const bool seed = a.ids == "seed";
  if (a.list_metrics) {
    report::put(list_of_metrics(catalog, seed));
    if (seed) complain_of_seed_ids(catalog);
  }
  if (a.list_blocks) report::put(list_of_blocks(catalog));
  if (a.list_sets) report::put(list_of_sets(catalog, program, seed));
  return kOk;
}

// The device to count on; with --arch, for a plan alone, one of that architecture, which need not be here.
Result<counter::Chosen> choose_device(const ProfileArguments& a) {
  if (a.arch.empty()) return counter::choose_device(a.device);
  if (!a.dry_run)
    return fail("--arch {}: a program runs on a device that is here; with --dry-run its plan is shown", a.arch);
  TACHO_ASSIGN(const auto architecture, metric::architecture_named(a.arch, a.config_dirs));
  counter::Chosen chosen;
  for (const auto& provider : counter::providers())
    if (auto device = architecture ? provider->device_for(*architecture) : std::nullopt)
      chosen = {provider.get(), std::move(*device)};
  if (chosen.provider != nullptr) return chosen;
  TACHO_TRY(metric::load_catalog(a.arch, a.config_dirs));
  return fail("--arch {}: there is no plan for this architecture", a.arch);
}

// One run of the command: what is counted, how, and what it leaves in the folder.
class Run {
 public:
  Run(const ProfileArguments& arguments, ProfileFace face, std::vector<counter::Filter::Range> ranges,
      counter::Chosen chosen)
      : arguments_(arguments), face_(face), ranges_(std::move(ranges)), chosen_(std::move(chosen)) {}

  // Which counters the metrics need, and in which passes.
  Status plan() {
    TACHO_ASSIGN(catalog_, metric::load_catalog(chosen_.device.facts, arguments_.config_dirs));
    TACHO_ASSIGN(selected_, profiling::select_metrics(arguments_, catalog_));
    wanted_selections_ = selected_.selections;
    if (!arguments_.blocks.empty() && selected_.selections.empty()) {
      // The device has none of what the user asked for: measures only the launch.
      TACHO_ASSIGN(const metric::Selection launch, metric::resolve(catalog_, "grid-size"));
      wanted_selections_ = {launch};
    }
    TACHO_ASSIGN(wanted_, counter::wanted_counters(catalog_, wanted_selections_));
    for (const std::string& level : wanted_.levels) wanted_.counters.push_back(level);
    const std::string& name = chosen_.device.name;
    if (arguments_.pc_sampling && !provider().can_sample_pc())
      return fail("--pc-sampling: {} takes no PC samples", name);
    pc_samples_ = arguments_.pc_sampling || wants_pc_samples(provider(), selected_);
    const char* const sampling = arguments_.sampling_method.empty() ? "--pc-sampling-interval" : "--pc-sampling-method";
    const bool says_how = !arguments_.sampling_method.empty() || arguments_.sampling_interval != 0;
    if (says_how && !provider().chooses_pc_sampling())
      return fail("{}: {} leaves no choice of how to sample", sampling, name);
    if (says_how && !pc_samples_)
      return fail("{} needs --pc-sampling or -b 21, which take PC samples in a run of their own", sampling);
    if (arguments_.exact && !provider().can_count_exactly()) return fail("--exact: {} counts exactly without it", name);
    if (arguments_.instances && !provider().counts_instances())
      return fail("--instances: {} has one value for each counter", name);
    TACHO_ASSIGN(plan_, arguments_.exact ? provider().exact_plan(chosen_.device, wanted_.counters)
                                         : provider().plan(chosen_.device, wanted_.counters));
    return {};
  }

  void print_plan() const {
    for (const std::string& note : selected_.notes) complain(kOk, note);
    if (!plan_.unavailable.empty()) complain(kOk, not_available(chosen_.device, plan_));
    report::print("{}: {}, {}, {}\n{}{}", chosen_.device.model, how_many(wanted_.metrics, "metric", "metrics"),
                  how_many(wanted_.counters.size(), "counter", "counters"),
                  how_many(plan_.executions(), "pass", "passes"), plan_text(plan_),
                  pc_samples_ ? "and one more run of the program for PC samples\n" : "");
  }

  // Refuse requests that the device cannot fulfil.
  Status check_device() {
    const std::string& name = chosen_.device.name;
    replays_itself_ = owner_of_replay(arguments_.replay);
    if (replays_itself_ != nullptr && replays_itself_ != chosen_.provider)
      return fail("--replay {}: {} is no {}", arguments_.replay, name, replays_itself_->own_replay()->device);
    if (arguments_.replay == "kernel" && !provider().can_replay_kernels() && plan_.passes.size() > 1)
      return fail(
          "--replay kernel: {} cannot put the memory of a kernel back; --replay application runs the program once a "
          "pass",
          name);
    if (!arguments_.cache_control.empty() && !provider().can_empty_caches())
      return fail("--cache-control {}: {} has no caches that could be emptied", arguments_.cache_control, name);
    if (arguments_.max_time > 0 && !provider().simulates())
      return fail("--max-time {:g}: {} runs kernels as they are; only the virtual GPU can interpret part of one",
                  arguments_.max_time, name);
    return {};
  }

  // Chooses the folder and checks what must be there before anything in it changes.
  Status prepare() {
    TACHO_ASSIGN(folder_, choose_folder(arguments_, chosen_.device, warnings_));
    for (const bool stochastic : {true, false})
      if (const std::string file = counter::sample_file(folder_ + "/ps_file", stochastic);
          pc_samples_ && !arguments_.overwrite && fs::exists(file))
        return fail(
            "{} is there already: tacho cannot tell the PC samples of two runs apart; choose another -n, or --overwrite",
            file);
    TACHO_TRY(provider().ready());
    TACHO_TRY(launch::find_library());
    return {};
  }

  Result<int> collect() {
    // --overwrite removes nothing before the program runs, so errors until then leave the folder as it was.
    TACHO_ASSIGN(const workload::FolderWriter writer, workload::FolderWriter::open(folder_, arguments_.overwrite));
    TACHO_TRY(check_same_device(folder_, chosen_.device));
    const counter::CollectRequest request = request_of(writer);
    ProfileSession session(writer, plan_, session_options());
    print_header(arguments_, face_, chosen_, absolute(folder_), selected_, session);
    if (face_ == ProfileFace::kTacho) say_what_comes(session);
    TACHO_TRY(begin(session, writer, request));
    const auto outcome = provider().collect(chosen_.device, plan_, request, session);
    session.finish();
    if (!outcome) return complain(outcome.error().exit_code, outcome.error().message);
    TACHO_TRY(write_operators(session, writer, *outcome));
    const workload::RunEntry entry = entry_of(session, writer, *outcome);
    TACHO_TRY(writer.add_run(entry));
    TACHO_TRY(write_tables(session, writer, *outcome, entry.number));
    const bool sampled = !outcome->samples.empty() || outcome->sampled;
    if (outcome->measured > 0 || !sampled)
      for (const std::string& sentence : profiling::not_matched(arguments_, ranges_, *outcome)) session.warn(sentence);
    const bool roofs = profiling::wants_roofline(arguments_, catalog_, wanted_selections_);
    if (roofs && outcome->measured == 0 && !sampled)
      session.note("The roofs of the device are not measured, since no kernel was; --bench-only measures them alone");
    else if (roofs) {
      roofline::SuiteOptions options;
      options.line = [&](std::string_view line) { session.header(line); };
      const bool drawn = !arguments_.quiet && isatty(STDERR_FILENO) == 1;
      options.bar = drawn && face_ == ProfileFace::kRocprofCompute;
      if (face_ == ProfileFace::kTacho) {
        options.note = [&](std::string_view sentence) { session.note(sentence); };
        options.warn = [&](std::string_view sentence) { session.warn(sentence); };
        options.estimate = drawn;
      }
      TACHO_TRY(roofline::add_roofline(folder_, chosen_.device.vendor, chosen_.device.id, options));
    }
    if (outcome->measured > 0)
      session.note(fmt::format("{} {} measured in {} {}; tacho analyze -p {}", outcome->measured,
                               outcome->measured == 1 ? "dispatch" : "dispatches", outcome->runs,
                               outcome->runs == 1 ? "run" : "runs", folder_));
    session.finish();
    if (outcome->exit_code == 0 && outcome->measured == 0 && outcome->seen == 0) return kOk;
    return outcome->exit_code;
  }

 private:
  const counter::Provider& provider() const { return *chosen_.provider; }
  bool replays() const { return plan_.executions() > 1 && !arguments_.multiplexing; }

  counter::CollectRequest request_of(const workload::FolderWriter& writer) const {
    counter::CollectRequest request;
    request.command = arguments_.command;
    request.filter.kernels = arguments_.kernels;
    request.filter.dispatches = ranges_;
    request.replay = arguments_.replay == "kernel"        ? counter::Replay::kKernel
                     : arguments_.replay == "application" ? counter::Replay::kApplication
                     : replays_itself_ != nullptr         ? counter::Replay::kVendor
                                                          : counter::Replay::kDefault;
    if (arguments_.multiplexing)
      request.multiplex =
          *arguments_.multiplexing == "kernel" ? counter::Multiplex::kKernel : counter::Multiplex::kLaunchParams;
    request.caches = arguments_.cache_control == "all"    ? counter::Caches::kAll
                     : arguments_.cache_control == "none" ? counter::Caches::kNone
                                                          : counter::Caches::kDefault;
    request.pc_samples = pc_samples_;
    request.only_samples = pc_samples_ && !arguments_.pc_sampling && selected_.selections.size() == 1;
    request.pc_sampling.method = arguments_.sampling_method;
    request.pc_sampling.interval = static_cast<uint64_t>(arguments_.sampling_interval);
    request.operators = arguments_.torch_trace;
    request.instances = arguments_.instances;
    request.max_time_s = arguments_.max_time;
    request.folder = writer.folder();
    return request;
  }

  ProfileSession::Options session_options() const {
    ProfileSession::Options options;
    options.face = face_;
    options.quiet = arguments_.quiet;
    options.rocpd = arguments_.format == "rocpd";
    options.tool = provider().tool();
    options.retain_rocpd = arguments_.retain_rocpd;
    options.device = chosen_.device;
    options.command = arguments_.command;
    return options;
  }

  // What is counted, on which device and into which folder.
  void say_what_comes(ProfileSession& session) const {
    const std::string turns = arguments_.multiplexing == "kernel" ? ", which the dispatches of a kernel take in turns"
                              : arguments_.multiplexing           ? ", which equal launches of a kernel take in turns"
                                                                  : "";
    session.note(fmt::format("{}: {} from {} in {}{}; folder {}", chosen_.device.name,
                             how_many(wanted_.metrics, "metric", "metrics"),
                             how_many(wanted_.counters.size(), "counter", "counters"),
                             how_many(plan_.executions(), "pass", "passes"), turns, folder_));
  }

  // Warn the user before the program runs, and write the files that describe the run.
  Status begin(ProfileSession& session, const workload::FolderWriter& writer,
               const counter::CollectRequest& request) const {
    for (const std::string& warning : warnings_) session.warn(warning);
    for (const std::string& note : selected_.notes) session.warn(note);
    if (arguments_.device.empty() && provider().simulates())
      if (const std::vector<std::string> gpus = installed_gpus(); !gpus.empty())
        session.warn(fmt::format("{} cannot be profiled (--device 0 says why): these are counts of the virtual GPU",
                                 joined(gpus, ", ")));
    if (arguments_.no_native_tool)
      session.note("--no-native-tool: tacho has one way of collecting counters, which is used");
    if (!plan_.unavailable.empty()) session.warn(not_available(chosen_.device, plan_));
    TACHO_TRY(session.write_inputs(request.filter));
    if (!fs::exists(folder_ + "/sysinfo.csv"))
      TACHO_TRY(writer.write(
          "sysinfo.csv",
          sysinfo_csv(chosen_.device, arguments_.name.empty() ? fs::path(folder_).filename().string() : arguments_.name,
                      joined(arguments_.command, " "), arguments_.roof_only)));
    const bool by_kernel = request.replay == counter::Replay::kKernel || request.replay == counter::Replay::kVendor ||
                           (request.replay == counter::Replay::kDefault && provider().replays_by_default());
    if (replays())
      session.note(fmt::format("Replay: {}", by_kernel ? "kernel, each kernel is run again with its memory put back"
                                                       : "application, the program is run once a pass"));
    if (replays() && !by_kernel && job_rank().known())
      session.warn(fmt::format(
          "this rank's program would be run {} times, and one that calls MPI_Init can be run once only: then the first "
          "run's counters are kept; --iteration-multiplexing counts all in one run, --set NAME a few",
          plan_.executions()));
    if (pc_samples_ && job_rank().known())
      session.warn(
          "PC sampling (block 21) may fail to collect data of ranks that communicate by MPI: it takes a run of its "
          "own, and a rank can call MPI_Init once");
    session.note(
        "Kernels are serialized while they are measured: their times are not those of kernels that run side by side");
    if (arguments_.multiplexing && plan_.executions() == 1)
      session.note("All counters fit in one pass: there is nothing to spread over iterations");
    return {};
  }

  // Which operators of PyTorch launched the kernels.
  Status write_operators(ProfileSession& session, const workload::FolderWriter& writer,
                         const counter::Outcome& outcome) const {
    if (outcome.operators.empty()) {
      if (arguments_.torch_trace)
        session.warn(
            "--torch-trace: the run that records PyTorch's operators left no trace, so kernels have no operators");
      return {};
    }
    std::vector<std::string> notes;
    const Status written = write_torch_files(writer, outcome.operators, session.files(), notes);
    unlink(outcome.operators.c_str());
    TACHO_TRY(written);
    for (const std::string& note : notes) session.warn(note);
    return {};
  }

  workload::RunEntry entry_of(const ProfileSession& session, const workload::FolderWriter& writer,
                              const counter::Outcome& outcome) const {
    workload::RunEntry entry;
    entry.number = writer.earlier().empty() ? 1 : writer.earlier().back().number + 1;
    entry.command = arguments_.command;
    entry.kernels = arguments_.kernels;
    entry.dispatches = arguments_.dispatches;
    entry.blocks = selected_.recorded;
    entry.set = arguments_.set;
    entry.device = chosen_.device.id;
    entry.tool = provider().tool();
    entry.replay = !replays() ? ""
                   : !arguments_.replay.empty()
                       ? arguments_.replay
                       : std::string(provider().replays_by_default() ? "kernel" : "application");
    entry.multiplexing = arguments_.multiplexing.value_or("");
    entry.timestamp = now_text();
    entry.files = session.files();
    entry.estimated = outcome.estimated;
    entry.roofline_only = arguments_.roof_only;
    entry.exit_code = outcome.exit_code;
    if (outcome.left_out != 0) {
      constexpr uint64_t kMost = std::numeric_limits<int>::max();
      entry.seen = static_cast<int>(std::min(kMost, outcome.measured + outcome.left_out));
      entry.measured = static_cast<int>(std::min(kMost, outcome.measured));
    }
    return entry;
  }

  // Times of the dispatches and PC samples with their sources.
  Status write_tables(const ProfileSession& session, const workload::FolderWriter& writer,
                      const counter::Outcome& outcome, int number) const {
    if (!session.dispatches().empty()) {
      std::ifstream old(folder_ + "/timestamps.csv", std::ios::binary);
      std::ostringstream existing;
      if (old) existing << old.rdbuf();
      TACHO_TRY(writer.write("timestamps.csv", timestamps_csv(existing.str(), number, session.dispatches()), true));
    }
    if (!outcome.samples.empty()) {
      TACHO_TRY(writer.write(std::string(kPcSamplesFile), pc_samples_csv(outcome.samples)));
      TACHO_TRY(writer.write("ps_file_kernel_trace.csv", pc_kernels_csv(outcome.samples)));
    }
    if (!arguments_.no_source) {
      std::vector<workload::SampledLine> lines;
      for (const counter::PcSample& each : outcome.samples) lines.push_back({each.source, each.path});
      if (outcome.sampled)
        for (const auto& each : outcome.sampled->instructions)
          lines.push_back({each.source, std::string(workload::split_source(each.source).first)});
      if (const std::string text = workload::pc_sources_csv(lines); !text.empty())
        TACHO_TRY(writer.write(workload::kPcSourcesFile, text));
    }
    if (outcome.sampled)
      TACHO_TRY(counter::write_sampled_run(*outcome.sampled, folder_ + "/ps_file",
                                           {.samples = true, .dispatches = true, .json = true}, arguments_.overwrite));
    return {};
  }

  const ProfileArguments& arguments_;
  ProfileFace face_;
  std::vector<counter::Filter::Range> ranges_;
  counter::Chosen chosen_;
  metric::Catalog catalog_;
  Selected selected_;
  std::vector<metric::Selection> wanted_selections_;
  counter::WantedCounters wanted_;
  counter::PassPlan plan_;
  bool pc_samples_ = false;
  const counter::Provider* replays_itself_ = nullptr;
  std::string folder_;
  std::vector<std::string> warnings_;
};

// --bench-only: the roofs of the device, without a program.
Result<int> measure_roofs(const ProfileArguments& a, const counter::Device& device, ProfileFace face) {
  if (!a.command.empty())
    complain(kOk, fmt::format("--bench-only measures the device alone: {} is not started", a.command.front()));
  std::vector<std::string> warnings;
  TACHO_ASSIGN(const std::string folder, choose_folder(a, device, warnings));
  for (const std::string& warning : warnings) complain(kOk, warning);
  const std::string file = folder + "/roofline.csv";
  if (!a.overwrite && fs::exists(file))
    return fail("{} is there already; --overwrite measures the device anew, or choose another -n", file);
  std::vector<std::string> notes;
  TACHO_ASSIGN(const roofline::NumberedDevice measured,
               roofline::device_of_profile(roofline::list_devices(notes), device.vendor, device.id));
  TACHO_ASSIGN(const workload::FolderWriter writer, workload::FolderWriter::open(folder, a.overwrite));
  TACHO_TRY(check_same_device(folder, device));
  roofline::SuiteOptions options;
  const bool drawn = !a.quiet && isatty(STDERR_FILENO) == 1;
  if (face == ProfileFace::kRocprofCompute) {
    options.bar = drawn;
    if (!a.quiet) options.line = [](std::string_view line) { report::print("{}\n", line); };
  } else {
    options.estimate = drawn;
    if (!a.quiet) report::print_error("tacho: measuring the roofs of {}\n", measured.entry.info.name);
  }
  TACHO_ASSIGN(const roofline::DeviceCeilings ceilings, roofline::measure(measured, options));
  int code = kOk;
  for (const roofline::Measurement& each : ceilings.measurements) {
    for (const std::string& warning : each.warnings) complain(kOk, warning);
    if (!each.skipped.empty()) complain(kOk, fmt::format("{}: not measured: {}", each.label, each.skipped));
    if (!each.error.empty()) code = complain(kOwnError, each.error);
  }
  if (const Status kept = roofline::store_in_cache(ceilings); !kept)
    complain(kOk, fmt::format("not kept for later runs: {}", kept.error().message));
  writer.started();
  if (!fs::exists(folder + "/sysinfo.csv"))
    TACHO_TRY(writer.write(
        "sysinfo.csv", sysinfo_csv(device, a.name.empty() ? fs::path(folder).filename().string() : a.name, "", true)));
  TACHO_TRY(writer.write("roofline.csv", roofline::to_csv({ceilings}, roofline::now_text()), true));
  report::print("wrote {}\n", file);
  return code;
}

Result<int> run(ProfileArguments& a, ProfileFace face, const std::string& program) {
  if (a.list_metrics || a.list_blocks || a.list_sets) return print_lists(a, program);
  TACHO_TRY(check_conflicts(a));
  TACHO_ASSIGN(std::vector<counter::Filter::Range> ranges, parse_dispatches(a.dispatches));
  TACHO_ASSIGN(counter::Chosen chosen, choose_device(a));
  if (a.specs) {
    report::put(specs_text(chosen.device));
    return kOk;
  }
  if (a.bench_only) return measure_roofs(a, chosen.device, face);
  if (a.pc_sampling && face == ProfileFace::kRocprofCompute && !a.experimental)
    return fail("--pc-sampling is experimental: add --experimental in front of profile");
  Run run(a, face, std::move(ranges), std::move(chosen));
  TACHO_TRY(run.plan());
  if (a.dry_run) {
    run.print_plan();
    return kOk;
  }
  TACHO_TRY(check_command(a, program));
  TACHO_TRY(run.check_device());
  const auto executable = launch::find_executable(a.command.front());
  if (!executable) return complain(executable.error().exit_code, executable.error().message);
  if (!a.ranks.empty()) {
    std::string warning;
    TACHO_ASSIGN(const bool chosen_rank, is_chosen_rank(a.ranks, warning));
    if (!warning.empty()) complain(kOk, warning);
    if (!chosen_rank) return run_as_it_is(a.command);
  }
  if (a.torch_trace) {
    if (face == ProfileFace::kRocprofCompute && !a.experimental)
      return fail("--torch-trace is experimental: add --experimental in front of profile");
    TACHO_TRY(launch::torch_hooks(a.command));
  }
  TACHO_TRY(run.prepare());
  return run.collect();
}

}  // namespace

int profile(int argc, char** argv, ProfileFace face) {
  // The program follows the first --, which also ends options with several words.
  std::vector<char*> own(argv, argv + argc);
  ProfileArguments arguments;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--") {
      own.resize(static_cast<size_t>(i));
      arguments.command.assign(argv + i + 1, argv + argc);
      break;
    }
  const std::string program = argv[0];
  CommandOptions app("Counters of every kernel of a program, collected into a folder that analyze reads.", program);
  app.footer(fmt::format("Examples:\n"
                         "  {0} --name vcopy -- ./vcopy -n 1048576 -b 256\n"
                         "  {0} --name vcopy -b 10 lds -k vecCopy -- ./vcopy\n"
                         "  {0} --name vcopy --set mem_thruput --device virtual -- ./vcopy\n"
                         "Exit code: the program's own; 125 an error of ours, 126 not executable, 127 not found.",
                         program));
  std::optional<Error> refusal;
  options::declare(app, profiling::option_rows(), arguments, refusal);
  own.push_back(nullptr);
  const CommandOptions::Parsed parsed = app.parse(static_cast<int>(own.size()) - 1, own.data());
  if (parsed.help) {
    print_help(app, "-- program [arguments]");
    return kOk;
  }
  if (parsed.mistake) {
    std::string message = *parsed.mistake;
    const bool words_left =
        message.find("not expected") != std::string::npos || message.find("takes one value") != std::string::npos;
    if (words_left && arguments.command.empty()) message += "; the program comes after --";
    return complain(kOwnError, message);
  }
  const auto code = run(arguments, face, program);
  return code ? *code : complain(kOwnError, code.error().message);
}

int run_profile(int argc, char** argv) {
  std::string name = "tacho profile";
  argv[0] = name.data();
  return profile(argc, argv, ProfileFace::kTacho);
}

}  // namespace tacho::cli
