// Matching one message with the rows of the other ranks (partners.h).
#include "view/answers/partners.h"

#include <algorithm>

#include "base/format.h"
#include "event/schema.h"

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

std::string message_title(const trace::Trace& trace, const std::vector<int64_t>& cells) {
  const auto kind = event::from_cell<MessageKind>(cells[column::Message::kind]);
  const int64_t peer = cells[column::Message::peer];
  if (peer != kUnknown && (kind == MessageKind::kSend || kind == MessageKind::kReceive))
    return fmt::format("{} rank {}", kind == MessageKind::kSend ? "send to" : "receive from", peer);
  const std::string_view function = trace.string(cells[column::Message::function]);
  return function.empty() ? std::string(event::to_string(kind)) : std::string(function);
}

Result<std::vector<Partner>> partners_of(const trace::Trace& trace, int64_t row, size_t most) {
  std::vector<Partner> found;
  if (trace.rows(Table::kMessage) > kMostMessages) return found;
  using M = column::Message;
  constexpr int kRead[] = {M::track, M::start, M::dim, M::kind, M::peer, M::tag, M::sequence, M::begun_ahead};
  std::vector<int64_t> cells[std::size(kRead)];
  std::vector<Message> all;
  all.reserve(static_cast<size_t>(trace.rows(Table::kMessage)));
  int64_t number = 0;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kMessage).size(); ++chunk) {
    for (size_t i = 0; i < std::size(kRead); ++i) TACHO_TRY(trace.decode(Table::kMessage, chunk, kRead[i], cells[i]));
    for (size_t i = 0; i < cells[0].size(); ++i) {
      const int64_t process = trace.cell(Table::kTrack, cells[0][i], column::Track::process);
      const int64_t ahead = cells[7][i] == kUnknown ? 0 : cells[7][i];
      all.push_back({.row = number++,
                     .begun = cells[1][i] - ahead,
                     .rank = trace.cell(Table::kProcess, process, column::Process::rank),
                     .peer = cells[4][i],
                     .tag = cells[5][i],
                     .sequence = cells[6][i],
                     .identity = trace.cell(Table::kCommunicator, cells[2][i], column::Communicator::identity),
                     .kind = event::from_cell<MessageKind>(cells[3][i])});
    }
  }
  if (row < 0 || row >= number) return found;
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
