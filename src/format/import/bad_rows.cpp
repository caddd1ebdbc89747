// The counts and their notes (bad_rows.h).
#include "format/import/bad_rows.h"

#include "base/format.h"
#include "base/text/utf8.h"

namespace tacho::format::imported {
namespace {

constexpr size_t kLongestName = 100;

std::string shortened(const std::string& name) {
  return name.size() <= kLongestName ? name : valid_utf8(name.substr(0, kLongestName)) + "...";
}

}  // namespace

void BadRows::add(trace::TraceWriter& writer, event::Table table, std::string_view reason, int64_t place,
                  std::string_view name, int64_t count) {
  writer.lose(0, table, event::LossReason::kBadInput, count);
  auto told = reasons_.find(reason);
  if (told == reasons_.end()) told = reasons_.emplace(std::string(reason), Told{}).first;
  if (told->second.count == 0 || (place > 0 && (told->second.place == 0 || place < told->second.place))) {
    told->second.place = place;
    told->second.name = name;
  }
  told->second.count += count;
}

void BadRows::say(trace::TraceWriter& writer) const {
  for (const auto& [reason, told] : reasons_) {
    std::string text = fmt::format("{} {} left out: {}", told.count, told.count == 1 ? "row is" : "rows are", reason);
    const std::string name = told.name.empty() ? std::string() : fmt::format("\"{}\"", shortened(told.name));
    if (told.place > 0 || !name.empty())
      text += fmt::format("; {} {}{}{}{}", told.count == 1 ? "it is" : "the first is", told.place > 0 ? "event " : "",
                          told.place > 0 ? std::to_string(told.place) : std::string(),
                          told.place > 0 && !name.empty() ? ", " : "", name);
    writer.note(0, event::NoteSeverity::kWarning, text);
  }
}

}  // namespace tacho::format::imported
