// The direct reader of SQLite files and what decodes rows of .rpd files and rocpd databases: damaged pages, cells and
// records give rows or a sentence. Inputs start as small databases made here; the mutator leaves the first page, where
// the schema lies, mostly as it is.
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "format/nsys/nsys.h"
#include "format/nsys/schema.h"
#include "format/rocpd/rocpd.h"
#include "format/rocpd/schema.h"
#include "format/rpd/rpd.h"
#include "format/rpd/schema.h"
#include "format/sqlite/file.h"
#include "fuzz/checking_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace tacho;

std::vector<std::vector<uint8_t>> seeds;

std::vector<uint8_t> database(const std::string& script) {
  sqlite3* db = nullptr;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) abort();
  if (sqlite3_exec(db, ("PRAGMA page_size = 512;" + script).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) abort();
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(db, "main", &size, 0);
  std::vector<uint8_t> copy(bytes, bytes + size);
  sqlite3_free(bytes);
  sqlite3_close(db);
  return copy;
}

std::vector<uint8_t> rpd_seed(int version) {
  std::string sql = format::rpd::table_schema(version);
  sql += "INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '" + std::to_string(version) +
         "');INSERT INTO rocpd_string(id, string) VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'KernelExecution'), (4, "
         "'vcopy'), (5, 'UserMarker'), (6, 'CopyHostToDevice'), (7, '" +
         std::string(900, 'x') + "');";
  if (version >= 3)
    sql +=
        "INSERT INTO rocpd_ustring(id, string) VALUES (1, ''), (2, 'marker');INSERT INTO rocpd_api VALUES (1, 10, 11, "
        "100, 200, 2, 1, 1, 1), (2, 10, 11, 120, 180, 5, 1, 1, 2), (3, 10, 12, 300, 400, 2, 1, 1, 1);INSERT INTO "
        "rocpd_op VALUES (1, 0, 1, 2, 150, 250, 4, 3), (2, 1, 1, 2, 350, 360, 1, 6);INSERT INTO rocpd_kernelapi VALUES "
        "(1, '0x1', 16, 1, 1, 64, 1, 1, 0, 0, 4);";
  else
    sql +=
        "INSERT INTO rocpd_api VALUES (1, 10, 11, 100, 200, 2, 1), (2, 10, 11, 120, 180, 5, 7), (3, 10, 12, 300, 400, "
        "2, 1);INSERT INTO rocpd_op VALUES (1, 0, 1, 2, '', 150, 250, 4, 3), (2, 1, 1, 2, '', 350, 360, 1, 6);INSERT "
        "INTO rocpd_kernelapi VALUES (1, '0x1', 16, 1, 1, 64, 1, 1, 0, 0, '', '', '', '', 4);";
  sql +=
      "INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 3, 2);INSERT INTO rocpd_copyapi VALUES (3, '0x1', 4096, '', '', "
      "1, '', '', 0, 0, 0, 0);INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'sclk', 100, 200, '1500');";
  return database(sql);
}

