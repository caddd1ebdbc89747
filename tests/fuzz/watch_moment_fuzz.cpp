// libFuzzer target of moments that other watches tell: any bytes end in a moment or in a clause, and what was read can
// be added up and shown.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "watch/live/hosts.h"
#include "watch/page_text.h"

using namespace tacho::watch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = parse_moment_text(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!read) {
    if (read.error().message.empty()) std::abort();
    return 0;
  }
  HostAnswer one;
  one.address = "a:1";
  one.last = *read;
  HostAnswer other = one;
  other.address = "b:1";
  const WatchMoment sum = add_up({one, other}, 1);
  if (sum.hosts.size() != 2) std::abort();
  if (page_lines({}, sum, {}).empty() || watch_json(sum, true).empty()) std::abort();
  return 0;
}
