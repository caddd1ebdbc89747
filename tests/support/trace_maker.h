// Traces made by tests.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "event/schema.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::test {

using event::kUnknown;
using event::Table;
namespace column = event::column;

/// Short words for the rows of a trace; writer() takes those that have no word here. What is not given is a plausible
/// value. Raw time t is BOOTTIME t + 1000 unless clock() says else.
class TraceMaker {
 public:
  /// A trace in the file `path`, by default in one without a name.
  explicit TraceMaker(const std::string& path = {}, const trace::WriterOptions& options = {}) {
    auto made =
        path.empty() ? trace::TraceWriter::create_temporary(options) : trace::TraceWriter::create(path, options);
    if (!made) abort();
    writer_ = std::move(*made);
  }
  trace::TraceWriter& writer() { return *writer_; }
  int64_t text(std::string_view value) { return writer_->string(value); }

  int64_t process(int64_t pid, std::string_view name = "app", int64_t rank = kUnknown, std::string_view host = "here") {
    return writer_->dimension(event::row::Process{.pid = pid,
                                                  .parent_pid = 1,
                                                  .start = 0,
                                                  .name = text(name),
                                                  .command = text(std::string(name) + " --fast"),
                                                  .host = text(host),
                                                  .rank = rank});
  }
  int64_t thread_track(int64_t process, int64_t tid, std::string_view name = "") {
    const int64_t thread = writer_->dimension(event::row::Thread{.process = process, .tid = tid, .name = text(name)});
    return writer_->dimension(event::row::Track{.kind = event::TrackKind::kThread,
                                                .process = process,
                                                .thread = thread,
                                                .native = tid,
                                                .category = text("thread")});
  }
  int64_t range_track(int64_t process) {
    return writer_->dimension(event::row::Track{
        .kind = event::TrackKind::kRange, .process = process, .name = text("ranges"), .category = text("range")});
  }
  int64_t device(std::string_view name, event::DeviceKind kind = event::DeviceKind::kGpu,
                 std::string_view architecture = "", int64_t index = 0) {
    return writer_->dimension(event::row::Device{.kind = kind,
                                                 .index = index,
                                                 .name = text(name),
                                                 .vendor = text("Maker"),
                                                 .architecture = text(architecture),
                                                 .driver = text("driver 1")});
  }
  int64_t queue_track(int64_t process, int64_t device, int64_t native, std::string_view category = "queue") {
    return writer_->dimension(event::row::Track{.kind = event::TrackKind::kQueue,
                                                .process = process,
                                                .device = device,
                                                .native = native,
                                                .category = text(category)});
  }
  int64_t kernel(std::string_view name, int64_t grid = 1024, int64_t group = 64, int64_t registers = kUnknown) {
    return writer_->dimension(event::row::Kernel{.name = text(name),
                                                 .grid_x = grid,
                                                 .grid_y = 1,
                                                 .grid_z = 1,
                                                 .group_x = group,
                                                 .group_y = 1,
                                                 .group_z = 1,
                                                 .registers = registers,
                                                 .shared_static = 100,
                                                 .private_bytes = 0});
  }
  void dispatch(int64_t track, int64_t start, int64_t duration, int64_t kernel, int64_t correlation = 0,
                int64_t ordinal = kUnknown) {
    writer_->add(event::row::Dispatch{.track = track,
                                      .start = start,
                                      .duration = duration,
                                      .dim = kernel,
                                      .correlation = correlation,
                                      .ordinal = ordinal});
  }
  void copy(int64_t track, int64_t start, int64_t duration, event::CopyDirection direction, int64_t bytes,
            int64_t device, int64_t correlation = 0) {
    const bool down = direction == event::CopyDirection::kHostToDevice;
    const int64_t shape = writer_->dimension(event::row::CopyShape{.direction = direction,
                                                                   .source_device = down ? 0 : device,
                                                                   .target_device = down ? device : 0,
                                                                   .asynchronous = 0});
    writer_->add(event::row::Copy{.track = track,
                                  .start = start,
                                  .duration = duration,
                                  .dim = shape,
                                  .correlation = correlation,
                                  .bytes = bytes});
  }
  void fill(int64_t track, int64_t start, int64_t duration, int64_t bytes, int64_t device) {
    writer_->add(event::row::Fill{.track = track,
                                  .start = start,
                                  .duration = duration,
                                  .dim = writer_->dimension(event::row::FillShape{.device = device, .value = 0}),
                                  .bytes = bytes});
  }
  void allocation(int64_t track, int64_t start, bool free, int64_t bytes, int64_t address, int64_t device) {
    const int64_t shape = writer_->dimension(event::row::AllocationShape{
        .operation = free ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
        .device = device,
        .name = text("buffer")});
    writer_->add(event::row::Allocation{
        .track = track, .start = start, .duration = 5, .dim = shape, .bytes = bytes, .address = address});
  }
  int64_t function(std::string_view name, event::Domain domain = event::Domain::kOpenCL) {
    return writer_->dimension(event::row::Function{.name = text(name), .domain = domain});
  }
  void call(int64_t track, int64_t start, int64_t duration, int64_t function, int64_t correlation = 0,
            int64_t result = 0) {
    writer_->add(event::row::Api{.track = track,
                                 .start = start,
                                 .duration = duration,
                                 .dim = function,
                                 .correlation = correlation,
                                 .result = result});
  }
  int64_t label(std::string_view name, event::MarkerKind kind = event::MarkerKind::kPushPop,
                std::string_view domain = "") {
    return writer_->dimension(event::row::Label{.name = text(name), .kind = kind, .domain = text(domain)});
  }
  void marker(int64_t track, int64_t start, int64_t duration, int64_t label) {
    writer_->add(event::row::Marker{.track = track, .start = start, .duration = duration, .dim = label});
  }
  int64_t counter(std::string_view name, std::string_view unit = "") {
    return writer_->dimension(event::row::Counter{.name = text(name), .unit = text(unit)});
  }
  void reading(int64_t process, int64_t device, int64_t counter, std::string_view name, int64_t time, double value) {
    const int64_t track = writer_->dimension(event::row::Track{.kind = event::TrackKind::kCounter,
                                                               .process = process,
                                                               .device = device,
                                                               .name = text(name),
                                                               .category = text("counter"),
                                                               .counter = counter});
    writer_->add(event::row::Reading{.track = track, .start = time, .value = std::bit_cast<int64_t>(value)});
  }
  void counter_value(int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t instance, double value,
                     int64_t pass = 0) {
    writer_->add(event::row::CounterValue{.track = track,
                                          .start = start,
                                          .ordinal = ordinal,
                                          .dim = counter,
                                          .instance = instance,
                                          .pass = pass,
                                          .value = std::bit_cast<int64_t>(value)});
  }
  int64_t frame(event::FrameKind kind, std::string_view function, std::string_view file = "", int64_t line = kUnknown) {
    return writer_->dimension(
        event::row::Frame{.kind = kind, .function = text(function), .file = text(file), .line = line});
  }
  /// A stack whose innermost frame is `frame` and whose others are those of `parent`; 0 = none.
  int64_t stack(int64_t parent, int64_t frame) {
    return writer_->dimension(event::row::Stack{.parent = parent, .frame = frame});
  }
  void sample(int64_t track, int64_t start, int64_t duration, int64_t stack, int64_t correlation = 0) {
    writer_->add(event::row::Sample{
        .track = track, .start = start, .duration = duration, .dim = stack, .correlation = correlation});
  }
  void clock(int64_t raw, int64_t boottime) {
    writer_->add(event::row::Clock{
        .raw = raw, .monotonic = boottime - 500, .boottime = boottime, .realtime = boottime + 1'000'000'000'000});
  }

  std::shared_ptr<const trace::Trace> open() {
    auto opened = writer_->finish_and_open();
    if (!opened) abort();
    return *opened;
  }

 private:
  std::unique_ptr<trace::TraceWriter> writer_;
};

}  // namespace tacho::test
