// `tacho roofline [--device N]`: measures a device's ceilings and prints them as a table, csv or JSON.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/files/output_file.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "report/output.h"
#include "report/sections.h"
#include "report/value.h"
#include "roofline/ceilings_file.h"
#include "roofline/suite.h"

namespace tacho::cli {
namespace {

using report::JsonValue;
using report::Unit;
using roofline::DeviceCeilings;
using roofline::Measurement;
using roofline::NumberedDevice;

struct Arguments {
  std::vector<int> devices;
  bool all = false, list = false, overwrite = false, quiet = false;
  uint32_t experiments = 100;
  std::vector<std::string> only;
  std::string format = "text", output, backend;
};

std::string listed(const std::vector<NumberedDevice>& devices) {
  std::string text;
  for (const NumberedDevice& device : devices)
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", device.number, device.entry.info.name,
                        device.entry.info.backend);
  return text;
}

report::Answer list_answer(const std::vector<NumberedDevice>& devices) {
  report::Answer answer;
  answer.columns = {{"", "#", Unit::kCount},
                    {.title = "device"},
                    {.title = "kind", .leave_out = 1, .whole = true},
                    {.title = "through", .whole = true},
                    {"", "units", Unit::kCount, 2},
                    {.title = "MHz", .unit = Unit::kNumber, .leave_out = 4, .decimals = 0},
                    {.title = "memory", .unit = Unit::kBytes, .leave_out = 3},
                    {.title = "driver", .leave_out = 5}};
  for (const NumberedDevice& device : devices) {
    const roofline::DeviceInfo& info = device.entry.info;
    answer.rows.push_back({int64_t{device.number}, info.name,
                           info.architecture.empty() ? info.kind : info.kind + " " + info.architecture, info.backend,
                           int64_t{info.units}, report::number_cell(info.max_clock), static_cast<double>(info.memory),
                           info.driver});
  }
  return answer;
}

std::string table_text(const DeviceCeilings& ceilings, const report::Screen& screen) {
  report::Answer answer;
  answer.columns = {{.title = "ceiling", .whole = true},
                    {.title = "mean", .unit = Unit::kNumber, .decimals = 1},
                    {.title = "unit", .whole = true},
                    {.title = "stdev, % of mean", .unit = Unit::kNumber, .leave_out = 1, .decimals = 1},
                    {.title = "MHz", .unit = Unit::kNumber, .leave_out = 3, .decimals = 0},
                    {.title = "peak", .unit = Unit::kNumber, .leave_out = 2, .decimals = 1},
                    {.title = "% of peak", .unit = Unit::kPercent},
                    {.title = "instructions"}};
  for (const Measurement& m : ceilings.measurements) {
    if (m.skipped.empty())
      answer.rows.push_back({m.label, report::number_cell(m.mean), m.unit, report::number_cell(m.stdev / m.mean * 100),
                             report::number_cell(m.clock), report::number_cell(m.peak),
                             report::number_cell(m.of_peak() * 100), m.path});
    else
      answer.rows.push_back({m.label, {}, m.unit, {}, {}, {}, {}, m.path});
  }
  report::Sections text({.width = screen.fit(), .colour = screen.colour});
  text.table(answer);
  return text.take();
}

JsonValue json_of(const Measurement& m) {
  JsonValue json = JsonValue::object({{"column", m.column}, {"label", m.label}, {"unit", m.unit}, {"path", m.path}});
  if (!m.skipped.empty()) {
    json.set("skipped", m.skipped);
    return json;
  }
  for (auto& [name, value] : std::initializer_list<JsonValue::Member>{{"mean", m.mean},
                                                                      {"stdev", m.stdev},
                                                                      {"low", m.low},
                                                                      {"high", m.high},
                                                                      {"experiments", m.experiments},
                                                                      {"runs", m.runs},
                                                                      {"duration_ns", m.duration},
                                                                      {"work", m.work},
                                                                      {"clock_mhz", m.clock},
                                                                      {"peak", m.peak},
                                                                      {"peak_at_clock", m.peak_at_clock},
                                                                      {"of_peak", m.of_peak()},
                                                                      {"group_size", m.group_size},
                                                                      {"groups", m.groups}})
    json.set(name, value);
  if (!m.error.empty()) json.set("error", m.error);
  json.set("warnings", JsonValue::list_of(m.warnings));
  return json;
}

std::string json_text(const std::vector<DeviceCeilings>& all) {
  JsonValue devices = JsonValue::lines();
  for (const DeviceCeilings& ceilings : all) {
    const roofline::DeviceInfo& info = ceilings.device;
    JsonValue measured = JsonValue::lines();
    for (const Measurement& m : ceilings.measurements) measured.add(json_of(m));
    devices.add(JsonValue::object({{"number", ceilings.number},
                                   {"name", info.name},
                                   {"id", info.id},
                                   {"driver", info.driver},
                                   {"backend", info.backend},
                                   {"kind", info.kind},
                                   {"architecture", info.architecture},
                                   {"units", info.units},
                                   {"max_clock_mhz", info.max_clock},
                                   {"memory_clock_mhz", info.memory_clock},
                                   {"bus_width", info.bus_width},
                                   {"memory", info.memory},
                                   {"cache", info.cache},
                                   {"ceilings", std::move(measured)}}));
  }
  return JsonValue::object({{"schema", "tacho-roofline/1"}, {"devices", std::move(devices)}}).text() + "\n";
}

Result<int> run(const Arguments& a) {
  std::vector<std::string> notes;
  const std::vector<NumberedDevice> devices = roofline::list_devices(notes, a.backend);
  if (devices.empty()) {
    std::string why;
    for (const std::string& note : notes) why += (why.empty() ? "" : "; ") + note;
    return fail("no device to measure: {}; install the GPU's driver, or PoCL (pocl-opencl-icd) for the CPU", why);
  }
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  if (a.list) {
    report::Answer answer = list_answer(devices);
    report::show(answer, {.all_columns = ""});
    return kOk;
  }
  std::vector<NumberedDevice> chosen;
  if (a.all) chosen = devices;
  for (const int number : a.devices) {
    if (number < 0 || static_cast<size_t>(number) >= devices.size())
      return fail("--device {}: there is no such device; this machine has {}", number, listed(devices));
    chosen.push_back(devices[static_cast<size_t>(number)]);
  }
  if (chosen.empty()) chosen.push_back(devices.front());
  std::optional<OutputFile> output;
  if (!a.output.empty()) {
    TACHO_ASSIGN(output, OutputFile::create(a.output, a.overwrite));
  }
  roofline::SuiteOptions options;
  options.experiments = a.experiments;
  options.only = a.only;
  options.estimate = !a.quiet && isatty(STDERR_FILENO) == 1;
  std::vector<DeviceCeilings> all;
  int code = kOk;
  for (const NumberedDevice& device : chosen) {
    if (!a.quiet)
      report::print_error("tacho: measuring device {}, {} ({})\n", device.number, device.entry.info.name,
                          device.entry.info.backend);
    Result<DeviceCeilings> measured = roofline::measure(device, options);
    if (!measured) {
      if (chosen.size() == 1) return fail_with(std::move(measured));
      code = complain(kBadInput, measured.error().message);  // continues with the others
      continue;
    }
    DeviceCeilings ceilings = std::move(*measured);
    if (a.only.empty())
      if (const Status stored = roofline::store_in_cache(ceilings); !stored)
        complain(kOk, fmt::format("not kept for later runs: {}", stored.error().message));
    for (const Measurement& m : ceilings.measurements) {
      for (const std::string& warning : m.warnings) complain(kOk, warning);
      if (!m.skipped.empty()) complain(kOk, fmt::format("{}: not measured: {}", m.label, m.skipped));
      if (!m.error.empty()) code = complain(kBadInput, m.error);
    }
    all.push_back(std::move(ceilings));
  }
  if (all.empty()) return code;
  std::string text;
  report::AnswerFormat face = report::face_of(a.format);
  if (face == report::AnswerFormat::kText && a.output.ends_with(".csv")) face = report::AnswerFormat::kCsv;
  if (face == report::AnswerFormat::kJson)
    text = json_text(all);
  else if (face == report::AnswerFormat::kCsv)
    text = roofline::to_csv(all, roofline::now_text());
  else
    for (const DeviceCeilings& ceilings : all)
      text +=
          fmt::format("\n{} ({}, driver {})\n", ceilings.device.name, ceilings.device.backend, ceilings.device.driver) +
          table_text(ceilings, output ? report::Screen{} : screen);
  if (output) {
    output->write(text);
    TACHO_TRY(output->commit());
  } else {
    report::put(text);
  }
  return code;
}

}  // namespace

