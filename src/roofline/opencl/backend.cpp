// Any OpenCL device: benchmarks in OpenCL C, compiled by the device's own compiler when they are run. CPUs get one
// work-item a core with vectors as wide as their registers, GPUs work-groups of 256.
#include "roofline/backend.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include "roofline/mfma.h"
#include "roofline/numbers.h"
#include "roofline/opencl/driver.h"
#include "roofline/opencl/matrix.h"
#include "roofline/opencl/source.h"
#include "roofline/peaks.h"
#include "roofline/scale_work.h"

namespace tacho::roofline {
namespace {

struct Found {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
};

std::vector<Found> find_devices(std::string& note) {
  std::vector<Found> found;
  const OpenCl& cl = opencl();
  if (!cl.why.empty()) {
    note = cl.why;
    return found;
  }
  cl_uint count = 0;
  if (cl.GetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0 || count > 64) {
    note = "the OpenCL loader knows no platform";
    return found;
  }
  std::vector<cl_platform_id> platforms(count);
  cl.GetPlatformIDs(count, platforms.data(), nullptr);
  for (const cl_platform_id platform : platforms) {
    std::array<char, 256> name{};
    cl.GetPlatformInfo(platform, CL_PLATFORM_NAME, name.size() - 1, name.data(), nullptr);
    if (std::strstr(name.data(), "Oclgrind") != nullptr) continue;  // an interpreter has no speed to measure
    cl_uint devices = 0;
    if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS || devices == 0 ||
        devices > 256)
      continue;
    std::vector<cl_device_id> ids(devices);
    if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (const cl_device_id id : ids) found.push_back({platform, id});
  }
  if (found.empty()) note = "no OpenCL platform has a device";
  return found;
}

bool is_amd(const DeviceInfo& info) {
  return info.vendor.find("AMD") != std::string::npos || info.vendor.find("Advanced Micro") != std::string::npos;
}

DeviceInfo describe(cl_device_id device) {
  DeviceInfo info;
  info.backend = "opencl";
  info.name = device_text(device, CL_DEVICE_NAME);
  info.vendor = device_text(device, CL_DEVICE_VENDOR);
  info.driver = device_text(device, CL_DRIVER_VERSION);
  const auto type = device_value<cl_device_type>(device, CL_DEVICE_TYPE);
  info.kind = (type & CL_DEVICE_TYPE_GPU) != 0 ? "GPU" : (type & CL_DEVICE_TYPE_CPU) != 0 ? "CPU" : "accelerator";
  info.units = device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS, 1);
  if (const auto mhz = device_value<cl_uint>(device, CL_DEVICE_MAX_CLOCK_FREQUENCY); mhz > 0) info.max_clock = mhz;
  info.memory = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.cache = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  info.local_memory = device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  if (is_amd(info)) info.architecture = gfx_of(info.name);
  if (const CacheSizes known = caches_of(info.architecture); known.last != 0) info.cache = known.last;
  return info;
}

// Data cache of the first CPU in bytes; 0 if sysfs does not say.
uint64_t cpu_cache(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    int found = 0;
    std::string type, size;
    if (!(std::ifstream(folder + "level") >> found)) break;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> size;
    if (found != level || type == "Instruction") continue;
    const uint64_t value = std::strtoull(size.c_str(), nullptr, 10);
    return value * (size.ends_with("M") ? 1 << 20 : 1024);
  }
  return 0;
}

// Fused multiply-adds of a whole vector register that a core of this machine starts in a cycle: two, as server and
// desktop cores of the last ten years do; one of 64 bytes on AMD's Zen 4 (family 25), which does them in two halves.
double cpu_fma_units(uint32_t vector_bytes) {
  std::ifstream file("/proc/cpuinfo");
  std::string vendor;
  int family = 0;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("vendor_id")) vendor = line.substr(colon + 2);
    if (line.starts_with("cpu family")) family = std::atoi(line.c_str() + colon + 2);
  }
  return vendor == "AuthenticAMD" && family == 25 && vector_bytes >= 64 ? 1 : 2;
}

