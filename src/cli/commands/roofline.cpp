// `tacho roofline [--device N]`: measures a device's ceilings and prints them as a table, csv or JSON.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/files/output_file.h"
#include "base/text/json_writer.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "report/output.h"
#include "report/table.h"
#include "roofline/ceilings_file.h"
#include "roofline/suite.h"

namespace tacho::cli {
namespace {

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

std::string list_text(const std::vector<NumberedDevice>& devices, const report::Screen& screen) {
  report::Table table;
  table.columns = {{"#"}, {"device"}, {"kind"}, {"through"}, {"units"}, {"MHz"}, {"memory"}, {"driver"}};
  for (const NumberedDevice& device : devices) {
    const roofline::DeviceInfo& info = device.entry.info;
    table.rows.push_back({int64_t{device.number}, info.name,
                          info.architecture.empty() ? info.kind : info.kind + " " + info.architecture, info.backend,
                          int64_t{info.units}, report::number_cell(info.max_clock),
                          report::format_bytes(static_cast<double>(info.memory)), info.driver});
  }
  report::TextStyle style;
  style.width = screen.width;
  style.colour = screen.colour;
  style.decimals = 0;
  return report::to_text(table, style);
}

std::string table_text(const DeviceCeilings& ceilings, const report::Screen& screen) {
  report::Table table;
  table.columns = {{"ceiling"}, {"mean"}, {"unit"}, {"stdev %"}, {"MHz"}, {"peak"}, {"% of peak"}, {"instructions"}};
  table.columns[4].decimals = 0;
  table.columns[7].shrink = true;
  for (const Measurement& m : ceilings.measurements) {
    if (!m.skipped.empty()) {
      table.rows.push_back({m.label, std::monostate{}, m.unit, std::monostate{}, std::monostate{}, std::monostate{},
                            std::monostate{}, m.path});
      continue;
    }
    table.rows.push_back({m.label, report::number_cell(m.mean), m.unit, report::number_cell(m.stdev / m.mean * 100),
                          report::number_cell(m.clock), report::number_cell(m.peak),
                          report::number_cell(m.of_peak() * 100), m.path});
  }
  report::TextStyle style;
  style.width = screen.terminal ? screen.width : 0;
  style.colour = screen.colour;
  style.decimals = 1;
  return report::to_text(table, style);
}

std::string json_text(const std::vector<DeviceCeilings>& all) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("schema").value("tacho-roofline/1").key("devices").begin_array();
  for (const DeviceCeilings& ceilings : all) {
    const roofline::DeviceInfo& info = ceilings.device;
    json.newline().begin_object().key("number").value(ceilings.number).key("name").value(info.name);
    json.key("id").value(info.id).key("driver").value(info.driver).key("backend").value(info.backend);
    json.key("kind").value(info.kind).key("architecture").value(info.architecture);
    json.key("units").value(int64_t{info.units}).key("max_clock_mhz").value(info.max_clock);
    json.key("memory_clock_mhz").value(info.memory_clock).key("bus_width").value(int64_t{info.bus_width});
    json.key("memory").value(static_cast<int64_t>(info.memory)).key("cache").value(static_cast<int64_t>(info.cache));
    json.key("ceilings").begin_array();
    for (const Measurement& m : ceilings.measurements) {
      json.newline().begin_object().key("column").value(m.column).key("label").value(m.label);
      json.key("unit").value(m.unit).key("path").value(m.path);
      if (!m.skipped.empty()) {
        json.key("skipped").value(m.skipped).end_object();
        continue;
      }
      json.key("mean").value(m.mean).key("stdev").value(m.stdev).key("low").value(m.low).key("high").value(m.high);
      json.key("experiments")
          .value(int64_t{m.experiments})
          .key("runs")
          .value(int64_t{m.runs})
          .key("duration_ns")
          .value(m.duration);
      json.key("work").value(m.work).key("clock_mhz").value(m.clock).key("peak").value(m.peak);
      json.key("peak_at_clock").value(m.peak_at_clock).key("of_peak").value(m.of_peak());
      json.key("group_size").value(int64_t{m.group_size}).key("groups").value(int64_t{m.groups});
      if (!m.error.empty()) json.key("error").value(m.error);
      json.key("warnings").begin_array();
      for (const std::string& warning : m.warnings) json.value(warning);
      json.end_array().end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out + "\n";
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
    report::put(list_text(devices, screen));
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
  // Progress messages are for people: they go to stderr if stdout carries data.
  const bool lines_out = a.format == "text" && a.output.empty();
  roofline::SuiteOptions options;
  options.experiments = a.experiments;
  options.only = a.only;
  options.bar = !a.quiet && isatty(STDERR_FILENO) == 1;
  if (!a.quiet)
    options.line = [&](std::string_view line) {
      report::print(lines_out ? report::Stream::kOut : report::Stream::kError, "{}\n", line);
      report::flush_output();
    };
  const auto say = [&](const std::string& line) {
    if (options.line) options.line(line);
  };
  say("Empirical Roofline Calculation");
  say(fmt::format("Total detected GPU devices: {}", devices.size()));
  std::vector<DeviceCeilings> all;
  int code = kOk;
  for (const NumberedDevice& device : chosen) {
    say(fmt::format("GPU Device {}: Profiling... ({})", device.number, device.entry.info.name));
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
  if (a.format == "json")
    text = json_text(all);
  else if (a.format == "csv" || (output && a.output.ends_with(".csv")))
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
  app.add_option("--format", a.format, "text, csv (roofline.csv) or json")
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
