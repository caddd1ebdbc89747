// A TraceWriter that keeps nothing but checks what importers owe it: every column there, references only to rows that
// exist, times that can be added up. And a file in memory, for readers that want a path.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/write/writer.h"

namespace tacho::fuzz {

using event::Table;
using event::Type;

class CheckingWriter : public trace::TraceWriter {
 public:
  int64_t string(std::string_view text) override {
    if (text.empty()) return 0;
    return strings_.try_emplace(std::string(text), static_cast<int64_t>(strings_.size()) + 1).first->second;
  }
  int64_t dimension_cells(Table table, std::span<const int64_t> row) override {
    check(table, row);
    auto& rows = dimensions_[table];
    return rows.try_emplace({row.begin(), row.end()}, static_cast<int64_t>(rows.size()) + 1).first->second;
  }
  void update(Table table, int64_t row, int column, int64_t) override {
    if (row < 1 || row > static_cast<int64_t>(dimensions_[table].size()) || column < 0) abort();
  }
  void add_cells(Table table, std::span<const int64_t> row) override {
    check(table, row);
    if (event::is_timed(table)) {
      constexpr int64_t kMost = int64_t{1} << 62;
      if (row[1] < -kMost || row[1] > kMost) abort();
      if (row[2] != event::kUnknown && row[2] < 0) abort();
    }
    ++facts_[static_cast<size_t>(table)];
  }
  void lose(int64_t, Table, event::LossReason, int64_t count) override {
    if (count <= 0) abort();
  }
  void note(int64_t, event::NoteSeverity, std::string_view text) override {
    if (text.empty()) abort();
  }
  Status flush() override { return {}; }
  int64_t rows(Table table) const override {
    if (event::is_fact(table)) return facts_[static_cast<size_t>(table)];
    const auto found = dimensions_.find(table);
    return found == dimensions_.end() ? 1 : static_cast<int64_t>(found->second.size()) + 1;
  }
  uint64_t bytes() const override { return 0; }
  Status write_status() const override { return {}; }
  const std::string& temporary_path() const override { return path_; }
  Status finish() override { return {}; }
  Result<std::shared_ptr<const trace::Trace>> finish_and_open(const std::string&) override {
    return fail("not a file");
  }

 private:
  void check(Table table, std::span<const int64_t> row) const {
    const auto& columns = event::table_info(table).columns;
    if (row.size() != columns.size()) abort();
    for (size_t i = 0; i < row.size(); ++i) {
      if (columns[i].type == Type::kString && (row[i] < 0 || row[i] > static_cast<int64_t>(strings_.size()))) abort();
      if (columns[i].type == Type::kRow && (row[i] < 0 || row[i] >= rows(columns[i].target))) abort();
    }
  }

  std::unordered_map<std::string, int64_t> strings_;
  std::map<Table, std::map<std::vector<int64_t>, int64_t>> dimensions_;
  std::array<int64_t, event::kFactTables> facts_{};
  std::string path_;
};

/// One file in memory whose contents are replaced again and again.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    if (descriptor_ < 0) abort();
  }
  const std::string& write(const uint8_t* data, size_t size) {
    if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, data, size, 0) != static_cast<ssize_t>(size)) abort();
    return path_;
  }

 private:
  int descriptor_;
  std::string path_;
};

/// An answer must be one or a sentence.
inline void expect_sentence(const Status& status) {
  if (!status && (status.error().message.empty() || status.error().message.size() > 8192)) abort();
}

}  // namespace tacho::fuzz
