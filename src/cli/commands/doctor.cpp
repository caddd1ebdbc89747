// `tacho doctor`: checks everything that tracing, sampling and counting need on this machine, and names the command
// that mends each fault.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "attach/target.h"
#include "base/clock.h"
#include "base/files/output_file.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/devices.h"
#include "counter/provider.h"
#include "launch/launcher.h"
#include "report/output.h"
#include "report/value.h"
#include "vendor/definitions.h"
#include "vendor/vendor.h"

namespace tacho::cli {
namespace {

namespace fs = std::filesystem;
using report::JsonValue;
using vendor::Check;
using State = vendor::Check::State;
using vendor::install_command;
using vendor::sudo;

struct Section {
  std::string title;
  std::vector<Check> checks;
};

std::string text_of(const fs::path& path, size_t most = 4096) {
  std::ifstream file(path);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string in_container(const std::string& options) {
  return "start the container with: docker run " + options + " ...";
}

// Loads a library in a child, so that a broken one takes down only the child. Empty if all is well.
std::string loading_problem(const std::string& library) {
  int channel[2];
  if (pipe2(channel, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_DUMPABLE, 0);
    std::string answer = "ok";
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      const char* const why = dlerror();
      answer = why != nullptr ? why : "cannot be loaded";
    }
    const ssize_t ignored = write(channel[1], answer.data(), answer.size());
    static_cast<void>(ignored);
    _exit(0);
  }
  close(channel[1]);
  std::string answer;
  constexpr int kPatience_ms = 30'000;
  pollfd wait{channel[0], POLLIN, 0};
  char part[1024];
  if (child > 0 && poll(&wait, 1, kPatience_ms) > 0) {
    const ssize_t size = read(channel[0], part, sizeof part);
    if (size > 0) answer.assign(part, static_cast<size_t>(size));
  }
  close(channel[0]);
  if (child > 0) {
    if (answer.empty()) kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return answer == "ok" ? std::string() : answer.empty() ? "crashes or hangs when it is loaded" : answer;
}

Section tacho_itself() {
  Section section{"tacho", {}};
  section.checks.push_back({"program", State::kGood, std::string("tacho ") + program_version_text(), ""});
  const auto library = launch::find_library();
  if (!library) {
    section.checks.push_back({"libtacho.so", State::kBad, library.error().message, "reinstall tacho"});
    return section;
  }
  // The error names a library for another machine, or one that needs a newer libc.
  const std::string problem = loading_problem(*library);
  section.checks.push_back({"libtacho.so", problem.empty() ? State::kGood : State::kBad,
                            problem.empty() ? *library : "cannot be loaded: " + problem,
                            problem.empty() ? "" : "install the tacho that was built for this system"});
  if (access(".", W_OK) != 0)
    section.checks.push_back({"this folder", State::kNote, "you may not write here, where traces go by default",
                              "cd to a folder of yours, or pass -o FILE"});
  return section;
}

std::vector<fs::path> icd_files() {
  const char* folder = std::getenv("OCL_ICD_VENDORS");
  if (folder == nullptr || *folder == '\0') folder = "/etc/OpenCL/vendors";
  std::error_code ignored;
  std::vector<fs::path> files;
  if (fs::is_regular_file(folder, ignored)) files.emplace_back(folder);
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".icd") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Section opencl(size_t& devices) {
  Section section{"OpenCL", {}};
  const OpenClLibrary library;
  const auto files = icd_files();
  if (!library.found()) {
    section.checks.push_back({"loader", State::kNote, "no libOpenCL.so.1; OpenCL programs cannot run here",
                              install_command("ocl-icd-libopencl1", "ocl-icd")});
  } else if (!library.usable()) {
    section.checks.push_back({"loader", State::kBad, "libOpenCL.so.1 lacks basic functions",
                              install_command("--reinstall ocl-icd-libopencl1", "ocl-icd")});
  } else {
    section.checks.push_back({"loader", State::kGood, "libOpenCL.so.1", ""});
  }
  if (!library.usable()) return section;
  for (const fs::path& file : files) {
    std::string driver = text_of(file);
    driver = driver.substr(0, driver.find('\n'));
    const std::string problem = driver.empty() ? "names no library" : loading_problem(driver);
    section.checks.push_back(
        {"driver " + file.stem().string(), problem.empty() ? State::kGood : State::kBad,
         problem.empty() ? driver : problem,
         problem.empty() ? "" : fmt::format("reinstall that driver, or: {}rm {}", sudo(), file.string())});
  }
  std::string problem;
  const auto found = library.list(&problem);
  devices += found.size();
  if (!problem.empty()) {
    section.checks.push_back({"devices", State::kBad, problem, "ls /etc/OpenCL/vendors"});
  } else if (found.empty()) {
    section.checks.push_back({"devices", State::kNote, "no OpenCL device: no driver is installed",
                              install_command("pocl-opencl-icd", "pocl")});
  }
  for (const OpenClLibrary::Device& device : found)
    section.checks.push_back({opencl_type_name(device.type), State::kGood,
                              fmt::format("{} ({}, driver {})", device.name, device.platform, device.driver), ""});
  return section;
}

bool perf_opens(bool with_kernel) {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_SOFTWARE;
  event.config = PERF_COUNT_SW_TASK_CLOCK;
  event.exclude_kernel = with_kernel ? 0 : 1;
  event.exclude_hv = 1;
  const long file = syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (file < 0) return false;
  close(static_cast<int>(file));
  return true;
}

// tacho reads call stacks with process_vm_readv inside the program; some containers forbid that call.
bool own_memory_readable() {
  int value = 1, copy = 0;
  const iovec to{&copy, sizeof copy}, from{&value, sizeof value};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(sizeof value) && copy == value;
}

Section machine() {
  Section section{"Machine", {}};
  auto& checks = section.checks;
  utsname system{};
  uname(&system);
  const std::string container = vendor::container();
  checks.push_back({"system", State::kGood,
                    fmt::format("{} {}, {} CPUs{}", system.sysname, system.release, sysconf(_SC_NPROCESSORS_ONLN),
                                container.empty() ? std::string() : ", in a container (" + container + ")"),
                    ""});

  struct statvfs shm {};
  constexpr double kWanted = 512.0 * 1024 * 1024;  // twice the largest pool
  const bool there = statvfs("/dev/shm", &shm) == 0;
  const double free = there ? static_cast<double>(shm.f_bavail) * static_cast<double>(shm.f_frsize) : 0;
  if (!there || access("/dev/shm", W_OK) != 0)
    checks.push_back({"/dev/shm", State::kNote,
                      there ? "you may not write there: the pool goes to $TMPDIR or /tmp, slower when that is a disk"
                            : "is not mounted: the pool goes to $TMPDIR or /tmp, slower when that is a disk",
                      there ? sudo() + "chmod 1777 /dev/shm" : sudo() + "mount -t tmpfs -o mode=1777 tmpfs /dev/shm"});
  else if (free < kWanted)
    checks.push_back(
        {"/dev/shm", State::kNote,
         fmt::format("{} free: bursts of events beyond that are dropped, and counted", report::format_bytes(free)),
         container.empty() ? sudo() + "mount -o remount,size=1G /dev/shm" : in_container("--shm-size=1g")});
  else
    checks.push_back({"/dev/shm", State::kGood, report::format_bytes(free) + " free", ""});

  const TscState tsc = tsc_state();
  checks.push_back(
      {"clock", tsc == TscState::kUsable ? State::kGood : State::kNote,
       tsc == TscState::kUsable ? "the CPU's time stamp counter"
                                : "not the CPU's time stamp counter: a recorded call costs about 25 ns more",
       tsc == TscState::kNotTrusted
           ? fmt::format("echo tsc | {}tee /sys/devices/system/clocksource/clocksource0/current_clocksource   (where "
                         "available_clocksource lists it)",
                         sudo())
           : ""});

  const std::string paranoid = text_of("/proc/sys/kernel/perf_event_paranoid");
  if (!perf_opens(false))
    checks.push_back(
        {"perf_event", State::kNote,
         paranoid.empty()
             ? "this kernel or container has no perf_event: --sampler perf cannot work"
             : fmt::format("refused (kernel.perf_event_paranoid = {}): --sampler perf cannot work", paranoid),
         container.empty() ? sudo() + "sysctl kernel.perf_event_paranoid=1"
                           : in_container("--cap-add PERFMON --security-opt seccomp=unconfined")});
  else if (!perf_opens(true))
    checks.push_back({"perf_event", State::kNote,
                      fmt::format("without the kernel's part (kernel.perf_event_paranoid = {})", paranoid),
                      sudo() + "sysctl kernel.perf_event_paranoid=1"});
  else
    checks.push_back({"perf_event", State::kGood, "permitted, with the kernel's part", ""});

  if (own_memory_readable())
    checks.push_back({"ptrace", State::kGood, "not needed; programs may read their own stacks", ""});
  else
    checks.push_back(
        {"ptrace", State::kBad, "process_vm_readv is refused: no call stacks of programs",
         container.empty() ? sudo() + "sysctl kernel.yama.ptrace_scope=1" : in_container("--cap-add SYS_PTRACE")});

  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kFiles = 256;
  if (limit.rlim_cur < kFiles)
    checks.push_back({"ulimit -n", State::kNote, fmt::format("only {} open files", limit.rlim_cur), "ulimit -n 4096"});
  else
    checks.push_back({"ulimit -n", State::kGood,
                      limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited open files")
                                                      : fmt::format("{} open files", limit.rlim_cur),
                      ""});
  getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur != RLIM_INFINITY)
    checks.push_back({"ulimit -f", limit.rlim_max == RLIM_INFINITY ? State::kGood : State::kNote,
                      fmt::format("files of at most {}; tacho raises it for itself as far as it may",
                                  report::format_bytes(static_cast<double>(limit.rlim_cur))),
                      limit.rlim_max == RLIM_INFINITY ? "" : "ulimit -f unlimited, in a login where that is allowed"});
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur != RLIM_INFINITY)
    checks.push_back({"ulimit -v", State::kNote,
                      fmt::format("{} of address space, which GPU runtimes exceed",
                                  report::format_bytes(static_cast<double>(limit.rlim_cur))),
                      "ulimit -v unlimited"});

