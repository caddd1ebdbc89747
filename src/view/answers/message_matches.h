// The other rows of an MPI message: of a send its receive, of a collective those of the other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/json_writer.h"
#include "trace/trace.h"

namespace tacho::view {

/// "send to rank 3"; of a collective the function that began it (a string).
std::string message_title(const trace::Trace& trace, event::MessageKind kind, int64_t peer, int64_t function);

struct MessageMatch {
  int64_t row;      ///< of table message
  JsonLiteral how;  ///< "received by"
};
/// Messages of one communicator, pair of ranks and tag are received in the order in which they are sent; both count in
/// the order in which they are begun. At most `most`, none in a trace with more than kMostMessages: each question reads
/// all of them.
Result<std::vector<MessageMatch>> matches_of_message(const trace::Trace& trace, int64_t row, size_t most);
constexpr int64_t kMostMessages = 5'000'000;

}  // namespace tacho::view