std::vector<uint8_t> rocpd_seed() {
  const std::string suffix = "_a";
  std::string sql = format::rocpd::table_schema(suffix, "a");
  const auto insert = [&](const char* table, const char* values) {
    sql += std::string("INSERT INTO rocpd_") + table + suffix + " VALUES " + values + ";";
  };
  insert("metadata", "(1, 'schema_version', '3')");
  insert("string",
         "(1, 'a', ''), (2, 'a', 'HIP_RUNTIME_API'), (3, 'a', 'hipLaunchKernel'), (4, 'a', 'MARKER_CORE_API'), (5, "
         "'a', 'MEMORY_COPY_HOST_TO_DEVICE')");
  sql +=
      "INSERT INTO rocpd_info_node_a(id, guid, hash, machine_id, hostname) VALUES (1, 'a', 1, 'm', 'host');INSERT INTO "
      "rocpd_info_process_a(id, guid, nid, pid, command) VALUES (1, 'a', 1, 10, 'app x');INSERT INTO "
      "rocpd_info_thread_a(id, guid, nid, pid, tid) VALUES (1, 'a', 1, 1, 11);INSERT INTO rocpd_info_agent_a(id, guid, "
      "nid, pid, type, absolute_index, logical_index, type_index, name) VALUES (1, 'a', 1, 1, 'GPU', 1, 1, 0, "
      "'gfx942');INSERT INTO rocpd_event_a(id, guid, category_id, stack_id, extdata) VALUES (1, 'a', 2, 5, '{}'), (2, "
      "'a', 4, 0, '{\"message\": \"m\"}'), (3, 'a', 2, 5, '{}');INSERT INTO rocpd_region_a(id, guid, nid, pid, tid, "
      "start, end, name_id, event_id) VALUES (1, 'a', 1, 1, 1, 100, 200, 3, 1), (2, 'a', 1, 1, 1, 90, 300, 3, 2);";
  return database(sql);
}

// Schema 1 of .rpd: shapes and sizes by operation, one of which was not measured.
std::vector<uint8_t> rpd_seed_of_schema_1() {
  return database(
      "CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string);INSERT INTO rocpd_string VALUES (1, ''), (2, "
      "'hipLaunchKernel'), (3, 'KernelExecution'), (4, 'k'), (5, 'CopyHostToDevice');CREATE TABLE rocpd_api (id INTEGER "
      "PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);INSERT INTO rocpd_api VALUES (1, 10, 11, 100000, 100200, "
      "2, 1), (2, 10, 11, 100300, 100400, 2, 1);CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId, queueId, "
      "sequenceId, start, end, description_id, opType_id);INSERT INTO rocpd_op VALUES (1, 0, 1, 2, 100250, 100290, 4, "
      "3), (2, 0, 1, 2, 0, 0, 4, 3), (3, 0, 1, 2, 100500, 100600, 1, 5);CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY "
      "KEY, api_id, op_id);INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 2, 2);CREATE TABLE rocpd_kernelop (op_ptr_id "
      "INTEGER PRIMARY KEY, gridX, gridY, gridz, workgroupX, workgroupY, workgroupZ, groupSegementSize, "
      "privateSegementSize);INSERT INTO rocpd_kernelop VALUES (1, 4, 1, 1, 64, 1, 1, 0, 0);CREATE TABLE rocpd_copyop "
      "(op_ptr_id INTEGER PRIMARY KEY, size, sync);INSERT INTO rocpd_copyop VALUES (3, 4096, 0);");
}

