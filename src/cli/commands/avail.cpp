// `tacho avail`: what tacho can trace on this machine, and what to do about the rest.
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/devices.h"
#include "launch/launcher.h"
#include "report/output.h"
#include "report/sections.h"
#include "report/value.h"
#include "vendor/vendor.h"

namespace tacho::cli {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

using report::Unit;

class Machine {
 public:
  report::Answer devices, sources;

  Machine() {
    devices.id = "devices";
    devices.columns = {{.name = "API", .title = "API", .whole = true},
                       {"Platform", "Platform"},
                       {.name = "Type", .title = "Type", .whole = true},
                       {"Units", "Units", Unit::kCount, 1},
                       {.name = "Memory", .title = ""},
                       {.name = "Driver", .title = "Driver", .leave_out = 2, .whole = true},
                       {"Name", "Name"},
                       {"", "Memory", Unit::kBytes}};
    devices.shown = {0, 1, 2, 3, 7, 5, 6};
    sources.id = "sources";
    sources.columns = {{.name = "Source", .title = "Source", .whole = true},
                       {.name = "State", .title = "State", .whole = true},
                       {.name = "What it means", .title = "What it means", .cut = report::Cut::kWrap}};
    const auto library = launch::find_library();
    add_source("libtacho.so", library ? "found" : "missing", library ? *library : library.error().message);
    add_vendors();
    add_opencl();
    add_source("markers", "ready", "tacho.h, ROCTx, NVTX: ranges and marks of the program");
    const TscState tsc = tsc_state();
    add_source("clock", tsc == TscState::kUsable ? "tsc" : "vdso", clock_note(tsc));
    add_kernel();
  }

 private:
  void add_source(std::string name, std::string state, std::string meaning) {
    sources.rows.push_back({std::move(name), std::move(state), std::move(meaning)});
  }
  void add_device(std::string api, std::string platform, std::string type, int64_t units, uint64_t memory,
                  std::string driver, std::string name) {
    const auto bytes = static_cast<double>(memory);
    devices.rows.push_back({std::move(api), std::move(platform), std::move(type), units, report::format_bytes(bytes),
                            std::move(driver), std::move(name), bytes});
  }

  void add_vendors() {
    for (const vendor::Vendor* const vendor : vendor::vendors()) {
      const vendor::Inspection found = vendor->inspect();
      for (const vendor::DeviceFacts& device : found.devices)
        add_device(device.api, device.platform, device.type, device.units, static_cast<uint64_t>(device.memory),
                   device.driver, device.name);
      for (const vendor::SourceFacts& source : found.sources) add_source(source.source, source.state, source.meaning);
    }
  }

  void add_opencl() {
    const OpenClLibrary opencl;
    if (!opencl.found())
      return add_source("opencl", "absent",
                        "no libOpenCL.so.1: install an ICD loader (Debian: ocl-icd-libopencl1) and a driver");
    if (!opencl.usable())
      return add_source("opencl", "unusable", "libOpenCL.so.1 lacks basic functions: reinstall the ICD loader");
    std::string problem;
    const auto found = opencl.list(&problem);
    for (const OpenClLibrary::Device& device : found)
      add_device("OpenCL", device.platform, opencl_type_name(device.type), device.units, device.memory, device.driver,
                 device.name);
    if (!problem.empty()) return add_source("opencl", "unusable", problem);
    add_source("opencl", found.empty() ? "no device" : "ready",
               found.empty() ? "the loader finds no device: install a driver (Debian without a GPU: pocl-opencl-icd)"
                             : "calls, kernels, copies, fills, maps, allocations");
  }

  static std::string clock_note(TscState tsc) {
    switch (tsc) {
      case TscState::kUsable:
        return "records are stamped with the CPU's time stamp counter";
      case TscState::kNotInvariant:
        return "the CPU's time stamp counter is not invariant: a recorded call costs about 25 ns more";
      case TscState::kNotTrusted:
        return fmt::format("the kernel's clocksource is '{}', not tsc: a recorded call costs about 25 ns more",
                           first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
      case TscState::kKernelDoesNotSay:
        break;
    }
    return "the kernel's clocksource cannot be read (mount /sys): a recorded call costs about 25 ns more";
  }

  void add_kernel() {
    const std::string paranoid = first_line("/proc/sys/kernel/perf_event_paranoid");
    const bool permitted = geteuid() == 0 || (!paranoid.empty() && paranoid[0] <= '2');
    add_source("perf_event", permitted ? "permitted" : "restricted",
               paranoid.empty() ? "this kernel has no perf_event" : "kernel.perf_event_paranoid = " + paranoid);
    if (access("/dev/shm", W_OK) != 0)
      add_source("pool", "elsewhere",
                 "/dev/shm is not writable: the pool goes to $TMPDIR or /tmp, slower when that is a disk");
  }
};

}  // namespace

int run_avail(int argc, char** argv) {
  CommandOptions app("Devices and sources on this machine, permissions, and what to fix.", "tacho avail");
  app.footer("Examples:\n"
             "  tacho avail\n"
             "  tacho avail --output-format json");
  std::string format = "text";
  app.add_option("--output-format", format, "text or json").one_of({"text", "json"}).capture_default_str();
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  Machine machine;
  if (format == "json") {
    report::print("{}\n", report::JsonValue::object({{"devices", report::JsonValue::table(std::move(machine.devices))},
                                                     {"sources", report::JsonValue::table(std::move(machine.sources))}})
                              .text());
    return kOk;
  }
  const report::Screen screen = report::screen_of(STDOUT_FILENO);
  report::Sections text({.width = screen.fit(), .colour = screen.colour, .indent = 2});
  text.heading("Devices");
  if (machine.devices.rows.empty())
    text.line("  none");
  else
    text.table(machine.devices);
  text.heading("Sources");
  text.table(machine.sources);
  report::put(text.take());
  return kOk;
}

}  // namespace tacho::cli
