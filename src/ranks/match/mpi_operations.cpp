// Calls of MPI (mpi_operations.h).
#include "ranks/match/mpi_operations.h"

#include <algorithm>

#include "base/saturating.h"

namespace tacho::ranks {
namespace {

using event::Table;
namespace column = event::column;

constexpr int kCallColumns[] = {column::Fact::track, column::Fact::start, column::Fact::duration, column::Fact::dim};
constexpr int kMessageColumns[] = {column::Fact::track,   column::Fact::start,       column::Fact::duration,
                                   column::Fact::dim,     column::Message::kind,     column::Message::function,
                                   column::Message::sent, column::Message::received, column::Message::peer,
                                   column::Message::tag,  column::Message::sequence, column::Message::begun_ahead};

// The same on all ranks, or 0: roots and the ranks' own parts differ.
int64_t bytes_of(Operation operation, std::string_view function, int64_t sent, int64_t received, int64_t ranks,
                 bool is_root) {
  const bool own_sizes =
      function.ends_with('v') || function.ends_with('w') || function.ends_with("v_c") || function.ends_with("w_c");
  if (sent == kUnknown || received == kUnknown) return 0;
  switch (operation) {
    case Operation::kAllGather:
      return received;
    case Operation::kReduceScatter:
      return sent;
    case Operation::kAllToAll:
      return own_sizes ? 0 : sent;
    case Operation::kGather:
      return own_sizes ? 0 : is_root ? received : sent * ranks;
    case Operation::kScatter:
      return own_sizes ? 0 : is_root ? sent : received * ranks;
    default:
      return std::max(sent, received);
  }
}

}  // namespace

bool only_waits(std::string_view function) {
  return function.starts_with("MPI_Wait") || function.starts_with("MPI_Barrier") || function.starts_with("MPI_Probe") ||
         function.starts_with("MPI_Mprobe") || function.starts_with("MPI_Win_wait") ||
         function.starts_with("MPI_Win_fence");
}

MpiOperations::MpiOperations(const trace::Trace& trace, RankRun& run, Names& names)
    : trace_(trace),
      run_(run),
      names_(names),
      calls_(trace, Table::kApi, kCallColumns),
      messages_(trace, Table::kMessage, kMessageColumns) {
  const auto functions = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1));
  functions_.resize(functions, 0);
  any_ = false;
  for (size_t row = 1; row < functions; ++row) {
    if (static_cast<event::Domain>(trace.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain)) !=
        event::Domain::kMpi)
      continue;
    const std::string_view name = trace.text(Table::kFunction, static_cast<int64_t>(row), column::Function::name);
    // Starting and ending a job is no communication of its work.
    if (name == "MPI_Init" || name == "MPI_Init_thread" || name == "MPI_Finalize" || name == "MPI_Abort") continue;
    functions_[row] = only_waits(name) ? 2 : 1;
    any_ = true;
  }
  have_call_ = any_ && next_call();
  have_collective_ = next_collective();
}

Status MpiOperations::status() const {
  TACHO_TRY(Status(calls_.status()));
  return messages_.status();
}

bool MpiOperations::of_rank(int64_t track) const {
  return run_.process == 0 || trace_.cell(Table::kTrack, track, column::Track::process) == run_.process;
}

bool MpiOperations::next_call() {
  while (calls_.next()) {
    const auto row = calls_.row();
    const auto function = static_cast<size_t>(row[3]);
    if (row[3] < 0 || function >= functions_.size() || functions_[function] == 0 || row[2] == kUnknown ||
        !of_rank(row[0]))
      continue;
    call_ = {};
    call_.start = row[1];
    call_.end = row[1] + std::max<int64_t>(row[2], 0);
    ++run_.calls;
    const int64_t time = std::max<int64_t>(0, call_.end - std::max(call_.start, counted_until_));
    counted_until_ = std::max(counted_until_, call_.end);
    add_saturating(run_.mpi, time);
    if (functions_[function] == 2) add_saturating(run_.mpi_waiting, time);
    return true;
  }
  return false;
}

