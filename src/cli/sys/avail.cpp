// `tacho sys avail`, rocprof-sys-avail: settings, categories, components, counters and devices as tables, and a config
// file to start from.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>

#include "base/cpu_events.h"
#include "base/files/output_file.h"
#include "base/text/csv.h"
#include "base/text/json_writer.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/devices.h"
#include "cli/shared/regular_expression.h"
#include "cli/shared/suggest.h"
#include "cli/sys/sys.h"
#include "report/html.h"
#include "report/output.h"
#include "report/table.h"
#include "vendor/vendor.h"

namespace tacho::cli::sys {
namespace {

struct View {
  bool settings = false, components = false, counters = false, categories = false, devices = false, keys = false,
       advanced = false;
  bool available = false, ignore_case = false, alphabetical = false, brief = false, description = false, values = false,
       names = false;
  bool markdown = false, csv = false, force = false, help = false, config = false;
  std::string format = "txt", separator = ",", output, config_file;
  std::vector<std::string> filters, category_filters, category_views;
  size_t width = 0, total_width = 0;
};

// All filters must match; a "~" at the start negates a filter.
class Filter {
 public:
  static Result<Filter> make(const std::vector<std::string>& texts, bool ignore_case) {
    Filter filter;
    for (std::string text : texts) {
      const bool negated = text.starts_with("~");
      if (negated) text.erase(0, 1);
      auto pattern = RegularExpression::make(text, ignore_case);
      if (!pattern) return fail("'{}' is not a regular expression: {}", text, pattern.error().message);
      filter.parts_.push_back({std::move(*pattern), negated});
    }
    return filter;
  }
  bool accepts(std::initializer_list<std::string_view> texts) const {
    return std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) {
      const bool any =
          std::any_of(texts.begin(), texts.end(), [&](std::string_view text) { return part.pattern.occurs_in(text); });
      return any != part.negated;
    });
  }

 private:
  struct Part {
    RegularExpression pattern;
    bool negated;
  };
  std::vector<Part> parts_;
};

std::string box(const report::Table& table) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    size_t width = table.columns[i].title.size();
    for (const auto& row : table.rows)
      if (const auto* text = std::get_if<std::string>(&row[i])) width = std::max(width, report::display_width(*text));
    widths.push_back(width);
  }
  std::string rule = "|";
  for (const size_t width : widths) rule += std::string(width + 2, '-') + "|";
  rule += "\n";
  std::string out = rule + "|";
  for (size_t i = 0; i < widths.size(); ++i) {
    const size_t room = widths[i] - table.columns[i].title.size();
    out += " " + std::string(room / 2, ' ') + table.columns[i].title + std::string(room - room / 2, ' ') + " |";
  }
  out += "\n" + rule;
  for (const auto& row : table.rows) {
    out += "|";
    for (size_t i = 0; i < widths.size(); ++i) {
      const auto* text = std::get_if<std::string>(&row[i]);
      out += " " + report::padded_right(text != nullptr ? *text : "", widths[i]) + " |";
    }
    out += "\n";
  }
  return out + rule;
}