enum class Kind { kDramRead, kDramWrite, kDramCopy, kDramTriad, kL2, kL1, kLocal, kVector };

struct Plan {
  Kind kind;
  std::string_view column, label, type;  // type of the vector units' elements
};

constexpr std::array<Plan, 13> kPlans = {{{Kind::kDramRead, "HBMReadBw", "(read)", "uint"},
                                          {Kind::kDramWrite, "HBMWriteBw", "(write)", "uint"},
                                          {Kind::kDramCopy, "HBMCopyBw", "(copy)", "uint"},
                                          {Kind::kDramTriad, "HBMTriadBw", "(triad)", "float"},
                                          {Kind::kL2, "L2Bw", "L2 BW", "uint"},
                                          {Kind::kL1, "L1Bw", "L1 BW", "uint"},
                                          {Kind::kLocal, "LDSBw", "Local memory BW", "uint"},
                                          {Kind::kVector, "FP32Flops", "Peak FLOPs (FP32)", "float"},
                                          {Kind::kVector, "FP64Flops", "Peak FLOPs (FP64)", "double"},
                                          {Kind::kVector, "FP16Flops", "Peak FLOPs (FP16)", "half"},
                                          {Kind::kVector, "I32Ops", "Peak IOPs (I32)", "int"},
                                          {Kind::kVector, "I64Ops", "Peak IOPs (I64)", "long"},
                                          {Kind::kVector, "I8Ops", "Peak IOPs (I8)", "char"}}};

uint64_t l1_size(const ClSession& session) {
  const uint64_t known = session.cpu ? cpu_cache(1) : caches_of(session.info.architecture).l1;
  return known != 0 ? known : 32 * 1024;
}
uint64_t l2_size(const ClSession& session) {
  if (session.cpu) return std::max<uint64_t>(cpu_cache(2), 256 * 1024);
  const uint64_t known = caches_of(session.info.architecture).l2;
  return known != 0 ? known : session.info.cache;
}

class OpenClBenchmark : public Benchmark, ClKernel {
 public:
  OpenClBenchmark(std::shared_ptr<ClSession> session, const Plan& plan) : ClKernel(std::move(session)), plan_(plan) {}

  Status prepare() {
    const bool vector = plan_.kind == Kind::kVector;
    group_size_ = session_->cpu ? 1 : 256;
    groups_ = session_->info.units * (session_->cpu ? 1 : 8);
    element_ = plan_.type == "char"                             ? 1
               : plan_.type == "half"                           ? 2
               : plan_.type == "double" || plan_.type == "long" ? 8
                                                                : 4;
    // Registers of a CPU hold 16 to 64 bytes; GPUs want accesses of 16 bytes and scalar arithmetic.
    const auto native = device_value<cl_uint>(session_->device, CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, 4);
    const uint32_t bytes = session_->cpu ? std::clamp<uint32_t>(native * 4, 16, 64) : vector ? element_ : 16;
    lanes_ = std::clamp<uint32_t>(bytes / element_, 1, 16);
    TACHO_TRY(build());
    return vector ? prepare_vector() : prepare_memory();
  }

  Status calibrate(double target) override {
    if (plan_.kind <= Kind::kDramTriad) return {};
    return scale_work(target, step_, 1e9, count_, [this] { return run(); });
  }

  Result<Sample> run() override {
    if (parts_ > 1) {
      part_ = (part_ + 1) % parts_;
      region_ = part_ * count_ * kClMemoryUnroll;
    }
    TACHO_TRY(set_arguments());
    TACHO_ASSIGN(const double duration, launch());
    // OpenCL does not report a GPU's current clock; a CPU's has been measured.
    return Sample{duration, session_->cpu ? session_->info.max_clock : kUnknown};
  }

