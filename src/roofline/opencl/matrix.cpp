// Runs and checks the kernels of mfma.h. They compile for every architecture and run on software that follows the
// manuals (tests/roofline); no AMD GPU has run them yet.
#include "roofline/opencl/matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "roofline/scale_work.h"

namespace tacho::roofline {
namespace {

constexpr uint32_t kWave = 64;

class MatrixBenchmark : public Benchmark, ClKernel {
 public:
  MatrixBenchmark(std::shared_ptr<ClSession> session, const MfmaKind& kind)
      : ClKernel(std::move(session)), kind_(kind) {}

  Status prepare() {
    group_size_ = kMfmaGroup;
    // Many groups for each compute unit, so that none of them has nothing to do for long at the end.
    groups_ = session_->info.units * 64;
    if (const Status built = build(mfma_source(kind_), "", kMfmaEntry); !built) {
      if (built.error().message.find(kMfmaUnknown) == std::string::npos) return built;
      return fail("the device's compiler does not know {}", kind_.builtin);
    }
    const size_t words = size_t{kMfmaTable} * kind_.operand_words();
    host_.resize(words * 4);
    const size_t word = kind_.wide() ? 8 : 4;
    for (size_t i = 0; i < host_.size() / word; ++i) {
      const uint64_t bits = random_word(kind_.element, i);
      std::memcpy(host_.data() + i * word, &bits, word);  // little endian
    }
    TACHO_TRY(allocate(0, host_.size(), host_.data()));
    TACHO_TRY(allocate(1, size_t{kMfmaItems} * kMfmaTiles * kind_.results() * result_size(), nullptr));
    return allocate(2, size_t{groups_} * 24, nullptr);
  }

  Status calibrate(double target) override {
    return scale_work(target, 1, 1e7, count_, [this] { return run(); });
  }

  Result<Sample> run() override {
    for (cl_uint i = 0; i < 3; ++i) TACHO_TRY(argument(i, memory_[i]));
    TACHO_TRY(argument(3, count_));
    Sample sample;
    TACHO_ASSIGN(sample.duration, launch());
    TACHO_ASSIGN(const std::vector<uint64_t> times, download<uint64_t>(2, 0, size_t{3} * groups_));
    sample.clock = clock_of(times, sample.duration);
    return sample;
  }

  double work() const override {
    return static_cast<double>(groups_) * (kMfmaGroup / kWave) * kMfmaTiles * kMfmaUnroll * count_ * 2.0 * kind_.m *
           kind_.n * kind_.k;
  }

  uint32_t group_size() const override { return group_size_; }
  uint32_t groups() const override { return groups_; }

  Status check() override {
    const uint32_t waves = std::min(kMfmaItems, groups_ * kMfmaGroup) / kWave;
    TACHO_TRY(check_wave(0));
    return check_wave(waves - 1);
  }

 private:
  size_t result_size() const { return kind_.wide() ? 8 : 4; }

  // MHz: the groups' cycles for each of their ticks, whose length follows from the run's duration. Unknown if the
  // result is implausible, for example when both clocks are the same.
  double clock_of(const std::vector<uint64_t>& times, double duration) const {
    double cycles = 0, ticks = 0;
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i + 2 < times.size(); i += 3) {
      if (times[i + 2] <= times[i + 1]) return kUnknown;
      cycles += static_cast<double>(times[i]);
      ticks += static_cast<double>(times[i + 2] - times[i + 1]);
      first = std::min(first, times[i + 1]);
      last = std::max(last, times[i + 2]);
    }
    const double mhz = cycles / ticks * static_cast<double>(last - first) / duration * 1e3;
    const double most = session_->info.max_clock;
    return mhz > 0.1 * most && mhz < 1.1 * most ? mhz : kUnknown;
  }

  // All elements of the products of one wave.
  Status check_wave(uint32_t wave) {
    const uint32_t size = size_of(kind_.element), bytes = kind_.operand_words() * 4, depth = bytes / size;
    const size_t lane_size = size_t{kMfmaTiles} * kind_.results() * result_size();
    TACHO_ASSIGN(const std::vector<unsigned char> got,
                 download<unsigned char>(1, size_t{wave} * kWave * lane_size, kWave * lane_size));
    const auto value = [&](uint32_t operand, uint32_t line, uint32_t k) {
      const uint32_t item = wave * kWave + k / depth * kind_.m + line;
      const size_t at = size_t{(item * (1 + kMfmaTiles) + operand) % kMfmaTable} * bytes;
      return value_of(kind_.element, host_.data() + at + size_t{k % depth} * size);
    };
    for (uint32_t tile = 0; tile < kMfmaTiles; ++tile)
      for (uint32_t lane = 0; lane < kWave; ++lane)
        for (uint32_t r = 0; r < kind_.results(); ++r) {
          const uint32_t row = kind_.row_of(lane, r), column = lane % kind_.n;
          double product = 0, magnitude = 0;
          for (uint32_t k = 0; k < kind_.k; ++k) {
            const double term = value(0, row, k) * value(1 + tile, column, k);
            product += term;
            magnitude += std::fabs(term);
          }
          const size_t at = lane * lane_size + (size_t{tile} * kind_.results() + r) * result_size();
          TACHO_TRY(compare_product(kind_.element, kind_.instruction, product, magnitude,
                                    static_cast<double>(count_) * kMfmaUnroll, got.data() + at, row, column));
        }
    return {};
  }

  MfmaKind kind_;
  std::vector<unsigned char> host_;
  cl_uint count_ = 1;
};

}  // namespace

Result<std::unique_ptr<Benchmark>> prepare_matrix(std::shared_ptr<ClSession> session, const MfmaKind& kind) {
  auto benchmark = std::make_unique<MatrixBenchmark>(std::move(session), kind);
  TACHO_TRY(benchmark->prepare());
  return benchmark;
}

}  // namespace tacho::roofline