Result<View> parse_view(int argc, char** argv) {
  View view;
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i], value;
    bool has_value = false;
    if (word.starts_with("--"))
      if (const size_t equals = word.find('='); equals != std::string::npos) {
        value = word.substr(equals + 1);
        word.resize(equals);
        has_value = true;
      }
    const auto next = [&]() -> Result<std::string> {
      if (has_value) return value;
      if (i + 1 >= words.size()) return fail("{} wants a value", word);
      return words[++i];
    };
    const auto several = [&](std::vector<std::string>& out) -> Status {
      if (has_value) {
        out.push_back(value);
        return {};
      }
      const size_t before = out.size();
      while (i + 1 < words.size() && !words[i + 1].starts_with("-")) out.push_back(words[++i]);
      if (out.size() == before) return fail("{} wants a value", word);
      return {};
    };
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), word) != names.end();
    };
    if (is({"-h", "-?", "--help"}))
      view.help = true;
    else if (is({"-S", "--settings"}))
      view.settings = true;
    else if (is({"-C", "--components"}))
      view.components = true;
    else if (is({"-H", "--hw-counters"}))
      view.counters = true;
    else if (is({"--devices"}))
      view.devices = true;
    else if (is({"-a", "--all"}))
      view.settings = view.components = view.counters = view.devices = view.description = view.advanced = true;
    else if (is({"--advanced"}))
      view.advanced = true;
    else if (is({"--list-categories"}))
      view.categories = true;
    else if (is({"--list-keys", "--expand-keys"}))
      view.keys = true;
    else if (is({"-A", "--available"}))
      view.available = true;
    else if (is({"-r", "--filter"})) {
      TACHO_TRY(several(view.filters));
    } else if (is({"-R", "--category-filter"})) {
      TACHO_TRY(several(view.category_filters));
    } else if (is({"-i", "--ignore-case"}))
      view.ignore_case = true;
    else if (is({"--alphabetical"}))
      view.alphabetical = true;
    else if (is({"-b", "--brief"}))
      view.brief = true;
    else if (is({"-d", "--description"}))
      view.description = true;
    else if (is({"-s", "--string"}))
      view.names = true;
    else if (is({"-v", "--value"}))
      view.values = true;
    else if (is({"-c", "--categories"})) {
      TACHO_TRY(several(view.category_views));
    } else if (is({"-w", "--width", "-W", "--max-width"})) {
      TACHO_ASSIGN(const std::string text, next());
      (word == "-w" || word == "--width" ? view.width : view.total_width) = std::strtoul(text.c_str(), nullptr, 10);
    } else if (is({"-G", "--generate-config"})) {
      view.config = true;
      view.config_file = "rocprof-sys.cfg";
      if (has_value)
        view.config_file = value;
      else if (i + 1 < words.size() && !words[i + 1].starts_with("-"))
        view.config_file = words[++i];
    } else if (is({"-F", "--config-format"})) {
      TACHO_ASSIGN(view.format, next());
    } else if (is({"-O", "--output"})) {
      TACHO_ASSIGN(view.output, next());
    } else if (is({"-t", "--config-tag"})) {
      TACHO_ASSIGN([[maybe_unused]] const std::string tag, next());
    } else if (is({"-M", "--markdown"}))
      view.markdown = true;
    else if (is({"--csv"}))
      view.csv = true;
    else if (is({"--csv-separator"})) {
      TACHO_ASSIGN(view.separator, next());
    } else if (is({"--force"}))
      view.force = true;
    // These have no effect here.
    else if (!is({"-f", "--filename", "-p", "--hl", "--highlight", "--monochrome", "--debug", "--verbose"}))
      return fail("there is no option {}; see --help", word);
  }
  if (view.format != "txt" && view.format != "json" && view.format != "xml")
    return fail("-F {}: choose txt, json or xml", view.format);
  if (!view.settings && !view.components && !view.counters && !view.categories && !view.devices && !view.keys)
    view.settings = view.components = true;
  return view;
}

constexpr std::string_view kHelp =
    "Options:\n"
    "  -S, --settings           settings (default, with -C)\n"
    "  -C, --components         what tables and telemetry hold\n"
    "  -H, --hw-counters        counters of this machine\n"
    "      --devices            GPUs and OpenCL devices\n"
    "      --list-categories    categories of events, for ENABLE_CATEGORIES\n"
    "      --list-keys          %keys% in names of outputs\n"
    "  -a, --all                everything, with descriptions\n"
    "      --advanced           settings that are rarely needed, too\n"
    "  -A, --available          only what works here\n"
    "  -r, --filter REGEX...    by name, value or description; ~REGEX negates\n"
    "  -R, --category-filter R  by category\n"
    "  -c, --categories C...    only these categories (core, sampling, perfetto, timemory, io, rocm, "
    "process_sampling ...)\n"
    "  -i, --ignore-case        of the filters\n"
    "  -b, --brief              names only      -d descriptions      -v values      --alphabetical\n"
    "  -w N                     width of a column\n"
    "  -G, --generate-config [FILE]   a config file with comments; -F txt|json, --force replaces a file\n"
    "  -O, --output FILE        write there;   -M markdown   --csv, --csv-separator S\n";

}  // namespace