  double work() const override {
    const double items = static_cast<double>(groups_) * group_size_;
    switch (plan_.kind) {
      case Kind::kVector:
        return items * kClChains * kClVectorUnroll * lanes_ * 2.0 * count_;
      case Kind::kDramCopy:
        return 2.0 * static_cast<double>(size_ / parts_);
      case Kind::kDramTriad:
        return 3.0 * static_cast<double>(size_ / parts_);
      case Kind::kDramRead:
      case Kind::kDramWrite:
        return static_cast<double>(size_ / parts_);
      default:
        return items * kClMemoryUnroll * lanes_ * element_ * count_;
    }
  }
  uint32_t group_size() const override { return group_size_; }
  uint32_t groups() const override { return groups_; }

  Status check() override { return plan_.kind == Kind::kVector ? check_vector() : check_memory(); }

 private:
  Status build() {
    const bool vector = plan_.kind == Kind::kVector;
    const std::string wide = lanes_ == 1 ? std::string(plan_.type) : fmt::format("{}{}", plan_.type, lanes_);
    const std::string unsigned_wide = lanes_ == 1 ? "uint" : fmt::format("uint{}", lanes_);
    const std::string options = fmt::format(
        "-DT={} -DV={} -DLANES={} -DCHAINS={} -DUNROLL={}{}{}{}{}", plan_.type,
        vector                  ? wide
        : plan_.type == "float" ? wide
                                : unsigned_wide,
        lanes_, kClChains, vector ? kClVectorUnroll : kClMemoryUnroll, vector ? " -DVECTOR" : "",
        plan_.type == "half"     ? " -DHALF"
        : plan_.type == "double" ? " -DDOUBLE"
                                 : "",
        vector && (plan_.type == "float" || plan_.type == "double" || plan_.type == "half") ? " -DFLOATING" : "",
        plan_.kind == Kind::kDramTriad ? " -DTRIAD" : "");
    static constexpr std::array<const char*, 8> kNames = {"dram_read", "dram_write", "dram_copy", "dram_triad",
                                                          "cached",    "cached",     "local_set", "vector_units"};
    return ClKernel::build(kOpenClSource, options, kNames[static_cast<size_t>(plan_.kind)]);
  }

  // Arguments of every kernel: table, second table, target, out, count, then four numbers.
  Status set_arguments() {
    cl_uint index = 0;
    for (const cl_mem& memory : memory_) TACHO_TRY(argument(index++, memory));
    for (const cl_uint number : {count_, first_, stride_, mask_, region_}) TACHO_TRY(argument(index++, number));
    return {};
  }

  Status prepare_vector() {
    // Starting values of all chains of 1024 work-items, then factors and summands for one vector each.
    const uint32_t starts = 1024 * kClChains * lanes_, elements = starts + 2 * lanes_;
    host_.resize(size_t{elements} * element_);
    for (uint32_t i = 0; i < elements; ++i) {
      const uint32_t bits = random_bits(i), more = random_bits(uint64_t{1} << 40 | i);
      const bool factor = i >= starts && i < starts + lanes_;
      const double unit = 0.5 + 1.5 * bits / 4294967296.0;
      if (plan_.type == "float")
        put(i, static_cast<float>(factor ? -1 + std::ldexp(1 + bits % 7, -23) : unit));
      else if (plan_.type == "double")
        put(i, factor ? -1 + std::ldexp(1 + bits % 7, -50) : unit);
      else if (plan_.type == "half")
        put(i, to_half(factor ? -1 + std::ldexp(1 + bits % 3, -11) : 0.5 + 1.5 * (bits & 0xFFFF) / 65536));
      else if (plan_.type == "int")
        put(i, factor ? bits | 1 : bits);
      else if (plan_.type == "long")
        put(i, (uint64_t{bits} << 32 | more) | (factor ? 1 : 0));
      else
        put(i, static_cast<unsigned char>(factor ? bits | 1 : bits));
    }
    count_ = 64;
    TACHO_TRY(allocate(0, host_.size(), host_.data()));
    TACHO_TRY(allocate(1, 64, nullptr));
    TACHO_TRY(allocate(2, 64, nullptr));
    return allocate(3, size_t{groups_} * group_size_ * kClChains * lanes_ * element_, nullptr);
  }

