// Who the pids and tids of a Chrome trace are: processes, threads, the ranks of a merged file, and which of them device
// work belongs to.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number_map.h"
#include "base/result.h"
#include "format/import/tracker.h"
#include "format/kineto/event.h"
#include "format/kineto/id_pages.h"
#include "trace/write/writer.h"

namespace tacho::format::kineto {

/// Files hold the traces of several ranks, one behind another: SGLang's with a label in every pid ("[TP00] 83"), others
/// plainly. A rank's block begins with its operators and calls and ends with the names of its processes, so device
/// work, whose pid is only a GPU's number, belongs to the process whose operators or calls came last. Ranks in
/// containers may all have one pid: behind the names, operators of the same pid that go back in time and take their ids
/// again are another rank's. So are those whose ids only lie among the earlier ones, where the file keeps the order of
/// ids: one whose events lie in no order tells nothing that way.
/// Where the events of several processes were sorted by time instead, work belongs to the process whose call has its
/// correlation; so it does where they lie in no order, or the calls of several processes before or behind all work,
/// once all of them are known (replay()). Work without a correlation then belongs to the only process that uses the
/// GPU, has the External id, or calls a GPU's API; or to nobody that is known (owner_at_end()).
class Owners {
 public:
  using ScopeId = imported::ScopeId;
  struct Owner {
    int64_t process;  // row
    ScopeId scope;    // of its devices
  };

  explicit Owners(trace::TraceWriter& writer) : writer_(writer), tracker_(writer) {}

  imported::ImportTracker& tracker() { return tracker_; }
  /// The process whose program was traced.
  int64_t main_process() { return tracker_.main_process(block_); }
  ScopeId block() const { return block_; }
  void in_block(ScopeId block) {
    block_ = block;
    last_pid_ = event::kUnknown;
  }

  int64_t process(const Id& pid);
  int64_t thread_track(const Id& pid, const Id& tid);
  int64_t process_of_track(int64_t track) const;
  void track_made(int64_t track, int64_t process) { track_processes_[track] = process; }

  /// An event of the host. Whether such events come in the order of their times or their ids, as profilers write them;
  /// false for the first few.
  void event_seen(int64_t time) { times_.add(time); }
  bool in_order() const {
    return times_.ascends() || (last_host_ < hosts_.size() &&
                                (hosts_[last_host_].operators.ascends() || hosts_[last_host_].calls.ascends()));
  }
  /// Work comes before the file has shown that it keeps an order: whose it is may have to wait for the file's end.
  bool undecided();
  /// At the file's end: several processes' calls and work lie so that their order does not tell whose work it is.
  bool shuffled() const {
    const bool apart = waits_ || early_work_ > 0 || (!in_order() && (interleaved_ || times_.descends()));
    return apart && hosts_.size() > 1 && block_ == 0 && labels_.empty();
  }
  /// The rows of the processes with operators or calls.
  std::vector<int64_t> host_rows() const;
  /// Begins again with no call known, to be asked for the owner() of work in order of its time, each after the calls
  /// that began by then. `of_devices`: by a GPU's number, the place in host_rows() of the only process that uses it.
  void replay(const std::map<int64_t, size_t>& of_devices);
  /// A call of the process at `host` of host_rows().
  void call_seen(int64_t correlation, int64_t time, size_t host);

  /// An operator or a call of this process.
  void host_seen(const Event& event, bool is_call);
  /// A range of the program with an External id.
  void range_seen(const Event& event) { ids_.seen(process(event.process), kRangeIds, event.external); }
  /// Another document of the file begins.
  void document_begins();
  /// A new block begins.
  void another_rank();
  /// The process that the document is about: the first of its hosts. And the scope of its devices.
  int64_t document_process() {
    return document_host_ < hosts_.size() ? hosts_[document_host_].process : main_process();
  }
  ScopeId document_devices() const {
    return document_host_ < hosts_.size() ? std::max(0, hosts_[document_host_].devices) : block_;
  }
  /// The scope of a pid: its label's, or the block's.
  ScopeId scope_of(const Id& pid);
  /// The scope of the devices that a host process uses.
  ScopeId host_devices(const Id& pid);
  /// Whose device work this event is: what owned_by_all() says, if it says so.
  Owner owner(const Event& event);
  /// Work without a correlation whose order tells nothing: its owner is known at the file's end only.
  bool waits_for_end(const Event& event);
  /// Its owner then. If the file does not tell, the unknown process, which is counted; its work has no device.
  Owner owner_at_end(const Event& event);
  static constexpr ScopeId kNoDevices = -2;
  void owned_by_all(const Owner* owner) { forced_ = owner; }