  if (const char* const preload = std::getenv("LD_PRELOAD"); preload != nullptr && *preload != '\0')
    checks.push_back({"LD_PRELOAD", State::kNote, fmt::format("is set to {}; every program loads that, too", preload),
                      "unset LD_PRELOAD"});
  for (const vendor::Vendor* const maker : vendor::vendors())
    for (const vendor::Injection& injection : maker->injections())
      if (const char* const set = std::getenv(injection.variable);
          injection.kind == vendor::Injection::Kind::kSole && set != nullptr && *set != '\0')
        checks.push_back({injection.variable, State::kNote,
                          fmt::format("is set to {}: {} is not traced", set, injection.source),
                          std::string("unset ") + injection.variable});
  return section;
}

// Devices whose hardware counters `tacho profile` can read.
Section counters() {
  Section section{"Counters (tacho profile)", {}};
  for (const auto& provider : counter::providers()) {
    std::string why;
    const auto found = provider->devices(why);
    const Status ready = provider->ready();
    for (const counter::Device& device : found)
      section.checks.push_back(
          {"device " + device.id, ready ? State::kGood : State::kNote,
           ready ? fmt::format("{}, counted by {}", device.name, provider->tool()) : ready.error().message, ""});
    if (found.empty())
      section.checks.push_back({std::string(provider->name()), State::kNote, why.empty() ? "no device" : why, ""});
  }
  return section;
}

std::vector<Section> all_checks() {
  std::vector<Section> sections;
  size_t devices = 0;
  sections.push_back(tacho_itself());
  sections.push_back(machine());
  // Before the vendors' drivers start: asking OpenCL and counters forks, and drivers do not work in children.
  sections.push_back(opencl(devices));
  Section counted = counters();
  Section gpus{"GPUs", {}};
  for (const vendor::Vendor* const maker : vendor::vendors()) {
    for (Check& check : maker->checks()) gpus.checks.push_back(std::move(check));
    devices += maker->inspect().devices.size();
  }
  if (devices == 0)
    gpus.checks.push_back({"any device", State::kBad, "no device that a program could use: there is nothing to trace",
                           install_command("ocl-icd-libopencl1 pocl-opencl-icd", "ocl-icd pocl")});
  sections.push_back(std::move(gpus));
  sections.push_back(std::move(counted));
  return sections;
}

size_t count(const std::vector<Section>& sections, State state) {
  size_t found = 0;
  for (const Section& section : sections)
    found += static_cast<size_t>(std::count_if(section.checks.begin(), section.checks.end(),
                                               [&](const Check& check) { return check.state == state; }));
  return found;
}

std::string verdict(const std::vector<Section>& sections) {
  const size_t bad = count(sections, State::kBad), notes = count(sections, State::kNote);
  const auto many = [](size_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  if (bad == 0 && notes == 0) return "Everything works.";
  if (bad == 0) return fmt::format("Nothing is broken; {} on what is missing or limited.", many(notes, "note"));
  return fmt::format("{} to fix{}.", many(bad, "fault"), notes == 0 ? "" : ", " + many(notes, "note"));
}

std::string_view word_of(State state) {
  return state == State::kGood ? "ok" : state == State::kNote ? "note" : "FAULT";
}

// `width` 0: lines have any length.
std::string checks_text(const std::vector<Section>& sections, size_t width, bool colour) {
  constexpr size_t kState = 5, kWhat = 20, kIndent = 2 + kState + 2 + kWhat + 2;
  std::string out;
  for (const Section& section : sections) {
    out += report::painted(section.title, report::Paint::kBold, colour) + "\n";
    for (const Check& check : section.checks) {
      const std::string word = report::padded_right(word_of(check.state), kState);
      out += "  " +
             (check.state == State::kGood   ? word
              : check.state == State::kNote ? report::painted(word, report::Paint::kYellow, colour)
                                            : report::painted(word, report::Paint::kRed, colour)) +
             "  " + report::padded_right(report::clean(check.what), kWhat);
      // A long name gets its own line.
      if (report::display_width(check.what) > kWhat)
        out += "\n" + std::string(kIndent, ' ');
      else
        out += "  ";
      const std::string found = report::clean(check.found);
      out += (width > kIndent + 20 ? report::wrapped(found, width - kIndent, kIndent) : found) + "\n";
      // Commands stay in one piece, ready to copy.
      if (!check.mend.empty()) out += std::string(9, ' ') + "→ " + report::clean(check.mend) + "\n";
    }
    out += "\n";
  }
  return out;
}

// Everything that helps somebody who has no access to this machine. Contains no text from the user's files, and only
// variables that change what GPU programs do.
std::string report_text(const std::vector<Section>& sections) {
  std::string out = fmt::format("tacho doctor, {}\n{}\n\n", program_version_text(), verdict(sections));
  out += checks_text(sections, 0, false);
  const auto section = [&](const char* title, const std::string& text) {
    if (!text.empty()) out += fmt::format("{}\n{}\n\n", title, text);
  };
  section("/proc/version", text_of("/proc/version"));
  section("/etc/os-release", text_of("/etc/os-release"));
  std::string memory = text_of("/proc/meminfo", 256);
  section("/proc/meminfo", memory.substr(0, memory.rfind('\n')));
  std::ifstream processor("/proc/cpuinfo");
  for (std::string line; std::getline(processor, line);)
    if (line.starts_with("model name")) {
      section("/proc/cpuinfo", line);
      break;
    }
  for (const char* const path : vendor::version_files()) section(path, text_of(path));
  std::string icds;
  for (const fs::path& file : icd_files()) icds += fmt::format("{}: {}\n", file.string(), text_of(file));
  section("OpenCL drivers", icds);
  std::string limits = text_of("/proc/self/limits");
  section("/proc/self/limits", limits);
  std::string status;
  std::ifstream self("/proc/self/status");
  for (std::string line; std::getline(self, line);)
    if (line.starts_with("Cap") || line.starts_with("Seccomp") || line.starts_with("Groups")) status += line + "\n";
  section("/proc/self/status", status);
  std::string nodes;
  std::error_code ignored;
  std::vector<const char*> files(vendor::device_files().begin(), vendor::device_files().end());
  files.insert(files.end(), {"/dev/dri", "/dev/dxg", "/dev/shm"});
  for (const char* const path : files)
    nodes += fmt::format("{}: {}\n", path,
                         !fs::exists(path, ignored)       ? "not here"
                         : access(path, R_OK | W_OK) == 0 ? "may be opened"
                                                          : "may not be opened");
  section("Device files", nodes);
  static constexpr std::string_view kOwn[] = {
      "TACHO_", "LD_PRELOAD=", "LD_LIBRARY_PATH=", "SLURM_PROCID=", "OMPI_COMM_WORLD_RANK="};
  std::set<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const auto begins = [&](std::string_view prefix) { return variable.starts_with(prefix); };
    const auto prefixes = vendor::variable_prefixes();
    if (std::any_of(prefixes.begin(), prefixes.end(), begins) || std::any_of(std::begin(kOwn), std::end(kOwn), begins))
      variables.insert(report::clean(variable));
  }
  std::string environment;
  for (const std::string& variable : variables) environment += variable + "\n";
  section("Environment", environment);
  return out;
}

}  // namespace

