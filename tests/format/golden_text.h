// Expected texts of formats: files beside the tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tacho::format {

/// The file `name` of tests/format.
inline std::string golden_text(const std::string& name) {
  const char* const source = std::getenv("TACHO_SOURCE");
  const std::filesystem::path folder = source != nullptr ? std::filesystem::path(source) / "tests" / "format"
                                                         : std::filesystem::path(__FILE__).parent_path();
  std::ifstream stream(folder / name, std::ios::binary);
  EXPECT_TRUE(stream) << folder / name << " cannot be read";
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

}  // namespace tacho::format
