// libFuzzer target of the reader of rocprofv3's JSON: any bytes, plain or as gzip, end in a trace or in one sentence.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "event/schema.h"
#include "format/rocprofv3_json/rocprofv3_document.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "fuzz/text_mutator.h"
#include "trace/write/writer.h"

namespace {

using namespace tacho;

// Keeps nothing; every row must refer to rows that exist.
class CheckingWriter : public trace::TraceWriter {
 public:
  int64_t string(std::string_view text) override { return text.empty() ? 0 : ++rows_[index(event::Table::kString)]; }
  int64_t dimension_cells(event::Table table, std::span<const int64_t> row) override {
    check(table, row);
    return ++rows_[index(table)];
  }
  void update(event::Table table, int64_t row, int column, int64_t value) override {
    const auto& columns = event::table_info(table).columns;
    if (row < 1 || row > rows_[index(table)] || column < 0 || static_cast<size_t>(column) >= columns.size())
      std::abort();
    check_cell(columns[static_cast<size_t>(column)], value);
  }
  void add_cells(event::Table table, std::span<const int64_t> row) override {
    check(table, row);
    ++rows_[index(table)];
  }
  void lose(int64_t, event::Table, event::LossReason, int64_t) override {}
  void note(int64_t process, event::NoteSeverity, std::string_view text) override {
    if (text.empty() || text.find('\n') != std::string_view::npos) std::abort();
    if (process < 0 || process > rows_[index(event::Table::kProcess)]) std::abort();
  }
  Status flush() override { return {}; }
  int64_t rows(event::Table table) const override { return rows_[index(table)]; }
  uint64_t bytes() const override { return 0; }
  Status write_status() const override { return {}; }
  const std::string& temporary_path() const override { return path_; }
  Status finish() override { return {}; }
  Result<std::shared_ptr<const trace::Trace>> finish_and_open(const std::string&) override {
    return fail("not a file");
  }

 private:
  static size_t index(event::Table table) { return static_cast<size_t>(table); }
  void check(event::Table table, std::span<const int64_t> row) {
    const auto& columns = event::table_info(table).columns;
    if (row.size() != columns.size()) std::abort();
    for (size_t i = 0; i < row.size(); ++i) check_cell(columns[i], row[i]);
  }
  void check_cell(const event::Column& column, int64_t value) {
    const event::Table target = column.type == event::Type::kString ? event::Table::kString : column.target;
    if (target == event::Table::kEnd) return;
    if (value < 0 || value > rows_[index(target)]) std::abort();
  }
  int64_t rows_[static_cast<size_t>(event::Table::kEnd) + 1] = {};
  std::string path_;
};

std::string g_path;
int g_file = -1;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  g_file = memfd_create("fuzz", 0);
  if (g_file < 0) return 1;
  g_path = "/proc/self/fd/" + std::to_string(g_file);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  static const std::string document = test::rocprofv3_document();
  return fuzz::put(fuzz::mutated_text(std::string(reinterpret_cast<const char*>(data), size), document,
                                      {"kind",
                                       "operation",
                                       "handle",
                                       "internal",
                                       "external",
                                       "value",
                                       "key",
                                       "pid",
                                       "agents",
                                       "buffer_records",
                                       "callback_records",
                                       "strings",
                                       "kernel_symbols",
                                       "code_objects",
                                       "pc_sample_host_trap",
                                       "rccl_api",
                                       "hsa_api",
                                       "scratch_memory",
                                       "summary",
                                       "replay_pass",
                                       "spm_counter_collection"},
                                      max_size, seed),
                   data);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (ftruncate(g_file, 0) != 0 || pwrite(g_file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  CheckingWriter writer;
  const Status read = format::rocprofv3::read_into(g_path, writer);
  if (!read && (read.error().message.empty() || read.error().message.find('\n') != std::string::npos)) std::abort();
  // Now and then all the way to a trace file and out again.
  if (read && size % 61 == 0) {
    const auto trace = format::rocprofv3::read(g_path);
    if (!trace) std::abort();
  }
  return 0;
}
