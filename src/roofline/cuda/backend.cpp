// NVIDIA GPUs through the driver API: compiles the PTX of ptx.h for the device, runs it, and checks the results.
#include "roofline/backend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "roofline/cuda/ptx.h"
#include "roofline/elements.h"
#include "roofline/numbers.h"
#include "roofline/peaks.h"
#include "roofline/scale_work.h"
#include "vendor/nvidia/cuda_driver.h"

namespace tacho::roofline {
namespace {

using vendor::CudaDriver;

constexpr uint32_t kPatternWords = 1U << 20;  // of the random data that memory benchmarks read

// A word that is a float in [0.5, 2).
uint32_t pattern_word(uint64_t i, uint32_t seed) {
  return 0x3F000000U | (random_bits((uint64_t{seed} << 32) + i % kPatternWords) & 0x00FFFFFFU);
}

// Device memory that is freed with its owner.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept : driver_(other.driver_), at_(std::exchange(other.at_, 0)), size_(other.size_) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Memory() {
    if (at_ != 0) driver_->MemFree(at_);
  }
  static Result<Memory> allocate(const CudaDriver& driver, size_t size) {
    Memory memory;
    memory.driver_ = &driver;
    memory.size_ = size;
    if (const auto code = driver.MemAlloc(&memory.at_, size); code != 0)
      return fail("{} MiB of device memory: {}", size >> 20, driver.describe("cuMemAlloc", code));
    return memory;
  }
  CudaDriver::Pointer at() const { return at_; }
  size_t size() const { return size_; }

 private:
  const CudaDriver* driver_ = nullptr;
  CudaDriver::Pointer at_ = 0;
  size_t size_ = 0;
};

// The common parts of all kernels: module, buffers, launch and timing.
class CudaBenchmark : public Benchmark {
 public:
  CudaBenchmark(const CudaDriver& driver, uint32_t units) : driver_(driver), units_(units) {}
  ~CudaBenchmark() override {
    for (CudaDriver::Handle event : {begin_, end_})
      if (event != nullptr) driver_.EventDestroy(event);
    if (module_ != nullptr) driver_.ModuleUnload(module_);
  }

  // Loads the text and chooses a grid of at most `most` blocks on every multiprocessor, all resident at once, with
  // `shared` bytes of dynamic shared memory.
  Status load(const std::string& ptx, uint32_t threads, int most, uint32_t shared = 0) {
    std::array<char, 2048> log{};
    std::array<int, 2> options = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER, ..._SIZE_BYTES
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
    if (const auto code = driver_.ModuleLoadDataEx(&module_, ptx.c_str(), 2, options.data(), values.data());
        code != 0) {
      module_ = nullptr;
      std::string text(log.data(), strnlen(log.data(), log.size()));
      text = text.substr(0, text.find('\n'));
      return fail("the driver does not compile the kernel: {}{}{}", driver_.describe("cuModuleLoadDataEx", code),
                  text.empty() ? "" : ": ", text);
    }
    TACHO_TRY(driver_.check("cuModuleGetFunction", driver_.ModuleGetFunction(&function_, module_, kEntry)));
    constexpr int kMaxDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if (shared > 48 * 1024)
      TACHO_TRY(driver_.check("cuFuncSetAttribute",
                              driver_.FuncSetAttribute(function_, kMaxDynamicShared, static_cast<int>(shared))));
    shared_ = shared;
    int resident = 0;
    TACHO_TRY(driver_.check("cuOccupancyMaxActiveBlocksPerMultiprocessor",
                            driver_.Occupancy(&resident, function_, static_cast<int>(threads), shared)));
    if (resident == 0) return fail("the kernel does not fit onto a multiprocessor");
    threads_ = threads;
    blocks_ = units_ * static_cast<uint32_t>(std::min(resident, most));
    TACHO_TRY(driver_.check("cuEventCreate", driver_.EventCreate(&begin_, 0)));
    TACHO_TRY(driver_.check("cuEventCreate", driver_.EventCreate(&end_, 0)));
    TACHO_ASSIGN(clock_, Memory::allocate(driver_, 16));
    return {};
  }

  Status calibrate(double target) override {
    return scale_work(target, step_, 4e7, count_, [this] { return run(); });
  }