int run_roofline(int argc, char** argv) {
  CommandOptions app(
      "Measures what a device can do: bandwidth of memory and caches, peak rates of vector and matrix units.",
      "tacho roofline");
  app.footer("Examples:\n"
             "  tacho roofline --list\n"
             "  tacho roofline --device 1 -o roofline.csv\n"
             "  tacho roofline --only HBMReadBw FP32Flops");
  Arguments a;
  app.add_option("--device", a.devices, "number of the device (--list shows them); default 0")
      .type_name("N")
      .expected(1, -1);
  std::vector<std::string> backends;
  std::string backend_text;
  for (const roofline::Backend& backend : roofline::backends()) {
    backends.emplace_back(backend.name);
    backend_text += fmt::format("{}{}{}", backend_text.empty() ? "" : " or ", backend.name,
                                *backend.text == '\0' ? std::string() : fmt::format(" ({})", backend.text));
  }
  app.add_option("--backend", a.backend, "only devices reached through " + backend_text)
      .one_of(backends)
      .type_name("NAME");
  app.add_flag("--all", a.all, "all devices, one after the other");
  app.add_flag("--list", a.list, "the devices of this machine");
  app.add_option("--experiments", a.experiments, "at most this many of each benchmark")
      .between(2, 100000)
      .type_name("N")
      .capture_default_str();
  app.add_option("--only", a.only, "only these: columns of roofline.csv, as in HBMReadBw FP32Flops")
      .type_name("COLUMN")
      .expected(1, -1);
  app.add_option("--format,--output-format", a.format, "text, csv (roofline.csv) or json")
      .one_of({"text", "csv", "json"})
      .type_name("FORMAT")
      .capture_default_str();
  app.add_option("-o,--output", a.output, "write the result there; NAME.csv means csv").type_name("NAME");
  app.add_flag("-q,--quiet", a.quiet, "only the result");
  app.add_flag("--overwrite", a.overwrite, "the output may replace a file");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  const Result<int> code = run(a);
  return code ? *code : complain(kBadInput, code.error().message);
}

}  // namespace tacho::cli
