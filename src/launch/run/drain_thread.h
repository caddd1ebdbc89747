// The thread that empties the pool into the trace while the target runs.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "decode/decoder.h"
#include "launch/perf_sampler.h"
#include "launch/recording.h"
#include "launch/run/device_samples.h"
#include "launch/run/window.h"
#include "tape/pool.h"

namespace tacho::launch {

/// CPU time of the calling thread, in seconds.
inline double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Drains the pool in its own thread until stop().
class DrainThread {
 public:
  /// `samples` may be nullptr.
  DrainThread(tape::Pool& pool, trace::TraceWriter& writer, Telemetry& telemetry, std::unique_ptr<PerfSampler> perf,
              DeviceSamples* samples = nullptr)
      : pool_(pool),
        writer_(writer),
        telemetry_(telemetry),
        drainer_(pool),
        grower_(std::in_place, pool),
        decoder_(writer, clocks_),
        perf_(std::move(perf)),
        samples_(samples),
        outside_(writer, decoder_),
        window_(pool.header()) {
    clocks_.add(sample_clocks());
    pool.header().first_clocks = pool.header().last_clocks = clocks_.tuples().front();
    thread_ = std::thread([this] { loop(); });
  }
  ~DrainThread() { stop(); }

  /// Last pass (every target has ended, or was given up), then the decoder's remaining rows.
  void stop() {
    if (!thread_.joinable()) return;
    stopping_.store(true);
    drainer_.wake();
    thread_.join();
    grower_.reset();
    last_pass();
  }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  double cpu_s() const { return cpu_s_; }
  decode::Decoder& decoder() { return decoder_; }

 private:
  void tuple() {
    const ClockTuple now = sample_clocks();
    clocks_.follow(now, 100'000'000);
    pool_.header().last_clocks = now;
  }
  uint64_t pass(bool final) {
    tuple();
    const uint64_t taken = drainer_.pass([this](const tape::Piece& piece) { decoder_.piece(piece); }, final);
    bytes_.fetch_add(taken, std::memory_order_relaxed);
    // After the pool: libtacho.so's facts about a process come first.
    if (perf_ != nullptr || samples_ != nullptr) window_.follow(clocks_);
    if (samples_ != nullptr)
      samples_->deliver(writer_, [this](int64_t begin, int64_t end) {
        return window_.at(begin, tape::source_bit::kAll) == Window::State::kOpen &&
               window_.at(end, tape::source_bit::kAll) == Window::State::kOpen;
      });
    if (perf_ != nullptr) {
      int64_t unknown = 0;
      const auto wanted = [&](int64_t time) {
        const Window::State state = window_.at(time, tape::source_bit::kSample);
        unknown += state == Window::State::kUnknown ? 1 : 0;
        return state == Window::State::kOpen;
      };
      if (const uint64_t lost = perf_->read(outside_, wanted); lost != 0)
        writer_.lose(0, event::Table::kSample, event::LossReason::kPoolFull, static_cast<int64_t>(lost));
      // The pool had no room for all changes of recording.
      if (unknown != 0) writer_.lose(0, event::Table::kSample, event::LossReason::kPoolFull, unknown);
    }
    if (perf_ != nullptr || samples_ != nullptr) window_.forget(raw_now() - kLatest);
    return taken;
  }
  void loop() {
    pthread_setname_np(pthread_self(), "tacho-drain");
    int64_t last_flush = raw_now(), last_settling = last_flush;
    while (!stopping_.load(std::memory_order_relaxed)) {
      pass(false);
      telemetry_.deliver(writer_);
      const int64_t now = raw_now();
      // Work that waits for its call is written, and slabs reach the disk, at least this often: a killed tacho loses
      // two seconds at most.
      if (now - last_settling > 500'000'000) {
        decoder_.settle();
        last_settling = now;
      }
      if (now - last_flush > 1'000'000'000) {
        static_cast<void>(writer_.flush());  // a write error stays in the writer and is reported by finish()
        last_flush = now;
      }
      drainer_.sleep();
    }
    cpu_s_ = thread_cpu_s();
  }
  void last_pass() {
    const double before = thread_cpu_s();
    pass(false);
    pass(true);
    outside_.finish();
    decoder_.finish();
    cpu_s_ += thread_cpu_s() - before;
  }

  static constexpr int64_t kLatest = 10'000'000'000;  // ns: no sample comes later than that

  tape::Pool& pool_;
  trace::TraceWriter& writer_;
  Telemetry& telemetry_;
  decode::ClockMap clocks_;
  tape::Drainer drainer_;
  std::optional<tape::Grower> grower_;
  decode::Decoder decoder_;
  std::unique_ptr<PerfSampler> perf_;
  DeviceSamples* const samples_;
  decode::OutsideStacks outside_;
  Window window_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> bytes_{0};
  double cpu_s_ = 0;
  std::thread thread_;
};

}  // namespace tacho::launch
