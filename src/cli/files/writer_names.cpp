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

const format::Writer* writer_of_ending(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const format::Writer* best = nullptr;
  for (const format::Writer& writer : format::writers())
    if (writer.extension.starts_with('.') && name.size() > writer.extension.size() &&
        name.ends_with(writer.extension) && (best == nullptr || writer.extension.size() > best->extension.size()))
      best = &writer;
  return best;
}

std::string without_ending(const std::string& name) {
  constexpr std::string_view kOwn = ".tacho";
  if (name.size() > kOwn.size() && name.ends_with(kOwn)) return name.substr(0, name.size() - kOwn.size());
  const format::Writer* const writer = writer_of_ending(name);
  return writer == nullptr ? name : name.substr(0, name.size() - writer->extension.size());
}

}  // namespace tacho::cli