  Result<Sample> run() override {
    TACHO_TRY(launch(count_));
    Sample sample;
    float ms = 0;
    TACHO_TRY(driver_.check("cuEventElapsedTime", driver_.EventElapsedTime(&ms, begin_, end_)));
    sample.duration = static_cast<double>(ms) * 1e6;
    std::array<uint64_t, 2> clocks{};
    TACHO_TRY(driver_.check("cuMemcpyDtoH", driver_.MemcpyDtoH(clocks.data(), clock_.at(), sizeof clocks)));
    // %globaltimer moves in steps of up to a microsecond.
    if (clocks[1] > 100'000) sample.clock = static_cast<double>(clocks[0]) / static_cast<double>(clocks[1]) * 1e3;
    return sample;
  }

  uint32_t group_size() const override { return threads_; }
  uint32_t groups() const override { return blocks_; }

 protected:
  Status launch(uint32_t count) {
    CudaDriver::Pointer table = table_address_, target = target_address_, out = out_address_, clock = clock_.at();
    uint32_t extra = extra_;
    std::array<void*, 6> arguments = {&table, &target, &out, &clock, &count, &extra};
    TACHO_TRY(driver_.check("cuEventRecord", driver_.EventRecord(begin_, nullptr)));
    TACHO_TRY(driver_.check("cuLaunchKernel", driver_.LaunchKernel(function_, blocks_, 1, 1, threads_, 1, 1, shared_,
                                                                   nullptr, arguments.data(), nullptr)));
    TACHO_TRY(driver_.check("cuEventRecord", driver_.EventRecord(end_, nullptr)));
    return driver_.check("the kernel", driver_.EventSynchronize(end_));
  }

  Result<Memory> upload(const void* data, size_t size) {
    TACHO_ASSIGN(Memory memory, Memory::allocate(driver_, size));
    TACHO_TRY(driver_.check("cuMemcpyHtoD", driver_.MemcpyHtoD(memory.at(), data, size)));
    return memory;
  }
  template <typename T>
  Result<std::vector<T>> download(CudaDriver::Pointer from, size_t count) {
    std::vector<T> values(count);
    TACHO_TRY(driver_.check("cuMemcpyDtoH", driver_.MemcpyDtoH(values.data(), from, count * sizeof(T))));
    return values;
  }
  uint32_t all_threads() const { return threads_ * blocks_; }

  const CudaDriver& driver_;
  uint32_t units_;
  uint32_t threads_ = 0, blocks_ = 0;
  uint32_t shared_ = 0;
  uint32_t count_ = 16, step_ = 1, extra_ = 0;
  CudaDriver::Pointer table_address_ = 0, target_address_ = 0, out_address_ = 0;

 private:
  CudaDriver::Handle module_ = nullptr, function_ = nullptr, begin_ = nullptr, end_ = nullptr;
  Memory clock_;
};

// Vector units

class VectorBenchmark : public CudaBenchmark {
 public:
  VectorBenchmark(const CudaDriver& driver, uint32_t units, const VectorKind& kind)
      : CudaBenchmark(driver, units), kind_(kind) {}

  Status prepare() {
    TACHO_TRY(load(vector_ptx(kind_), 256, 4));
    constexpr uint32_t kElements = kStarts + 2 * kFactors;
    host_.resize(kElements * kind_.bytes);
    for (uint32_t i = 0; i < kElements; ++i) {
      const uint32_t bits = random_bits(i), more = random_bits(uint64_t{1} << 40 | i);
      const bool factor = i >= kStarts && i < kStarts + kFactors;
      // Factors a little above -1 keep values moving for a long time and never let them grow.
      const double unit = 0.5 + 1.5 * bits / 4294967296.0;
      if (kind_.type == "f32") {
        put(i, static_cast<float>(factor ? -1 + std::ldexp(1 + bits % 7, -23) : unit));
      } else if (kind_.type == "f64") {
        const double tiny = std::ldexp(1 + bits % 7, -48);  // a * b + a: the factor is 1 + b
        put(i, factor ? (bits % 2 == 0 ? tiny : -tiny) : unit + std::ldexp(more, -55));
      } else if (kind_.type == "b32") {
        const auto half = [&](uint32_t r) {
          return to_half(factor ? -1 + std::ldexp(1 + r % 3, -11) : 0.5 + 1.5 * (r & 0xFFFF) / 65536.0);
        };
        put(i, static_cast<uint32_t>(half(bits)) | static_cast<uint32_t>(half(more)) << 16);
      } else if (kind_.bytes == 4) {
        put(i, factor && kind_.name != "i8" ? bits | 1 : bits);
      } else {
        put(i, (static_cast<uint64_t>(bits) << 32 | more) | (factor ? 1 : 0));
      }
    }
    TACHO_ASSIGN(table_, upload(host_.data(), host_.size()));
    TACHO_ASSIGN(out_, Memory::allocate(driver_, size_t{all_threads()} * kChains * kind_.bytes));
    table_address_ = table_.at();
    out_address_ = out_.at();
    return {};
  }

  double work() const override {
    return static_cast<double>(all_threads()) * kChains * kVectorUnroll * count_ * kind_.operations;
  }

