// Dispatches with a value for every unit: files of the spool, columns, and recorded values of the real rocprofiler-sdk
// (shared/data/rocprofiler-sdk), one by one.
#include "counter/provider/amd/instances.h"

#include <gtest/gtest.h>
#include <string.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "counter/provider/amd/machine.h"
#include "vendor/amd/sdk_counting.h"

namespace tacho::counter::amd {
namespace {

namespace sdk = vendor::sdk;

template <typename T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void define(std::string& to, uint64_t id, uint32_t counter, int xcc, int engine, int instance) {
  spool::InstanceDefinition definition{};
  definition.magic = spool::kDefinitionMagic;
  definition.bytes = sizeof definition;
  definition.id = id;
  definition.counter = counter;
  for (int16_t& position : definition.position) position = -1;
  definition.position[static_cast<size_t>(spool::Dimension::kXcc)] = static_cast<int16_t>(xcc);
  definition.position[static_cast<size_t>(spool::Dimension::kShaderEngine)] = static_cast<int16_t>(engine);
  definition.position[static_cast<size_t>(spool::Dimension::kInstance)] = static_cast<int16_t>(instance);
  append(to, definition);
}

void add_dispatch(std::string& to, uint64_t index, const std::string& name,
                  const std::vector<spool::InstanceValue>& values, spool::InstanceRecord record = {}) {
  const size_t padded = (name.size() + 7) / 8 * 8;
  record.magic = spool::kInstanceMagic;
  record.bytes = static_cast<uint32_t>(sizeof record + padded + values.size() * sizeof(spool::InstanceValue));
  record.index = index;
  record.selected = 1;
  record.name_bytes = static_cast<uint32_t>(name.size());
  record.values = static_cast<uint32_t>(values.size());
  append(to, record);
  to += name + std::string(padded - name.size(), '\0');
  for (const spool::InstanceValue& value : values) append(to, value);
}

TEST(Instances, ADispatchThatRanOncePerPassIsThereAsOften) {
  char folder[] = "/tmp/tacho-instances-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  std::string bytes;
  define(bytes, 10, 0, 0, 1, -1);
  // In the order of batches: both launches in pass 0, then in pass 1; the third ran once.
  spool::InstanceRecord record{};
  for (const uint32_t pass : {1u, 0u})
    for (const uint64_t index : {1u, 0u}) {
      record.pass = pass;
      add_dispatch(bytes, index, "k", {{10, static_cast<double>(10 * index + pass)}}, record);
    }
  record.pass = 0;
  record.once = static_cast<uint32_t>(spool::RanOnce::kGraph);
  add_dispatch(bytes, 2, "k", {{10, 20.0}}, record);
  record.once = 999;  // of a newer library
  add_dispatch(bytes, 3, "k", {{10, 30.0}}, record);
  std::ofstream(std::string(folder) + "/0.instances", std::ios::binary) << bytes;
  std::ofstream(std::string(folder) + "/0.once") << "1 11\n7 999\nnonsense";
  size_t cut = 0;
  uint64_t unknown = 0;
  const auto read = read_instances(folder, cut, unknown);
  const std::map<uint64_t, spool::RanOnce> broken = read_broken_off(folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 6u);
  const std::pair<uint64_t, size_t> order[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {3, 0}};
  for (size_t i = 0; i < 6; ++i) {
    const CountedDispatch& each = (*read)[i];
    EXPECT_EQ(std::pair(each.dispatch.index, each.pass), order[i]);
    EXPECT_EQ(each.values.at(0).value, static_cast<double>(10 * each.dispatch.index + each.pass));
    EXPECT_EQ(each.once, i == 4 ? spool::RanOnce::kGraph : spool::RanOnce::kNo);
  }
  EXPECT_EQ(broken, (std::map<uint64_t, spool::RanOnce>{{1, spool::RanOnce::kWaits}}));
}

TEST(Instances, EveryReasonToRunOnceHasASentence) {
  for (uint32_t reason = 1; reason < spool::kRanOnceReasons; ++reason)
    EXPECT_NE(sentence_of(static_cast<spool::RanOnce>(reason), 30), "") << reason;
  EXPECT_EQ(sentence_of(spool::RanOnce::kBusy, 30),
            "the GPU was not idle within 30 s (TACHO_REPLAY_PATIENCE=SECONDS gives it more)");
}

TEST(Instances, ColumnsAreSumsOfAllUnitsOrChannels) {
  std::string bytes;
  define(bytes, 10, 0, 0, 1, -1);
  define(bytes, 11, 0, 1, 0, -1);
  define(bytes, 20, 1, 0, -1, 3);
  define(bytes, 21, 1, 1, -1, 3);
  add_dispatch(bytes, 7, "_Z3addPf", {{10, 5}, {11, 6}, {20, 100}, {21, 200}});
  std::vector<CountedDispatch> read;
  uint64_t unknown = 0;
  ASSERT_TRUE(parse_instances(bytes, read, unknown));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(unknown, 0u);
  EXPECT_EQ(read[0].dispatch.kernel, "add(float*)");
  EXPECT_EQ(read[0].dispatch.index, 7u);
  EXPECT_EQ(read[0].values[3].at(spool::Dimension::kXcc), 1);
  EXPECT_EQ(read[0].values[0].at(spool::Dimension::kInstance), -1);
  Columns columns;
  columns.add(0, -1);
  columns.add(1, 3);
  columns.add(1, 16 + 3);
  columns.add(1, 4);
  columns.add(2, -1);
  columns.add(1, -1);
  double out[6];
  columns.fill(read[0], 16, out);
  EXPECT_EQ(out[0], 11);
  EXPECT_EQ(out[1], 100);
  EXPECT_EQ(out[2], 200);
  EXPECT_TRUE(std::isnan(out[3]));  // no such channel
  EXPECT_TRUE(std::isnan(out[4]));  // no such counter
  EXPECT_EQ(out[5], 300);
}

TEST(Instances, BadFilesEndWhereTheyAreBad) {
  std::string bytes;
  define(bytes, 1, 0, 0, 0, 0);
  add_dispatch(bytes, 0, "a", {{1, 2}});
  const size_t whole = bytes.size();
  add_dispatch(bytes, 1, "b", {{1, 3}, {99, 4}});
  for (size_t size = 0; size <= bytes.size(); ++size) {
    std::vector<CountedDispatch> read;
    uint64_t unknown = 0;
    const bool good = parse_instances(std::string_view(bytes).substr(0, size), read, unknown);
    EXPECT_EQ(good, size == 0 || size == sizeof(spool::InstanceDefinition) || size == whole || size == bytes.size())
        << size;
    EXPECT_EQ(read.size(), size < whole ? 0u : size < bytes.size() ? 1u : 2u) << size;
    EXPECT_EQ(unknown, size < bytes.size() ? 0u : 1u);
  }
  for (size_t at = 0; at < 8; ++at) {  // magic and size of a record
    std::string broken = bytes;
    broken[sizeof(spool::InstanceDefinition) + at] ^= 0x7f;
    std::vector<CountedDispatch> read;
    uint64_t unknown = 0;
    EXPECT_FALSE(parse_instances(broken, read, unknown)) << at;
  }
}

// Recordings

std::string recording(const char* name) {
  const char* const data = std::getenv("TACHO_DATA");
  const std::string path = std::string(data != nullptr ? data : "../shared/data") + "/rocprofiler-sdk/" + name;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string packed = text.str();
  if (packed.empty()) return {};
  std::string bytes;
  ZSTD_DStream* const stream = ZSTD_createDStream();
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::string part(1 << 20, '\0');
  while (in.pos < in.size) {
    ZSTD_outBuffer out{part.data(), part.size(), 0};
    const size_t result = ZSTD_decompressStream(stream, &out, &in);
    EXPECT_FALSE(ZSTD_isError(result));
    if (ZSTD_isError(result)) break;
    bytes.append(part.data(), out.pos);
  }
  ZSTD_freeDStream(stream);
  return bytes;
}

// The recorded library numbers units in the id of a value: six bits for each dimension (XCC, AID, shader engine, agent,
// shader array, WGP, instance), the counter above them. In a program, tacho asks the library
// (capture/source/rocm/counting.cpp).
std::string spool_of(const std::string& bytes, std::map<uint64_t, std::string>& counters, size_t& values) {
  std::string made;
  std::set<uint64_t> defined;
  std::map<uint64_t, std::string> kernels;
  std::vector<spool::InstanceValue> of_dispatch;
  sdk::DispatchHeader head{};
  const auto end_dispatch = [&] {
    if (head.size == 0) return;
    EXPECT_EQ(head.size, sizeof head);
    EXPECT_EQ(head.records, of_dispatch.size());
    spool::InstanceRecord record{};
    record.start = static_cast<int64_t>(head.start);
    record.end = static_cast<int64_t>(head.end);
    record.grid[0] = head.info.grid.x;
    record.grid[1] = head.info.grid.y;
    record.grid[2] = head.info.grid.z;
    add_dispatch(made, head.info.dispatch - 1, kernels[head.info.kernel], of_dispatch, record);
    of_dispatch.clear();
  };
  for (size_t at = 0; at < bytes.size();) {
    uint32_t category = 0, kind = 0;
    uint64_t size = 0;
    memcpy(&category, &bytes[at], 4);
    memcpy(&kind, &bytes[at + 4], 4);
    memcpy(&size, &bytes[at + 8], 8);
    const char* const record = &bytes[at + 16];
    at += 16 + size;
    uint64_t number = 0;
    if (category == 100) {
      memcpy(&number, record, 8);
      const std::string text(record + 8, size - 8);
      if (kind == 2) counters[number] = text;
      if (kind == 3) kernels[number] = text;
    } else if (category == sdk::category::kCounters && kind == sdk::kCounterHeader) {
      end_dispatch();
      EXPECT_EQ(size, sizeof head);
      memcpy(&head, record, sizeof head);
    } else if (category == sdk::category::kCounters && kind == sdk::kCounterValue) {
      EXPECT_EQ(size, sizeof(sdk::SdkCounterRecord));
      sdk::SdkCounterRecord value;
      memcpy(&value, record, sizeof value);
      EXPECT_EQ(value.dispatch, head.info.dispatch);
      EXPECT_EQ(value.agent.handle, head.info.agent.handle);
      if (defined.insert(value.id).second)
        define(made, value.id, static_cast<uint32_t>(value.id >> 48), static_cast<int>(value.id & 63),
               static_cast<int>(value.id >> 12 & 63), static_cast<int>(value.id >> 36 & 63));
      of_dispatch.push_back({value.id, value.value});
      ++values;
    }
  }
  end_dispatch();
  return made;
}

TEST(Instances, EveryRecordedValueIsTheOneThatTheDriverInvented) {
  const std::pair<const char*, std::array<size_t, 2>> recordings[] = {{"vcopy-gfx942.records.zst", {6, 1008}},
                                                                      {"many-gfx942.records.zst", {874, 146832}}};
  for (const auto& [name, expected] : recordings) {
    const std::string bytes = recording(name);
    if (bytes.empty()) {
      if (std::getenv("TACHO_REQUIRE_DATA") != nullptr) FAIL() << name << " is missing (TACHO_DATA)";
      GTEST_SKIP() << name << " is missing (TACHO_DATA)";
    }
    std::map<uint64_t, std::string> counters;
    size_t values = 0;
    const std::string made = spool_of(bytes, counters, values);
    EXPECT_EQ(values, expected[1]);
    std::vector<CountedDispatch> dispatches;
    uint64_t unknown = 0;
    ASSERT_TRUE(parse_instances(made, dispatches, unknown));
    EXPECT_EQ(unknown, 0u);
    ASSERT_EQ(dispatches.size(), expected[0]);
    // The driver gave every unit the number of waves that all kernels had launched by then.
    std::sort(dispatches.begin(), dispatches.end(),
              [](const CountedDispatch& a, const CountedDispatch& b) { return a.dispatch.start < b.dispatch.start; });
    uint64_t waves = 0;
    size_t checked = 0;
    Columns columns;
    std::vector<std::string> names;
    std::map<std::string, size_t> units = {{"SQ_WAVES", 32}, {"GRBM_COUNT", 8}, {"TCC_HIT", 128}};
    for (const auto& [handle, counter] : counters) {
      columns.add(handle, -1);
      names.push_back(counter);
      columns.add(handle, 127);  // the last channel of the last die
    }
    for (const CountedDispatch& counted : dispatches) {
      const auto& grid = counted.dispatch.grid;
      waves += (grid[0] * std::max<uint64_t>(grid[1], 1) * std::max<uint64_t>(grid[2], 1) + 63) / 64;
      std::set<std::tuple<uint32_t, int, int, int>> places;
      for (const UnitValue& value : counted.values) {
        ASSERT_EQ(value.value, static_cast<double>(waves)) << counted.dispatch.index;
        EXPECT_TRUE(places
                        .emplace(value.counter, value.at(spool::Dimension::kXcc),
                                 value.at(spool::Dimension::kShaderEngine), value.at(spool::Dimension::kInstance))
                        .second);
        ++checked;
      }
      std::vector<double> row(columns.size());
      columns.fill(counted, 16, row.data());
      for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(row[2 * i], static_cast<double>(waves * units.at(names[i])));
        if (names[i] == "TCC_HIT") {
          EXPECT_EQ(row[2 * i + 1], static_cast<double>(waves));
        }
      }
    }
    EXPECT_EQ(checked, expected[1]);
  }
}

// The machine

TEST(AmdMachine, ArchitecturesByTheirNumber) {
  EXPECT_EQ(architecture_named_by(90010), "gfx90a");
  EXPECT_EQ(architecture_named_by(90402), "gfx942");
  EXPECT_EQ(architecture_named_by(90500), "gfx950");
  EXPECT_EQ(architecture_named_by(90008), "gfx908");
  EXPECT_EQ(architecture_named_by(110000), "gfx1100");
}

TEST(AmdMachine, AnEmptyTopologyHasNoGpu) {
  std::vector<std::string> unknown;
  EXPECT_TRUE(devices_of("/nonexistent", unknown).empty());
  EXPECT_TRUE(unknown.empty());
}

}  // namespace
}  // namespace tacho::counter::amd
