// A TraceWriter that keeps its rows in memory, for tests of decoders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/write/writer.h"

namespace tacho::decode {

using event::Table;

class MemoryWriter : public trace::TraceWriter {
 public:
  int64_t string(std::string_view text) override {
    if (text.empty()) return 0;
    const auto [at, fresh] = strings_.try_emplace(std::string(text), static_cast<int64_t>(strings_.size()) + 1);
    return at->second;
  }
  std::string text(int64_t row) const {
    for (const auto& [text, number] : strings_)
      if (number == row) return text;
    return {};
  }
  /// Value of the last property with that key; empty = none.
  std::string property_text(std::string_view key) const {
    const auto found = dimensions.find(Table::kProperty);
    std::string value;
    if (found != dimensions.end())
      for (const auto& row : found->second)
        if (text(row[event::column::Property::key]) == key) value = text(row[event::column::Property::value]);
    return value;
  }
  int64_t dimension_cells(Table table, std::span<const int64_t> row) override {
    auto& rows = dimensions[table];
    const std::vector<int64_t> values(row.begin(), row.end());
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i] == values) return static_cast<int64_t>(i) + 1;
    rows.push_back(values);
    return static_cast<int64_t>(rows.size());
  }
  void update(Table table, int64_t row, int column, int64_t value) override {
    dimensions[table][static_cast<size_t>(row - 1)][static_cast<size_t>(column)] = value;
  }
  void add_cells(Table table, std::span<const int64_t> row) override {
    facts[table].emplace_back(row.begin(), row.end());
  }
  void lose(int64_t, Table, event::LossReason reason, int64_t count) override { losses[reason] += count; }
  void note(int64_t, event::NoteSeverity, std::string_view text) override { notes.emplace_back(text); }
  Status flush() override {
    ++flushes;
    return {};
  }
  int64_t rows(Table table) const override {
    const auto found = facts.find(table);
    return found == facts.end() ? 0 : static_cast<int64_t>(found->second.size());
  }
  uint64_t bytes() const override { return 0; }
  Status write_status() const override { return {}; }
  const std::string& temporary_path() const override { return path_; }
  Status finish() override { return {}; }
  Result<std::shared_ptr<const trace::Trace>> finish_and_open(const std::string&) override {
    return fail("not a file");
  }

  std::map<Table, std::vector<std::vector<int64_t>>> dimensions, facts;
  std::map<event::LossReason, int64_t> losses;
  std::vector<std::string> notes;
  int flushes = 0;

 private:
  std::map<std::string, int64_t> strings_;
  std::string path_;
};

}  // namespace tacho::decode
