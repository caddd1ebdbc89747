// Demangling through the C++ runtime's own demangler (demangle.h).
#include "base/text/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <system_error>

namespace tacho {
namespace {

constexpr std::string_view kSuffixes[] = {" [clone .kd]", " (.kd)", ".kd"};
constexpr std::string_view kStaticPrefix = "__nv_static_";

std::string_view without_suffix(std::string_view symbol) {
  for (const std::string_view suffix : kSuffixes)
    if (symbol.size() > suffix.size() && symbol.ends_with(suffix))
      return symbol.substr(0, symbol.size() - suffix.size());
  return symbol;
}

// nvcc calls a kernel with internal linkage "__nv_static_N__", N characters for its file, and its symbol, if device
// code is linked separately (-rdc=true).
std::string_view without_file(std::string_view symbol) {
  if (!symbol.starts_with(kStaticPrefix)) return symbol;
  size_t length = 0;
  const char* const begin = symbol.data() + kStaticPrefix.size();
  const char* const end = symbol.data() + symbol.size();
  const auto [after, error] = std::from_chars(begin, end, length);
  const std::string_view rest(after, static_cast<size_t>(end - after));
  if (error != std::errc() || !rest.starts_with("__") || rest.size() - 2 <= length) return symbol;
  return rest.substr(2 + length);
}

}  // namespace

bool may_be_mangled(std::string_view text) {
  return text.starts_with("_Z") || text.starts_with(kStaticPrefix) ||
         std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [&](std::string_view end) { return text.ends_with(end); });
}

std::string demangle(std::string_view symbol) {
  std::string text(without_file(without_suffix(symbol)));
  if (text.size() < 3 || text[0] != '_' || text[1] != 'Z') return text;
  int status = 0;
  char* const plain = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  if (plain == nullptr || status != 0) {
    std::free(plain);
    return text;
  }
  std::string result(plain);
  std::free(plain);
  return result;
}

std::string short_name(std::string_view demangled) {
  // Keeps the text before the outermost name's parameters, without template arguments; then drops its scope.
  std::string kept;
  int depth = 0;
  size_t end = demangled.size();
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (c == '(' && depth == 0 && demangled.substr(i).starts_with("(anonymous namespace)")) {
      i += std::string_view("(anonymous namespace)").size() - 1;
      kept += "(anonymous namespace)";
      continue;
    }
    if (c == '<') {
      if (demangled.substr(0, i).ends_with("operator")) {
        kept += c;
        continue;
      }
      ++depth;
    } else if (c == '>' && depth > 0) {
      --depth;
      continue;
    } else if (c == '(' && depth == 0) {
      end = i;
      break;
    }
    if (depth == 0) kept += c;
  }
  static_cast<void>(end);
  while (!kept.empty() && kept.back() == ' ') kept.pop_back();
  const std::string_view scope = "(anonymous namespace)::";
  if (const size_t at = kept.rfind(scope); at != std::string::npos) kept = kept.substr(at + scope.size());
  if (const size_t space = kept.rfind(' '); space != std::string::npos) kept = kept.substr(space + 1);
  if (const size_t colons = kept.rfind("::"); colons != std::string::npos) kept = kept.substr(colons + 2);
  return kept.empty() ? std::string(demangled) : kept;
}

}  // namespace tacho