  // Every step of every chain again on the host, for some threads.
  Status check() override {
    std::vector<uint32_t> threads = {0, all_threads() - 1};
    if (kind_.name != "fp16") threads.push_back(all_threads() / 2 + 17);
    for (const uint32_t thread : threads) {
      TACHO_ASSIGN(
          const std::vector<unsigned char> got,
          download<unsigned char>(out_.at() + uint64_t{thread} * kChains * kind_.bytes, size_t{kChains} * kind_.bytes));
      const uint32_t b = kStarts + thread % kFactors, c = b + kFactors;
      for (uint32_t k = 0; k < kChains; ++k) {
        const uint32_t a = (thread * kChains + k) % kStarts;
        std::array<unsigned char, 8> expected{};
        const uint64_t steps = uint64_t{count_} * kVectorUnroll;
        if (kind_.type == "f32") {
          auto x = get<float>(a);
          for (uint64_t i = 0; i < steps; ++i) x = std::fmaf(x, get<float>(b), get<float>(c));
          std::memcpy(expected.data(), &x, sizeof x);
        } else if (kind_.type == "f64") {
          auto x = get<double>(a);
          for (uint64_t i = 0; i < steps; ++i) x = std::fma(x, get<double>(b), x);
          std::memcpy(expected.data(), &x, sizeof x);
        } else if (kind_.name == "fp16") {
          uint32_t x = get<uint32_t>(a);
          for (const int shift : {0, 16}) {
            const auto part = [&](uint32_t word) { return static_cast<uint16_t>(word >> shift); };
            uint16_t h = part(x);
            const double fb = from_half(part(get<uint32_t>(b))), fc = from_half(part(get<uint32_t>(c)));
            // Products and sums of halves this size are exact in double.
            for (uint64_t i = 0; i < steps; ++i) {
              const uint16_t next = to_half(from_half(h) * fb + fc);
              if (const bool settled = next == h; settled) break;
              h = next;
            }
            x = (x & ~(0xFFFFU << shift)) | static_cast<uint32_t>(h) << shift;
          }
          std::memcpy(expected.data(), &x, sizeof x);
        } else if (kind_.name == "i8") {
          uint32_t x = get<uint32_t>(a);
          for (uint64_t i = 0; i < steps; ++i) x = dot(x, get<uint32_t>(b)) + get<uint32_t>(c);
          std::memcpy(expected.data(), &x, sizeof x);
        } else if (kind_.bytes == 4) {
          uint32_t x = get<uint32_t>(a);
          for (uint64_t i = 0; i < steps; ++i) x = x * get<uint32_t>(b) + get<uint32_t>(c);
          std::memcpy(expected.data(), &x, sizeof x);
        } else {
          uint64_t x = get<uint64_t>(a);
          for (uint64_t i = 0; i < steps; ++i) x = x * get<uint64_t>(b) + get<uint64_t>(c);
          std::memcpy(expected.data(), &x, sizeof x);
        }
        if (std::memcmp(expected.data(), got.data() + size_t{k} * kind_.bytes, kind_.bytes) != 0)
          return fail("{}: chain {} of thread {} has another value than {} steps on the host", kind_.name, k, thread,
                      steps);
      }
    }
    return {};
  }

 private:
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
  static uint32_t dot(uint32_t a, uint32_t b) {
    int32_t sum = 0;
    for (int shift = 0; shift < 32; shift += 8)
      sum += static_cast<int8_t>(a >> shift & 255) * static_cast<int8_t>(b >> shift & 255);
    return static_cast<uint32_t>(sum);
  }

  VectorKind kind_;
  std::vector<unsigned char> host_;
  Memory table_, out_;
};

// Memory

class MemoryBenchmark : public CudaBenchmark {
 public:
  MemoryBenchmark(const CudaDriver& driver, uint32_t units, std::string name, uint64_t l2_size)
      : CudaBenchmark(driver, units), name_(std::move(name)), l2_size_(l2_size) {}