  /// Tells lines of equal pid and tid apart, where hosts follow one another and this pid is none of them: 0 for the
  /// first host's.
  int64_t whose_line(const Id& pid);

  /// Names of processes and threads, and what tacho wrote about a process (imported::process_origin()), may come before
  /// or after their events. At the start of another document, and where a process that was named before its events is
  /// named again, they wait for the next operator or call, which tells whether they are another rank's.
  void name(const Event& event);
  /// At the file's end: gives the names that wait.
  void give_names();
  /// The GPU whose work the process holds, by its name; kUnknown = none, or not named yet.
  int64_t gpu_of(const Id& pid);
  bool is_named(const Id& pid);
  /// The name of a line of a GPU's process; text 0 = none yet. Lines that are no queue ("XLA Ops", "Steps") hold ranges
  /// about its work.
  struct LineName {
    int64_t text = 0;  // row
    bool is_queue = false;
  };
  LineName line_name(const Id& pid, const Id& tid);
  /// The track gets the line's name if it comes later.
  void name_later(int64_t track, const Id& pid, const Id& tid);
  /// The process row of a pid that stands for a device.
  int64_t device_process(const Id& pid);

  /// Gives the names that came early, and finishes the tracker.
  void finish();

  /// The number of an id. Texts, and numbers as low as theirs, get numbers from kTexts downwards.
  int64_t number(const Id& id);
  /// The id of a number that number() returned.
  Id id_of(int64_t number) const;

 private:
  struct TextId {
    bool labelled = false;
    ScopeId scope = 0;
    std::string text, rest;  // rest: without the label
  };
  struct IdOrder {  // External ids of operators, correlations of calls, or times
    int64_t greatest = event::kUnknown, last = event::kUnknown;
    int64_t count = 0, steps_back = 0;
    void add(int64_t id);
    // Profilers' files have a few out of order, and shuffled ones every second.
    bool ascends() const { return count >= 16 && steps_back * 8 <= count; }
    bool descends() const { return count >= 16 && steps_back * 8 >= count * 7; }
  };
  struct Host {
    int64_t process = 0;
    ScopeId block = 0;
    ScopeId devices = -1;            // -1 = no device work yet
    int64_t last = event::kUnknown;  // the greatest time
    IdOrder operators = {}, calls = {};
    bool named = false;        // after its events
    bool named_first = false;  // before them
    bool ranked = false;       // its collectives told its rank
    bool works = false;        // its work came
  };
  struct Call {  // in the order in which caller() takes them
    int64_t correlation, has_work, time, host;
    auto operator<=>(const Call&) const = default;
  };
  struct Name {
    int64_t text = 0;  // row
    int64_t gpu = event::kUnknown;
  };
  enum class Naming : uint8_t { kProcess, kLabels, kThread, kOrigin };
  struct Named {
    Naming what;
    int64_t pid, tid;  // numbers
    std::string text;
  };

  static constexpr size_t kMostNames = 1 << 20, kMostCalls = 1 << 17, kMostTold = 1 << 14, kLongestTold = 1 << 14,
                          kMostWaiting = 1 << 14;
  static constexpr int64_t kMostEarlyWork = 1 << 22;
  static constexpr int64_t kShared = -1;
  static constexpr int64_t kRangeIds = -1;  // of ids_, by the process's row
  static constexpr int64_t kTexts = -(int64_t{1} << 62);