  // Some chains of some work-items again on the host.
  Status check_vector() {
    const uint32_t items = groups_ * group_size_, starts = 1024 * kClChains * lanes_;
    for (const auto& [item, chain, lane] : {std::array{0U, 0U, 0U}, {items - 1, kClChains - 1, lanes_ - 1}}) {
      const size_t at = (size_t{item} * kClChains + chain) * lanes_ + lane;
      TACHO_ASSIGN(const std::vector<unsigned char> got, download<unsigned char>(3, at * element_, element_));
      const uint32_t a = ((item % 1024) * kClChains + chain) * lanes_ + lane, b = starts + lane, c = b + lanes_;
      const uint64_t steps = uint64_t{count_} * kClVectorUnroll;
      std::array<unsigned char, 8> expected{};
      const auto save = [&](auto value) { std::memcpy(expected.data(), &value, sizeof value); };
      if (plan_.type == "float") {
        auto x = get<float>(a);
        for (uint64_t i = 0; i < steps; ++i) x = std::fmaf(x, get<float>(b), get<float>(c));
        save(x);
      } else if (plan_.type == "double") {
        auto x = get<double>(a);
        for (uint64_t i = 0; i < steps; ++i) x = std::fma(x, get<double>(b), get<double>(c));
        save(x);
      } else if (plan_.type == "half") {
        auto x = get<uint16_t>(a);
        for (uint64_t i = 0; i < steps; ++i)
          x = to_half(from_half(x) * from_half(get<uint16_t>(b)) + from_half(get<uint16_t>(c)));
        save(x);
      } else {
        uint64_t x = whole(a);
        for (uint64_t i = 0; i < steps; ++i) x = x * whole(b) + whole(c);  // the low bits are those of narrow types
        save(x);
      }
      if (std::memcmp(expected.data(), got.data(), element_) != 0)
        return fail("chain {} of work-item {} has another value than {} steps on the host", chain, item, steps);
    }
    return {};
  }

