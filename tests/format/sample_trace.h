// Traces made for tests of the formats.
#pragma once

#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "event/schema.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::test {

using event::kUnknown;
using event::Table;
namespace column = event::column;

/// A folder that goes away with the object.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Short words for the rows of a trace. Raw time t is BOOTTIME t + 1000 here unless clock() says else.
class Maker {
 public:
  Maker() {
    auto made = trace::TraceWriter::create_temporary();
    if (!made) abort();
    writer_ = std::move(*made);
  }
  trace::TraceWriter& writer() { return *writer_; }
  int64_t text(std::string_view value) { return writer_->string(value); }

  int64_t process(int64_t pid, std::string_view name = "app", int64_t rank = kUnknown,
                  std::string_view host = "here") {
    return writer_->dimension(
        Table::kProcess, {pid, 1, 0, text(name), text(std::string(name) + " --fast"), text(host), rank, 0});
  }
  int64_t thread_track(int64_t process, int64_t tid, std::string_view name = "") {
    const int64_t thread = writer_->dimension(Table::kThread, {process, tid, text(name)});
    return writer_->dimension(Table::kTrack, {static_cast<int64_t>(event::TrackKind::kThread), process,
                                              thread, 0, tid, 0, 0, text("thread"), 0});
  }
  int64_t range_track(int64_t process) {
    return writer_->dimension(Table::kTrack, {static_cast<int64_t>(event::TrackKind::kRange), process, 0, 0,
                                              0, 0, text("ranges"), text("range"), 0});
  }
  int64_t device(std::string_view name, event::DeviceKind kind = event::DeviceKind::kGpu,
                 std::string_view architecture = "", int64_t index = 0) {
    return writer_->dimension(
        Table::kDevice, {0, static_cast<int64_t>(kind), index, text(name), text("Maker"), text(architecture),
                         text("driver 1"), 0, kUnknown});
  }
  int64_t queue_track(int64_t process, int64_t device, int64_t native, std::string_view category = "queue") {
    return writer_->dimension(Table::kTrack, {static_cast<int64_t>(event::TrackKind::kQueue), process, 0,
                                              device, native, 0, 0, text(category), 0});
  }
  int64_t kernel(std::string_view name, int64_t grid = 1024, int64_t group = 64,
                 int64_t registers = kUnknown) {
    std::vector<int64_t> row(column::Kernel::kCount, 0);
    row[column::Kernel::name] = text(name);
    row[column::Kernel::grid_x] = grid;
    row[column::Kernel::grid_y] = row[column::Kernel::grid_z] = 1;
    row[column::Kernel::group_x] = group;
    row[column::Kernel::group_y] = row[column::Kernel::group_z] = 1;
    row[column::Kernel::registers] = registers;
    row[column::Kernel::accum_registers] = row[column::Kernel::scalar_registers] = kUnknown;
    row[column::Kernel::shared_static] = 100;
    row[column::Kernel::shared_dynamic] = kUnknown;
    row[column::Kernel::private_bytes] = 0;
    row[column::Kernel::cache_config] = row[column::Kernel::carveout] = kUnknown;
    return writer_->dimension(Table::kKernel, row);
  }
  void dispatch(int64_t track, int64_t start, int64_t duration, int64_t kernel, int64_t correlation = 0,
                int64_t ordinal = kUnknown) {
    writer_->add(Table::kDispatch,
                 {track, start, duration, kernel, correlation, kUnknown, kUnknown, ordinal, 0});
  }
  void copy(int64_t track, int64_t start, int64_t duration, event::CopyDirection direction, int64_t bytes,
            int64_t device, int64_t correlation = 0) {
    const bool down = direction == event::CopyDirection::kHostToDevice;
    const int64_t shape = writer_->dimension(Table::kCopyShape, {static_cast<int64_t>(direction), 0, 0,
                                                                 down ? 0 : device, down ? device : 0, 0, 0});
    writer_->add(Table::kCopy, {track, start, duration, shape, correlation, bytes, kUnknown, kUnknown, 0});
  }
  void fill(int64_t track, int64_t start, int64_t duration, int64_t bytes, int64_t device) {
    writer_->add(Table::kFill, {track, start, duration, writer_->dimension(Table::kFillShape, {0, device, 0}),
                                0, bytes, kUnknown, kUnknown, 0});
  }
  void allocation(int64_t track, int64_t start, bool free, int64_t bytes, int64_t address, int64_t device) {
    const int64_t shape =
        writer_->dimension(Table::kAllocationShape, {free ? 1 : 0, 0, device, text("buffer")});
    writer_->add(Table::kAllocation, {track, start, 5, shape, 0, bytes, address});
  }
  int64_t function(std::string_view name, event::Domain domain = event::Domain::kOpenCL) {
    return writer_->dimension(Table::kFunction, {text(name), static_cast<int64_t>(domain)});
  }
  void call(int64_t track, int64_t start, int64_t duration, int64_t function, int64_t correlation = 0,
            int64_t result = 0) {
    writer_->add(Table::kApi, {track, start, duration, function, correlation, result});
  }
  int64_t label(std::string_view name, event::MarkerKind kind = event::MarkerKind::kPushPop) {
    return writer_->dimension(Table::kLabel, {text(name), static_cast<int64_t>(kind), 0, 0, kUnknown, 0});
  }
  void marker(int64_t track, int64_t start, int64_t duration, int64_t label) {
    writer_->add(Table::kMarker, {track, start, duration, label, 0, 0});
  }
  int64_t counter(std::string_view name, std::string_view unit = "") {
    return writer_->dimension(Table::kCounter, {text(name), text(unit), 0, 0});
  }
  void reading(int64_t process, int64_t device, int64_t counter, std::string_view name, int64_t time,
               double value) {
    const int64_t track =
        writer_->dimension(Table::kTrack, {static_cast<int64_t>(event::TrackKind::kCounter), process, 0,
                                           device, 0, 0, text(name), text("counter"), counter});
    writer_->add(Table::kReading, {track, time, std::bit_cast<int64_t>(value)});
  }
  void counter_value(int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t instance,
                     double value) {
    writer_->add(Table::kCounterValue,
                 {track, start, ordinal, counter, instance, 0, std::bit_cast<int64_t>(value)});
  }
  void clock(int64_t raw, int64_t boottime) {
    writer_->add(Table::kClock,
                 {0, raw, boottime - 500, boottime, boottime + 1'000'000'000'000, kUnknown, 0});
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
