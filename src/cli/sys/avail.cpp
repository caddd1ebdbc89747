// `tacho sys avail`, rocprof-sys-avail: settings, categories, components, counters and devices as tables, and a config
// file to start from.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>
#include <variant>

#include "base/cpu_events.h"
#include "base/files/output_file.h"
#include "base/text/csv.h"
#include "cli/command.h"
#include "cli/options/word_reader.h"
#include "cli/shared/command_line.h"
#include "cli/shared/devices.h"
#include "cli/shared/regular_expression.h"
#include "cli/shared/suggest.h"
#include "cli/sys/sys.h"
#include "report/html.h"
#include "report/output.h"
#include "report/value.h"
#include "vendor/vendor.h"

namespace tacho::cli::sys {
namespace {

struct View {
  bool settings = false, components = false, counters = false, categories = false, devices = false, keys = false,
       advanced = false;
  bool available = false, ignore_case = false, alphabetical = false, brief = false, description = false, values = false,
       names = false;
  bool markdown = false, csv = false, force = false, help = false, config = false;
  std::string format = "txt", separator = ",", output, config_file, tag;
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

// `width`: what the table must fit into; 0 = any.
std::string box(const report::PrintedTable& table, size_t width) {
  report::TextStyle style;
  style.border = report::Border::kGrid;
  style.width = width;
  style.missing.clear();
  return report::to_text(table, style);
}

// An option by its names, and the member that it sets; none for one that has no effect here.
struct ViewOption {
  std::string_view names;
  std::variant<std::monostate, bool View::*, size_t View::*, std::string View::*, std::vector<std::string> View::*>
      member = {};
};
constexpr ViewOption kViewOptions[] = {
    {" -h -? --help ", &View::help},
    {" -S --settings ", &View::settings},
    {" -C --components ", &View::components},
    {" -H --hw-counters ", &View::counters},
    {" --devices ", &View::devices},
    {" --advanced ", &View::advanced},
    {" --list-categories ", &View::categories},
    {" --list-keys --expand-keys ", &View::keys},
    {" -A --available ", &View::available},
    {" -r --filter ", &View::filters},
    {" -R --category-filter ", &View::category_filters},
    {" -i --ignore-case ", &View::ignore_case},
    {" --alphabetical ", &View::alphabetical},
    {" -b --brief ", &View::brief},
    {" -d --description ", &View::description},
    {" -s --string ", &View::names},
    {" -v --value ", &View::values},
    {" -c --categories ", &View::category_views},
    {" -w --width ", &View::width},
    {" -W --max-width ", &View::total_width},
    {" -F --config-format ", &View::format},
    {" -O --output ", &View::output},
    {" -t --config-tag ", &View::tag},
    {" -M --markdown ", &View::markdown},
    {" --csv ", &View::csv},
    {" --csv-separator ", &View::separator},
    {" --force ", &View::force},
    {" -f --filename -p --hl --highlight --monochrome --debug --verbose "},
};

// The rules of this command line.
class ViewSyntax : public options::Syntax {
 public:
  explicit ViewSyntax(View& view) : view_(view) {}

  bool is_option(const std::string& word) const override { return word.starts_with("-"); }

  Result<options::Takes> look_up(const options::Spelling& given) override {
    option_ = nullptr;
    if (given.name == "-a" || given.name == "--all") return options::Takes{0, 0, nullptr};
    if (given.name == "-G" || given.name == "--generate-config") return options::Takes{0, 1, nullptr};
    const std::string padded = fmt::format(" {} ", given.name);
    option_ = std::find_if(std::begin(kViewOptions), std::end(kViewOptions),
                           [&](const ViewOption& each) { return each.names.find(padded) != std::string_view::npos; });
    if (option_ == std::end(kViewOptions)) return fail("there is no option {}; see --help", given.name);
    if (member<std::vector<std::string>>() != nullptr)
      return options::Takes{0, given.attached ? 1 : options::Takes::kAny, nullptr};
    return member<std::string>() != nullptr || member<size_t>() != nullptr ? options::Takes{1, 1, nullptr}
                                                                           : options::Takes{0, 0, nullptr};
  }

