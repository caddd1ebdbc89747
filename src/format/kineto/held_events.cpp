// Keeps texts of events and parses them again (held_events.h).
#include "format/kineto/held_events.h"

#include <cstring>

#include "format/json/input.h"

namespace tacho::format::kineto {

int64_t HeldEvents::add(const Event& event, Whose whose) {
  constexpr size_t kBuffered = size_t{1} << 20;
  const size_t place = file_.size() + buffer_.size();
  const Head head{.size = event.text.size(), .whose = whose};
  buffer_.append(reinterpret_cast<const char*>(&head), sizeof head).append(event.text);
  if (buffer_.size() >= kBuffered && status_) {
    status_ = file_.append(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  return static_cast<int64_t>(place);
}

Status HeldEvents::finish() {
  TACHO_TRY(std::move(status_));
  TACHO_TRY(file_.append(buffer_.data(), buffer_.size()));
  TACHO_ASSIGN(const std::byte* const bytes, file_.map());
  mapped_ = reinterpret_cast<const char*>(bytes);
  return {};
}

// Without its braces.
std::string_view HeldEvents::text(int64_t place, Head& head) const {
  std::memcpy(&head, mapped_ + place, sizeof head);
  std::string_view whole(mapped_ + place + sizeof head, head.size);
  whole.remove_prefix(whole.find('{') + 1);
  return whole.substr(0, whole.rfind('}'));
}

Result<HeldEvents::Whose> HeldEvents::get(int64_t place, int64_t end, Event& event) {
  Head head{}, of_end{};
  const std::string_view members = text(place, head);
  buffer_ = "{";
  if (end >= 0) buffer_.append(text(end, of_end)).append(",");  // of members that both have the last one counts
  buffer_.append(members).append("}");
  TACHO_TRY(parse(buffer_, event));
  return head.whose;
}

Status HeldEvents::parse(std::string& text, Event& event) {
  const size_t size = text.size();
  text.append(json::InputWindow::kPadding, '\0');
  JsonTokens json(text.data(), text.data() + size, &unescaped_);
  if (parse_event(json, event) != JsonOutcome::kOk) return fail("temporary file: an event cannot be read back");
  return {};
}

}  // namespace tacho::format::kineto
