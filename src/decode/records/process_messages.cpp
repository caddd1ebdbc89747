// Messages of MPI: rows, and how the call that sent them shows them among its arguments (process_state.h).
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "decode/records/process_state.h"
#include "decode/records/record_values.h"
#include "event/functions/functions.h"

namespace tacho::decode {

using event::kUnknown;
namespace row = event::row;

void ProcessState::take(const event::MessageRecord& record, const tape::BlockHeader& block) {
  const auto kind = checked<event::MessageKind>(record.header.flags);
  const auto bytes = [](uint64_t value) {
    return value > static_cast<uint64_t>(INT64_MAX) ? kUnknown : static_cast<int64_t>(value);
  };
  Thread& caller = thread(block);
  const int64_t start = host_time(record.start);
  const int64_t communicator = record.communicator < communicators_.size() ? communicators_[record.communicator] : 0;
  const std::string_view function = event::function_name(event::Domain::kMpi, record.header.value & 0xffff);
  const bool numbered = kind == event::MessageKind::kCollective && record.sequence != event::kNoSequence;
  writer_.add(row::Message{.track = caller.track,
                           .start = start,
                           .duration = host_duration(start, host_time(record.end)),
                           .dim = communicator,
                           .correlation = static_cast<int64_t>(record.correlation),
                           .kind = kind,
                           .function = writer_.string(function),
                           .sent = bytes(record.sent),
                           .received = bytes(record.received),
                           .peer = record.peer == event::kNoPeer ? kUnknown : record.peer,
                           .tag = record.tag == event::kNoTag ? kUnknown : record.tag,
                           .sequence = numbered ? record.sequence : kUnknown,
                           .begun_ahead = std::max<int64_t>(start - host_time(record.begun), 0)});
  if ((record.header.value & event::kMessageShown) == 0) return;
  if (caller.messages.correlation != record.correlation) caller.messages = {record.correlation, 0, {}};
  constexpr size_t kMostShown = 4;
  if (++caller.messages.count > kMostShown) return;
  std::string& text = caller.messages.text;
  if (!text.empty()) text += "; ";
  const auto number = [](int64_t value, int64_t none) {
    return value == none ? std::string("unknown") : std::to_string(value);
  };
  if (kind == event::MessageKind::kCollective) {
    text += fmt::format("sent={}, received={}", number(bytes(record.sent), kUnknown),
                        number(bytes(record.received), kUnknown));
    if (record.peer != event::kNoPeer) text += fmt::format(", root={}", record.peer);
  } else if (kind == event::MessageKind::kFileRead || kind == event::MessageKind::kFileWrite) {
    text += fmt::format("bytes={}", number(bytes(std::max(record.sent, record.received)), kUnknown));
    return;
  } else if (kind == event::MessageKind::kPut || kind == event::MessageKind::kGet ||
             kind == event::MessageKind::kUpdate) {
    text += fmt::format("{}={}, bytes={}", kind == event::MessageKind::kGet ? "from" : "to",
                        number(record.peer, event::kNoPeer),
                        number(bytes(std::max(record.sent, record.received)), kUnknown));
  } else {
    const bool send = kind == event::MessageKind::kSend;
    text +=
        fmt::format("{}={}, bytes={}, tag={}", send ? "to" : "from", number(record.peer, event::kNoPeer),
                    number(bytes(send ? record.sent : record.received), kUnknown), number(record.tag, event::kNoTag));
  }
  text += fmt::format(", communicator={}", record.communicator);
}

int64_t ProcessState::shown_messages(Thread& caller, uint64_t correlation) {
  if (caller.messages.correlation != correlation || caller.messages.text.empty()) return 0;
  std::string text = std::exchange(caller.messages.text, {});
  if (caller.messages.count > 4) text += fmt::format("; and {} more", caller.messages.count - 4);
  return writer_.string(text);
}

}  // namespace tacho::decode