  Status prepare() {
    const bool small = name_ == "l1" || name_ == "shared";
    TACHO_TRY(load(memory_ptx(name_), small ? kSmallThreads : 256, small ? 2 : 8));
    if (name_.starts_with("dram_")) {
      size_t free = 0, total = 0;
      TACHO_TRY(driver_.check("cuMemGetInfo", driver_.MemGetInfo(&free, &total)));
      arrays_ = name_ == "dram_triad" ? 3 : name_ == "dram_copy" ? 2 : 1;
      const bool writes = name_ != "dram_read", reads = name_ != "dram_write";
      // Reading: resident blocks that keep their sums to the end. Writing: a block for every piece, in the order in
      // which the device starts them, which keeps the memory's pages open longer.
      constexpr uint64_t kPiece = uint64_t{kDramThreads} * kMemoryUnroll * 16;
      const uint64_t trip = kPiece * (writes ? 1 : blocks_);
      const uint64_t wanted = std::min<uint64_t>(uint64_t{4} << 30, free / 5);
      if (wanted < 4 * l2_size_ || wanted < 2 * trip)
        return fail("{} MiB of device memory are free: too little for arrays that do not fit into the L2 ({} MiB)",
                    free >> 20, l2_size_ >> 20);
      const auto trips = static_cast<uint32_t>(wanted / trip);
      size_ = trips * trip;
      (writes ? blocks_ : count_) = trips;
      if (writes) count_ = 1;
      if (reads) {
        TACHO_ASSIGN(source_, filled(size_, 0));
      } else {
        TACHO_ASSIGN(source_, filled(uint64_t{kPatternWords} * 4, 0));
      }
      if (name_ == "dram_triad") {
        TACHO_ASSIGN(out_, filled(size_, 1));
      } else {
        TACHO_ASSIGN(out_, Memory::allocate(driver_, writes ? 16 : size_t{all_threads()} * 4));
      }
      if (writes) {
        TACHO_ASSIGN(target_, Memory::allocate(driver_, size_));
        TACHO_TRY(driver_.check("cuMemsetD32", driver_.MemsetD32(target_.at(), 0xFFFFFFFF, size_ / 4)));
      }
    } else {
      size_ = uint64_t{blocks_} * kSmallSet;
      if (name_ == "shared") size_ = kSmallSet;
      if (name_ == "l2") {
        size_ = uint64_t{1} << 20;
        while (size_ * 2 <= l2_size_ / 4) size_ *= 2;
        extra_ = static_cast<uint32_t>(size_ - 1);
        step_ = static_cast<uint32_t>(size_ / (uint64_t{threads_} * kMemoryUnroll * 16));
        count_ = step_;
      } else {
        step_ = kSmallSet / (kSmallThreads * kMemoryUnroll * 16);
        count_ = step_ * 64;
      }
      TACHO_ASSIGN(source_, filled(size_, 0));
      TACHO_ASSIGN(out_, Memory::allocate(driver_, size_t{all_threads()} * 4));
    }
    table_address_ = source_.at();
    out_address_ = out_.at();
    target_address_ = target_.at();
    return {};
  }

  Status calibrate(double target) override {
    return name_.starts_with("dram_") ? Status() : CudaBenchmark::calibrate(target);
  }

  double work() const override {
    const double arrays = std::max(arrays_, 1);
    return arrays * static_cast<double>(all_threads()) * kMemoryUnroll * 16 * count_;
  }

  Status check() override {
    if (name_ == "dram_write" || name_ == "dram_copy" || name_ == "dram_triad") {
      // Pieces all over the array, word by word.
      constexpr size_t kWords = 16384;
      for (uint64_t piece = 0; piece < 16; ++piece) {
        const uint64_t first = (size_ / 4 - kWords) / 15 * piece;
        TACHO_ASSIGN(const std::vector<uint32_t> got, download<uint32_t>(target_.at() + first * 4, kWords));
        for (size_t i = 0; i < kWords; ++i) {
          const uint64_t word = first + i;
          uint32_t expected = 0;
          if (name_ == "dram_write") {
            const uint64_t vector = word / 4, block = vector / (kDramThreads * kMemoryUnroll);
            const uint64_t thread = block * kDramThreads + vector % kDramThreads;
            expected = pattern_word(thread % kStarts * 4 + word % 4, 0);
          } else if (name_ == "dram_copy") {
            expected = pattern_word(word, 0);
          } else {
            expected = std::bit_cast<uint32_t>(std::fmaf(std::bit_cast<float>(pattern_word(word, 1)), kTriadFactor,
                                                         std::bit_cast<float>(pattern_word(word, 0))));
          }
          if (got[i] != expected)
            return fail("{}: word {} is {:08x} and must be {:08x}", name_, word, got[i], expected);
        }
      }
      return {};
    }
    // Sums of all words that were read, modulo 2^32.
    TACHO_ASSIGN(const std::vector<uint32_t> sums, download<uint32_t>(out_.at(), all_threads()));
    uint32_t got = 0, expected = 0;
    for (const uint32_t sum : sums) got += sum;
    const auto sum_of = [](uint64_t words) {
      uint32_t whole = 0, rest = 0;
      for (uint64_t i = 0; i < kPatternWords; ++i) {
        const uint32_t word = pattern_word(i, 0);
        whole += word;
        if (i < words % kPatternWords) rest += word;
      }
      return whole * static_cast<uint32_t>(words / kPatternWords) + rest;
    };
    const uint64_t bytes_of_block = uint64_t{threads_} * kMemoryUnroll * 16 * count_;
    if (name_ == "dram_read")
      expected = sum_of(size_ / 4);
    else if (name_ == "l1")
      expected = sum_of(size_ / 4) * static_cast<uint32_t>(bytes_of_block / kSmallSet);
    else
      expected = sum_of(size_ / 4) * static_cast<uint32_t>(bytes_of_block / size_) * blocks_;
    if (got != expected)
      return fail("{}: the sum of the values read is {:08x} and must be {:08x}", name_, got, expected);
    return {};
  }

