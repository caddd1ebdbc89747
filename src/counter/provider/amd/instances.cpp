// Reads the target's counts (instances.h).
#include "counter/provider/amd/instances.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "base/format.h"
#include "base/text/demangle.h"

namespace tacho::counter::amd {

namespace {

struct Definition {
  uint32_t counter;
  std::array<int16_t, spool::kDimensions> position;
};

template <typename T>
T load(std::string_view bytes, size_t at) {
  T value;
  memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

bool parse_instances(std::string_view bytes, std::vector<CountedDispatch>& out, uint64_t& unknown) {
  std::unordered_map<uint64_t, Definition> definitions;
  while (!bytes.empty()) {
    if (bytes.size() < 2 * sizeof(uint32_t)) return false;
    const auto magic = load<uint32_t>(bytes, 0), size = load<uint32_t>(bytes, sizeof(uint32_t));
    if (size > bytes.size()) return false;
    if (magic == spool::kDefinitionMagic && size == sizeof(spool::InstanceDefinition)) {
      const auto given = load<spool::InstanceDefinition>(bytes, 0);
      Definition& definition = definitions[given.id];
      definition.counter = given.counter;
      std::copy(std::begin(given.position), std::end(given.position), definition.position.begin());
    } else if (magic == spool::kInstanceMagic && size >= sizeof(spool::InstanceRecord)) {
      const auto head = load<spool::InstanceRecord>(bytes, 0);
      const uint64_t name_space = (uint64_t{head.name_bytes} + 7) / 8 * 8;
      if (sizeof head + name_space + uint64_t{head.values} * sizeof(spool::InstanceValue) != size) return false;
      CountedDispatch& counted = out.emplace_back();
      counted.pass = head.pass;
      counted.selected = head.selected != 0;
      if (head.once < spool::kRanOnceReasons) counted.once = static_cast<spool::RanOnce>(head.once);
      ObservedDispatch& dispatch = counted.dispatch;
      dispatch.index = head.index;
      dispatch.pid = head.pid;
      dispatch.tid = head.tid;
      dispatch.gpu = head.gpu;
      dispatch.queue = static_cast<int64_t>(head.queue);
      dispatch.start = head.start;
      dispatch.end = head.end;
      std::copy(std::begin(head.grid), std::end(head.grid), dispatch.grid.begin());
      std::copy(std::begin(head.workgroup), std::end(head.workgroup), dispatch.workgroup.begin());
      dispatch.lds = head.lds;
      dispatch.scratch = head.scratch;
      dispatch.arch_vgpr = head.vgpr;
      dispatch.accum_vgpr = head.accum;
      dispatch.sgpr = head.sgpr;
      dispatch.kernel = demangle(bytes.substr(sizeof head, head.name_bytes));
      counted.values.reserve(head.values);
      for (uint32_t i = 0; i < head.values; ++i) {
        const auto value =
            load<spool::InstanceValue>(bytes, sizeof head + name_space + i * sizeof(spool::InstanceValue));
        const auto definition = definitions.find(value.id);
        if (definition == definitions.end())
          ++unknown;
        else
          counted.values.push_back({definition->second.counter, definition->second.position, value.value});
      }
    } else {
      return false;
    }
    bytes.remove_prefix(size);
  }
  return true;
}

Result<std::vector<CountedDispatch>> read_instances(const std::string& folder, size_t& cut, uint64_t& unknown) {
  std::vector<CountedDispatch> dispatches;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".instances") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file && text.view().empty() && file.bad()) return fail("{}: cannot be read", entry.path().string());
    if (!parse_instances(text.view(), dispatches, unknown)) ++cut;
  }
  if (error) return fail("{}: cannot be read: {}", folder, error.message());
  std::sort(dispatches.begin(), dispatches.end(), [](const CountedDispatch& a, const CountedDispatch& b) {
    return std::pair(a.dispatch.index, a.pass) < std::pair(b.dispatch.index, b.pass);
  });
  return dispatches;
}

std::map<uint64_t, spool::RanOnce> read_broken_off(const std::string& folder) {
  std::map<uint64_t, spool::RanOnce> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".once") continue;
    std::ifstream file(entry.path());
    uint64_t index = 0;
    for (uint32_t reason = 0; file >> index >> reason;)
      if (reason < spool::kRanOnceReasons) found[index] = static_cast<spool::RanOnce>(reason);
  }
  return found;
}

std::string sentence_of(spool::RanOnce once, int64_t seconds) {
  using spool::RanOnce;
  switch (once) {
    case RanOnce::kNo:
      break;
    case RanOnce::kCollective:
      return "a collective waits for GPUs or ranks that do not run theirs again";
    case RanOnce::kGraph:
      return "tacho does not repeat the work of a graph";
    case RanOnce::kOwn:
      return "HIP's own copies and fills are not run again";
    case RanOnce::kOther:
      return "tacho does not repeat the call that launched it (with launch "
             "attributes, by a HIP that is linked statically)";
    case RanOnce::kUnknown:
      return "the kernel's code does not say what arguments it takes";
    case RanOnce::kCallsHost:
      return "the kernel may print, assert or use the device's heap, which tacho cannot undo";
    case RanOnce::kShared:
      return "the arguments name memory that others (processes, devices, graphics) "
             "use, too, or that tacho did not see being allocated";
    case RanOnce::kMapped:
      return "tacho does not save memory that the program maps itself or takes from stream-ordered pools";
    case RanOnce::kPageable:
      return "kernels can write all of the process's memory (HSA_XNACK=1)";
    case RanOnce::kBusy:
      return fmt::format("the GPU was not idle within {} s (TACHO_REPLAY_PATIENCE=SECONDS gives it more)", seconds);
    case RanOnce::kWaits:
      return fmt::format("the kernel did not end within {} s and may wait for the program "
                         "(TACHO_REPLAY_PATIENCE=SECONDS gives it more)",
                         seconds);
    case RanOnce::kNoRoom:
      return "neither the GPU nor the host has room for a copy of the program's memory";
    case RanOnce::kFailed:
      return "memory could not be copied, or HIP did not launch it again";
  }
  return "";
}

void Columns::add(size_t counter, int channel) {
  Counter& to = counters_[counter];
  if (channel < 0)
    to.whole.push_back(size_);
  else
    to.channels[channel] = size_;
  ++size_;
}

void Columns::fill(const CountedDispatch& dispatch, int banks, double* out) const {
  std::fill_n(out, size_, std::numeric_limits<double>::quiet_NaN());
  const auto add = [&](size_t column, double value) {
    out[column] = std::isnan(out[column]) ? value : out[column] + value;
  };
  for (const UnitValue& value : dispatch.values) {
    const auto found = counters_.find(value.counter);
    if (found == counters_.end()) continue;
    for (const size_t column : found->second.whole) add(column, value.value);
    if (found->second.channels.empty()) continue;
    const int channel =
        std::max(value.at(spool::Dimension::kXcc), 0) * banks + std::max(value.at(spool::Dimension::kInstance), 0);
    if (const auto column = found->second.channels.find(channel); column != found->second.channels.end())
      add(column->second, value.value);
  }
}

}  // namespace tacho::counter::amd
