// For tests: runs a program sampled, decodes as tacho does, and answers questions about its stacks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "event/schema.h"
#include "tape/pool_run.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::test {

struct Frame {
  event::FrameKind kind;
  std::string function, file, module;
  int64_t line;
};
struct Sample {
  int64_t track, process, tid, time, duration, correlation;
  std::vector<Frame> frames;  // innermost first
  bool has(const std::string& function) const {
    for (const Frame& frame : frames)
      if (frame.function == function) return true;
    return false;
  }
};

class SampledRun {
 public:
  explicit SampledRun(const std::string& config, uint64_t pool_bytes = 64 << 20) : run_(options(config, pool_bytes)) {
    auto writer = trace::TraceWriter::create_temporary({});
    if (!writer) abort();
    writer_ = std::move(*writer);
    clocks_.add(sample_clocks());
    decoder_ = std::make_unique<decode::Decoder>(*writer_, clocks_);
    run_.sink = [this](const tape::Piece& piece) {
      const ClockTuple now = sample_clocks();
      if (clocks_.tuples().empty() || now.raw - clocks_.tuples().back().raw > 50'000'000) clocks_.add(now);
      decoder_->piece(piece);
    };
  }

  /// Exit status as of waitpid; afterwards the questions may be asked.
  int run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
          int seconds = 120) {
    const int status = run_.wait(run_.spawn(arguments, environment), seconds);
    clocks_.add(sample_clocks());
    decoder_->finish();
    auto opened = writer_->finish_and_open();
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return -1;
    }
    trace_ = *opened;
    read();
    return status;
  }

  const std::vector<Sample>& samples() const { return samples_; }
  const trace::Trace& trace() const { return *trace_; }
  uint64_t dropped() { return run_.dropped(); }
  std::vector<std::string> notes() const { return notes_; }

  /// Share of samples whose innermost frame (or any, if `inclusive`) is `function`; by number or by time.
  double share(const std::string& function, bool inclusive = false, bool by_time = false) const {
    double of = 0, all = 0;
    for (const Sample& sample : samples_) {
      const double weight = by_time ? static_cast<double>(sample.duration) : 1.0;
      all += weight;
      const bool hit =
          inclusive ? sample.has(function) : !sample.frames.empty() && sample.frames[0].function == function;
      if (hit) of += weight;
    }
    return all == 0 ? 0 : of / all;
  }
  double seconds() const {
    double sum = 0;
    for (const Sample& sample : samples_) sum += static_cast<double>(sample.duration) * 1e-9;
    return sum;
  }

 private:
  static tape::PoolOptions options(const std::string& config, uint64_t pool_bytes) {
    tape::PoolOptions options{.initial_bytes = pool_bytes / 4, .max_bytes = pool_bytes};
    options.config = config;
    return options;
  }
  void read() {
    using event::Table;
    namespace column = event::column;
    const auto frame_of = [&](int64_t row) {
      return Frame{static_cast<event::FrameKind>(trace_->cell(Table::kFrame, row, column::Frame::kind)),
                   std::string(trace_->text(Table::kFrame, row, column::Frame::function)),
                   std::string(trace_->text(Table::kFrame, row, column::Frame::file)),
                   std::string(trace_->text(Table::kFrame, row, column::Frame::module)),
                   trace_->cell(Table::kFrame, row, column::Frame::line)};
    };
    for (size_t chunk = 0; chunk < trace_->chunks(Table::kSample).size(); ++chunk) {
      std::vector<std::vector<int64_t>> columns(column::Sample::kCount);
      for (int i = 0; i < column::Sample::kCount; ++i)
        ASSERT_TRUE(trace_->decode(Table::kSample, chunk, i, columns[static_cast<size_t>(i)]));
      for (size_t row = 0; row < columns[0].size(); ++row) {
        Sample sample{};
        sample.track = columns[column::Sample::track][row];
        sample.time = columns[column::Sample::start][row];
        sample.duration = columns[column::Sample::duration][row];
        sample.correlation = columns[column::Sample::correlation][row];
        sample.process = trace_->cell(Table::kTrack, sample.track, column::Track::process);
        sample.tid = trace_->cell(Table::kTrack, sample.track, column::Track::native);
        for (int64_t at = columns[column::Sample::dim][row]; at != 0;
             at = trace_->cell(Table::kStack, at, column::Stack::parent))
          sample.frames.push_back(frame_of(trace_->cell(Table::kStack, at, column::Stack::frame)));
        samples_.push_back(std::move(sample));
      }
    }
    for (size_t chunk = 0; chunk < trace_->chunks(Table::kNote).size(); ++chunk) {
      std::vector<int64_t> texts;
      ASSERT_TRUE(trace_->decode(Table::kNote, chunk, column::Note::text, texts));
      for (const int64_t text : texts) notes_.emplace_back(trace_->string(text));
    }
  }

  PoolRun run_;
  decode::ClockMap clocks_;
  std::unique_ptr<trace::TraceWriter> writer_;
  std::unique_ptr<decode::Decoder> decoder_;
  std::shared_ptr<const trace::Trace> trace_;
  std::vector<Sample> samples_;
  std::vector<std::string> notes_;
};

}  // namespace tacho::test