 private:
  // The pattern of `seed` over `size` bytes, made by doubling.
  Result<Memory> filled(uint64_t size, uint32_t seed) {
    TACHO_ASSIGN(Memory memory, Memory::allocate(driver_, size));
    std::vector<uint32_t> words(kPatternWords);
    for (uint32_t i = 0; i < kPatternWords; ++i) words[i] = pattern_word(i, seed);
    uint64_t done = std::min<uint64_t>(size, words.size() * 4);
    TACHO_TRY(driver_.check("cuMemcpyHtoD", driver_.MemcpyHtoD(memory.at(), words.data(), done)));
    while (done < size) {
      const uint64_t part = std::min(done, size - done);
      TACHO_TRY(driver_.check("cuMemcpyDtoD", driver_.MemcpyDtoD(memory.at() + done, memory.at(), part)));
      done += part;
    }
    return memory;
  }

  std::string name_;
  uint64_t l2_size_, size_ = 0;
  int arrays_ = 0;
  Memory source_, target_, out_;
};

// Matrix units

class MmaBenchmark : public CudaBenchmark {
 public:
  MmaBenchmark(const CudaDriver& driver, uint32_t units, const MmaKind& kind)
      : CudaBenchmark(driver, units), kind_(kind), word_(kind.element == Element::kDouble ? 8 : 4) {}

  Status prepare() {
    TACHO_TRY(load(mma_ptx(kind_), 256, 2));
    host_.resize(size_t{kStarts} * word_);
    for (uint32_t i = 0; i < kStarts; ++i) {
      const auto wide = random_word(kind_.element, i);
      std::memcpy(host_.data() + size_t{i} * word_, &wide, word_);  // little endian
    }
    TACHO_ASSIGN(table_, upload(host_.data(), host_.size()));
    TACHO_ASSIGN(out_, Memory::allocate(driver_, size_t{all_threads()} * kind_.c * kind_.tiles * word_));
    table_address_ = table_.at();
    out_address_ = out_.at();
    return {};
  }

  double work() const override {
    return static_cast<double>(all_threads() / 32) * kMmaUnroll * kind_.tiles * count_ * 2.0 * kind_.m * kind_.n *
           kind_.k;
  }

  Status check() override {
    // FP8 accumulators keep so few bits that a long sum stops growing: they are checked over one trip only.
    if (kind_.element != Element::kE4m3) TACHO_TRY(check_warps(count_));
    TACHO_TRY(launch(1));
    return check_warps(1);
  }

 private:
  // Rows of A and columns of B and D that a register of a lane holds, as the PTX manual's figures have them.
  Status check_warps(uint32_t count) {
    const uint32_t element = size_of(kind_.element), in_register = word_ / element;
    const uint32_t loads = kind_.a + kind_.b * kind_.tiles;
    for (const uint32_t warp : {0U, all_threads() / 32 - 1}) {
      TACHO_ASSIGN(const std::vector<unsigned char> got,
                   download<unsigned char>(out_.at() + uint64_t{warp} * 32 * kind_.c * kind_.tiles * word_,
                                           size_t{32} * kind_.c * kind_.tiles * word_));
      std::vector<double> a(size_t{kind_.m} * kind_.k), b(size_t{kind_.k} * kind_.n);
      const auto value = [&](uint32_t lane, uint32_t reg, uint32_t slot) {
        const uint32_t index = ((warp * 32 + lane) * loads + reg) % kStarts;
        return value_of(kind_.element, host_.data() + size_t{index} * word_ + size_t{slot} * element);
      };
      for (uint32_t tile = 0; tile < kind_.tiles; ++tile) {
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const uint32_t group = lane / 4, place = lane % 4;
          for (uint32_t r = 0; r < kind_.a; ++r)
            for (uint32_t s = 0; s < in_register; ++s) {
              const bool tall = kind_.m == 16;
              const uint32_t row = tall && r % 2 == 1 ? group + 8 : group;
              const uint32_t step = tall ? r / 2 : r;
              a[row * kind_.k + step * 4 * in_register + place * in_register + s] = value(lane, r, s);
            }
          for (uint32_t r = 0; r < kind_.b; ++r)
            for (uint32_t s = 0; s < in_register; ++s)
              b[(r * 4 * in_register + place * in_register + s) * kind_.n + group] =
                  value(lane, kind_.a + tile * kind_.b + r, s);
        }
        for (uint32_t lane = 0; lane < 32; ++lane)
          for (uint32_t r = 0; r < kind_.c; ++r) {
            const uint32_t row = lane / 4 + (r >= 2 ? 8 : 0), column = lane % 4 * 2 + r % 2;
            double product = 0, magnitude = 0;
            for (uint32_t k = 0; k < kind_.k; ++k) {
              const double term = a[row * kind_.k + k] * b[k * kind_.n + column];
              product += term;
              magnitude += std::fabs(term);
            }
            const size_t at = (size_t{lane} * kind_.c * kind_.tiles + tile * kind_.c + r) * word_;
            TACHO_TRY(compare_product(kind_.element, kind_.name, product, magnitude,
                                      static_cast<double>(count) * kMmaUnroll, got.data() + at, row, column));
          }
      }
    }
    return {};
  }