  Status prepare_memory() {
    const uint32_t vector = lanes_ * 4;
    uint32_t items = groups_ * group_size_;
    if (plan_.kind <= Kind::kDramTriad) {
      // Larger than every cache, a whole number of trips for every work-item.
      // A CPU's run takes one of several parts of the arrays, the next run the next: runs are short, and no part is in
      // a cache any more when its turn comes again.
      parts_ = session_->cpu ? 16 : 1;
      const uint64_t trip = uint64_t{items} * kClMemoryUnroll * vector * parts_;
      const auto most = device_value<cl_ulong>(session_->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 128 << 20);
      const uint64_t cache = session_->info.cache, arrays = plan_.kind == Kind::kDramTriad  ? 3
                                                            : plan_.kind == Kind::kDramCopy ? 2
                                                                                            : 1;
      uint64_t wanted =
          session_->cpu ? std::max<uint64_t>(3 * cache, 64 << 20) : std::max<uint64_t>(16 * cache, 512 << 20);
      wanted = std::min(
          {wanted, uint64_t{most}, session_->info.memory / (2 * arrays), std::max(uint64_t{1} << 30, 3 * cache)});
      // Runs go through all arrays in turn: together they have to exceed the caches.
      if (wanted < cache || arrays * wanted < 2 * cache)
        return fail("{} MiB of device memory are too little for arrays that do not fit into its caches",
                    session_->info.memory >> 20);
      count_ = static_cast<uint32_t>(wanted / trip);
      size_ = count_ * trip;
      // CPUs: each core its own piece; GPUs: neighbours next to each other.
      first_ = session_->cpu ? parts_ * count_ * kClMemoryUnroll : 1;
      stride_ = session_->cpu ? 1 : items;
    } else {
      // A CPU's cores have sets of their own. All groups of a GPU read the same one, so that those that share a cache
      // fit into it.
      const bool local = plan_.kind == Kind::kLocal, own = session_->cpu;
      const uint64_t limit = local                     ? std::min<uint64_t>(session_->info.local_memory / 2, 16 * 1024)
                             : plan_.kind == Kind::kL1 ? l1_size(*session_) / 2
                             : session_->cpu           ? l2_size(*session_) / 2
                                                       : l2_size(*session_) / 4;
      for (; !session_->cpu && group_size_ > 64 && uint64_t{group_size_} * kClMemoryUnroll * vector > limit;
           group_size_ /= 2)
        groups_ *= 2;
      items = groups_ * group_size_;
      const uint64_t least = uint64_t{group_size_} * kClMemoryUnroll * vector;
      uint64_t set = 1024;
      while (set * 2 <= limit) set *= 2;
      if (set < least) {
        if (local || set * 4 < least) return fail("its {} KiB are too little for a work-group", limit >> 10);
        set = least;
      }
      mask_ = static_cast<uint32_t>(set / vector - 1);
      region_ = own && !local ? static_cast<uint32_t>(set / vector) : 0;
      stride_ = group_size_;
      step_ = static_cast<uint32_t>(set / least);
      count_ = step_ * 16;
      size_ = region_ != 0 ? set * groups_ : set;
      if (local) TACHO_TRY(local_argument(9, set));
    }
    std::vector<uint32_t> words(size_ / 4);
    for (size_t i = 0; i < words.size(); ++i) words[i] = word_of(i);
    const bool reads = plan_.kind != Kind::kDramWrite;
    TACHO_TRY(allocate(0, reads ? size_ : size_t{items} * vector, words.data()));
    if (plan_.kind == Kind::kDramTriad) {
      std::reverse(words.begin(), words.end());
      TACHO_TRY(allocate(1, size_, words.data()));
    } else {
      TACHO_TRY(allocate(1, 64, nullptr));
    }
    const bool writes =
        plan_.kind == Kind::kDramWrite || plan_.kind == Kind::kDramCopy || plan_.kind == Kind::kDramTriad;
    TACHO_TRY(allocate(2, writes ? size_ : 64, nullptr));
    return allocate(3, size_t{items} * 4, nullptr);
  }

  // Words that are floats in [0.5, 2).
  static uint32_t word_of(uint64_t i) { return 0x3F000000U | (random_bits(i % (1U << 20)) & 0x00FFFFFFU); }

  Status check_memory() {
    const uint32_t items = groups_ * group_size_;
    if (plan_.kind == Kind::kDramWrite || plan_.kind == Kind::kDramCopy || plan_.kind == Kind::kDramTriad) {
      for (cl_uint i = 0; parts_ > 1 && i < parts_; ++i) TACHO_TRY(run());
      const uint64_t words = size_ / 4;
      for (uint64_t piece = 0; piece < 8; ++piece) {
        constexpr size_t kWords = 8192;
        const uint64_t first = (words - kWords) / 7 * piece;
        TACHO_ASSIGN(const std::vector<uint32_t> got, download<uint32_t>(2, first * 4, kWords));
        for (size_t i = 0; i < kWords; ++i) {
          const uint64_t at = first + i;
          uint32_t expected = word_of(at);
          if (plan_.kind == Kind::kDramWrite) {
            const uint64_t vector = at / lanes_, item = session_->cpu ? vector / first_ : vector % items;
            expected = word_of(item * lanes_ + at % lanes_);
          } else if (plan_.kind == Kind::kDramTriad) {
            expected = std::bit_cast<uint32_t>(
                std::fmaf(std::bit_cast<float>(word_of(words - 1 - at)), 0.75F, std::bit_cast<float>(word_of(at))));
          }
          if (got[i] != expected) return fail("word {} is {:08x} and must be {:08x}", at, got[i], expected);
        }
      }
      return {};
    }
    TACHO_ASSIGN(const std::vector<uint32_t> sums, download<uint32_t>(3, 0, items));
    uint32_t got = 0, expected = 0;
    for (const uint32_t sum : sums) got += sum;
    if (parts_ > 1) {  // the part of each work-item's piece that the last run read
      const uint64_t words = uint64_t{count_} * kClMemoryUnroll * lanes_;
      for (uint64_t item = 0; item < items; ++item)
        for (uint64_t i = 0; i < words; ++i) expected += word_of((item * first_ + region_) * lanes_ + i);
    } else {
      for (uint64_t i = 0; i < size_ / 4; ++i) expected += word_of(i);
    }
    if (plan_.kind != Kind::kDramRead) expected *= count_ / step_ * (region_ != 0 ? 1 : groups_);
    if (got != expected) return fail("the sum of the values read is {:08x} and must be {:08x}", got, expected);
    return {};
  }

