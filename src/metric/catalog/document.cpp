// The guarded call of YAML::Load, and the search for a second document.
#include "metric/catalog/document.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string>

namespace tacho::metric {
namespace {

/// The number of the line that begins a second document, or 0. YAML::LoadAll would read it, but does not end on some
/// malformed streams.
size_t second_document(std::string_view text) {
  bool content = false;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool marker =
        (line.starts_with("---") || line.starts_with("...")) && (line.size() == 3 || line[3] == ' ' || line[3] == '\t');
    if (marker && content) return number;
    const size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] != '#' && line[first] != '%') content = true;
  }
  return 0;
}

}  // namespace

Result<YAML::Node> load_document(std::string_view text, std::string_view file) {
  if (text.size() > kLargestCatalogFile)
    return fail("{}: {} bytes is too large for a catalog file (at most {})", file, text.size(), kLargestCatalogFile);
  if (const size_t line = second_document(text); line != 0)
    return fail("{}:{}:1: a catalog file is one document, and a second one begins here", file, line);
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null()) return fail("{}: {}", file, error.msg);
    return fail("{}:{}:{}: {}", file, error.mark.line + 1, error.mark.column + 1, error.msg);
  } catch (const std::exception& error) {
    return fail("{}: {}", file, error.what());
  }
}

}  // namespace tacho::metric
