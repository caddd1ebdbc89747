// Expected texts that lie in files beside their tests. TACHO_BLESS=1 build/tests/test_format writes the texts that the
// tests got.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace tacho::test {

/// Whether `text` is the contents of tests/`name`, a path that ends in .out. The message is the first line that
/// differs. With TACHO_BLESS=1 in the environment: writes the file, and succeeds.
inline ::testing::AssertionResult is_golden(std::string_view text, const std::string& name) {
  const char* const source = std::getenv("TACHO_SOURCE");
  const std::string path = std::string(source != nullptr ? source : ".") + "/tests/" + name;
  if (const char* const bless = std::getenv("TACHO_BLESS"); bless != nullptr && *bless == '1') {
    std::ofstream(path, std::ios::binary) << text;
    return ::testing::AssertionSuccess();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return ::testing::AssertionFailure() << path << " is not there: TACHO_BLESS=1 makes it";
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  if (text == expected) return ::testing::AssertionSuccess();
  std::istringstream is{std::string(text)}, was{expected};
  std::string got, wanted;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(is, got)), old = static_cast<bool>(std::getline(was, wanted));
    if (more && old && got == wanted) continue;
    if (!more && !old) return ::testing::AssertionFailure() << path << ": only the line ends differ";
    return ::testing::AssertionFailure() << path << ":" << line << ": expected\n  " << (old ? wanted : "the end")
                                         << "\ngot\n  " << (more ? got : "the end");
  }
}

}  // namespace tacho::test