  template <typename T>
  void put(uint32_t i, T value) {
    std::memcpy(host_.data() + size_t{i} * sizeof value, &value, sizeof value);
  }
  template <typename T>
  T get(uint32_t i) const {
    T value;
    std::memcpy(&value, host_.data() + size_t{i} * sizeof value, sizeof value);
    return value;
  }
  uint64_t whole(uint32_t i) const {
    uint64_t value = 0;
    std::memcpy(&value, host_.data() + size_t{i} * element_, element_);
    return value;
  }

  Plan plan_;
  std::vector<unsigned char> host_;
  uint32_t element_ = 4, lanes_ = 1;
  cl_uint parts_ = 1, part_ = 0;
  cl_uint count_ = 1, step_ = 1, first_ = 0, stride_ = 1, mask_ = 0, region_ = 0;
  uint64_t size_ = 0;
};

// The chain that a CPU's clock is found with.
class ClockChain : ClKernel {
 public:
  explicit ClockChain(std::shared_ptr<ClSession> session) : ClKernel(std::move(session)) {}
  Status prepare() {
    TACHO_TRY(build(kOpenClClock, "", "chain"));
    return allocate(0, size_t{session_->info.units} * 4, nullptr);
  }
  // MHz of `cores` cores; 0 if the device's times make no sense.
  Result<double> clock(uint32_t cores) {
    groups_ = cores;
    // Short, so that some of them are not interrupted by other programs.
    constexpr cl_uint kShort = 40'000, kLong = 4 * kShort;
    double shortest = INFINITY, longest = INFINITY;
    for (int i = 0; i < 40; ++i) {
      TACHO_ASSIGN(const double brief, run(kShort));
      TACHO_ASSIGN(const double lasting, run(kLong));
      shortest = std::min(shortest, brief);
      longest = std::min(longest, lasting);
    }
    return longest > shortest ? kClChainCycles * (kLong - kShort) / (longest - shortest) * 1e3 : 0;
  }

 private:
  Result<double> run(cl_uint rounds) {
    TACHO_TRY(argument(0, memory_[0]));
    TACHO_TRY(argument(1, rounds));
    return launch();
  }
};

class OpenClDevice : public BenchmarkDevice {
 public:
  explicit OpenClDevice(std::shared_ptr<ClSession> session) : session_(std::move(session)) {}

  const DeviceInfo& info() const override { return session_->info; }
  double run_time() const override { return session_->cpu ? 0.6e6 : 3e6; }
  double experiment_time() const override { return session_->cpu ? 40e6 : 0; }