  Status take(const options::Spelling& given, std::vector<std::string> values) override {
    if (option_ == nullptr) {
      if (given.name == "-a" || given.name == "--all") {
        view_.settings = view_.components = view_.counters = view_.devices = view_.description = view_.advanced = true;
      } else {
        view_.config = true;
        view_.config_file = values.empty() ? "rocprof-sys.cfg" : values.front();
      }
      return {};
    }
    if (const auto* const flag = member<bool>()) {
      view_.** flag = true;
      return {};
    }
    if (std::holds_alternative<std::monostate>(option_->member)) return {};
    if (values.empty()) return fail("{} wants a value", given.name);
    if (const auto* const list = member<std::vector<std::string>>())
      (view_.**list).insert((view_.**list).end(), values.begin(), values.end());
    if (const auto* const text = member<std::string>()) view_.** text = values.front();
    if (const auto* const number = member<size_t>())
      view_.** number = std::strtoul(values.front().c_str(), nullptr, 10);
    return {};
  }

  Result<bool> operand(options::WordReader& words) override {
    return fail("there is no option {}; see --help", words.peek());
  }

 private:
  template <typename Member>
  Member View::*const* member() const {
    return std::get_if<Member View::*>(&option_->member);
  }

  View& view_;
  const ViewOption* option_ = nullptr;  // the one that was looked up last
};

Result<View> parse_view(int argc, char** argv) {
  View view;
  options::WordReader words(argc, argv);
  ViewSyntax syntax(view);
  TACHO_TRY(options::read_options(words, syntax));
  if (words.left()) return fail("there is no option {}; see --help", words.peek());
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

// `hint` ends the sentence about a file that cannot be made.
Status write_file(const std::string& path, bool replace, std::string_view text, std::string_view hint = {}) {
  auto file = OutputFile::create(path, replace);
  if (!file) return fail("{}{}", file.error().message, hint);
  file->write(text);
  return file->commit();
}

// The tables that a view asks for.
class Tables {
 public:
  static Result<Tables> make(const View& view, Face face) {
    Tables out(view);
    if (face == Face::kTacho) out.values_.preset_own();
    TACHO_TRY(out.values_.read_environment());
    TACHO_ASSIGN(out.filter_, Filter::make(view.filters, view.ignore_case));
    TACHO_ASSIGN(out.category_filter_, Filter::make(view.category_filters, view.ignore_case));
    TACHO_TRY(out.choose_categories());
    return out;
  }

  const Settings& values() const { return values_; }

  std::vector<report::PrintedTable> run() {
    if (view_.settings) add_settings();
    if (view_.components) add("components", {{"COMPONENT"}, {"AVAILABLE"}, {"DESCRIPTION"}}, rows_of(kComponents));
    if (view_.counters)
      add("hw_counters", {{"HARDWARE COUNTER"}, {"AVAILABLE"}, {"DEVICE"}, {"DESCRIPTION"}}, counters());
    if (view_.devices) add("devices", {{"DEVICE"}, {"API"}, {"TYPE"}}, devices());
    if (view_.categories) {
      Rows rows;
      for (const Category& category : categories())
        rows.push_back({std::string(category.name), std::string(category.text)});
      add("categories", {{"CATEGORY"}, {"DESCRIPTION"}}, rows);
    }
    if (view_.keys) add("keys", {{"KEY"}, {"DESCRIPTION"}}, rows_of(kKeys));
    return std::move(tables_);
  }

 private:
  using Rows = std::vector<std::vector<std::string>>;

  explicit Tables(const View& view) : view_(view) {}

  template <size_t Count, size_t Width>
  static Rows rows_of(const std::array<std::string_view, Width> (&list)[Count]) {
    Rows rows;
    for (const auto& row : list) rows.emplace_back(row.begin(), row.end());
    return rows;
  }

  // Checks -c and brings its words into the form that settings have.
  Status choose_categories() {
    chosen_ = view_.category_views;
    std::set<std::string> known = {"cpu", "gpu"};  // first of counters, then of settings
    for (const Setting& setting : settings()) {
      std::istringstream words{std::string(setting.categories)};
      for (std::string word; words >> word;) known.insert(word);
    }
    for (std::string& wanted : chosen_) {
      const std::string given = wanted;
      for (char& c : wanted) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (wanted.starts_with("settings::")) wanted.erase(0, 10);
      if (!known.contains(wanted))
        return fail("-c {}: there is no such category; there are {}", given, fmt::join(known, ", "));
    }
    return {};
  }

  bool in_categories(std::string_view categories) const {
    if (!category_filter_.accepts({categories})) return false;
    if (chosen_.empty()) return true;
    return std::any_of(chosen_.begin(), chosen_.end(), [&](const std::string& wanted) {
      const std::string padded = " " + std::string(categories) + " ";
      return padded.find(" " + wanted + " ") != std::string::npos;
    });
  }

  void add(report::PrintedTable table) {
    if (view_.alphabetical)
      std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
        return std::get<std::string>(a[0]) < std::get<std::string>(b[0]);
      });
    tables_.push_back(std::move(table));
  }