  MmaKind kind_;
  uint32_t word_;
  std::vector<unsigned char> host_;
  Memory table_, out_;
};

class WgmmaBenchmark : public CudaBenchmark {
 public:
  WgmmaBenchmark(const CudaDriver& driver, uint32_t units, const WgmmaKind& kind, bool streamed)
      : CudaBenchmark(driver, units), kind_(kind), streamed_(streamed) {}

  Status prepare() {
    TACHO_TRY(load(wgmma_ptx(kind_, streamed_), 256, 1, 2 * kWgmmaSet));
    host_.resize(size_t{kWgmmaSet} * kWgmmaSets);
    for (uint32_t i = 0; i < host_.size() / 4; ++i) {
      const auto word = static_cast<uint32_t>(random_word(kind_.element, i));
      std::memcpy(host_.data() + size_t{i} * 4, &word, 4);
    }
    TACHO_ASSIGN(table_, upload(host_.data(), host_.size()));
    TACHO_ASSIGN(out_, Memory::allocate(driver_, size_t{all_threads()} * 128 * 4));
    table_address_ = table_.at();
    out_address_ = out_.at();
    return {};
  }

  double work() const override {
    return static_cast<double>(blocks_) * 2 * kWgmmaUnroll * kWgmmaSteps * count_ * 2.0 * 64 * 256 * kind_.k;
  }

  Status check() override {
    if (kind_.element != Element::kE4m3) TACHO_TRY(check_block(blocks_ - 1, count_));
    for (const uint32_t count : {1U, 3U}) {
      TACHO_TRY(launch(count));
      TACHO_TRY(check_block(0, count));
      TACHO_TRY(check_block(blocks_ - 1, count));
    }
    return {};
  }

 private:
  Status check_block(uint32_t block, uint32_t count) {
    const uint32_t element = size_of(kind_.element);
    // An element of a tile of `rows` rows at `tile` in the table: core matrices of 8 rows x 16 bytes (ptx.h).
    const auto at = [&](size_t tile, uint32_t rows, uint32_t row, uint32_t k) {
      const uint32_t byte = k * element;
      const uint32_t core = byte / 16 * (rows / 8) + row / 8;
      return value_of(kind_.element, host_.data() + tile + core * 128 + row % 8 * 16 + byte % 16);
    };
    TACHO_ASSIGN(const std::vector<uint32_t> got,
                 download<uint32_t>(out_.at() + uint64_t{block} * 256 * 128 * 4, size_t{256} * 128));
    for (uint32_t place = block % 61; place < 256 * 128; place += 61) {  // elements all over the product
      const uint32_t thread = place / 128, i = place % 128;
      const uint32_t lane = thread % 32, row = thread / 32 % 4 * 16 + lane / 4 + i / 2 % 2 * 8;
      const uint32_t column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double product = 0, magnitude = 0;  // of all trips
      for (uint32_t trip = 0; trip < std::min(count, kWgmmaSets); ++trip) {
        const uint32_t set = (block + (streamed_ ? trip : 0)) % kWgmmaSets;
        const double visits = count / kWgmmaSets + (trip < count % kWgmmaSets ? 1 : 0);
        const size_t base = size_t{set} * kWgmmaSet;
        for (uint32_t s = 0; s < kWgmmaSteps; ++s)
          for (uint32_t k = 0; k < kind_.k; ++k) {
            const double term = at(base + (thread / 128 * kWgmmaSteps + s) * 2048, 64, row, k) *
                                at(base + 2 * kWgmmaSteps * 2048 + s * 8192, 256, column, k);
            product += visits * term;
            magnitude += visits * std::fabs(term);
          }
      }
      TACHO_TRY(compare_product(kind_.element, kind_.name, product, magnitude, kWgmmaUnroll, &got[place], row, column));
    }
    return {};
  }

  WgmmaKind kind_;
  bool streamed_;
  std::vector<unsigned char> host_;
  Memory table_, out_;
};

// The device

class CudaDevice : public BenchmarkDevice {
 public:
  CudaDevice(const CudaDriver& driver, int index, DeviceInfo info, int major, int minor)
      : driver_(driver), index_(index), info_(std::move(info)), major_(major), minor_(minor) {}
  ~CudaDevice() override {
    if (current_) driver_.PrimaryCtxRelease(index_);
  }

  Status start() {
    CudaDriver::Handle context = nullptr;
    TACHO_TRY(driver_.check("cuDevicePrimaryCtxRetain", driver_.PrimaryCtxRetain(&context, index_)));
    current_ = true;
    return driver_.check("cuCtxSetCurrent", driver_.CtxSetCurrent(context));
  }

  const DeviceInfo& info() const override { return info_; }