  std::vector<Offer> offers() const override {
    std::vector<Offer> list;
    for (size_t i = 0; i < kPlans.size(); ++i) {
      const Plan& plan = kPlans[i];
      Offer& offer = list.emplace_back();
      offer.index = static_cast<int>(i);
      Measurement& m = offer.measurement;
      m.column = plan.column;
      m.label = plan.kind <= Kind::kDramTriad ? fmt::format("{} BW {}", session_->cpu ? "DRAM" : "HBM", plan.label)
                                              : std::string(plan.label);
      m.path = "OpenCL C";
      m.unit = plan.kind != Kind::kVector ? "GB/s" : plan.column.starts_with("FP") ? "GFLOP/s" : "GOP/s";
      const auto has = [&](const char* extension) { return session_->extensions.find(extension) != std::string::npos; };
      if (plan.type == "double" && !has("cl_khr_fp64")) m.skipped = "the device has no FP64 (cl_khr_fp64)";
      if (plan.type == "half" && !has("cl_khr_fp16")) m.skipped = "the device has no FP16 (cl_khr_fp16)";
      if (session_->cpu && plan.kind == Kind::kVector) {
        // OpenCL's properties do not say how many units of that width there are.
        const auto width =
            device_value<cl_uint>(session_->device, plan.type == "double" ? CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE
                                                                          : CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
        if (plan.type == "float" || plan.type == "double")
          offer.peak_per_clock =
              session_->info.units * width * 2 * cpu_fma_units(width * (plan.type == "double" ? 8 : 4)) * 1e-3;
      }
      if (!session_->cpu && plan.kind == Kind::kVector && (plan.type == "float" || plan.type == "double")) {
        offer.peak_per_clock = per_cycle(session_->info.architecture, plan.type == "float" ? "fp32" : "fp64") *
                               session_->info.units * 1e-3;
        if (std::isnan(offer.peak_per_clock) && plan.type == "float") offer.peak_per_clock = lanes_per_cycle() * 2e-3;
      }
    }
    if (!session_->cpu && is_amd(session_->info)) add_matrix_offers(list);
    return list;
  }

  Result<std::unique_ptr<Benchmark>> prepare(const Offer& offer) override {
    if (session_->cpu) TACHO_TRY(find_clock());
    if (const auto index = static_cast<size_t>(offer.index); index >= kPlans.size())
      return prepare_matrix(session_, mfma_kinds(session_->info.architecture)[index - kPlans.size()]);
    auto benchmark = std::make_unique<OpenClBenchmark>(session_, kPlans[static_cast<size_t>(offer.index)]);
    TACHO_TRY(benchmark->prepare());
    return benchmark;
  }

  // On processors that is time for nothing: their compiler's code runs.
  Status try_out() override {
    const auto plan =
        std::find_if(kPlans.begin(), kPlans.end(), [](const Plan& each) { return each.column == "FP32Flops"; });
    OpenClBenchmark benchmark(session_, *plan);
    // A kernel that cannot be built or started fails in its own benchmark.
    if (session_->cpu || !benchmark.prepare() || !benchmark.run()) return {};
    return benchmark.check();
  }

  // A CPU's own clock property is its nominal one: the real one comes from a chain of operations of one cycle each, on
  // all cores at the same time. Starting the cores costs the same for a long and a short chain, so that cost cancels in
  // their difference. All cores together are seldom faster than one alone; if other programs keep one busy, they only
  // look slower.
  Status find_clock() {
    ClockChain chain(session_);
    TACHO_TRY(chain.prepare());
    TACHO_ASSIGN(const double one, chain.clock(1));
    double all = 0;
    for (int i = 0; i < 4 && all < 0.97 * one; ++i) {
      TACHO_ASSIGN(const double again, chain.clock(session_->info.units));
      all = std::max(all, again);
    }
    const double clock = all > one || all < 0.6 * one ? one : all;
    if (clock > 0) session_->info.max_clock = found_clock_ ? std::max(clock, session_->info.max_clock) : clock;
    found_clock_ = true;
    return {};
  }

 private:
  // Offers of AMD's matrix cores: those of the architecture, and those that it lacks, as skipped.
  void add_matrix_offers(std::vector<Offer>& list) const {
    const std::string& architecture = session_->info.architecture;
    const std::vector<MfmaKind> kinds = mfma_kinds(architecture);
    for (const std::string_view type : {"F64", "F32", "TF32", "F16", "BF16", "F8", "I8"}) {
      const auto kind =
          std::find_if(kinds.begin(), kinds.end(), [&](const MfmaKind& each) { return name_of(each.element) == type; });
      const bool integer = type == "I8";
      Offer offer;
      Measurement& m = offer.measurement;
      m.column = fmt::format("MFMA{}{}", type, integer ? "Ops" : "Flops");
      m.label = fmt::format("Peak MFMA {} ({})", integer ? "IOPs" : "FLOPs", type);
      m.unit = integer ? "GOP/s" : "GFLOP/s";
      if (kind != kinds.end()) {
        offer.index = static_cast<int>(kPlans.size() + static_cast<size_t>(kind - kinds.begin()));
        offer.peak_per_clock = kind->per_cycle * session_->info.units * 1e-3;
        m.path = kind->instruction;
      } else if (!kinds.empty()) {
        m.skipped = fmt::format("{} has no MFMA instruction for {}", architecture, type);
      } else {
        m.skipped = fmt::format("tacho knows the matrix instructions of {}, and this is {}", mfma_architectures(),
                                architecture.empty() ? session_->info.name : architecture);
      }
      list.push_back(std::move(offer));
    }
  }
  // FP32 lanes that work in a cycle, from the vendors' extensions; NaN without one.
  double lanes_per_cycle() const {
    constexpr cl_device_info kSimds = 0x4040, kWidth = 0x4041,
                             kInstruction = 0x4042;  // cl_amd_device_attribute_query
    const auto simds = device_value<cl_uint>(session_->device, kSimds),
               width = device_value<cl_uint>(session_->device, kWidth);
    const auto instruction = device_value<cl_uint>(session_->device, kInstruction, 1);
    return simds == 0 || width == 0
               ? kUnknown
               : static_cast<double>(session_->info.units) * simds * width * std::max(instruction, 1U);
  }

  std::shared_ptr<ClSession> session_;
  bool found_clock_ = false;
};

}  // namespace