// Schema 4 of rocpd: places in tracks, times apart (4.0) or not, counters of a sample, of a stream and of replays.
std::vector<uint8_t> rocpd_seed_of_schema_4(bool apart) {
  std::string sql =
      "CREATE TABLE rocpd_metadata_a (id INTEGER PRIMARY KEY, tag, value);CREATE TABLE rocpd_string_a (id INTEGER "
      "PRIMARY KEY, guid, string);INSERT INTO rocpd_string_a VALUES (1, 'a', 'hipLaunchKernel'), (2, 'a', "
      "'line');CREATE TABLE rocpd_info_category_a (id INTEGER PRIMARY KEY, guid, name);INSERT INTO "
      "rocpd_info_category_a VALUES (1, 'a', 'HIP_RUNTIME_API');CREATE TABLE rocpd_info_process_a (id INTEGER PRIMARY "
      "KEY, guid, nid, pid, command);INSERT INTO rocpd_info_process_a VALUES (1, 'a', 1, 500, 'app');CREATE TABLE "
      "rocpd_info_thread_a (id INTEGER PRIMARY KEY, guid, pid, tid);INSERT INTO rocpd_info_thread_a VALUES (1, 'a', 1, "
      "501);CREATE TABLE rocpd_info_agent_a (id INTEGER PRIMARY KEY, guid, type, type_index, name, "
      "generic_name);INSERT INTO rocpd_info_agent_a VALUES (1, 'a', 'GPU', 0, '', 'gfx942');CREATE TABLE rocpd_track_a "
      "(id INTEGER PRIMARY KEY, guid, pid, tid, agent_id, queue_id, stream_id, name_id);INSERT INTO rocpd_track_a "
      "VALUES (1, 'a', 1, 1, 1, 1, 1, 2);CREATE TABLE rocpd_event_a (id INTEGER PRIMARY KEY, guid, category_id, "
      "stack_id, extdata);INSERT INTO rocpd_event_a VALUES (1, 'a', 1, 5, ''), (2, 'a', 1, 5, ''), (3, 'a', 1, 0, ''), "
      "(4, 'a', 1, 5, '');CREATE TABLE rocpd_info_pmc_a (id INTEGER PRIMARY KEY, guid, name, agent_id);INSERT INTO "
      "rocpd_info_pmc_a VALUES (1, 'a', 'SQ_WAVES', 1);CREATE TABLE rocpd_pmc_event_a (id INTEGER PRIMARY KEY, guid, "
      "event_id, pmc_id, value, extdata, sample_id, xcc);INSERT INTO rocpd_pmc_event_a VALUES (1, 'a', 2, 1, 2.5, "
      "'{\"instance\": 3}', NULL, NULL), (2, 'a', 3, 1, 7, '{}', NULL, NULL), (3, 'a', 2, 1, 7, '', 1, 4), (4, 'a', "
      "4, 1, 1, '', NULL, NULL);";
  const std::string times = apart ? "start_id, end_id" : "start, end";
  sql +=
      "CREATE TABLE rocpd_region_a (id INTEGER PRIMARY KEY, guid, track_id, name_id, " + times +
      ", event_id);INSERT INTO rocpd_region_a VALUES (1, 'a', 1, 1, 1, 2, 1);CREATE TABLE rocpd_kernel_dispatch_a "
      "(id INTEGER PRIMARY KEY, guid, track_id, kernel_id, dispatch_id, " +
      times +
      ", grid_size_x, workgroup_size_x, event_id);INSERT INTO rocpd_kernel_dispatch_a VALUES (1, 'a', 1, 1, 1, 2, 3, "
      "64, 8, 2), (2, 'a', 1, 1, 1, 0, 0, 64, 8, 4);CREATE TABLE rocpd_sample_a (id INTEGER PRIMARY KEY, guid, "
      "track_id, name_id, " +
      (apart ? "timestamp_id" : "timestamp") +
      ", event_id);INSERT INTO rocpd_sample_a VALUES (1, 'a', 1, 2, 2, 3), (2, 'a', 1, 2, 3, 0);";
  if (apart)
    sql +=
        "CREATE TABLE rocpd_timestamp_a (id INTEGER PRIMARY KEY, guid, value);INSERT INTO rocpd_timestamp_a VALUES (1, "
        "'a', 100), (2, 'a', 200), (3, 'a', 300);";
  return database(sql);
}

// The tables of nsys' export.
std::vector<uint8_t> nsys_seed() {
  std::string sql(format::kNsysSchema);
  sql +=
      "INSERT INTO StringIds VALUES (1, 'k'), (2, 'cudaLaunchKernel_v7000'), (3, 'text');INSERT INTO META_DATA_EXPORT "
      "VALUES ('EXPORT_SCHEMA_VERSION', '3.1.7');INSERT INTO TARGET_INFO_GPU(vmId, id, name) VALUES (0, 0, "
      "'GPU');INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 1, NULL, 7, 5, 1291845632, 1, 1, 1, 0, 0, 32, "
      "2, 1, 1, 64, 1, 1, 0, 0, 0, 0, 1, 0, 3, 0);INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, 0, 1291845710, "
      "5, 2, 0, NULL);INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (200, 250, 0, 1, NULL, 7, 6, 1291845632, 4096, 1, 0, "
      "0, 2, 0, 1, 0, 1, 0, NULL, NULL);INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (300, 310, 0, 1, NULL, 7, 7, "
      "1291845632, 0, 64, NULL, 2);INSERT INTO NVTX_EVENTS(start, \"end\", eventType, text, globalTid, textId, domainId, "
      "category) VALUES (5, NULL, 75, 'd', 1291845710, NULL, 3, NULL), (10, 20, 59, NULL, 1291845710, 3, 3, 4), (15, "
      "NULL, 34, 'mark', 1291845710, NULL, 0, NULL);";
  return database(sql);
}

