// Formats by name (writer_names.h).
#include "cli/files/writer_names.h"

#include <algorithm>

#include "cli/shared/suggest.h"

namespace tacho::cli {

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) words.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<const format::Writer*> writer_of(std::string_view name) {
  std::vector<std::string> names;
  for (const format::Writer& writer : format::writers()) {
    if (writer.name == name) return &writer;
    names.emplace_back(writer.name);
  }
  const std::string best = nearest(name, names);
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  return fail("there is no format '{}'{}; formats are {}", name, best.empty() ? "" : ", did you mean '" + best + "'",
              all);
}

}  // namespace tacho::cli
