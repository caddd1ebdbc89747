// Matching one message with the rows of the other ranks (message_matches.h).
#include "view/answers/message_matches.h"

#include <algorithm>

#include "base/format.h"
#include "event/schema.h"
#include "trace/read/rows.h"

namespace tacho::view {

using event::kUnknown;
using event::MessageKind;
using event::Table;
namespace column = event::column;

namespace {

struct Message {
  int64_t row, begun, rank, peer, tag, sequence, identity;
  MessageKind kind;
};

}  // namespace

std::string message_title(const trace::Trace& trace, MessageKind kind, int64_t peer, int64_t function) {
  if (peer != kUnknown && (kind == MessageKind::kSend || kind == MessageKind::kReceive))
    return fmt::format("{} rank {}", kind == MessageKind::kSend ? "send to" : "receive from", peer);
  const std::string_view name = trace.string(function);
  return name.empty() ? std::string(event::to_string(kind)) : std::string(name);
}

Result<std::vector<MessageMatch>> matches_of_message(const trace::Trace& trace, int64_t row, size_t most) {
  std::vector<MessageMatch> found;
  if (trace.rows(Table::kMessage) > kMostMessages) return found;
  std::vector<Message> all;
  all.reserve(static_cast<size_t>(trace.rows(Table::kMessage)));
  using M = column::Message;
  Status status;
  for (const auto& m :
       trace::chunks<M::track, M::start, M::dim, M::kind, M::peer, M::tag, M::sequence, M::begun_ahead>(trace, status))
    for (size_t i = 0; i < m.size(); ++i) {
      const int64_t process = trace::cell<column::Track::process>(trace, m.track[i]);
      const int64_t ahead = m.begun_ahead[i] == kUnknown ? 0 : m.begun_ahead[i];
      all.push_back({.row = static_cast<int64_t>(all.size()),
                     .begun = m.start[i] - ahead,
                     .rank = trace::cell<column::Process::rank>(trace, process),
                     .peer = m.peer[i],
                     .tag = m.tag[i],
                     .sequence = m.sequence[i],
                     .identity = trace::cell<column::Communicator::identity>(trace, m.dim[i]),
                     .kind = event::from_cell(m.kind[i])});
    }
  TACHO_TRY(status);
  if (row < 0 || row >= static_cast<int64_t>(all.size())) return found;
  const Message own = all[static_cast<size_t>(row)];
  if (own.rank == kUnknown) return found;
  if (own.kind == MessageKind::kCollective) {
    if (own.sequence == kUnknown || own.identity == 0) return found;
    for (const Message& each : all)
      if (each.kind == MessageKind::kCollective && each.identity == own.identity && each.sequence == own.sequence &&
          each.row != row && found.size() < most)
        found.push_back({each.row, "same collective"});
    return found;
  }
  const bool sent = own.kind == MessageKind::kSend;
  if ((!sent && own.kind != MessageKind::kReceive) || own.peer == kUnknown) return found;
  const auto in_order = [&](MessageKind kind, int64_t rank, int64_t peer) {
    std::vector<std::pair<int64_t, int64_t>> list;  // begun, row
    for (const Message& each : all)
      if (each.kind == kind && each.rank == rank && each.peer == peer && each.tag == own.tag &&
          each.identity == own.identity)
        list.emplace_back(each.begun, each.row);
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return list;
  };
  const auto mine = in_order(own.kind, own.rank, own.peer);
  const auto theirs = in_order(sent ? MessageKind::kReceive : MessageKind::kSend, own.peer, own.rank);
  const auto at = std::find_if(mine.begin(), mine.end(), [&](const auto& each) { return each.second == row; });
  if (const auto place = static_cast<size_t>(at - mine.begin()); place < theirs.size())
    found.push_back({theirs[place].second, sent ? JsonLiteral("received by") : JsonLiteral("sent by")});
  return found;
}

}  // namespace tacho::view
