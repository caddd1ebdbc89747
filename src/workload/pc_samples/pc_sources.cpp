// Reading the source of a program that was sampled, and the lines kept of it.
#include "workload/pc_samples/pc_sources.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/format.h"
#include "base/text/csv.h"

namespace tacho::workload {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostFiles = 2000;
constexpr uintmax_t kMostBytes = uintmax_t{16} << 20;
constexpr size_t kMostLine = 400;  // bytes of a line that are kept

std::vector<std::string> lines_of(const std::string& path) {
  std::error_code error;
  // A device or a pipe could block.
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostBytes) return {};
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::pair<std::string_view, int64_t> split_source(std::string_view source) {
  source = source.substr(0, source.find(" -> "));
  const size_t colon = source.rfind(':');
  if (colon == std::string_view::npos) return {source, 0};
  int64_t line = 0;
  const auto [end, error] = std::from_chars(source.data() + colon + 1, source.data() + source.size(), line);
  if (error != std::errc() || end != source.data() + source.size() || line < 1) return {source, 0};
  return {source.substr(0, colon), line};
}

std::string pc_sources_csv(const std::vector<SampledLine>& sampled) {
  struct Wanted {
    std::string path;
    std::set<int64_t> lines;
  };
  std::map<std::string, Wanted, std::less<>> files;
  for (const SampledLine& each : sampled) {
    const auto [file, line] = split_source(each.source);
    if (line == 0 || each.path.empty()) continue;
    auto found = files.find(file);
    if (found == files.end()) {
      if (files.size() == kMostFiles) continue;
      found = files.emplace(std::string(file), Wanted{each.path, {}}).first;
    }
    // The samples do not distinguish two files of one name: neither is shown.
    if (found->second.path != each.path) found->second.path.clear();
    found->second.lines.insert(line);
  }
  std::string out;
  for (const auto& [file, wanted] : files) {
    if (wanted.path.empty()) continue;
    const std::vector<std::string> text = lines_of(wanted.path);
    int64_t next = 1;
    for (const int64_t line : wanted.lines) {
      // A file with fewer lines is another one than that which was compiled.
      if (line > static_cast<int64_t>(text.size())) continue;
      const int64_t last = std::min(line + kContext, static_cast<int64_t>(text.size()));
      for (next = std::max(next, line - kContext); next <= last; ++next) {
        if (out.empty()) out = "File,Line,Text\n";
        out += fmt::format("{},{},{}\n", csv_field(file), next,
                           csv_field(text[static_cast<size_t>(next - 1)].substr(0, kMostLine)));
      }
    }
  }
  return out;
}

Result<std::vector<SourceText>> read_pc_sources(const std::string& folder) {
  std::vector<SourceText> files;
  const std::string path = folder + "/" + kPcSourcesFile;
  if (access(path.c_str(), F_OK) != 0) return files;
  TACHO_ASSIGN(CsvReader reader, CsvReader::open(path));
  std::vector<std::string_view> fields;
  TACHO_ASSIGN(bool more, reader.next(fields));
  if (!more || fields.size() != 3 || fields[0] != "File" || fields[1] != "Line" || fields[2] != "Text")
    return fail("{}: the header is not File,Line,Text; tacho profile did not write this file", path);
  for (;;) {
    TACHO_ASSIGN(more, reader.next(fields));
    if (!more) return files;
    int64_t line = 0;
    if (fields.size() != 3 ||
        std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), line).ec != std::errc() || line < 1)
      continue;  // cut off
    if (files.empty() || files.back().file != fields[0]) files.push_back({std::string(fields[0]), {}});
    files.back().lines.emplace_back(line, std::string(fields[2]));
  }
}

}  // namespace tacho::workload
