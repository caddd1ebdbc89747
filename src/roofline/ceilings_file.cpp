// Writing and comparing roofline.csv (ceilings_file.h).
#include "roofline/ceilings_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files/output_file.h"
#include "base/text/csv.h"
#include "vendor/vendor.h"
#include "workload/ceilings.h"

namespace tacho::roofline {
namespace {

// Names of mean, low and high as upstream's benchmark spells them.
struct Triple {
  std::string_view mean, low, high;
};
constexpr std::array<Triple, 11> kUpstream = {{{"HBMBw", "HBMBwLow", "hbmBwHigh"},
                                               {"L2Bw", "L2BwLow", "L2BwHigh"},
                                               {"L1Bw", "L1BwLow", "L1BwHigh"},
                                               {"LDSBw", "LDSBwLow", "LDSBwHigh"},
                                               {"FP32Flops", "FP32FlopsLow", "FP32FlopsHigh"},
                                               {"FP64Flops", "FP64FlopsLow", "FP64FlopsHigh"},
                                               {"MFMABF16Flops", "MFMABF16FlopsLow", "MFMABF16FlopsHigh"},
                                               {"MFMAF16Flops", "MFMAF16FlopsLow", "MFMAF16FlopsHigh"},
                                               {"MFMAF32Flops", "MFMAF32FlopsLow", "MFMAF32FlopsHigh"},
                                               {"MFMAF64Flops", "MFMAF64FlopsLow", "MFMAF64FlopsHigh"},
                                               {"MFMAI8Ops", "MFMAFI8OpsLow", "MFMAI8OpsHigh"}}};

bool usable(const Measurement* m) {
  return m != nullptr && m->skipped.empty() && m->error.empty() && m->mean > 0;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.8g}", value) : std::string();
}

// The measurement behind a column; HBMBw is the best of the four patterns.
const Measurement* behind(const DeviceCeilings& device, std::string_view column) {
  if (column != "HBMBw") return device.find(column);
  const Measurement* best = nullptr;
  for (const char* each : {"HBMReadBw", "HBMWriteBw", "HBMCopyBw", "HBMTriadBw"}) {
    const Measurement* m = device.find(each);
    if (usable(m) && (best == nullptr || m->mean > best->mean)) best = m;
  }
  return best;
}

// The right to measure a device, among processes of this user on this machine; without it, a process measures anyway.
class Lock {
 public:
  explicit Lock(const std::string& cached) {
    if (cached.empty() || !create_folders(cached.substr(0, cached.rfind('/')))) return;
    descriptor_ = open((cached + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ < 0) return;
    while (flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_ = -1;
};

std::string safe(std::string_view text) {
  std::string out;
  for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ? c : '_';
  return out.substr(0, 80);
}

}  // namespace

std::string to_csv(const std::vector<DeviceCeilings>& devices, std::string_view measured) {
  std::vector<std::string> own;  // columns that upstream has not
  for (const DeviceCeilings& device : devices)
    for (const Measurement& m : device.measurements) {
      const bool theirs =
          std::any_of(kUpstream.begin(), kUpstream.end(), [&](const Triple& t) { return t.mean == m.column; });
      if (!theirs && std::find(own.begin(), own.end(), m.column) == own.end()) own.push_back(m.column);
    }
  std::string text = "device";
  std::vector<std::string> all;
  for (const Triple& t : kUpstream) {
    text += fmt::format(",{},{},{}", t.mean, t.low, t.high);
    all.emplace_back(t.mean);
  }
  for (const std::string& name : own) {
    text += fmt::format(",{0},{0}Low,{0}High", name);
    all.push_back(name);
  }
  for (const std::string& name : all) text += fmt::format(",{0}Stdev,{0}Min,{0}Max,{0}Clock,{0}Peak,{0}Path", name);
  text += ",DeviceName,DeviceId,Driver,Backend,Measured\n";
  for (const DeviceCeilings& device : devices) {
    text += fmt::format("{}", device.number);
    for (const std::string& name : all) {
      const Measurement* m = behind(device, name);
      if (!usable(m)) {
        text += ",,,";
        continue;
      }
      const double half = 1.96 * m->stdev / std::sqrt(std::max(1.0, static_cast<double>(m->experiments)));
      text += fmt::format(",{},{},{}", number(m->mean), number(m->mean - half), number(m->mean + half));
    }
    for (const std::string& name : all) {
      const Measurement* m = behind(device, name);
      if (!usable(m)) {
        text += ",,,,,,";
        continue;
      }
      text += fmt::format(",{},{},{},{},{},{}", number(m->stdev), number(m->low), number(m->high), number(m->clock),
                          number(m->peak), csv_field(m->path));
    }
    text += fmt::format(",{},{},{},{},{}\n", csv_field(device.device.name), csv_field(device.device.id),
                        csv_field(device.device.driver), device.device.backend, measured);
  }
  return text;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::string cache_path(const DeviceInfo& device) {
  std::string base;
  if (const char* given = std::getenv("XDG_CACHE_HOME"); given != nullptr && given[0] == '/')
    base = given;
  else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    base = std::string(home) + "/.cache";
  else
    return {};
  return fmt::format("{}/tacho/roofline/{}_{}_{}_{}.csv", base, safe(device.name), safe(device.id), safe(device.driver),
                     device.backend);
}

Status store_in_cache(const DeviceCeilings& ceilings) {
  const std::string path = cache_path(ceilings.device);
  if (path.empty()) return {};
  TACHO_TRY(create_folders(path.substr(0, path.rfind('/'))));
  TACHO_ASSIGN(OutputFile file, OutputFile::create(path, true));
  file.write(to_csv({ceilings}, now_text()));
  return file.commit();
}

Existing compare_file(const std::string& path, const DeviceInfo& device) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  std::vector<std::string> warnings;
  const std::vector<workload::RooflineCeilings> rows = workload::read_ceilings(path, warnings);
  if (rows.empty()) return {Match::kUnreadable, warnings.empty() ? "it has no row" : warnings.front()};
  const workload::RooflineCeilings& row = rows.front();
  const std::string_view name = row.text("DeviceName"), driver = row.text("Driver");
  if (name.empty()) return {Match::kOther, "it does not say which device it is of"};
  if (name != device.name || row.text("DeviceId") != device.id)
    return {Match::kOther, fmt::format("it is of {}", name)};
  if (driver != device.driver)
    return {Match::kOther, fmt::format("it was measured with driver {}, now it is {}", driver, device.driver)};
  const bool any = std::any_of(row.values.begin(), row.values.end(), [](const auto& v) { return v.second > 0; });
  if (!any) return {Match::kUnreadable, "it has no ceiling"};
  return {Match::kSame, std::string(row.text("Measured"))};
}

Status ensure_roofline(const std::string& folder, const NumberedDevice& device, size_t device_count,
                       const SuiteOptions& options) {
  const auto say = [&](const std::string& text) {
    if (options.line) options.line(text);
  };
  const auto note = [&](const std::string& text) {
    if (options.note) options.note(text);
  };
  const auto warn = [&](const std::string& text) {
    if (options.warn) options.warn(text);
  };
  const std::string path = folder + "/roofline.csv";
  const DeviceInfo& info = device.entry.info;
  say(fmt::format("[roofline] Checking for roofline.csv in {}", folder));
  const Existing existing = compare_file(path, info);
  if (existing.match == Match::kSame) {
    say(fmt::format("[roofline] Found roofline.csv of {} ({}): the benchmarks are not run again", info.name,
                    existing.what));
    return {};
  }
  if (existing.match != Match::kMissing) {
    std::string kept;
    std::error_code ignored;
    for (int i = 1; kept.empty() || std::filesystem::exists(kept, ignored); ++i) kept = fmt::format("{}.{}", path, i);
    if (std::rename(path.c_str(), kept.c_str()) != 0)
      return fail("{}: cannot be put aside as {}: {}", path, kept, std::strerror(errno));
    say(fmt::format("[roofline] roofline.csv cannot be used: {}. Kept as {}", existing.what, kept));
    warn(fmt::format("the roofs in roofline.csv cannot be used: {}; the file is kept as {}", existing.what, kept));
  }
  const std::string cached = cache_path(info);
  // Two runs that measure at the same time disturb each other: the second waits, and takes the first one's results.
  const Lock lock(cached);
  const Existing in_cache = cached.empty() ? Existing{} : compare_file(cached, info);
  std::string text;
  if (in_cache.match == Match::kSame) {
    say(fmt::format("[roofline] No roofline data found. Using the measurements made on this device on {} ({})",
                    in_cache.what, cached));
    note(fmt::format("roofs of {}: those measured on {}", info.name, in_cache.what));
    std::ifstream file(cached, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    text = bytes.str();
  } else {
    say("[roofline] No roofline data found. Generating...");
    say("Empirical Roofline Calculation");
    say(fmt::format("Total detected GPU devices: {}", device_count));
    say(fmt::format("GPU BenchmarkDevice {}: Profiling...", device.number));
    note(fmt::format("measuring the roofs of {}, once for this device and driver", info.name));
    TACHO_ASSIGN(const DeviceCeilings ceilings, measure(device, options));
    for (const Measurement& m : ceilings.measurements) {
      if (!m.error.empty()) say("[roofline] " + m.error);
      if (!m.error.empty()) warn(m.error);
      if (!m.skipped.empty()) warn(fmt::format("{}: not measured: {}", m.label, m.skipped));
      for (const std::string& warning : m.warnings) {
        say("[roofline] " + warning);
        warn(warning);
      }
    }
    if (const Status stored = store_in_cache(ceilings); !stored) {
      say(fmt::format("[roofline] not kept for the next run: {}", stored.error().message));
      warn(fmt::format("the roofs are not kept for the next run: {}", stored.error().message));
    }
    text = to_csv({ceilings}, now_text());
  }
  TACHO_ASSIGN(OutputFile file, OutputFile::create(path, true));
  file.write(text);
  return file.commit();
}

Result<NumberedDevice> device_of_profile(const std::vector<NumberedDevice>& devices, std::string_view vendor,
                                         std::string_view id) {
  const vendor::Vendor* const maker = vendor::vendor_named(vendor);
  const bool host = maker == nullptr;
  int number = 0;
  for (const NumberedDevice& device : devices) {
    const DeviceInfo& info = device.entry.info;
    const bool fits = host ? info.kind == "CPU" : info.kind == "GPU" && maker->made(info.vendor);
    if (fits && (host || fmt::format("{}", number++) == id)) return device;
  }
  return fail("no device of this machine is known to be that of the profile ({} {}){}", vendor, id,
              host ? "; PoCL (pocl-opencl-icd) makes the CPU one" : "");
}

Status add_roofline(const std::string& folder, std::string_view vendor, std::string_view id,
                    const SuiteOptions& options) {
  std::vector<std::string> notes;
  const std::vector<NumberedDevice> devices = list_devices(notes);
  const Result<NumberedDevice> device = device_of_profile(devices, vendor, id);
  const Status status = device ? ensure_roofline(folder, *device, devices.size(), options)
                               : Status(tl::unexpected<Error>(device.error()));
  if (!status && options.line) options.line(fmt::format("[roofline] No ceilings: {}", status.error().message));
  if (!status && options.warn) options.warn(fmt::format("no roofs: {}", status.error().message));
  return {};
}

}  // namespace tacho::roofline
