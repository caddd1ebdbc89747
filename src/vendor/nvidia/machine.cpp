// NVIDIA on this machine (machine.h). Nothing of NVIDIA's is linked.
#include "vendor/nvidia/machine.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/format.h"

namespace tacho::vendor {
namespace {

std::string line_with(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.find(key) != std::string::npos) return line;
  return {};
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The value of the line "<key>:<blanks><value>", nothing if there is none or it is not a number of that base.
std::optional<uint64_t> number_of(std::string_view text, std::string_view key, int base) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(':')) continue;
    line.remove_prefix(key.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    uint64_t value = 0;
    const auto [last, error] = std::from_chars(line.data(), line.data() + line.size(), value, base);
    if (error != std::errc() || last != line.data() + line.size()) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

// "... Kernel Module  580.159.03  Release Build ..." or "... for x86_64  580.159.03 ...": the first word with
// two dots or one.
std::string module_version() {
  const std::string line = line_with("/proc/driver/nvidia/version", "NVRM");
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    if (!word.empty() && word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
    begin = end + 1;
  }
  return {};
}

bool has_device_file() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

struct Cupti {
  std::string path;
  uint32_t version = 0;
};

Cupti find_cupti() {
  std::vector<std::string> candidates;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = getenv(variable); home != nullptr && *home != '\0')
      for (const char* part : {"/extras/CUPTI/lib64", "/lib64", "/targets/x86_64-linux/lib"})
        candidates.push_back(std::string(home) + part + "/");
  candidates.emplace_back("");  // the loader's path
  for (const char* folder :
       {"/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/",
        "/opt/cuda/extras/CUPTI/lib64/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib64/"})
    candidates.emplace_back(folder);
  for (const std::string& folder : candidates)
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"}) {
      void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      const auto get_version = reinterpret_cast<int (*)(uint32_t*)>(dlsym(library, "cuptiGetVersion"));
      Cupti found;
      Dl_info info{};
      if (get_version != nullptr && get_version(&found.version) == 0 &&
          dladdr(reinterpret_cast<void*>(get_version), &info) != 0)
        found.path = info.dli_fname;
      if (!found.path.empty()) return found;
      dlclose(library);
    }
  return {};
}