int avail(Face face, int argc, char** argv) {
  auto parsed = parse_view(argc, argv);
  if (!parsed) return complain(kBadInput, parsed.error().message);
  View& view = *parsed;
  if (view.help) {
    print_help_text(
        fmt::format("Usage: {} [options]\n\n{}", face == Face::kTacho ? "tacho sys avail" : "rocprof-sys-avail", kHelp),
        STDOUT_FILENO);
    return kOk;
  }
  Settings values;
  if (const Status good = values.read_environment(); !good) return complain(kBadInput, good.error().message);
  auto filter = Filter::make(view.filters, view.ignore_case);
  if (!filter) return complain(kBadInput, filter.error().message);
  auto category_filter = Filter::make(view.category_filters, view.ignore_case);
  if (!category_filter) return complain(kBadInput, category_filter.error().message);
  std::set<std::string> known = {"cpu", "gpu"};  // first of counters, then of settings
  for (const Setting& setting : settings()) {
    std::istringstream words{std::string(setting.categories)};
    for (std::string word; words >> word;) known.insert(word);
  }
  for (std::string& wanted : view.category_views) {
    const std::string given = wanted;
    for (char& c : wanted) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (wanted.starts_with("settings::")) wanted.erase(0, 10);
    if (!known.contains(wanted))
      return complain(kBadInput,
                      fmt::format("-c {}: there is no such category; there are {}", given, fmt::join(known, ", ")));
  }
  const auto in_categories = [&](std::string_view categories) {
    if (!category_filter->accepts({categories})) return false;
    if (view.category_views.empty()) return true;
    return std::any_of(view.category_views.begin(), view.category_views.end(), [&](const std::string& wanted) {
      const std::string padded = " " + std::string(categories) + " ";
      return padded.find(" " + wanted + " ") != std::string::npos;
    });
  };

  if (view.config) {
    std::string text;
    if (view.format == "txt") {
      text = default_config(values, view.advanced);
    } else {
      return complain(kBadInput, fmt::format("-F {}: config files are written, and read, as text", view.format));
    }
    auto file = OutputFile::create(view.config_file, view.force);
    if (!file) return complain(kBadInput, file.error().message + (view.force ? "" : " (--force replaces a file)"));
    file->write(text);
    if (const Status done = file->commit(); !done) return complain(kBadInput, done.error().message);
    report::print_error("[rocprof-sys-avail] Outputting text configuration file '{}'...\n", view.config_file);
    return kOk;
  }

  std::vector<report::Table> tables;
  const auto sort = [&](report::Table& table) {
    if (view.alphabetical)
      std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
        return std::get<std::string>(a[0]) < std::get<std::string>(b[0]);
      });
    tables.push_back(std::move(table));
  };
  if (view.settings) {
    report::Table table;
    table.id = "settings";
    table.columns = {{"ENVIRONMENT VARIABLE"}};
    if (!view.brief) table.columns.push_back({"VALUE"});
    if (view.description || view.csv) {
      table.columns.push_back({"DESCRIPTION"});
      table.columns.push_back({"CATEGORIES"});
    }
    for (const Setting& setting : settings()) {
      const bool supported = setting.use == SettingUse::kUsed;
      if ((setting.advanced && !view.advanced && view.filters.empty()) || (view.available && !supported) ||
          !in_categories(setting.categories))
        continue;
      const std::string name = std::string(kPrefix) + std::string(setting.name), value = values.text(setting.name);
      const std::string text = (supported ? "" : "[not supported by tacho] ") + std::string(setting.text);
      if (!filter->accepts({name, value, text})) continue;
      std::vector<report::Cell> row = {name};
      if (!view.brief) row.emplace_back(value);
      if (view.description || view.csv) {
        row.emplace_back(text);
        row.emplace_back(std::string(setting.categories));
      }
      table.rows.push_back(std::move(row));
    }
    sort(table);
  }
  const auto simple = [&](const char* id, std::vector<report::Column> columns,
                          const std::vector<std::vector<std::string>>& rows) {
    report::Table table;
    table.id = id;
    table.columns = std::move(columns);
    for (const auto& row : rows) {
      bool accepted = row.size() > 2 ? filter->accepts({row[0], row[1], row[2]}) : filter->accepts({row[0], row[1]});
      if (view.available && row[1] == "false") accepted = false;
      if (accepted) table.rows.emplace_back(row.begin(), row.end());
    }
    sort(table);
  };
  if (view.components)
    simple("components", {{"COMPONENT"}, {"AVAILABLE"}, {"DESCRIPTION"}},
           {{"wall_clock", "true", "time of calls, markers and what they launched: wall_clock-<pid>.txt"},
            {"trip_count", "true", "how often: trip_count-<pid>.txt"},
            {"sampling_wall_clock", "true", "wall time of sampled stacks"},
            {"sampling_cpu_clock", "true", "CPU time of sampled stacks"},
            {"sampling_percent", "true", "share of sampled time"},
            {"process_sampling", "true", "telemetry of processes and cores: tracks of the trace"},
            {"papi_array", "true", "CPU counters of samples and launching calls (-C): tracks of the trace"},
            {"sampling_gpu_busy", "true", "GPU telemetry: tracks of the trace"}});
  if (view.counters) {
    std::vector<std::vector<std::string>> rows;
    for (const CpuEvent& event : cpu_events()) {
      std::string text(event.text);
      text += fmt::format(" ({}{}{})", event.perf, event.preset.empty() ? "" : ", ", event.preset);
      rows.push_back(
          {fmt::format("perf::{}", event.name), cpu_event_error(event) == 0 ? "true" : "false", "CPU", text});
    }
    std::vector<std::string> problems;
    for (const vendor::Vendor* const vendor : vendor::vendors()) {
      const std::unique_ptr<vendor::GpuMonitor> monitor = vendor->monitor(problems);
      if (monitor == nullptr) continue;
      std::vector<vendor::GpuReading> readings;
      monitor->read({}, readings, problems);
      for (const vendor::GpuReading& reading : readings) rows.push_back({reading.name, "true", "GPU", reading.text});
    }
    for (const std::string& problem : problems) complain(0, problem);
    std::erase_if(rows, [&](const auto& row) {
      std::string device = row[2];
      for (char& c : device) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return !in_categories(device);
    });
    simple("hw_counters", {{"HARDWARE COUNTER"}, {"AVAILABLE"}, {"DEVICE"}, {"DESCRIPTION"}}, rows);
  }
  if (view.devices) {
    std::vector<std::vector<std::string>> rows;
    for (const vendor::Vendor* const vendor : vendor::vendors())
      for (const vendor::DeviceFacts& device : vendor->inspect().devices)
        rows.push_back({device.name, device.api, device.type});
    const OpenClLibrary opencl;
    if (opencl.usable())
      for (const OpenClLibrary::Device& device : opencl.list())
        rows.push_back({device.name, "OpenCL", opencl_type_name(device.type)});
    simple("devices", {{"DEVICE"}, {"API"}, {"TYPE"}}, rows);
  }
  if (view.categories) {
    std::vector<std::vector<std::string>> rows;
    for (const Category& category : categories())
      rows.push_back({std::string(category.name), std::string(category.text)});
    simple("categories", {{"CATEGORY"}, {"DESCRIPTION"}}, rows);
  }
  if (view.keys)
    simple("keys", {{"KEY"}, {"DESCRIPTION"}},
           {{"%argv%", "the command line, joined by _"},
            {"%argt%", "the same with the program's base name"},
            {"%args%", "the arguments"},
            {"%tag%", "base name of the program"},
            {"%arg<N>%", "the N-th word"},
            {"%pid%", "number of the process"},
            {"%ppid%", "of its parent"},
            {"%job%", "SLURM's job"},
            {"%rank%", "MPI rank"},
            {"%size%", "number of ranks"},
            {"%nid%", "node or rank"},
            {"%launch_time%", "time of the launch, TIME_FORMAT"},
            {"%env{X}%", "variable X of the environment"},
            {"%cfg{X}%", "value of a setting"},
            {"%m", "host"},
            {"%p", "%pid%"},
            {"%j", "%job%"},
            {"%r", "%rank%"},
            {"%s", "%size%"}});

  const bool filtered = !view.filters.empty() || !view.category_filters.empty() || !view.category_views.empty();
  if (filtered &&
      std::all_of(tables.begin(), tables.end(), [](const report::Table& table) { return table.rows.empty(); }))
    complain(0, "nothing matches these filters");

  std::string out;
  if (view.format == "json") {
    JsonWriter json(out);
    json.begin_array();
    for (const report::Table& table : tables) report::to_json(table, json);
    json.end_array();
    out += "\n";
  } else if (view.format == "xml") {
    out = "<?xml version=\"1.0\"?>\n<avail>\n";
    for (const report::Table& table : tables) {
      out += fmt::format("  <table id=\"{}\">\n", table.id);
      for (const auto& row : table.rows) {
        out += "    <row>";
        for (size_t i = 0; i < row.size(); ++i)
          if (const auto* text = std::get_if<std::string>(&row[i]))
            out += fmt::format("<cell column=\"{}\">{}</cell>", report::markup_text(table.columns[i].title),
                               report::markup_text(*text));
        out += "</row>\n";
      }
      out += "  </table>\n";
    }
    out += "</avail>\n";
  } else {
    for (report::Table& table : tables) {
      if (view.width > 3)
        for (auto& row : table.rows)
          for (report::Cell& cell : row)
            if (auto* text = std::get_if<std::string>(&cell)) *text = report::shortened(*text, view.width);
      if (!out.empty()) out += "\n";
      if (view.csv) {
        for (size_t i = 0; i < table.columns.size(); ++i)
          out += (i == 0 ? "" : view.separator) + csv_field(table.columns[i].title);
        out += "\n";
        for (const auto& row : table.rows) {
          for (size_t i = 0; i < row.size(); ++i)
            out += (i == 0 ? "" : view.separator) + csv_field(std::get<std::string>(row[i]));
          out += "\n";
        }
      } else if (view.markdown) {
        for (const report::Column& column : table.columns) out += "| " + column.title + " ";
        out += "|\n";
        for (size_t i = 0; i < table.columns.size(); ++i) out += "|---";
        out += "|\n";
        for (const auto& row : table.rows) {
          for (const report::Cell& cell : row) out += "| " + std::get<std::string>(cell) + " ";
          out += "|\n";
        }
      } else {
        out += box(table);
      }
    }
  }
  if (!view.output.empty()) {
    auto file = OutputFile::create(view.output, view.force);
    if (!file) return complain(kBadInput, file.error().message);
    file->write(out);
    if (const Status done = file->commit(); !done) return complain(kBadInput, done.error().message);
    return kOk;
  }
  report::put(out);
  return kOk;
}

}  // namespace tacho::cli::sys