  // A table of texts, of which the filters choose the rows.
  void add(const char* id, std::vector<report::PrintedColumn> columns, const Rows& rows) {
    report::PrintedTable table;
    table.id = id;
    table.columns = std::move(columns);
    for (const auto& row : rows) {
      bool accepted = row.size() > 2 ? filter_.accepts({row[0], row[1], row[2]}) : filter_.accepts({row[0], row[1]});
      if (view_.available && row[1] == "false") accepted = false;
      if (accepted) table.rows.emplace_back(row.begin(), row.end());
    }
    add(std::move(table));
  }

  void add_settings() {
    report::PrintedTable table;
    table.id = "settings";
    table.columns = {{"ENVIRONMENT VARIABLE"}};
    if (!view_.brief) table.columns.push_back({"VALUE"});
    if (view_.description || view_.csv) {
      table.columns.push_back({"DESCRIPTION"});
      table.columns.push_back({"CATEGORIES"});
    }
    for (const Setting& setting : settings()) {
      const bool supported = setting.use == SettingUse::kUsed;
      if ((setting.advanced && !view_.advanced && view_.filters.empty()) || (view_.available && !supported) ||
          !in_categories(setting.categories))
        continue;
      const std::string name = std::string(kPrefix) + std::string(setting.name), value = values_.text(setting.name);
      const std::string text = (supported ? "" : "[not supported by tacho] ") + std::string(setting.text);
      if (!filter_.accepts({name, value, text})) continue;
      std::vector<report::Cell> row = {name};
      if (!view_.brief) row.emplace_back(value);
      if (view_.description || view_.csv) {
        row.emplace_back(text);
        row.emplace_back(std::string(setting.categories));
      }
      table.rows.push_back(std::move(row));
    }
    add(std::move(table));
  }

  Rows counters() const {
    Rows rows;
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
    return rows;
  }

  static Rows devices() {
    Rows rows;
    for (const vendor::Vendor* const vendor : vendor::vendors())
      for (const vendor::DeviceFacts& device : vendor->inspect().devices)
        rows.push_back({device.name, device.api, device.type});
    const OpenClLibrary opencl;
    if (opencl.usable())
      for (const OpenClLibrary::Device& device : opencl.list())
        rows.push_back({device.name, "OpenCL", opencl_type_name(device.type)});
    return rows;
  }

  static constexpr std::array<std::string_view, 3> kComponents[] = {
      {{"wall_clock", "true", "time of calls, markers and what they launched: wall_clock-<pid>.txt"}},
      {{"trip_count", "true", "how often: trip_count-<pid>.txt"}},
      {{"sampling_wall_clock", "true", "wall time of sampled stacks"}},
      {{"sampling_cpu_clock", "true", "CPU time of sampled stacks"}},
      {{"sampling_percent", "true", "share of sampled time"}},
      {{"process_sampling", "true", "telemetry of processes and cores: tracks of the trace"}},
      {{"papi_array", "true", "CPU counters of samples and launching calls (-C): tracks of the trace"}},
      {{"sampling_gpu_busy", "true", "GPU telemetry: tracks of the trace"}}};
  static constexpr std::array<std::string_view, 2> kKeys[] = {{{"%argv%", "the command line, joined by _"}},
                                                              {{"%argt%", "the same with the program's base name"}},
                                                              {{"%args%", "the arguments"}},
                                                              {{"%tag%", "base name of the program"}},
                                                              {{"%arg<N>%", "the N-th word"}},
                                                              {{"%pid%", "number of the process"}},
                                                              {{"%ppid%", "of its parent"}},
                                                              {{"%job%", "SLURM's job"}},
                                                              {{"%rank%", "MPI rank"}},
                                                              {{"%size%", "number of ranks"}},
                                                              {{"%nid%", "node or rank"}},
                                                              {{"%launch_time%", "time of the launch, TIME_FORMAT"}},
                                                              {{"%env{X}%", "variable X of the environment"}},
                                                              {{"%cfg{X}%", "value of a setting"}},
                                                              {{"%m", "host"}},
                                                              {{"%p", "%pid%"}},
                                                              {{"%j", "%job%"}},
                                                              {{"%r", "%rank%"}},
                                                              {{"%s", "%size%"}}};

