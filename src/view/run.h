// One run of a served document: its trace with the data that the timeline needs.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "analysis/findings/findings.h"
#include "base/result.h"
#include "base/text/json_writer.h"
#include "query/sql/session.h"
#include "trace/trace.h"
#include "view/index/index.h"
#include "view/index/names.h"
#include "view/index/tree.h"
#include "walk/counters.h"

namespace tacho::view {

/// A further view of a run as JSON, or the sentence that says why there is none.
using MakeView = std::function<Result<std::string>()>;

/// How findings are computed: asked once, in the background.
using FindingsOf = std::function<Result<analysis::Findings>(const trace::Trace&)>;

/// A state's place among the states of a run that is being recorded.
struct Growing {
  uint32_t generation = 0;             ///< counts the states; 0 = the only one
  bool live = false;                   ///< it goes on
  uint32_t naming = 0;                 ///< of the state before; see Run::naming()
  const SliceNames* before = nullptr;  ///< of the state before
};

class Run {
 public:
  /// `path` as the user gave it; begins to build the index.
  Run(size_t id, std::string path, std::shared_ptr<const trace::Trace> trace, const Limits& limits = {},
      FindingsOf findings = nullptr, const Growing& growing = {});
  ~Run();

  // Answers as JSON; times are ns since t0. Errors are one sentence for the user.

  /// The run's part of /api/document. `summary`: why a page holds less than the trace does; "" otherwise.
  std::string document(std::string_view summary = {});
  /// Waits until the index and the findings are ready.
  Status wait();
  Result<std::string> overview();
  /// Sums over [from, to).
  Result<std::string> span(int64_t from, int64_t to);
  Result<std::string> slice(uint64_t row);
  /// `after`: "" or an earlier answer's "more".
  Result<std::string> search(const std::string& expression, bool match_case, size_t limit, std::string_view after);
  /// One name in a span: its distribution and launches.
  Result<std::string> kernel(uint32_t name, int64_t from, int64_t to);
  Result<std::string> sql(const std::string& statement, std::string_view dialect);
  Result<std::string> schema();

  /// Another view of the run: made on the first request, and kept.
  void offer(std::string name, MakeView make);
  bool offers(std::string_view name) const;
  Result<std::string> offered(std::string_view name);
  const std::vector<std::string>& views() const { return view_names_; }

  bool finding() const { return finding_now_.load(); }
  const trace::Trace& trace() const { return *trace_; }
  const Tree& tree() const { return tree_; }
  const SliceNames& names() const { return names_; }
  TileIndex& index() { return index_; }
  const std::string& path() const { return path_; }
  size_t number() const { return id_; }
  /// Equal in two states of a recording when the numbers of names mean the same in both.
  uint32_t naming() const { return naming_; }
  /// The run's beginning in the time of its trace.
  int64_t t0() const { return index_.t0(); }

 private:
  struct Sums;    // name_sums.h
  struct Shares;  // overview.cpp
  struct Linked {
    size_t line;
    Slice slice;
  };
  // Rows of `table` with this correlation in a process, looked for from a time of the trace on, or from there back.
  Result<std::vector<Linked>> same_correlation(event::Table table, int64_t process, int64_t correlation, int64_t from,
                                               bool backwards);
  Status add_counters(int64_t track, int64_t start, int64_t ordinal,
                      std::vector<std::pair<std::string, std::string>>& columns);
  struct Asked;
  Status put_links(JsonWriter& json, const Asked& asked, std::optional<Linked>& launch);
  Status put_stack(JsonWriter& json, const Asked& asked, const std::optional<Linked>& launch);
  // The stack of a row of table sample, and whether a launch took it, not a timer.
  Result<std::pair<int64_t, bool>> stack_of_sample(uint64_t row);
  static void add_name(const NameSum& sum, Sums& to);
  Sums calls_of(const Sums& all, bool framework) const;
  Result<Sums> sums(event::Table table, int64_t from, int64_t to);
  Result<Sums> longest(event::Table table);
  Result<Shares> shares(int64_t width, size_t bins);
  std::vector<double> estimated_busy(int64_t width, size_t bins) const;
  Status open_session(std::string_view dialect);  // under sql_lock_
  void find();

  size_t id_;
  uint32_t generation_, naming_;
  bool live_;
  std::string path_;
  std::shared_ptr<const trace::Trace> trace_;
  Tree tree_;
  SliceNames names_;
  TileIndex index_;
  FindingsOf findings_of_;
  std::thread finding_;
  std::atomic<bool> finding_now_{false};
  mutable std::mutex findings_lock_;
  std::optional<analysis::Findings> findings_;  // with lines instead of rows of table track
  std::string findings_error_;
  struct Offer {
    MakeView make;
    std::mutex lock;
    std::optional<Result<std::string>> made;
  };
  std::vector<std::string> view_names_;
  std::map<std::string, Offer, std::less<>> offers_;
  std::mutex passes_lock_;
  std::optional<walk::FirstPasses> passes_;  // made on the first request
  std::mutex sql_lock_;
  std::unique_ptr<query::Session> session_;
  std::string session_dialect_;
};

}  // namespace tacho::view