static std::vector<DeviceEntry> opencl_devices(std::string& note) {
  std::vector<DeviceEntry> devices;
  for (const Found& found : find_devices(note))
    devices.push_back({describe(found.device), static_cast<int>(devices.size())});
  return devices;
}

static Result<std::unique_ptr<BenchmarkDevice>> open_opencl_device(int index) {
  std::string note;
  const std::vector<Found> found = find_devices(note);
  if (index < 0 || static_cast<size_t>(index) >= found.size()) return fail("there is no OpenCL device {}", index);
  auto session = std::make_shared<ClSession>();
  session->device = found[static_cast<size_t>(index)].device;
  session->info = describe(session->device);
  session->cpu = session->info.kind == "CPU";
  session->extensions = device_text(session->device, CL_DEVICE_EXTENSIONS);
  if (device_value<cl_bool>(session->device, CL_DEVICE_AVAILABLE, CL_TRUE) == CL_FALSE)
    return fail("{}: the device is not available", session->info.name);
  cl_int code = 0;
  const std::array<cl_context_properties, 3> properties = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(found[static_cast<size_t>(index)].platform), 0};
  session->context = opencl().CreateContext(properties.data(), 1, &session->device, nullptr, nullptr, &code);
  TACHO_TRY(check("clCreateContext", code));
  session->queue = opencl().CreateCommandQueue(session->context, session->device, CL_QUEUE_PROFILING_ENABLE, &code);
  TACHO_TRY(check("clCreateCommandQueue", code));
  auto device = std::make_unique<OpenClDevice>(session);
  if (session->cpu) TACHO_TRY(device->find_clock());
  return device;
}

extern const Backend kOpenClBackend;
const Backend kOpenClBackend = {"opencl", "", "", opencl_devices, open_opencl_device};

}  // namespace tacho::roofline