  std::vector<Offer> offers() const override {
    std::vector<Offer> list;
    int index = 0;
    const auto add = [&](std::string column, std::string label, std::string unit, std::string path,
                         std::string_view peak) -> Offer& {
      Offer& offer = list.emplace_back();
      offer.measurement.column = std::move(column);
      offer.measurement.label = std::move(label);
      offer.measurement.unit = std::move(unit);
      offer.measurement.path = std::move(path);
      offer.index = index++;
      offer.peak_per_clock = per_cycle(info_.architecture, peak) * info_.units * 1e-3;
      return offer;
    };
    // Two transfers a memory clock.
    const double dram = info_.memory_clock * 2e6 * info_.bus_width / 8 * 1e-9;
    for (const auto& [column, label, path] :
         {std::array{"HBMReadBw", "HBM BW (read)", "ld.global.v4"},
          {"HBMWriteBw", "HBM BW (write)", "st.global.v4"},
          {"HBMCopyBw", "HBM BW (copy)", "ld.global.v4, st.global.v4"},
          {"HBMTriadBw", "HBM BW (triad)", "ld.global.v4, fma.rn.f32, st.global.v4"}})
      add(column, label, "GB/s", path, "").measurement.peak = dram;
    add("L2Bw", "L2 BW", "GB/s", "ld.global.cg.v4", "");
    add("L1Bw", "L1 BW", "GB/s", "ld.global.ca.v4", "l1");
    add("LDSBw", "Shared memory BW", "GB/s", "ld.shared.v4", "shared");
    static constexpr std::array<std::array<const char*, 2>, 6> kVectorColumns = {{{"FP32Flops", "FP32"},
                                                                                  {"FP64Flops", "FP64"},
                                                                                  {"FP16Flops", "FP16"},
                                                                                  {"I32Ops", "I32"},
                                                                                  {"I64Ops", "I64"},
                                                                                  {"I8Ops", "I8"}}};
    for (size_t i = 0; i < kVectorColumns.size(); ++i) {
      const VectorKind& kind = vector_kinds()[i];
      const bool integer = kVectorColumns[i][1][0] == 'I';
      Offer& offer =
          add(kVectorColumns[i][0], fmt::format("Peak {} ({})", integer ? "IOPs" : "FLOPs", kVectorColumns[i][1]),
              integer ? "GOP/s" : "GFLOP/s", std::string(kind.instruction), kind.name);
      const int capability = 10 * major_ + minor_;
      if (kind.name == "i8" && capability < 61) offer.measurement.skipped = "needs sm_61";
    }
    // On Hopper only wgmma reaches the tensor cores' rate; the rate of mma.sync is shown as well.
    const bool hopper = has_feature(info_.architecture, "wgmma");
    for (const MmaKind& kind : mma_kinds()) {
      const std::string_view type = name_of(kind.element);
      if (kind.name == (has_feature(info_.architecture, "mma_f64_k16") ? "mma_f64" : "mma_f64_k16")) {
        ++index;
        continue;
      }
      const bool integer = kind.element == Element::kInt8, second = hopper && kind.element != Element::kDouble;
      Offer& offer =
          add(fmt::format("{}{}{}", second ? "MMASYNC" : "MFMA", type, integer ? "Ops" : "Flops"),
              fmt::format("Peak Tensor {} ({}{})", integer ? "IOPs" : "FLOPs", type, second ? ", mma.sync" : ""),
              integer ? "GOP/s" : "GFLOP/s",
              fmt::format("mma.sync.{}{}", kind.instruction.substr(0, kind.instruction.find('.')),
                          has_feature(info_.architecture, "tcgen05") ? " (tcgen05 is not used)" : ""),
              kind.name == "mma_f64_k16" ? "mma_f64" : kind.name);
      const int needed = std::atoi(kind.target.data() + 3);
      if (10 * major_ + minor_ < needed) offer.measurement.skipped = fmt::format("needs {}", kind.target);
      // The peak belongs to the other path.
      if (second) offer.peak_per_clock = kUnknown;
    }
    // The roofs are those of operands on their way from the L2, as any real product has them; BF16 also without.
    if (hopper)
      for (const WgmmaKind& kind : wgmma_kinds()) {
        const std::string_view type = name_of(kind.element);
        const bool integer = kind.element == Element::kInt8;
        add(fmt::format("MFMA{}{}", type, integer ? "Ops" : "Flops"),
            fmt::format("Peak Tensor {} ({})", integer ? "IOPs" : "FLOPs", type), integer ? "GOP/s" : "GFLOP/s",
            fmt::format("wgmma.mma_async.{}, cp.async", kind.instruction.substr(0, kind.instruction.find('.'))),
            "mma_" + std::string(kind.name.substr(6)));
      }
    if (hopper)
      add("WGMMARESIDENTBF16Flops", "Peak Tensor FLOPs (BF16, operands resident)", "GFLOP/s",
          "wgmma.mma_async.m64n256k16", "mma_bf16");
    return list;
  }

