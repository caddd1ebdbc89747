// Reads launch records and counter data images of a run (images.h).
#include "counter/provider/nvidia/images.h"

#include <string.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "base/format.h"
#include "base/text/demangle.h"
#include "event/spool/spool_ranges.h"

namespace tacho::counter::nvidia {

namespace fs = std::filesystem;

bool parse_launches(std::string_view bytes, std::vector<MeasuredLaunch>& out) {
  while (!bytes.empty()) {
    spool::CounterRecord record;
    if (bytes.size() < sizeof record) return false;
    memcpy(&record, bytes.data(), sizeof record);
    if (record.magic != spool::kCounterRecordMagic || record.bytes > bytes.size() || record.name_bytes > record.bytes ||
        sizeof record + (uint64_t{record.name_bytes} + 7) / 8 * 8 != record.bytes)
      return false;
    MeasuredLaunch& launch = out.emplace_back();
    ObservedDispatch& dispatch = launch.dispatch;
    dispatch.index = record.index;
    dispatch.pid = record.pid;
    dispatch.tid = record.tid;
    dispatch.queue = static_cast<int64_t>(record.queue);
    dispatch.gpu = record.device;
    dispatch.kernel = demangle(bytes.substr(sizeof record, record.name_bytes));
    for (size_t i = 0; i < 3; ++i) {
      dispatch.grid[i] = uint64_t{record.grid[i]} * record.block[i];
      dispatch.workgroup[i] = record.block[i];
    }
    dispatch.lds = record.shared;
    dispatch.scratch = record.local;
    dispatch.arch_vgpr = record.registers;
    dispatch.start = dispatch.end = record.start;
    launch.process = record.process;
    launch.image = record.image;
    launch.range = record.range;
    launch.samples = record.samples;
    launch.selected = record.selected != 0;
    launch.measured = record.image != spool::kNotMeasured;
    launch.shape = fmt::format("{}x{}x{} {}x{}x{} {}", record.grid[0], record.grid[1], record.grid[2], record.block[0],
                               record.block[1], record.block[2], record.shared);
    bytes.remove_prefix(record.bytes);
  }
  return true;
}

Result<std::vector<MeasuredLaunch>> read_launches(const std::string& folder, size_t& cut) {
  std::vector<MeasuredLaunch> launches;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".records") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!parse_launches(text.view(), launches)) ++cut;
  }
  if (error) return fail("{}: {}", folder, error.message());
  std::sort(launches.begin(), launches.end(), [](const MeasuredLaunch& a, const MeasuredLaunch& b) {
    if (a.dispatch.index != b.dispatch.index) return a.dispatch.index < b.dispatch.index;
    return std::tie(a.dispatch.kernel, a.selected) < std::tie(b.dispatch.kernel, b.selected);
  });
  return launches;
}

Status Evaluator::take(bool keep) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != ".image") continue;
    const std::string name = entry.path().stem().string();  // "<process>.<number>.<device>"
    uint32_t parts[3] = {};
    const char *at = name.data(), *const end = at + name.size();
    bool whole = true;
    for (uint32_t& part : parts) {
      const auto read = std::from_chars(at, end, part);
      whole = whole && read.ec == std::errc() &&
              (&part == &parts[2] ? read.ptr == end : read.ptr != end && *read.ptr == '.');
      at = read.ptr + (whole && read.ptr != end ? 1 : 0);
    }
    if (!whole) continue;
    const auto [process, number, device] = parts;
    std::ifstream file(entry.path(), std::ios::binary | std::ios::ate);
    const std::streamoff size = file.tellg();
    if (size <= 0) continue;
    std::vector<uint8_t> image(static_cast<size_t>(size));
    file.seekg(0);
    if (!file.read(reinterpret_cast<char*>(image.data()), size))
      return fail("{}: cannot be read", entry.path().string());
    auto& ranges = values_[{{process, device}, number}];
    ranges.clear();
    std::unique_ptr<Host>& host = hosts_[{process, device}];
    if (host == nullptr) {
      TACHO_ASSIGN(host, host_.another());
    }
    const size_t count = host->ranges(image);
    for (size_t range = 0; range < count; ++range) {
      TACHO_ASSIGN(std::vector<double> row, host->evaluate(image, range, metrics_));
      ranges.push_back(std::move(row));
    }
    if (!keep) fs::remove(entry.path(), error);
  }
  return {};
}

const std::vector<double>* Evaluator::values(const MeasuredLaunch& launch) const {
  const auto found = values_.find({{launch.process, static_cast<uint32_t>(launch.dispatch.gpu)}, launch.image});
  if (!launch.measured || found == values_.end() || launch.range >= found->second.size()) return nullptr;
  return &found->second[launch.range];
}

}  // namespace tacho::counter::nvidia
