// Collects hosts and ranks (work_owner.h).
#include "walk/names/work_owner.h"

#include <set>
#include <utility>

#include "trace/read/rows.h"

namespace tacho::walk {

using event::kUnknown;
using P = event::column::Process;

void WorkOwner::see(const trace::Trace& trace, int64_t process) {
  if (process <= 0) return;
  const std::string_view host = trace::text<P::host>(trace, process);
  const int64_t rank = trace::cell<P::rank>(trace, process);
  if (!any_) {
    host_ = host;
    rank_ = rank;
  }
  any_ = true;
  if (host_ != host) host_.clear();
  if (rank_ != rank) rank_ = kUnknown;
}

bool has_several_owners(const trace::Trace& trace) {
  std::set<std::pair<std::string_view, int64_t>> owners;
  for (int64_t process = 1; process < trace.rows(event::Table::kProcess) && owners.size() < 2; ++process)
    owners.emplace(trace::text<P::host>(trace, process), trace::cell<P::rank>(trace, process));
  return owners.size() > 1;
}

}  // namespace tacho::walk