  const View& view_;
  Settings values_;
  Filter filter_, category_filter_;
  std::vector<std::string> chosen_;  // -c
  std::vector<report::PrintedTable> tables_;
};

Status write_config(const View& view, const Settings& values, Face face) {
  if (view.format != "txt") return fail("-F {}: config files are written, and read, as text", view.format);
  TACHO_TRY(write_file(view.config_file, view.force, default_config(values, view.advanced),
                       view.force ? "" : " (--force replaces a file)"));
  if (face == Face::kRocprofSys)
    report::print_error("[rocprof-sys-avail] Outputting text configuration file '{}'...\n", view.config_file);
  return {};
}

std::string xml(std::span<const report::PrintedTable> tables) {
  std::string out = "<?xml version=\"1.0\"?>\n<avail>\n";
  for (const report::PrintedTable& table : tables) {
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
  return out + "</avail>\n";
}

std::string markdown(const report::PrintedTable& table) {
  std::string out;
  for (const report::PrintedColumn& column : table.columns) out += "| " + column.title + " ";
  out += "|\n";
  for (size_t i = 0; i < table.columns.size(); ++i) out += "|---";
  out += "|\n";
  for (const auto& row : table.rows) {
    for (const report::Cell& cell : row) out += "| " + std::get<std::string>(cell) + " ";
    out += "|\n";
  }
  return out;
}

std::string csv(const report::PrintedTable& table, const std::string& separator) {
  std::string out;
  for (size_t i = 0; i < table.columns.size(); ++i)
    out += (i == 0 ? "" : separator) + csv_field(table.columns[i].title);
  out += "\n";
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) out += (i == 0 ? "" : separator) + csv_field(std::get<std::string>(row[i]));
    out += "\n";
  }
  return out;
}

std::string text_of(std::vector<report::PrintedTable> tables, const View& view) {
  std::string out;
  if (view.format == "xml") return xml(tables);
  if (view.format == "json") {
    report::JsonValue all = report::JsonValue::list();
    for (const report::PrintedTable& table : tables) all.add(report::JsonValue::table(table));
    return all.text() + "\n";
  }
  const size_t fit = view.output.empty() ? report::screen_of(STDOUT_FILENO).fit() : 0;
  for (report::PrintedTable& table : tables) {
    if (view.width > 3)
      for (auto& row : table.rows)
        for (report::Cell& cell : row)
          if (auto* text = std::get_if<std::string>(&cell)) *text = report::shortened(*text, view.width);
    if (!out.empty()) out += "\n";
    out += view.csv ? csv(table, view.separator) : view.markdown ? markdown(table) : box(table, fit);
  }
  return out;
}

}  // namespace

int avail(Face face, int argc, char** argv) {
  const auto parsed = parse_view(argc, argv);
  if (!parsed) return complain(kBadInput, parsed.error().message);
  const View& view = *parsed;
  if (view.help) {
    print_help_text(
        fmt::format("Usage: {} [options]\n\n{}", face == Face::kTacho ? "tacho sys avail" : "rocprof-sys-avail", kHelp),
        STDOUT_FILENO);
    return kOk;
  }
  auto asked = Tables::make(view, face);
  if (!asked) return complain(kBadInput, asked.error().message);
  if (view.config) {
    const Status written = write_config(view, asked->values(), face);
    return written ? kOk : complain(kBadInput, written.error().message);
  }
  std::vector<report::PrintedTable> tables = asked->run();
  const bool filtered = !view.filters.empty() || !view.category_filters.empty() || !view.category_views.empty();
  if (filtered &&
      std::all_of(tables.begin(), tables.end(), [](const report::PrintedTable& table) { return table.rows.empty(); }))
    complain(0, "nothing matches these filters");
  const std::string out = text_of(std::move(tables), view);
  if (!view.output.empty()) {
    const Status written = write_file(view.output, view.force, out);
    return written ? kOk : complain(kBadInput, written.error().message);
  }
  report::put(out);
  return kOk;
}

}  // namespace tacho::cli::sys