  const TextId* text_id(int64_t number) const {
    return number <= kTexts ? &text_ids_[static_cast<size_t>(kTexts - number)] : nullptr;
  }
  static Call ordered(const std::array<int64_t, 2>& key, int64_t call) { return {key[0], call & 1, call >> 1, key[1]}; }
  int64_t make_process(const Id& pid, int64_t key);
  void give(const Named& name);
  void name_process(const Named& name);
  void name_thread(const Named& name);
  ScopeId unlabelled();
  void in_time(const Event& event);
  void hosts_mixed();
  void forget_calls();
  int64_t* known_call(int64_t correlation, int64_t host);
  void call_has_work(int64_t correlation, int64_t host);
  size_t caller(const Event& event);
  bool tells_owner(const Event& event, Owner& owner);
  size_t only_host(const Event& event) const;
  Owner owned_by(size_t host);
  void works(Host& host);
  bool is_block_again(const Host& host, const IdOrder& ids, int64_t id, bool came_before, int64_t time) const;

  trace::TraceWriter& writer_;
  imported::ImportTracker tracker_;
  ScopeId block_ = 0;
  bool any_host_ = false;  // in this block
  // Whether the events so far came in order of time, and whether several hosts' events are mixed in that order.
  bool sorted_ = true, mixed_ = false;
  bool interleaved_ = false;  // some host's events stand before and behind another's
  int64_t last_time_ = event::kUnknown;
  NumberMap<2> calls_, older_calls_;  // by correlation and host: time of the call, twice that, plus 1 if it has work
  std::set<Call> ordered_calls_;      // the same calls, if mixed_
  NumberMap<2> device_hosts_;         // by block and GPU: the only host whose work it has done, or kShared
  bool shared_ = false, replaying_ = false;
  bool waits_ = false;                         // work came while several hosts had calls and no work
  int64_t idle_hosts_ = 0;                     // of this block: with calls and no work
  int64_t early_work_ = 0;                     // before the first host
  int64_t unknown_ = 0, unknown_process_ = 0;  // work that no process is known to own; a row, 0 = not made yet
  int64_t current_ = 0;                        // key of the current host
  const Owner* forced_ = nullptr;
  tsl::robin_map<std::string, int64_t> texts_;
  std::vector<TextId> text_ids_;
  tsl::robin_map<std::string, ScopeId> labels_;
  tsl::robin_map<ScopeId, int64_t> label_hosts_;  // place of a label's last host in hosts_
  ScopeId first_label_ = -1;                      // the first label's scope, which may be the block's; -1 = none
  ScopeId unlabelled_ = -1;                       // of numbers without a label in that block; -1 = none yet
  NumberMap<2> processes_, device_processes_;     // by block and number
  NumberMap<3> threads_;                          // by block, pid, tid
  NumberMap<2> host_places_;                      // by block and number
  std::vector<Host> hosts_;
  size_t last_host_ = SIZE_MAX;      // of hosts_; SIZE_MAX = none yet
  IdOrder times_;                    // of the host's events
  IdPages ids_;                      // by host, and 0 for operators or a call's name
  size_t document_host_ = SIZE_MAX;  // of hosts_; SIZE_MAX = none yet
  tsl::robin_map<int64_t, int64_t> track_processes_;
  NumberMap<2> process_names_;                                        // places in names_
  std::vector<std::pair<std::array<int64_t, 2>, std::string>> told_;  // processes by block and number
  NumberMap<3> thread_numbers_;                                       // tids that names tell
  NumberMap<3> thread_names_;  // rows of strings, twice that, plus 1 for a queue's name
  NumberMap<3> late_lines_;    // tracks
  std::vector<Name> names_;
  std::vector<Named> waiting_names_;
  // The last thread asked for: most events are of the thread before them.
  int64_t last_pid_ = event::kUnknown, last_tid_ = event::kUnknown, last_track_ = 0;
};

}  // namespace tacho::format::kineto
