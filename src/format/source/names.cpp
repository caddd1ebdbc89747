// The endings (names.h).
#include "format/source/names.h"

#include <algorithm>
#include <array>

namespace tacho::format {
namespace {

constexpr std::array<std::string_view, 5> kEndings = {".tacho", ".rpd", ".db", ".json", ".sqlite"};
constexpr std::array<std::string_view, 2> kPerfettoEndings = {".pftrace", ".perfetto-trace"};

}  // namespace

std::string_view without_packing(std::string_view name) {
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) return name.substr(0, name.size() - packed.size());
  return name;
}

bool named_like_perfetto(std::string_view name) {
  return std::ranges::any_of(
      kPerfettoEndings, [plain = without_packing(name)](std::string_view ending) { return plain.ends_with(ending); });
}

bool named_like_a_trace(std::string_view name) {
  // macOS puts a file "._NAME" with attributes beside each that it copies to other disks and into archives.
  if (name.substr(name.rfind('/') + 1).starts_with("._")) return false;
  return named_like_perfetto(name) ||
         std::ranges::any_of(kEndings,
                             [plain = without_packing(name)](std::string_view e) { return plain.ends_with(e); });
}

}  // namespace tacho::format