int run_doctor(int argc, char** argv) {
  CommandOptions app("Check what tracing, sampling and counting need here, and name the command that fixes each fault.",
                     "tacho doctor");
  app.footer("Examples:\n"
             "  tacho doctor\n"
             "  tacho doctor --report              a text to send with a question\n"
             "  tacho doctor 4711                  whether tacho may attach to process 4711\n"
             "A fault is something that does not work though this machine has it, or that everything needs; a note is "
             "something that is not here or limited.\n"
             "Exit code: 0 nothing is broken, 1 there are faults.");
  std::string format = "text", file;
  int pid = 0;
  CommandOption process =
      app.add_option("PID", pid, "look at this process instead: may tacho attach to it?").positive();
  app.add_option("--output-format", format, "text or json").one_of({"text", "json"}).capture_default_str();
  CommandOption report_option = app.add_option(
      "--report", file, "write one text with all that was found, to send to somebody (default: tacho-doctor.txt)");
  report_option.expected(0, 1).type_name("FILE");
  report_option.excludes(process);
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  std::vector<Section> sections;
  if (process.count() > 0) {
    const auto facts = attach::look_at(pid);
    if (!facts) return complain(kBadInput, facts.error().message);
    sections.push_back({fmt::format("Process {}", pid), attach::checks(*facts)});
  } else {
    sections = all_checks();
  }
  const int code = count(sections, State::kBad) > 0 ? kBadInput : kOk;
  if (format == "json") {
    JsonValue checks = JsonValue::lines();
    for (const Section& section : sections)
      for (const Check& check : section.checks)
        checks.add(JsonValue::object({{"section", section.title},
                                      {"what", check.what},
                                      {"state", check.state == State::kBad ? "fault" : word_of(check.state)},
                                      {"found", check.found},
                                      {"mend", check.mend}}));
    report::print("{}\n", JsonValue::object({{"faults", count(sections, State::kBad)},
                                             {"notes", count(sections, State::kNote)},
                                             {"checks", std::move(checks)}})
                              .text());
  } else {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    report::put(checks_text(sections, screen.fit(), screen.colour));
    const std::string result = process.count() == 0 ? verdict(sections)
                               : code == kOk        ? fmt::format("tacho can attach: tacho attach {}", pid)
                                                    : std::string("tacho cannot attach.");
    report::print("{}\n", report::painted(result, report::Paint::kBold, screen.colour));
  }
  if (report_option.count() > 0) {
    if (file.empty()) file = free_name("tacho-doctor.txt");
    auto target = OutputFile::create(file, false);
    if (!target) return complain(kBadInput, target.error().message);
    target->write(report_text(sections));
    if (const Status done = target->commit(); !done) return complain(kBadInput, done.error().message);
    complain(kOk, fmt::format("{} has all of this and the facts of the machine; it is yours to read before you send it",
                              file));
  }
  return code;
}

}  // namespace tacho::cli
