// Faults of the files of a workload folder, as sentences for the user.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::workload {

/// Counts the faults of one file by kind, so that ten thousand bad cells give one sentence.
class FaultLog {
 public:
  explicit FaultLog(std::string file) : file_(std::move(file)) {}
  /// `consequence`: the reader's reaction to the fault ("they were left out").
  void add(std::string_view kind, std::string_view consequence, uint64_t row, std::string detail);
  void report(std::vector<std::string>& warnings) const;

 private:
  struct Fault {
    std::string kind, consequence, detail;
    uint64_t first_row, count;
  };
  std::string file_;
  std::vector<Fault> faults_;
};

}  // namespace tacho::workload
