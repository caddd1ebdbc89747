// Reads the files of a folder (files.h).
#include "metric/catalog/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "metric/catalog/document.h"

namespace tacho::metric {

Result<std::vector<CatalogFile>> read_catalog_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return fail("{}: not a folder with catalog files (*.yaml)", folder);
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path extension = entry->path().extension();
    if (extension == ".yaml" || extension == ".yml") names.push_back(entry->path().string());
  }
  if (error) return fail("{}: {}", folder, error.message());
  if (names.empty()) return fail("{}: no catalog files (*.yaml) in this folder", folder);
  std::sort(names.begin(), names.end());
  std::vector<CatalogFile> files;
  for (std::string& name : names) {
    const auto size = fs::file_size(name, error);
    if (error) return fail("{}: {}", name, error.message());
    if (size > kLargestCatalogFile)
      return fail("{}: {} bytes is too large for a catalog file (at most {})", name, size, kLargestCatalogFile);
    std::ifstream stream(name, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    if (!stream) return fail("{}: cannot be read", name);
    files.push_back({std::move(name), std::move(text).str()});
  }
  return files;
}

}  // namespace tacho::metric