uint32_t MpiOperations::communicator(int64_t row) {
  const auto [found, fresh] = communicators_.try_emplace(row, 0);
  if (!fresh) return found->second;
  const auto text = [&](int which) { return std::string(trace_.text(Table::kCommunicator, row, which)); };
  const int64_t identity = row > 0 ? trace_.cell(Table::kCommunicator, row, column::Communicator::identity) : 0;
  Names::Communicator about;
  about.name = text(column::Communicator::name);
  about.members = text(column::Communicator::members);
  about.size = trace_.cell(Table::kCommunicator, row, column::Communicator::size);
  if (about.name.empty()) about.name = text(column::Communicator::origin) + " " + about.members;
  // Without an identity it is one of this rank's own.
  found->second = names_.communicator(
      identity != 0 ? std::to_string(identity) : fmt::format("rank {} of {}: {}", run_.rank, run_.file, row), about);
  return found->second;
}

bool MpiOperations::next_collective() {
  while (messages_.next()) {
    const auto row = messages_.row();
    if (row[2] == kUnknown || !of_rank(row[0])) continue;
    const int64_t start = row[1], end = start + std::max<int64_t>(row[2], 0);
    const auto kind = static_cast<event::MessageKind>(row[4]);
    if (kind == event::MessageKind::kSend || kind == event::MessageKind::kReceive) {
      const bool is_send = kind == event::MessageKind::kSend;
      MessageEvent message{};
      message.begun = start - std::max<int64_t>(row[11], 0);
      message.start = start;
      message.end = end;
      message.bytes = is_send ? row[6] : row[7];
      message.peer = row[8];
      message.thread = trace_.cell(Table::kTrack, row[0], column::Track::thread);
      message.communicator = communicator(row[3]);
      message.tag = row[9] == kUnknown ? INT32_MIN : static_cast<int32_t>(row[9]);
      message.is_send = is_send;
      found_.push_back(message);
      continue;
    }
    if (kind == event::MessageKind::kFileRead || kind == event::MessageKind::kFileWrite) {
      run_.file_read += std::max<int64_t>(row[7], 0);
      run_.file_written += std::max<int64_t>(row[6], 0);
      continue;
    }
    if (kind == event::MessageKind::kPut || kind == event::MessageKind::kGet || kind == event::MessageKind::kUpdate) {
      const auto move = [&](int64_t from, int64_t to, int64_t bytes) {
        auto& [count, sum] = run_.one_sided[{from, to}];
        ++count;
        sum += std::max<int64_t>(bytes, 0);
      };
      if (kind != event::MessageKind::kGet) move(run_.rank, row[8], row[6]);
      if (kind != event::MessageKind::kPut) move(row[8], run_.rank, row[7]);
      continue;
    }
    const auto [known, fresh] = operations_.try_emplace(row[5]);
    const std::string_view function = trace_.string(row[5]);
    if (fresh)
      // Ranks meet their neighbours only, which need not be all others.
      known->second = {operation_of(function), function.find("eighbor") == std::string_view::npos};
    if (kind != event::MessageKind::kCollective || !known->second.second || row[10] == kUnknown) continue;
    collective_ = {};
    collective_.start = start;
    collective_.end = end;
    collective_.collective = true;
    collective_.begun = start - std::max<int64_t>(row[11], 0);
    collective_.communicator = communicator(row[3]);
    collective_.sequence = static_cast<uint32_t>(row[10]);
    collective_.operation = known->second.first;
    const int64_t ranks = std::max<int64_t>(trace_.cell(Table::kCommunicator, row[3], column::Communicator::size), 1);
    collective_.bytes = bytes_of(collective_.operation, function, row[6], row[7], ranks, row[8] == run_.rank);
    return true;
  }
  return false;
}

bool MpiOperations::next(MpiOperation& operation) {
  if (!have_call_ && !have_collective_) return false;
  // A collective comes before the call that it is a row of.
  const bool collective = have_collective_ && (!have_call_ || collective_.start <= call_.start);
  operation = collective ? collective_ : call_;
  if (collective)
    have_collective_ = next_collective();
  else
    have_call_ = next_call();
  return true;
}

std::vector<MessageEvent> MpiOperations::take_messages() {
  std::stable_sort(found_.begin(), found_.end(),
                   [](const MessageEvent& a, const MessageEvent& b) { return a.begun < b.begun; });
  return std::move(found_);
}

}  // namespace tacho::ranks