// CUresult of cuInit in words that say what to do.
std::string init_problem(int code) {
  switch (code) {
    case 100:
      return "the driver finds no usable GPU (CUDA_VISIBLE_DEVICES empty, or no GPU given to this container?)";
    case 101:
      return "CUDA_VISIBLE_DEVICES names a GPU that does not exist";
    case 802:
      return "the GPUs are not ready: is nvidia-fabricmanager running?";
    case 803:
      return "libcuda.so.1 and the kernel module are of different versions: "
             "reboot, or update the container's driver libraries";
    case 804:
      return "this driver does not support the installed CUDA compatibility package";
    case 999:
      return "the driver failed to start (error 999): is the nvidia kernel module loaded and /dev/nvidia* accessible?";
    default:
      return fmt::format("the driver failed to start (cuInit returned {})", code);
  }
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

bool counters_refused(std::string_view params, std::string_view status) {
  // Numbers of capabilities: newer drivers accept PERFMON as well, which older kernels do not have.
  constexpr uint64_t kSysAdmin = 1ull << 21, kPerfmon = 1ull << 38;
  if (number_of(params, "RmProfilingAdminOnly", 10).value_or(0) == 0) return false;
  const auto capabilities = number_of(status, "CapEff", 16);
  return capabilities && (*capabilities & (kSysAdmin | kPerfmon)) == 0;
}

bool counters_refused() {
  return counters_refused(text_of("/proc/driver/nvidia/params"), text_of("/proc/self/status"));
}

std::string find_cupti_library() {
  return find_cupti().path;
}

NvidiaStatus inspect_nvidia() {
  NvidiaStatus status;
  status.driver = module_version();
  status.counters_refused = counters_refused();
  const Cupti cupti = find_cupti();
  status.cupti = cupti.path;
  status.cupti_version = cupti.version;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    status.problem = has_device_file()
                         ? "there are NVIDIA devices but no libcuda.so.1: install the driver's user-space libraries"
                         : "no NVIDIA driver (libcuda.so.1 is not installed)";
    return status;
  }
  status.driver_library = true;
  const auto function = [&]<typename F>(F& slot, const char* name) {
    slot = reinterpret_cast<F>(dlsym(library, name));
    return slot != nullptr;
  };
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*count_devices)(int*) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*get_name)(char*, int, int) = nullptr;
  int (*get_memory)(size_t*, int) = nullptr;
  int (*get_attribute)(int*, int, int) = nullptr;
  int (*get_uuid)(unsigned char*, int) = nullptr;
  if (!function(init, "cuInit") || !function(driver_version, "cuDriverGetVersion") ||
      !function(count_devices, "cuDeviceGetCount") || !function(get_device, "cuDeviceGet") ||
      !function(get_name, "cuDeviceGetName") || !function(get_memory, "cuDeviceTotalMem_v2") ||
      !function(get_attribute, "cuDeviceGetAttribute")) {
    status.problem = "libcuda.so.1 lacks basic functions: reinstall the driver";
    return status;
  }
  driver_version(&status.cuda_version);
  if (const int code = init(0); code != 0) {
    status.problem = init_problem(code);
    return status;
  }
  int count = 0;
  count_devices(&count);
  for (int index = 0; index < count && index < 1024; ++index) {
    int handle = 0;
    if (get_device(&handle, index) != 0) continue;
    NvidiaDevice device;
    char name[256] = {};
    if (get_name(name, sizeof name - 1, handle) == 0) device.name = name;
    size_t memory = 0;
    if (get_memory(&memory, handle) == 0) device.memory_bytes = memory;
    get_attribute(&device.multiprocessors, 16, handle);
    get_attribute(&device.capability_major, 75, handle);
    get_attribute(&device.capability_minor, 76, handle);
    const std::pair<int, int*> attributes[] = {{10, &device.warp_size},        {13, &device.sm_clock_khz},
                                               {36, &device.memory_clock_khz}, {37, &device.memory_bus_bits},
                                               {38, &device.l2_bytes},         {39, &device.threads_per_sm},
                                               {106, &device.blocks_per_sm},   {82, &device.registers_per_sm},
                                               {81, &device.shared_per_sm},    {111, &device.shared_reserved}};
    for (const auto& [attribute, to] : attributes) get_attribute(to, attribute, handle);
    unsigned char uuid[16] = {};
    if ((function(get_uuid, "cuDeviceGetUuid_v2") || function(get_uuid, "cuDeviceGetUuid")) &&
        get_uuid(uuid, handle) == 0) {
      device.uuid = "GPU-";
      for (int at = 0; at < 16; ++at)
        device.uuid += fmt::format("{}{:02x}", at == 4 || at == 6 || at == 8 || at == 10 ? "-" : "", uuid[at]);
    }
    int (*get_address)(char*, int, int) = nullptr;
    char address[64] = {};
    if (function(get_address, "cuDeviceGetPCIBusId") && get_address(address, sizeof address - 1, handle) == 0)
      device.pci = address;
    status.devices.push_back(std::move(device));
  }
  if (status.devices.empty())
    status.problem = init_problem(100);
  else if (status.cupti.empty())
    status.problem =
        "no CUPTI on the loader's path, in CUDA_HOME or /usr/local/cuda: install the toolkit's CUPTI or set CUDA_HOME "
        "(programs that bring their own, such as PyTorch wheels, are traced with theirs)";
  else if (status.cuda_version < 11080)
    status.problem = fmt::format("the driver is too old: it supports CUDA {}, tracing needs 11.8",
                                 cuda_version_text(status.cuda_version));
  return status;
}

std::string cuda_problem(const std::string& executable) {
  if (has_device_file() && module_version() != "") return {};
  // CUDA's compiler leaves a section with the device code.
  std::ifstream file(executable, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum)
    return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!file.seekg(static_cast<std::streamoff>(header.e_shoff)) ||
      !file.read(reinterpret_cast<char*>(sections.data()),
                 static_cast<std::streamsize>(sections.size() * sizeof(Elf64_Shdr))))
    return {};
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  if (names.sh_size > 1 << 20) return {};
  std::string text(names.sh_size, '\0');
  if (!file.seekg(static_cast<std::streamoff>(names.sh_offset)) ||
      !file.read(text.data(), static_cast<std::streamsize>(text.size())))
    return {};
  if (text.find("nv_fatbin") == std::string::npos && text.find("nvFatBinSegment") == std::string::npos) return {};
  return has_device_file() ? "the program holds CUDA code, but the NVIDIA kernel "
                             "module is not loaded here: it can use no GPU"
                           : "the program holds CUDA code, but this machine has no NVIDIA "
                             "driver (or this container was given no GPU)";
}

}  // namespace tacho::vendor
