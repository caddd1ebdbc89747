// Calls of MPI (mpi_operations.h).
#include "ranks/match/mpi_operations.h"

#include <algorithm>

#include "base/saturating.h"

namespace tacho::ranks {
namespace {

using event::Table;
namespace column = event::column;

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
    : trace_(trace), run_(run), names_(names), calls_(trace), messages_(trace) {
  const auto functions = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1));
  functions_.resize(functions, 0);
  any_ = false;
  for (size_t row = 1; row < functions; ++row) {
    const auto number = static_cast<int64_t>(row);
    if (trace::cell<column::Function::domain>(trace, number) != event::Domain::kMpi) continue;
    const std::string_view name = trace::text<column::Function::name>(trace, number);
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
  return run_.process == 0 || trace::cell<column::Track::process>(trace_, track) == run_.process;
}

bool MpiOperations::next_call() {
  while (calls_.next()) {
    const auto& row = *calls_;
    const auto function = static_cast<size_t>(row.dim);
    if (row.dim < 0 || function >= functions_.size() || functions_[function] == 0 || row.duration == kUnknown ||
        !of_rank(row.track))
      continue;
    call_ = {};
    call_.start = row.start;
    call_.end = row.start + std::max<int64_t>(row.duration, 0);
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
  using C = column::Communicator;
  const int64_t identity = row > 0 ? trace::cell<C::identity>(trace_, row) : 0;
  Names::Communicator about;
  about.name = trace::text<C::name>(trace_, row);
  about.members = trace::text<C::members>(trace_, row);
  about.size = trace::cell<C::size>(trace_, row);
  if (about.name.empty()) about.name = std::string(trace::text<C::origin>(trace_, row)) + " " + about.members;
  // Without an identity it is one of this rank's own.
  found->second = names_.communicator(
      identity != 0 ? std::to_string(identity) : fmt::format("rank {} of {}: {}", run_.rank, run_.file, row), about);
  return found->second;
}

void MpiOperations::add_message(const Messages::Row& row, int64_t end) {
  const bool is_send = row.kind == event::MessageKind::kSend;
  MessageEvent message{};
  message.begun = row.start - std::max<int64_t>(row.begun_ahead, 0);
  message.start = row.start;
  message.end = end;
  message.bytes = is_send ? row.sent : row.received;
  message.peer = row.peer;
  message.thread = trace::cell<column::Track::thread>(trace_, row.track);
  message.communicator = communicator(row.dim);
  message.tag = row.tag == kUnknown ? INT32_MIN : static_cast<int32_t>(row.tag);
  message.is_send = is_send;
  found_.push_back(message);
}

bool MpiOperations::read_collective(const Messages::Row& row, int64_t end) {
  const auto [known, fresh] = operations_.try_emplace(row.function);
  const std::string_view function = trace_.string(row.function);
  if (fresh)
    // Ranks meet their neighbours only, which need not be all others.
    known->second = {operation_of(function), function.find("eighbor") == std::string_view::npos};
  if (!known->second.second || row.sequence == kUnknown) return false;
  collective_ = {};
  collective_.start = row.start;
  collective_.end = end;
  collective_.collective = true;
  collective_.begun = row.start - std::max<int64_t>(row.begun_ahead, 0);
  collective_.communicator = communicator(row.dim);
  collective_.sequence = static_cast<uint32_t>(row.sequence);
  collective_.operation = known->second.first;
  const int64_t ranks = std::max<int64_t>(trace::cell<column::Communicator::size>(trace_, row.dim), 1);
  collective_.bytes = bytes_of(collective_.operation, function, row.sent, row.received, ranks, row.peer == run_.rank);
  return true;
}

bool MpiOperations::next_collective() {
  while (messages_.next()) {
    const auto& row = *messages_;
    if (row.duration == kUnknown || !of_rank(row.track)) continue;
    const int64_t end = row.start + std::max<int64_t>(row.duration, 0);
    const auto move = [&](int64_t from, int64_t to, int64_t bytes) {
      auto& [count, sum] = run_.one_sided[{from, to}];
      ++count;
      sum += std::max<int64_t>(bytes, 0);
    };
    const auto kind = event::from_cell(row.kind);
    switch (kind) {
      case event::MessageKind::kSend:
      case event::MessageKind::kReceive:
        add_message(row, end);
        break;
      case event::MessageKind::kFileRead:
      case event::MessageKind::kFileWrite:
        run_.file_read += std::max<int64_t>(row.received, 0);
        run_.file_written += std::max<int64_t>(row.sent, 0);
        break;
      case event::MessageKind::kPut:
      case event::MessageKind::kGet:
      case event::MessageKind::kUpdate:
        if (kind != event::MessageKind::kGet) move(run_.rank, row.peer, row.sent);
        if (kind != event::MessageKind::kPut) move(row.peer, run_.rank, row.received);
        break;
      case event::MessageKind::kCollective:
        if (read_collective(row, end)) return true;
        break;
      default:
        break;
    }
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
