// A folder for the files of a test, and whole files as text.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::test {

/// The bytes of a file; empty when it cannot be read.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A new folder that goes with the object, whatever is in it.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "tacho-test-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) abort();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  /// The path of a file in it.
  std::string operator/(std::string_view name) const { return (path_ + "/").append(name); }
  /// Names of what is in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  /// Makes or replaces a file in it, and the folders above the file.
  void write(std::string_view name, std::string_view text) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string read(std::string_view name) const { return read_file(*this / name); }

 private:
  std::string path_;
};

}  // namespace tacho::test