void scan_everything(const std::string& path) {
  const auto file = sqlite::File::open(path);
  if (!file) {
    if (file.error().message.empty()) abort();
    return;
  }
  uint64_t budget = 20'000;
  for (uint32_t page = 1; page <= std::min(file->page_count(), 64u) && budget > 0; ++page) {
    sqlite::TableScan scan(*file, page, 8);
    uint64_t sum = 0;
    while (budget > 0 && scan.next()) {
      --budget;
      sum += static_cast<uint64_t>(scan.rowid());
      for (int column = 0; column < 8; ++column) {
        sum +=
            static_cast<uint64_t>(scan.integer(column)) + scan.text(column).size() + (scan.is_null(column) ? 1u : 0u);
        if (!scan.text(column).empty()) sum += static_cast<uint8_t>(scan.text(column).back());
        (void)scan.real(column);
      }
    }
    fuzz::expect_sentence(scan.status());
    sqlite::TableScan seeker(*file, page, 2);
    (void)seeker.seek(static_cast<int64_t>(sum % 64));
    (void)seeker.next();
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  seeds = {rpd_seed(2),
           rpd_seed(3),
           rpd_seed_of_schema_1(),
           rocpd_seed(),
           rocpd_seed_of_schema_4(false),
           rocpd_seed_of_schema_4(true),
           nsys_seed()};
  // libFuzzer's own limit is 4096 bytes, and no seed would ever fit. The user's option comes later and counts.
  static char most[] = "-max_len=65536";
  static std::vector<char*> words(*argv, *argv + *argc);
  words.insert(words.begin() + 1, most);
  words.push_back(nullptr);
  *argc = static_cast<int>(words.size()) - 1;
  *argv = words.data();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed + 1);
  if (size < 512) {
    const std::vector<uint8_t>& start = seeds[seed % seeds.size()];
    if (start.size() > max_size) abort();  // nothing would be tried
    memcpy(data, start.data(), size = start.size());
  }
  // The same size: pages stay where they are. One place in eight may be in the first page.
  for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
    const size_t first = size > 1024 && random() % 8 != 0 ? 512 : 0;
    const size_t at = first + random() % (size - first), length = std::min<size_t>(1 + random() % 8, size - at);
    uint8_t window[8];
    memcpy(window, data + at, length);
    const size_t changed = LLVMFuzzerMutate(window, length, length);
    memcpy(data + at, window, changed);
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  const std::string& path = file.write(data, size);
  scan_everything(path);
  // Schemas and joins through SQLite cost a hundred times as much: every sixteenth input.
  static unsigned number = 0;
  if (++number % 16 != 0 || size < 512) return 0;
  const std::string_view head(reinterpret_cast<const char*>(data), std::min<size_t>(size, 4096));
  fuzz::CheckingWriter rpd, rocpd, nsys;
  if (format::rpd::accepts(path, head, false)) fuzz::expect_sentence(format::rpd::read_into(path, rpd));
  if (format::rocpd::accepts(path, head, false)) fuzz::expect_sentence(format::rocpd::read_into(path, rocpd));
  if (format::nsys::accepts(path, head, false)) fuzz::expect_sentence(format::nsys::read_into(path, nsys));
  return 0;
}