  Result<std::unique_ptr<Benchmark>> prepare(const Offer& offer) override {
    static constexpr std::array<const char*, 7> kMemory = {"dram_read", "dram_write", "dram_copy", "dram_triad",
                                                           "l2",        "l1",         "shared"};
    auto index = static_cast<size_t>(offer.index);
    if (index < kMemory.size()) return make<MemoryBenchmark>(std::string(kMemory[index]), info_.cache);
    index -= kMemory.size();
    if (index < vector_kinds().size()) return make<VectorBenchmark>(vector_kinds()[index]);
    index -= vector_kinds().size();
    if (index < mma_kinds().size()) return make<MmaBenchmark>(mma_kinds()[index]);
    index -= mma_kinds().size();
    if (index < wgmma_kinds().size()) return make<WgmmaBenchmark>(wgmma_kinds()[index], true);
    return make<WgmmaBenchmark>(wgmma_kinds()[1], false);
  }

 private:
  template <typename T, typename... Args>
  Result<std::unique_ptr<Benchmark>> make(Args&&... args) {
    auto benchmark = std::make_unique<T>(driver_, info_.units, std::forward<Args>(args)...);
    TACHO_TRY(benchmark->prepare());
    return benchmark;
  }

  const CudaDriver& driver_;
  int index_;
  DeviceInfo info_;
  int major_, minor_;
  bool current_ = false;
};

Result<DeviceInfo> describe(const CudaDriver& driver, int index, int& major, int& minor) {
  int device = 0;
  TACHO_TRY(driver.check("cuDeviceGet", driver.DeviceGet(&device, index)));
  DeviceInfo info;
  info.backend = "cuda";
  info.vendor = "NVIDIA";
  info.kind = "GPU";
  std::array<char, 256> name{};
  TACHO_TRY(
      driver.check("cuDeviceGetName", driver.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device)));
  info.name = name.data();
  const auto attribute = [&](int which) {
    int value = 0;
    return driver.DeviceGetAttribute(&value, which, device) == 0 ? value : 0;
  };
  major = attribute(CudaDriver::kMajor);
  minor = attribute(CudaDriver::kMinor);
  info.architecture = fmt::format("sm_{}{}", major, minor);
  info.units = static_cast<uint32_t>(attribute(CudaDriver::kMultiprocessors));
  if (const int khz = attribute(CudaDriver::kClockRate); khz > 0) info.max_clock = khz / 1e3;
  if (const int khz = attribute(CudaDriver::kMemoryClockRate); khz > 0) info.memory_clock = khz / 1e3;
  info.bus_width = static_cast<uint32_t>(attribute(CudaDriver::kBusWidth));
  info.cache = static_cast<uint64_t>(attribute(CudaDriver::kL2Size));
  info.local_memory = static_cast<uint64_t>(attribute(CudaDriver::kSharedPerMultiprocessor));
  info.id = fmt::format("{:04x}:{:02x}:{:02x}.0", attribute(CudaDriver::kPciDomain), attribute(CudaDriver::kPciBus),
                        attribute(CudaDriver::kPciDevice));
  size_t memory = 0;
  TACHO_TRY(driver.check("cuDeviceTotalMem", driver.DeviceTotalMem(&memory, device)));
  info.memory = memory;
  info.driver = vendor::nvidia_driver_version();
  if (info.driver.empty()) {
    int version = 0;
    driver.DriverGetVersion(&version);
    info.driver = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  }
  return info;
}

}  // namespace

static std::vector<DeviceEntry> cuda_devices(std::string& note) {
  std::vector<DeviceEntry> devices;
  const CudaDriver* driver = CudaDriver::get(note);
  if (driver == nullptr) return devices;
  int count = 0;
  if (const auto code = driver->DeviceGetCount(&count); code != 0) note = driver->describe("cuDeviceGetCount", code);
  for (int i = 0; i < count; ++i) {
    int major = 0, minor = 0;
    const Result<DeviceInfo> info = describe(*driver, i, major, minor);
    if (info)
      devices.push_back({*info, i});
    else
      note = info.error().message;
  }
  return devices;
}

static Result<std::unique_ptr<BenchmarkDevice>> open_cuda_device(int index) {
  std::string why;
  const CudaDriver* driver = CudaDriver::get(why);
  if (driver == nullptr) return fail("{}", why);
  int major = 0, minor = 0;
  TACHO_ASSIGN(DeviceInfo info, describe(*driver, index, major, minor));
  auto device = std::make_unique<CudaDevice>(*driver, index, std::move(info), major, minor);
  TACHO_TRY(device->start());
  return device;
}

extern const Backend kCudaBackend;
const Backend kCudaBackend = {"cuda", "nvidia", "NVIDIA's driver", cuda_devices, open_cuda_device};

}  // namespace tacho::roofline
