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
#include "base/text/placeholders.h"
#include "cli/command.h"
#include "cli/profile/options.h"
#include "cli/profile/session.h"
#include "cli/profile/specs.h"
#include "cli/profile/torch_files.h"
#include "cli/shared/chosen_ranks.h"
#include "cli/shared/command_line.h"
#include "cli/shared/devices.h"
#include "cli/shared/suggest.h"
#include "counter/sampled_run.h"
#include "counter/wanted.h"
#include "launch/torch_hooks.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/catalog.h"
#include "report/output.h"
#include "roofline/ceilings_file.h"
#include "workload/pc_samples/pc_sources.h"
#include "workload/writer.h"

namespace tacho::cli {

namespace {

namespace fs = std::filesystem;
using profiling::Arguments;

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

Status check_conflicts(const Arguments& a) {
  const auto both = [](std::string_view one, std::string_view other) {
    return fail("{} and {} cannot be used together", one, other);
  };
  if (!a.blocks.empty() && !a.set.empty()) return both("-b/--block", "--set");
  if (!a.blocks.empty() && a.roof_only) return both("-b/--block", "--roof-only");
  if (!a.set.empty() && a.roof_only) return both("--set", "--roof-only");
  if (a.roof_only && a.no_roof) return both("--roof-only", "--no-roof");
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
    return fail("--attach-pid {}: counters have to be set up before the program's "
                "first kernel; start it with `profile ... -- command`",
                a.attach_pid);
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

Status check_command(const Arguments& a, std::string_view program) {
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

// The architecture for the lists: the one asked for, else this machine's device, else virtual.
Result<metric::Catalog> catalog_for_lists(const Arguments& a, const std::string& asked) {
  std::string name = !asked.empty() ? asked : a.arch;
  if (name.empty()) {
    const auto chosen = counter::choose_device(a.device);
    if (!chosen && !a.device.empty()) return fail("{}", chosen.error().message);
    name = chosen ? chosen->device.architecture : std::string(counter::kEverywhere);
  }
  TACHO_ASSIGN(const auto known, metric::architecture_named(name, a.config_dirs));
  return known ? metric::load_catalog(*known, a.config_dirs) : metric::load_catalog(name, a.config_dirs);
}

// What a text means on another architecture, if it means nothing on this one.
std::optional<std::string> known_elsewhere(const std::string& text, metric::IdScheme scheme) {
  for (const auto& provider : counter::providers()) {
    const auto list = metric::architectures(provider->vendor());
    for (auto each = list.rbegin(); each != list.rend(); ++each) {
      const auto catalog = metric::load_catalog(*each);
      if (!catalog) continue;
      const auto selection = metric::resolve(*catalog, text, scheme);
      if (!selection) continue;
      return selection->metric != nullptr  ? std::string(selection->metric->name)
             : selection->table != nullptr ? std::string(selection->table->title)
                                           : std::string(selection->block->title);
    }
  }
  return std::nullopt;
}

struct Selected {
  std::vector<metric::Selection> selections;
  std::vector<std::string> recorded;  // what profiling_config.yaml and the header show
  std::vector<std::string> notes;
};

Result<Selected> select_metrics(const Arguments& a, const metric::Catalog& catalog) {
  const metric::IdScheme scheme = a.ids == "seed" ? metric::IdScheme::kSeedProfile : metric::IdScheme::kV33;
  Selected selected;
  if (!a.set.empty()) {
    const auto set =
        std::find_if(catalog.sets.begin(), catalog.sets.end(), [&](const auto& each) { return each.name == a.set; });
    if (set == catalog.sets.end()) {
      std::string known;
      for (const metric::MetricSet& each : catalog.sets)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
      return fail("--set {}: {} has no such set; it has {}", a.set, catalog.architecture,
                  known.empty() ? "none" : known);
    }
    for (const std::string_view slug : set->metrics) {
      TACHO_ASSIGN(const metric::Selection selection, metric::resolve(catalog, slug));
      selected.selections.push_back(selection);
      selected.recorded.push_back(metric::to_string(selection.metric->id));
    }
    return selected;
  }
  std::vector<std::string> texts = a.blocks;
  if (a.roof_only) {
    texts = {catalog.block(4) != nullptr ? "4" : "2"};
    if (catalog.block(4) == nullptr)
      selected.notes.push_back(
          fmt::format("{} has no roofline: --roof-only collects its {} alone", catalog.architecture,
                      catalog.block(2) != nullptr ? catalog.block(2)->title : std::string_view("block 2")));
  }
  std::string left_out;
  std::vector<std::string> meanings;
  for (const std::string& text : texts) {
    auto selection = metric::resolve(catalog, text, scheme);
    if (!selection && scheme == metric::IdScheme::kSeedProfile) {
      // The documents' analyze may use this number for something else.
      auto other = metric::resolve(catalog, text, metric::IdScheme::kSeedAnalyze);
      if (other && other->metric != nullptr) {
        selected.notes.push_back(fmt::format("{}; {}, which analyze prints under this number, is collected",
                                             selection.error().message, other->metric->name));
        selection = std::move(other);
      }
    }
    if (!selection) {
      const auto elsewhere = known_elsewhere(text, scheme);
      if (!elsewhere) return fail("-b {}: {}", text, selection.error().message);
      selected.notes.push_back(
          fmt::format("{} ({}) cannot be computed on {}: left out", text, *elsewhere, catalog.architecture));
      left_out += fmt::format("{}{} ({})", left_out.empty() ? "" : ", ", text, *elsewhere);
      continue;
    }
    const std::string meaning = documents_meaning(catalog, text, *selection);
    const metric::Metric* also = nullptr;
    if (!meaning.empty() && scheme == metric::IdScheme::kV33) {
      meanings.push_back(meaning);
    } else if (!meaning.empty()) {
      // The user also wants what the documents' analyze shows under this number.
      also = catalog.metric(selection->elsewhere->slug);
      selected.notes.push_back(fmt::format("in the users' documents {}; both are collected", meaning));
    }
    selected.selections.push_back(*selection);
    if (!a.roof_only) {
      // Numbers of the documents change meaning when the folder is read: record what the user meant.
      const bool number = metric::parse_metric_id(text).has_value();
      selected.recorded.push_back(number && selection->metric != nullptr ? metric::to_string(selection->metric->id)
                                                                         : text);
    }
    if (also != nullptr) {
      TACHO_ASSIGN(const metric::Selection other, metric::resolve(catalog, also->slug));
      selected.selections.push_back(other);
      selected.recorded.push_back(metric::to_string(also->id));
    }
  }
  // "Nothing left to count" must not become "nothing asked for", which means everything.
  if (!left_out.empty() && selected.selections.empty())
    return fail("-b: {} cannot be computed on {}; --list-blocks shows what can", left_out, catalog.architecture);
  if (std::string note = metric::ids_note(catalog, meanings); !note.empty()) selected.notes.push_back(std::move(note));
  return selected;
}

// Every run that has the counters for the roofline's points gets ceilings, unless --no-roof.
bool wants_roofline(const Arguments& a, const metric::Catalog& catalog,
                    const std::vector<metric::Selection>& selections) {
  if (a.no_roof || catalog.block(4) == nullptr) return false;
  if (a.roof_only || selections.empty()) return true;
  return std::any_of(selections.begin(), selections.end(),
                     [](const metric::Selection& each) { return each.block != nullptr && each.block->number == 4; });
}

// Chooses the run's folder; `warnings` gets what the user should know about the choice.
Result<std::string> choose_folder(const Arguments& a, const counter::Device& device,
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

void print_header(const Arguments& a, ProfileFace face, const counter::Chosen& chosen, const std::string& folder,
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

std::string plan_text(const counter::Plan& plan) {
  std::string out;
  for (const counter::Pass& pass : plan.passes)
    out +=
        fmt::format("{} ({} counter{}{}): {}\n", pass.name, pass.counters.size(), pass.counters.size() == 1 ? "" : "s",
                    pass.executions > 1 ? fmt::format(", {} executions of each kernel", pass.executions) : "",
                    joined(pass.counters, " "));
  return out;
}

std::string not_available(const counter::Device& device, const counter::Plan& plan) {
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

// "; did you mean vecCopy?" for a part of a name that matches no kernel.
std::string nearest_kernel(const std::string& wanted, const std::vector<std::string>& kernels) {
  // People write the name without its arguments and do not remember its capitals.
  const auto small = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  std::vector<std::string> names, small_names;
  for (const std::string& kernel : kernels) {
    std::string name = kernel.substr(0, kernel.find_first_of("(<"));
    name = name.substr(std::max(name.rfind(' ') + 1, name.rfind(':') + 1));
    for (std::string& each : std::array{std::move(name), kernel})
      if (!each.empty()) names.push_back(std::move(each));
  }
  for (const std::string& name : names) small_names.push_back(small(name));
  const std::string best = nearest(small(wanted), small_names);
  const auto found = std::find(small_names.begin(), small_names.end(), best);
  if (best.empty() || found == small_names.end()) return {};
  return fmt::format("; did you mean {}?", names[static_cast<size_t>(found - small_names.begin())]);
}

// What the filters asked for and the program did not launch; if nothing was measured, what it launched.
std::vector<std::string> not_matched(const Arguments& a, const std::vector<counter::Filter::Range>& ranges,
                                     const counter::Outcome& outcome) {
  if (outcome.seen == 0)
    return {outcome.exit_code == 0
                ? "the program launched no kernel, so there is nothing to profile"
                : "the program ended before a kernel of it had finished, so there is nothing to profile"};
  std::vector<std::string> sentences;
  for (const std::string& wanted : a.kernels)
    if (outcome.seen_kernels.size() < counter::Outcome::kMostNames &&
        std::none_of(outcome.seen_kernels.begin(), outcome.seen_kernels.end(),
                     [&](const std::string& kernel) { return kernel.find(wanted) != std::string::npos; }))
      sentences.push_back(fmt::format("-k {}: no kernel of that name was launched{}", wanted,
                                      nearest_kernel(wanted, outcome.seen_kernels)));
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].first >= outcome.seen)
      sentences.push_back(fmt::format("-d {}: no such dispatch; the program launched {}, numbered from 0",
                                      a.dispatches[i], outcome.seen));
  if (outcome.measured > 0) return sentences;
  if (a.kernels.empty() && a.dispatches.empty())
    return {fmt::format("none of the program's launches has values, {} in all", outcome.seen)};
  std::string names;
  for (size_t i = 0; i < outcome.seen_kernels.size() && i < 8; ++i) {
    // Template names can be pages long.
    constexpr size_t kLongest = 80;
    const std::string& name = outcome.seen_kernels[i];
    size_t end = std::min(name.size(), kLongest);
    while (end < name.size() && (name[end] & 0xc0) == 0x80) --end;
    names += (i > 0 ? ", " : "") + name.substr(0, end) + (end < name.size() ? "…" : "");
  }
  if (outcome.seen_kernels.size() > 8) names += ", ...";
  sentences.push_back(fmt::format(
      "no dispatch passed{}{}; the program launched {}", a.kernels.empty() ? "" : " -k " + joined(a.kernels, " "),
      a.dispatches.empty() ? "" : (a.kernels.empty() ? " -d " : " and -d ") + joined(a.dispatches, " "), names));
  return sentences;
}

Result<int> run(Arguments& a, ProfileFace face, const std::string& program) {
  if (a.list_metrics || a.list_blocks || a.list_sets) {
    TACHO_ASSIGN(const metric::Catalog catalog, catalog_for_lists(a, a.list_metrics  ? a.list_metrics_arch
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
  TACHO_TRY(check_conflicts(a));
  TACHO_ASSIGN(const std::vector<counter::Filter::Range> ranges, parse_dispatches(a.dispatches));

  counter::Chosen chosen;
  if (!a.arch.empty()) {
    if (!a.dry_run)
      return fail("--arch {}: a program runs on a device that is here; with --dry-run its plan is shown", a.arch);
    TACHO_ASSIGN(const auto architecture, metric::architecture_named(a.arch, a.config_dirs));
    for (const auto& provider : counter::providers())
      if (auto device = architecture ? provider->device_for(*architecture) : std::nullopt)
        chosen = {provider.get(), std::move(*device)};
    if (chosen.provider == nullptr) {
      TACHO_TRY(metric::load_catalog(a.arch, a.config_dirs));
      return fail("--arch {}: there is no plan for this architecture", a.arch);
    }
  } else {
    TACHO_ASSIGN(chosen, counter::choose_device(a.device));
  }
  if (a.specs) {
    report::put(specs_text(chosen.device));
    return kOk;
  }
  TACHO_ASSIGN(const metric::Catalog catalog, metric::load_catalog(chosen.device.facts, a.config_dirs));
  TACHO_ASSIGN(const Selected selected, select_metrics(a, catalog));
  std::vector<metric::Selection> wanted_selections = selected.selections;
  counter::WantedCounters wanted;
  if (!a.blocks.empty() && selected.selections.empty()) {
    // The device has none of what the user asked for: measures only the launch.
    TACHO_ASSIGN(const metric::Selection launch, metric::resolve(catalog, "grid-size"));
    wanted_selections = {launch};
  }
  TACHO_ASSIGN(wanted, counter::wanted_counters(catalog, wanted_selections));
  for (const std::string& level : wanted.levels) wanted.counters.push_back(level);
  if ((!a.sampling_method.empty() || a.sampling_interval != 0) && !chosen.provider->chooses_pc_sampling())
    return fail("{}: {} leaves no choice of how to sample",
                a.sampling_method.empty() ? "--pc-sampling-interval" : "--pc-sampling-method", chosen.device.name);
  if ((!a.sampling_method.empty() || a.sampling_interval != 0) && !wants_pc_samples(*chosen.provider, selected))
    return fail("{} needs -b 21, which takes PC samples in a run of their own",
                a.sampling_method.empty() ? "--pc-sampling-interval" : "--pc-sampling-method");
  if (a.exact && !chosen.provider->can_count_exactly())
    return fail("--exact: {} counts exactly without it", chosen.device.name);
  if (a.instances && !chosen.provider->counts_instances())
    return fail("--instances: {} has one value for each counter", chosen.device.name);
  TACHO_ASSIGN(const counter::Plan plan, a.exact ? chosen.provider->exact_plan(chosen.device, wanted.counters)
                                                 : chosen.provider->plan(chosen.device, wanted.counters));
  if (a.dry_run) {
    for (const std::string& note : selected.notes) complain(kOk, note);
    if (!plan.unavailable.empty()) complain(kOk, not_available(chosen.device, plan));
    report::print(
        "{}: {} metric{}, {} counter{}, {} {}\n{}{}", chosen.device.model, wanted.metrics,
        wanted.metrics == 1 ? "" : "s", wanted.counters.size(), wanted.counters.size() == 1 ? "" : "s",
        plan.executions(), plan.executions() == 1 ? "pass" : "passes", plan_text(plan),
        wants_pc_samples(*chosen.provider, selected) ? "and one more run of the program for PC samples\n" : "");
    return kOk;
  }
  TACHO_TRY(check_command(a, program));
  const counter::Provider* const replays_itself = owner_of_replay(a.replay);
  if (replays_itself != nullptr && replays_itself != chosen.provider)
    return fail("--replay {}: {} is no {}", a.replay, chosen.device.name, replays_itself->own_replay()->device);
  if (a.replay == "kernel" && !chosen.provider->can_replay_kernels() && plan.passes.size() > 1)
    return fail(
        "--replay kernel: {} cannot put the memory of a kernel back; --replay application runs the program once a pass",
        chosen.device.name);
  if (!a.cache_control.empty() && !chosen.provider->can_empty_caches())
    return fail("--cache-control {}: {} has no caches that could be emptied", a.cache_control, chosen.device.name);
  if (a.max_time > 0 && !chosen.provider->simulates())
    return fail("--max-time {:g}: {} runs kernels as they are; only the virtual GPU can interpret part of one",
                a.max_time, chosen.device.name);
  const auto executable = launch::find_executable(a.command.front());
  if (!executable) return complain(executable.error().exit_code, executable.error().message);
  if (!a.ranks.empty()) {
    std::string warning;
    TACHO_ASSIGN(const bool chosen, is_chosen_rank(a.ranks, warning));
    if (!warning.empty()) complain(kOk, warning);
    if (!chosen) return run_as_it_is(a.command);
  }
  if (a.torch_trace) {
    if (face == ProfileFace::kRocprofCompute && !a.experimental)
      return fail("--torch-trace is experimental: add --experimental in front of profile");
    TACHO_TRY(launch::torch_hooks(a.command));
  }

  std::vector<std::string> warnings;
  TACHO_ASSIGN(const std::string folder, choose_folder(a, chosen.device, warnings));
  const bool pc_samples = wants_pc_samples(*chosen.provider, selected);
  for (const bool stochastic : {true, false})
    if (const std::string file = counter::sample_file(folder + "/ps_file", stochastic);
        pc_samples && !a.overwrite && fs::exists(file))
      return fail("{} is there already: PC samples of two runs cannot be told apart; choose another -n, or --overwrite",
                  file);
  TACHO_TRY(chosen.provider->ready());
  TACHO_TRY(launch::find_library());
  // --overwrite removes nothing before the program runs, so errors until then leave the folder as it was.
  TACHO_ASSIGN(const workload::FolderWriter writer, workload::FolderWriter::open(folder, a.overwrite));
  TACHO_TRY(check_same_device(folder, chosen.device));

  counter::CollectRequest request;
  request.command = a.command;
  request.filter.kernels = a.kernels;
  request.filter.dispatches = ranges;
  request.replay = a.replay == "kernel"        ? counter::Replay::kKernel
                   : a.replay == "application" ? counter::Replay::kApplication
                   : replays_itself != nullptr ? counter::Replay::kVendor
                                               : counter::Replay::kDefault;
  if (a.multiplexing)
    request.multiplex = *a.multiplexing == "kernel" ? counter::Multiplex::kKernel : counter::Multiplex::kLaunchParams;
  request.caches = a.cache_control == "all"    ? counter::Caches::kAll
                   : a.cache_control == "none" ? counter::Caches::kNone
                                               : counter::Caches::kDefault;
  request.pc_samples = pc_samples;
  request.only_samples = pc_samples && selected.selections.size() == 1;
  request.pc_sampling.method = a.sampling_method;
  request.pc_sampling.interval = static_cast<uint64_t>(a.sampling_interval);
  request.operators = a.torch_trace;
  request.instances = a.instances;
  request.max_time_s = a.max_time;
  request.folder = writer.folder();

  ProfileSession::Options session_options;
  session_options.face = face;
  session_options.quiet = a.quiet;
  session_options.rocpd = a.format == "rocpd";
  session_options.tool = chosen.provider->tool();
  session_options.retain_rocpd = a.retain_rocpd;
  session_options.device = chosen.device;
  session_options.command = a.command;
  ProfileSession session(writer, plan, session_options);
  print_header(a, face, chosen, absolute(folder), selected, session);
  for (const std::string& warning : warnings) session.warn(warning);
  for (const std::string& note : selected.notes) session.warn(note);
  if (a.device.empty() && chosen.provider->simulates())
    if (const std::vector<std::string> gpus = installed_gpus(); !gpus.empty())
      session.warn(fmt::format("{} cannot be profiled (--device 0 says why): these are counts of the virtual GPU",
                               joined(gpus, ", ")));
  if (a.no_native_tool) session.note("--no-native-tool: tacho has one way of collecting counters, which is used");
  if (!plan.unavailable.empty()) session.warn(not_available(chosen.device, plan));
  TACHO_TRY(session.write_inputs(request.filter));
  const bool had_sysinfo = fs::exists(folder + "/sysinfo.csv");
  if (!had_sysinfo)
    TACHO_TRY(writer.write("sysinfo.csv",
                           sysinfo_csv(chosen.device, a.name.empty() ? fs::path(folder).filename().string() : a.name,
                                       joined(a.command, " "), a.roof_only)));
  const bool replays = plan.executions() > 1 && !a.multiplexing;
  const bool by_kernel = request.replay == counter::Replay::kKernel || request.replay == counter::Replay::kVendor ||
                         (request.replay == counter::Replay::kDefault && chosen.provider->replays_by_default());
  if (replays)
    session.note(fmt::format("Replay: {}", by_kernel ? "kernel, each kernel is run again with its memory put back"
                                                     : "application, the program is run once a pass"));
  if (replays && !by_kernel && job_rank().known())
    session.warn(fmt::format(
        "this rank's program would be run {} times, and one that calls MPI_Init can be run once only: then the first "
        "run's counters are kept; --iteration-multiplexing counts all in one run, --set NAME a few",
        plan.executions()));
  if (pc_samples && job_rank().known())
    session.warn(
        "PC sampling (block 21) may fail to collect data of ranks that communicate by MPI: it takes a run of its own, "
        "and a rank can call MPI_Init once");
  session.note(
      "Kernels are serialized while they are measured: their times are not those of kernels that run side by side");
  if (a.multiplexing && plan.executions() == 1)
    session.note("All counters fit in one pass: there is nothing to spread over iterations");

  const auto outcome = chosen.provider->collect(chosen.device, plan, request, session);
  session.finish();
  if (!outcome) return complain(outcome.error().exit_code, outcome.error().message);
  if (!outcome->operators.empty()) {
    std::vector<std::string> notes;
    const Status written = write_torch_files(writer, outcome->operators, session.files(), notes);
    unlink(outcome->operators.c_str());
    TACHO_TRY(written);
    for (const std::string& note : notes) session.warn(note);
  } else if (a.torch_trace) {
    session.warn("--torch-trace: the run that records PyTorch's operators left no trace, so kernels have no operators");
  }

  workload::RunEntry entry;
  entry.number = writer.earlier().empty() ? 1 : writer.earlier().back().number + 1;
  entry.command = a.command;
  entry.kernels = a.kernels;
  entry.dispatches = a.dispatches;
  entry.blocks = selected.recorded;
  entry.set = a.set;
  entry.device = chosen.device.id;
  entry.tool = chosen.provider->tool();
  entry.replay = !replays            ? ""
                 : !a.replay.empty() ? a.replay
                                     : std::string(chosen.provider->replays_by_default() ? "kernel" : "application");
  entry.multiplexing = a.multiplexing.value_or("");
  entry.timestamp = now_text();
  entry.files = session.files();
  entry.estimated = outcome->estimated;
  entry.roofline_only = a.roof_only;
  entry.exit_code = outcome->exit_code;
  if (outcome->left_out != 0) {
    constexpr uint64_t kMost = std::numeric_limits<int>::max();
    entry.seen = static_cast<int>(std::min(kMost, outcome->measured + outcome->left_out));
    entry.measured = static_cast<int>(std::min(kMost, outcome->measured));
  }
  TACHO_TRY(writer.add_run(entry));
  if (!session.dispatches().empty()) {
    std::ifstream old(folder + "/timestamps.csv", std::ios::binary);
    std::ostringstream existing;
    if (old) existing << old.rdbuf();
    TACHO_TRY(writer.write("timestamps.csv", timestamps_csv(existing.str(), entry.number, session.dispatches()), true));
  }
  if (!outcome->samples.empty()) {
    TACHO_TRY(writer.write(std::string(kPcSamplesFile), pc_samples_csv(outcome->samples)));
    TACHO_TRY(writer.write("ps_file_kernel_trace.csv", pc_kernels_csv(outcome->samples)));
  }
  if (!a.no_source) {
    std::vector<workload::SampledLine> lines;
    for (const counter::PcSample& each : outcome->samples) lines.push_back({each.source, each.path});
    if (outcome->sampled)
      for (const auto& each : outcome->sampled->instructions)
        lines.push_back({each.source, std::string(workload::split_source(each.source).first)});
    if (const std::string text = workload::pc_sources_csv(lines); !text.empty())
      TACHO_TRY(writer.write(workload::kPcSourcesFile, text));
  }
  if (outcome->sampled)
    TACHO_TRY(counter::write_sampled_run(*outcome->sampled, folder + "/ps_file",
                                         {.samples = true, .dispatches = true, .json = true}, a.overwrite));
  if (wants_roofline(a, catalog, wanted_selections)) {
    roofline::SuiteOptions roofs;
    roofs.line = [&](std::string_view line) { session.header(line); };
    roofs.bar = !a.quiet && isatty(STDERR_FILENO) == 1;
    TACHO_TRY(roofline::add_roofline(folder, chosen.device.vendor, chosen.device.id, roofs));
  }
  if (outcome->measured > 0 || (outcome->samples.empty() && !outcome->sampled))
    for (const std::string& sentence : not_matched(a, ranges, *outcome)) session.warn(sentence);
  if (outcome->measured > 0)
    session.note(fmt::format("{} {} measured in {} {}; tacho analyze -p {}", outcome->measured,
                             outcome->measured == 1 ? "dispatch" : "dispatches", outcome->runs,
                             outcome->runs == 1 ? "run" : "runs", folder));
  session.finish();
  if (outcome->exit_code == 0 && outcome->measured == 0 && outcome->seen == 0) return kOk;
  return outcome->exit_code;
}

}  // namespace

int profile(int argc, char** argv, ProfileFace face) {
  // What follows the first -- is the program; options with several words end there.
  std::vector<char*> own(argv, argv + argc);
  Arguments arguments;
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
        message.find("not expected") != std::string::npos || message.find("At Most") != std::string::npos;
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
