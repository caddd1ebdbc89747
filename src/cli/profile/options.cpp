// The table of `tacho profile`'s options (options.h).
#include "cli/profile/options.h"

#include "cli/shared/chosen_ranks.h"
#include "cli/shared/command_line.h"
#include "counter/provider.h"

namespace tacho::cli::profiling {
namespace {

constexpr std::string_view kWhere = "Where it goes";
constexpr std::string_view kWhat = "What is collected (default: everything that the device's metrics need)";
constexpr std::string_view kHow = "How";
constexpr std::string_view kLists = "Lists (need no program and no device)";
constexpr std::string_view kOther = "Of rocprof-compute";

// Scripts pass an empty text if their variable is unset; it must not mean "everything".
std::string check_given(const std::string& text) {
  return text.empty() ? "an empty text was given" : "";
}

constexpr options::Row<Arguments> kOptions[] = {
    {.names = "-n,--name",
     .group = kWhere,
     .help = "workload name: the folder is ./workloads/<name>/<device or rank>",
     .place = [](Arguments& a) -> std::string& { return a.name; },
     .value_name = "NAME"},
    {.names = "--output-directory",
     .group = kWhere,
     .help = "exactly this folder; %hostname% %gpumodel% %rank% %env{NAME}% are filled in",
     .place = [](Arguments& a) -> std::string& { return a.output_directory; },
     .value_name = "DIR",
     .check = check_given},
    {.names = "-p,--path",
     .group = kWhere,
     .help = "deprecated: as --output-directory",
     .place = [](Arguments& a) -> std::string& { return a.path; },
     .value_name = "DIR",
     .check = check_given},
    {.names = "--subpath",
     .group = kWhere,
     .help = "deprecated, with --path: node_name or gpu_model is appended",
     .place = [](Arguments& a) -> std::string& { return a.subpath; },
     .choices = "gpu node_name gpu_model"},
    {.names = "--overwrite",
     .group = kWhere,
     .help = "remove what earlier runs left in the folder; otherwise this run is added",
     .place = [](Arguments& a) -> bool& { return a.overwrite; }},
    {.names = "--format-rocprof-output",
     .group = kWhere,
     .help = "csv (one row a dispatch) or rocpd (one row a counter)",
     .place = [](Arguments& a) -> std::string& { return a.format; },
     .choices = "csv rocpd",
     .shows = options::Shows::kDefault},
    {.names = "--retain-rocpd-output",
     .group = kWhere,
     .help = "with rocpd: keep the database of each pass",
     .place = [](Arguments& a) -> bool& { return a.retain_rocpd; }},

    {.names = "-b,--block",
     .group = kWhat,
     .help = "blocks, tables or metrics: 2, 11.2, 11.2.3, lds, valu-utilization",
     .place = [](Arguments& a) -> std::vector<std::string>& { return a.blocks; },
     .value_name = "ID"},
    {.names = "--set",
     .group = kWhat,
     .help = "a set of metrics that fits in one pass (--list-sets)",
     .place = [](Arguments& a) -> std::string& { return a.set; },
     .value_name = "SET",
     .check = check_given},
    {.names = "-k,--kernel",
     .group = kWhat,
     .help = "only kernels whose name contains one of these",
     .place = [](Arguments& a) -> std::vector<std::string>& { return a.kernels; },
     .value_name = "NAME",
     .check = check_given},
    {.names = "-d,--dispatch",
     .group = kWhat,
     .help = "only these dispatches of the run, from 0: 3, 0:9",
     .place = [](Arguments& a) -> std::vector<std::string>& { return a.dispatches; },
     .value_name = "N"},
    {.names = "--torch-trace",
     .group = kWhat,
     .help = "record which operators of PyTorch launched the kernels",
     .place = [](Arguments& a) -> bool& { return a.torch_trace; }},
    {.names = "--no-roof",
     .group = kWhat,
     .help = "nothing for the roofline",
     .place = [](Arguments& a) -> bool& { return a.no_roof; }},
    {.names = "--no-source",
     .group = kWhat,
     .help = "with -b 21: keep no lines of source beside the samples",
     .place = [](Arguments& a) -> bool& { return a.no_source; }},
    {.names = "--roof-only",
     .group = kWhat,
     .help = "only what the roofline needs",
     .place = [](Arguments& a) -> bool& { return a.roof_only; }},
    {.names = "--ids",
     .group = kWhat,
     .help = "what numbers mean: 3.3, or seed as in the users' documents",
     .place = [](Arguments& a) -> std::string& { return a.ids; },
     .choices = "3.3 seed",
     .shows = options::Shows::kDefault},
    {.names = "--config-dir",
     .group = kWhat,
     .help = "folder with metric YAML of your own",
     .place = [](Arguments& a) -> std::vector<std::string>& { return a.config_dirs; },
     .value_name = "DIR"},

    {.names = "--device",
     .group = kHow,
     .help = "GPU number, virtual or cpu (default: GPU 0, else virtual)",
     .place = [](Arguments& a) -> std::string& { return a.device; },
     .value_name = "DEVICE"},
    {.names = "--replay",  // option_rows() fills in the rest
     .group = kHow,
     .place = [](Arguments& a) -> std::string& { return a.replay; }},
    {.names = "--iteration-multiplexing",
     .group = kHow,
     .help = "spread the passes over the launches of each kernel: kernel or kernel_launch_params (default)",
     .place = [](Arguments& a, const std::string& text) -> Status {
       a.multiplexing = text.empty() ? "kernel_launch_params" : text;
       return {};
     },
     .value_name = "POLICY",
     .optional_value = true},
    {.names = "--cache-control",
     .group = kHow,
     .help = "NVIDIA: all empties the L2 before each measured kernel (default "
             "where kernels are replayed), none leaves it",
     .place = [](Arguments& a) -> std::string& { return a.cache_control; },
     .choices = "all none"},
    {.names = "--exact",
     .group = kHow,
     .help = "NVIDIA: further passes for counts that CUPTI would extrapolate from a part of the units",
     .place = [](Arguments& a) -> bool& { return a.exact; }},
    {.names = "--instances",
     .group = kHow,
     .help = "AMD: keep the value of each die, shader engine and channel, too (perfmon/)",
     .place = [](Arguments& a) -> bool& { return a.instances; }},
    {.names = "--pc-sampling-method",
     .group = kHow,
     .help = "AMD, with -b 21: stochastic, by the hardware (MI300 on, its default), or host_trap",
     .place = [](Arguments& a) -> std::string& { return a.sampling_method; },
     .choices = "stochastic host_trap"},
    {.names = "--pc-sampling-interval",
     .group = kHow,
     .help = "AMD: cycles (stochastic, default 1048576) or microseconds (host_trap, 100) between samples",
     .place = [](Arguments& a) -> int& { return a.sampling_interval; },
     .value_name = "N",
     .least = 1,
     .most = 1 << 30},
    {.names = "--max-time",
     .group = kHow,
     .help = "virtual GPU: interpret only part of the work-groups when it would take longer (s)",
     .place = [](Arguments& a) -> double& { return a.max_time; },
     .value_name = "SECONDS",
     .check = [](const std::string& text) { return check_seconds(text); }},
    {.names = "-q,--quiet",
     .group = kHow,
     .help = "no lines of ours, a progress bar on a terminal",
     .place = [](Arguments& a) -> bool& { return a.quiet; }},
    {.names = kRanksNames,
     .group = kHow,
     .help = kRanksHelp,
     .place = [](Arguments& a) -> std::string& { return a.ranks; },
     .value_name = "LIST"},
    {.names = "--dry-run",
     .group = kHow,
     .help = "say which passes would be made; run nothing",
     .place = [](Arguments& a) -> bool& { return a.dry_run; }},
    {.names = "-V,--verbose",
     .group = kHow,
     .help = "accepted, changes nothing",
     .place = [](Arguments& a) -> bool& { return a.verbose; }},

    {.names = "--list-available-metrics,--list-metrics",
     .group = kLists,
     .help = "blocks, tables and metrics",
     .place = [](Arguments& a, const std::string& text) -> Status {
       a.list_metrics = true;
       a.list_metrics_arch = text;
       return {};
     },
     .value_name = "ARCH",
     .optional_value = true},
    {.names = "--list-blocks",
     .group = kLists,
     .help = "blocks and their short names",
     .place = [](Arguments& a, const std::string& text) -> Status {
       a.list_blocks = true;
       a.list_blocks_arch = text;
       return {};
     },
     .value_name = "ARCH",
     .optional_value = true},
    {.names = "--list-sets",
     .group = kLists,
     .help = "the sets that --set takes",
     .place = [](Arguments& a) -> bool& { return a.list_sets; }},
    {.names = "--arch",
     .group = kLists,
     .help = "of this architecture: gfx942, sm_90, virtual, cpu (default: the device here)",
     .place = [](Arguments& a) -> std::string& { return a.arch; },
     .value_name = "ARCH"},
    {.names = "-s,--specs",
     .group = kLists,
     .help = "what is known about this machine and its device",
     .place = [](Arguments& a) -> bool& { return a.specs; }},

    {.names = "--no-native-tool",
     .group = kOther,
     .help = "accepted: tacho has one way of collecting",
     .place = [](Arguments& a) -> bool& { return a.no_native_tool; }},
    {.names = "--attach-pid",
     .group = kOther,
     .help = "refused: counters need the program's start",
     .place = [](Arguments& a) -> int& { return a.attach_pid; },
     .value_name = "PID"},
    {.names = "--attach-duration-msec",
     .group = kOther,
     .help = "belongs to --attach-pid",
     .place = [](Arguments& a) -> int& { return a.attach_duration; },
     .value_name = "MS"},
    {.names = "--experimental",
     .group = kOther,
     .help = "allows --torch-trace under the name rocprof-compute",
     .place = [](Arguments& a) -> bool& { return a.experimental; }},
};

}  // namespace

std::span<const options::Row<Arguments>> option_rows() {
  // Providers may have their own way of replaying: --replay accepts it, --help describes it.
  static std::string help =
      "kernel: each kernel again with its memory put back (NVIDIA: the default); application: the program again";
  static std::string choices = "kernel application";
  static const std::vector<options::Row<Arguments>> kRows = [] {
    for (const auto& provider : counter::providers())
      if (const auto own = provider->own_replay()) {
        help += fmt::format("; {}: {}", own->name, own->text);
        choices += fmt::format(" {}", own->name);
      }
    std::vector<options::Row<Arguments>> rows(std::begin(kOptions), std::end(kOptions));
    for (options::Row<Arguments>& row : rows)
      if (row.names == "--replay") {
        row.help = help;
        row.choices = choices;
      }
    return rows;
  }();
  return kRows;
}

}  // namespace tacho::cli::profiling
