// Source text beside PC samples. `tacho profile` keeps the lines around those with samples in ps_file_sources.csv: a
// later reader of the folder may not have the program's source, and pages read nothing but the folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

inline constexpr const char* kPcSourcesFile = "ps_file_sources.csv";

/// A line of source as samples name it, and where the file lies on this machine.
struct SampledLine {
  std::string source;  ///< "gemm.cu:42", as in Instruction_Comment
  std::string path;    ///< "/home/me/gemm.cu"; relative ones belong to the working folder
};

struct SourceText {
  std::string file;                                    ///< "gemm.cu", as samples name it
  std::vector<std::pair<int64_t, std::string>> lines;  ///< number from 1, text; ascending
};

/// "gemm.cu:42" -> "gemm.cu", 42; line 0 for texts of another form. Of inlined calls ("a.h:3 -> b.cu:9") the first.
std::pair<std::string_view, int64_t> split_source(std::string_view source);

/// The text of ps_file_sources.csv: File, Line, Text of up to kContext lines around every sampled one. "" when no file
/// could be read. It reads regular files of up to 16 MiB and at most 2,000 of them; nothing else is an error.
std::string pc_sources_csv(const std::vector<SampledLine>& sampled);
constexpr int64_t kContext = 6;

/// By file; empty when the folder has no such file.
Result<std::vector<SourceText>> read_pc_sources(const std::string& folder);

}  // namespace tacho::workload
