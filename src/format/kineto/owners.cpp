// Processes, threads and ranks (owners.h).
#include "format/kineto/owners.h"

#include <algorithm>
#include <functional>

#include "format/import/origin.h"
#include "format/import/words.h"
#include "format/json/members.h"

namespace tacho::format::kineto {

using event::kUnknown;
using event::Table;
namespace column = event::column;
namespace row = event::row;

namespace {

// Parts of the names of lines that hold a GPU's work.
constexpr std::string_view kQueueWords[] = {"tream", "ueue",     "ompute",  "emcpy",
                                            "ernel", "STREAM [", "QUEUE [", "COPY "};

}  // namespace

int64_t Owners::number(const Id& id) {
  if (id.text.empty() && id.number > kTexts) return id.number;
  const std::string given = id.text.empty() ? std::to_string(id.number) : std::string(id.text);
  const auto [found, fresh] = texts_.try_emplace(given, kTexts - static_cast<int64_t>(texts_.size()));
  if (fresh) {
    // "[TP00] 83": a label that names the rank, and its own id.
    TextId text{.text = given, .rest = {}};
    const size_t close = given.starts_with('[') ? given.find("] ") : std::string::npos;
    if (close != std::string::npos) {
      const std::string label = given.substr(1, close - 1);
      const auto [scope, first] = labels_.try_emplace(label, 0);
      if (first) {
        // The first label's rank is the file's own scope, unless something else came before.
        scope.value() = labels_.size() == 1 && processes_.empty() ? block_ : tracker_.new_scope();
        if (labels_.size() == 1) first_label_ = scope->second;
        const int64_t process = tracker_.main_process(scope->second);
        int64_t rank = kUnknown;
        if (label.starts_with("TP") && json::integer(std::string_view(label).substr(2), rank) && rank >= 0)
          writer_.update(Table::kProcess, process, column::Process::rank, rank);
      }
      text.labelled = true;
      text.scope = scope->second;
      text.rest = given.substr(close + 2);
    }
    text_ids_.push_back(std::move(text));
  }
  return found->second;
}

Id Owners::id_of(int64_t number) const {
  const TextId* const text = text_id(number);
  return text != nullptr ? Id{.number = 0, .text = text->text, .given = true}
                         : Id{.number = number, .text = {}, .given = true};
}

int64_t Owners::make_process(const Id& pid, int64_t key) {
  if (const TextId* const text = text_id(key); text != nullptr && text->labelled) {
    int64_t number = 0;
    return json::integer(text->rest, number) ? tracker_.process(number, text->scope)
                                             : tracker_.process(text->rest, text->scope);
  }
  if (!pid.text.empty()) return tracker_.process(pid.text, block_);
  return tracker_.process(pid.number, pid.number > 0 ? unlabelled() : block_);
}

// A number without a label is not a label's process of that number, which may have the block's scope.
Owners::ScopeId Owners::unlabelled() {
  if (block_ != first_label_) return block_;
  if (unlabelled_ < 0) unlabelled_ = tracker_.new_scope();
  return unlabelled_;
}

Owners::ScopeId Owners::scope_of(const Id& pid) {
  const TextId* const text = text_id(number(pid));
  return text != nullptr && text->labelled ? text->scope : block_;
}

int64_t Owners::process(const Id& pid) {
  const int64_t key = number(pid);
  const auto [found, fresh] = processes_.try_emplace({block_, key}, 0);
  if (fresh) found.value() = make_process(pid, key);
  return found->second;
}

int64_t Owners::device_process(const Id& pid) {
  const int64_t key = number(pid);
  const auto [found, fresh] = device_processes_.try_emplace({block_, key}, 0);
  if (fresh) {
    Id own = pid;  // without its label
    int64_t labelled = 0;
    if (const TextId* const text = text_id(key);
        text != nullptr && text->labelled && json::integer(text->rest, labelled) && labelled > 0)
      own = {.number = labelled, .text = {}, .given = true};
    const auto known = processes_.find({block_, key});
    found.value() = known != processes_.end()
                        ? known->second
                        : writer_.dimension(row::Process{.pid = own.text.empty() ? own.number : 0,
                                                         .name = own.text.empty() ? 0 : writer_.string(own.text),
                                                         .run = scope_of(pid)});
    processes_.try_emplace({block_, key}, found->second);
  }
  return found->second;
}

int64_t Owners::thread_track(const Id& pid, const Id& tid) {
  const int64_t pid_key = number(pid), tid_key = number(tid);
  if (pid_key == last_pid_ && tid_key == last_tid_) return last_track_;
  const auto [found, fresh] = threads_.try_emplace({block_, pid_key, tid_key}, 0);
  if (fresh) {
    const int64_t owner = process(pid);
    found.value() = tid.text.empty() ? tracker_.thread_track(owner, tid.number)
                                     : tracker_.thread_track(owner, tid.text, tid_key - kTexts - 2);  // -2, -3, ...
    track_processes_[found->second] = owner;
  }
  last_pid_ = pid_key;
  last_tid_ = tid_key;
  return last_track_ = found->second;
}

int64_t Owners::process_of_track(int64_t track) const {
  const auto found = track_processes_.find(track);
  return found != track_processes_.end() ? found->second : 0;
}

void Owners::IdOrder::add(int64_t id) {
  if (last != kUnknown && id < last) ++steps_back;
  greatest = std::max(greatest, id);
  last = id;
  ++count;
}

bool Owners::is_block_again(const Host& host, const IdOrder& ids, int64_t id, bool came_before, int64_t time) const {
  if (!host.named || time == kUnknown || time >= host.last) return false;
  return came_before || (ids.ascends() && id <= ids.greatest);
}

void Owners::host_seen(const Event& event, bool is_call) {
  const int64_t key = number(event.process);
  if (key == 0) return;  // Python functions of threads without a system id
  if (sorted_) in_time(event);
  const auto [place, fresh] = host_places_.try_emplace({block_, key}, static_cast<int64_t>(hosts_.size()));
  if (fresh) {
    const int64_t row = process(event.process);
    if (any_host_ && sorted_ && !mixed_) hosts_mixed();
    const bool beside_label = block_ == first_label_ && text_id(key) == nullptr;
    hosts_.push_back({.process = row,
                      .block = block_,
                      .devices = any_host_ || beside_label ? -1 : block_,
                      .named_first = process_names_.contains({block_, key})});
    any_host_ = true;
    if (const TextId* const text = text_id(key); text != nullptr && text->labelled)
      label_hosts_[text->scope] = place->second;
  }
  last_host_ = static_cast<size_t>(place->second);
  Host& host = hosts_[last_host_];
  // Nested calls of two APIs may share a correlation, and calls their operator's External id.
  const int64_t id = is_call ? event.correlation : event.external;
  if (id != kUnknown && id != 0) {
    IdOrder& ids = is_call ? host.calls : host.operators;
    const int64_t kind = is_call ? static_cast<int64_t>(std::hash<std::string_view>()(event.name) & 0xffff) + 1 : 0;
    const bool came_before = ids_.seen(place->second, kind, id);
    if (is_block_again(host, ids, id, came_before, event.time)) {
      another_rank();
      return host_seen(event, is_call);
    }
    ids.add(id);
    if (is_call && host.calls.count == 1 && !host.works) ++idle_hosts_;
  }
  interleaved_ = interleaved_ || (!fresh && current_ != key);
  if (host.named || document_host_ == SIZE_MAX) give_names();
  host.named = false;
  if (document_host_ == SIZE_MAX) document_host_ = static_cast<size_t>(place->second);
  if (event.time != kUnknown) host.last = std::max(host.last, event.time);
  // Of the group of all ranks the number within it is the rank.
  if (event.rank >= 0 && !host.ranked &&
      (event.collective.group == "0" || event.collective.group_description == "default_pg")) {
    writer_.update(Table::kProcess, host.process, column::Process::rank, event.rank);
    host.ranked = true;
  }
  current_ = key;
  if (event.correlation == kUnknown || event.correlation == 0) return;
  if (sorted_ || mixed_) call_seen(event.correlation, event.time, static_cast<size_t>(place->second));
}

void Owners::in_time(const Event& event) {
  if (event.time == kUnknown) return;
  sorted_ = sorted_ && event.time >= last_time_;
  last_time_ = event.time;
}

int64_t* Owners::known_call(int64_t correlation, int64_t host) {
  for (NumberMap<2>* const calls : {&calls_, &older_calls_})
    if (const auto found = calls->find({correlation, host}); found != calls->end()) return &found.value();
  return nullptr;
}

void Owners::call_seen(int64_t correlation, int64_t time, size_t host) {
  const auto of = static_cast<int64_t>(host);
  if (calls_.size() >= kMostCalls) {
    if (mixed_)
      for (const auto& [key, call] : older_calls_) ordered_calls_.erase(ordered(key, call));
    older_calls_ = std::move(calls_);
    calls_.clear();
  }
  if (mixed_) {
    if (const int64_t* const before = known_call(correlation, of))
      ordered_calls_.erase(ordered({correlation, of}, *before));
    ordered_calls_.insert(ordered({correlation, of}, time * 2));
  }
  older_calls_.erase({correlation, of});
  calls_[{correlation, of}] = time * 2;
}

void Owners::call_has_work(int64_t correlation, int64_t host) {
  int64_t* const call = known_call(correlation, host);
  if (call == nullptr || (*call & 1) != 0) return;
  if (mixed_) {
    ordered_calls_.erase(ordered({correlation, host}, *call));
    ordered_calls_.insert(ordered({correlation, host}, *call | 1));
  }
  *call |= 1;
}

// A second host's events stand between those of the first.
void Owners::hosts_mixed() {
  mixed_ = true;
  for (const NumberMap<2>* const calls : {&calls_, &older_calls_})
    for (const auto& [key, call] : *calls) ordered_calls_.insert(ordered(key, call));
}

void Owners::forget_calls() {
  calls_.clear();
  older_calls_.clear();
  ordered_calls_.clear();
}

// Of the hosts whose calls have the work's correlation the one whose call came first and has no work yet. A GPU that
// has only worked for one host is that host's.
size_t Owners::caller(const Event& event) {
  const auto [device, fresh] =
      device_hosts_.try_emplace({block_, event.device != kUnknown ? event.device : event.process.number}, kShared - 1);
  const auto first = ordered_calls_.lower_bound({event.correlation, 0, kUnknown, 0});
  if (first == ordered_calls_.end() || first->correlation != event.correlation)
    return device->second >= 0 ? static_cast<size_t>(device->second) : SIZE_MAX;
  Call best = *first;
  if (device->second >= 0)
    if (const int64_t* const own = known_call(event.correlation, device->second);
        own != nullptr && (*own & 1) == best.has_work)
      best = ordered({event.correlation, device->second}, *own);
  call_has_work(best.correlation, best.host);
  if (device->second == kShared - 1)
    device.value() = best.host;
  else if (device->second != best.host)
    device.value() = kShared;
  shared_ = shared_ || device->second == kShared;
  return static_cast<size_t>(best.host);
}

std::vector<int64_t> Owners::host_rows() const {
  std::vector<int64_t> rows;
  for (const Host& host : hosts_) rows.push_back(host.process);
  return rows;
}

void Owners::replay(const std::map<int64_t, size_t>& of_devices) {
  forget_calls();
  device_hosts_.clear();
  for (const auto& [device, host] : of_devices) device_hosts_[{block_, device}] = static_cast<int64_t>(host);
  mixed_ = replaying_ = true;
  sorted_ = shared_ = false;
}

bool Owners::undecided() {
  if (waits_) return true;
  if (any_host_ && idle_hosts_ > 0) {
    const bool current = last_host_ < hosts_.size() && hosts_[last_host_].calls.count > 0 && !hosts_[last_host_].works;
    waits_ = idle_hosts_ > (current ? 1 : 0);
    if (waits_) return true;
  }
  if (in_order()) return false;
  return any_host_ || ++early_work_ <= kMostEarlyWork;
}

void Owners::works(Host& host) {
  if (host.works) return;
  host.works = true;
  if (host.calls.count > 0) --idle_hosts_;
}

Owners::Owner Owners::owned_by(size_t at) {
  Host& host = hosts_[at];
  works(host);
  if (host.devices < 0) host.devices = tracker_.new_scope(host.process);
  return {host.process, host.devices};
}

void Owners::document_begins() {
  give_names();
  for (Host& host : hosts_) host.named = true;
  document_host_ = SIZE_MAX;
}

void Owners::another_rank() {
  block_ = tracker_.new_scope();
  any_host_ = mixed_ = false;
  idle_hosts_ = 0;
  forget_calls();
  last_pid_ = kUnknown;
  give_names();
}

Owners::ScopeId Owners::host_devices(const Id& pid) {
  const int64_t key = number(pid);
  if (const TextId* const text = text_id(key); text != nullptr && text->labelled) return text->scope;
  const auto place = host_places_.find({block_, key});
  return place == host_places_.end() ? block_ : std::max(0, hosts_[static_cast<size_t>(place->second)].devices);
}

// The pid of work is a label's, or that of a process with operators or calls.
bool Owners::tells_owner(const Event& event, Owner& owner) {
  const int64_t key = number(event.process);
  if (const TextId* const text = text_id(key); text != nullptr && text->labelled) {
    if (const auto host = label_hosts_.find(text->scope); host != label_hosts_.end())
      call_has_work(event.correlation, host->second);
    owner = {tracker_.main_process(text->scope), text->scope};
    return true;
  }
  // tacho's own files put device work under the process that launched it.
  if (key == event.device || key == 0) return false;
  const auto place = host_places_.find({block_, key});
  if (place == host_places_.end()) return false;
  Host& host = hosts_[static_cast<size_t>(place->second)];
  works(host);
  owner = block_ == first_label_ ? owned_by(static_cast<size_t>(place->second)) : Owner{host.process, block_};
  return true;
}

Owners::Owner Owners::owner(const Event& event) {
  if (forced_ != nullptr) return *forced_;
  if (Owner told{}; tells_owner(event, told)) return told;
  if (!any_host_) return {main_process(), block_};
  if (sorted_) in_time(event);
  if (mixed_ && (event.correlation != kUnknown || replaying_))
    if (const size_t host = caller(event); host != SIZE_MAX) return owned_by(host);
  const auto place = host_places_.find({block_, current_});
  return place != host_places_.end() ? owned_by(static_cast<size_t>(place->second)) : Owner{main_process(), block_};
}

bool Owners::waits_for_end(const Event& event) {
  if (!mixed_ || (event.correlation != kUnknown && event.correlation != 0)) return false;
  Owner told{};
  return !tells_owner(event, told);
}

// The only process of the block whose work alone its GPU did, that has its External id, or that calls a GPU's API.
size_t Owners::only_host(const Event& event) const {
  const int64_t gpu = event.device != kUnknown ? event.device : event.process.number;
  if (const auto device = device_hosts_.find({block_, gpu}); device != device_hosts_.end() && device->second >= 0)
    return static_cast<size_t>(device->second);
  const auto only = [&](const auto& fits) {
    size_t found = SIZE_MAX;
    for (size_t at = 0; at < hosts_.size(); ++at) {
      if (hosts_[at].block != block_ || !fits(at)) continue;
      if (found != SIZE_MAX) return SIZE_MAX;
      found = at;
    }
    return found;
  };
  if (event.external > 0 && !ids_.is_full()) {
    const size_t named = only([&](size_t at) {
      return ids_.has(static_cast<int64_t>(at), 0, event.external) ||
             ids_.has(hosts_[at].process, kRangeIds, event.external);
    });
    if (named != SIZE_MAX) return named;
  }
  return only([&](size_t at) { return hosts_[at].calls.count > 0; });
}

Owners::Owner Owners::owner_at_end(const Event& event) {
  if (Owner told{}; tells_owner(event, told)) return told;
  if (const size_t host = only_host(event); host != SIZE_MAX) return owned_by(host);
  if (unknown_process_ == 0) unknown_process_ = writer_.dimension(row::Process{.name = writer_.string("unknown")});
  ++unknown_;
  return {unknown_process_, kNoDevices};
}

int64_t Owners::whose_line(const Id& pid) {
  if (interleaved_ || host_places_.contains({block_, number(pid)})) return 0;
  const auto current = host_places_.find({block_, current_});
  return current != host_places_.end() ? current->second : 0;
}

void Owners::name(const Event& event) {
  Named name{Naming::kOrigin, number(event.process), number(event.thread), std::string(event.label)};
  if (event.name == "tacho_process") {
    if (event.text.size() > kLongestTold) return;
    name.text = json::json_member(event.text, "args");
  } else if (event.label.empty()) {
    return;
  } else {
    name.what = event.name == "thread_name"      ? Naming::kThread
                : event.name == "process_labels" ? Naming::kLabels
                                                 : Naming::kProcess;
  }
  bool waits = !waiting_names_.empty() || (document_host_ == SIZE_MAX && any_host_);
  if (const auto place = host_places_.find({block_, name.pid});
      place != host_places_.end() && (name.what == Naming::kProcess || name.what == Naming::kLabels)) {
    Host& host = hosts_[static_cast<size_t>(place->second)];
    host.named = true;
    waits = waits || host.named_first;
  }
  if (waits && waiting_names_.size() < kMostWaiting)
    waiting_names_.push_back(std::move(name));
  else
    give(name);
}

void Owners::give_names() {
  for (const Named& name : std::exchange(waiting_names_, {})) give(name);
}

void Owners::give(const Named& name) {
  if (name.what == Naming::kThread)
    name_thread(name);
  else if (name.what != Naming::kOrigin)
    name_process(name);
  else if (told_.size() < kMostTold)
    told_.push_back({{block_, name.pid}, name.text});
}

void Owners::name_process(const Named& named) {
  const int64_t key = named.pid;
  const auto [found, fresh] = process_names_.try_emplace({block_, key}, static_cast<int64_t>(names_.size()));
  if (fresh) {
    if (names_.size() >= kMostNames) {
      process_names_.erase(found);
      return;
    }
    names_.emplace_back();
  }
  Name& name = names_[static_cast<size_t>(found->second)];
  const int64_t gpu = imported::gpu_of_name(named.text);
  if (gpu != kUnknown) name.gpu = gpu;
  if (named.what == Naming::kLabels) return;
  name.text = writer_.string(named.text);
  // Pids up to 255 may stand for GPUs: those only get a process if threads of theirs have events.
  if (key > 255 || processes_.contains({block_, key}))
    writer_.update(Table::kProcess, process(id_of(key)), column::Process::name, name.text);
}

void Owners::name_thread(const Named& named) {
  const int64_t pid = named.pid, tid = named.tid;
  std::string_view name = named.text;
  while (name.ends_with(' ')) name.remove_suffix(1);
  int64_t told = kUnknown;
  const bool is_thread = imported::thread_of_name(name, told);
  const bool is_queue = !is_thread && std::ranges::any_of(kQueueWords, [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
  // A line of a GPU's work is a thread only if threads' events lie on it.
  if ((pid > 255 && !is_queue) || threads_.contains({block_, pid, tid}))
    tracker_.name_thread(thread_track(id_of(pid), id_of(tid)), name);
  if (is_thread && thread_numbers_.size() < kMostNames) thread_numbers_[{block_, pid, tid}] = told;
  if (thread_names_.size() < kMostNames)
    thread_names_[{block_, pid, tid}] = writer_.string(name) * 2 + (is_queue ? 1 : 0);
}

int64_t Owners::gpu_of(const Id& pid) {
  const auto found = process_names_.find({block_, number(pid)});
  return found != process_names_.end() ? names_[static_cast<size_t>(found->second)].gpu : kUnknown;
}

bool Owners::is_named(const Id& pid) {
  return process_names_.contains({block_, number(pid)});
}

Owners::LineName Owners::line_name(const Id& pid, const Id& tid) {
  const auto found = thread_names_.find({block_, number(pid), number(tid)});
  if (found == thread_names_.end()) return {};
  return {found->second / 2, found->second % 2 == 1};
}

void Owners::name_later(int64_t track, const Id& pid, const Id& tid) {
  late_lines_[{block_, number(pid), number(tid)}] = track;
}

void Owners::finish() {
  if (shared_)
    writer_.note(0, event::NoteSeverity::kWarning,
                 "several processes of this file use GPUs of one number and share correlations: where those do not "
                 "tell whose work it was, the order of time does");
  if (unknown_ > 0)
    writer_.note(
        0, event::NoteSeverity::kWarning,
        fmt::format("several processes of this file use GPUs of one number, and {}: process \"unknown\" has {}",
                    unknown_ == 1 ? "1 event of the GPU has no correlation that tells whose it is"
                                  : fmt::format("{} events of the GPUs have no correlation that tells whose "
                                                "they are",
                                                unknown_),
                    unknown_ == 1 ? "it" : "them"));
  for (const auto& [key, place] : process_names_) {
    const auto process = processes_.find(key);
    const int64_t text = names_[static_cast<size_t>(place)].text;
    if (process != processes_.end() && text != 0)
      writer_.update(Table::kProcess, process->second, column::Process::name, text);
  }
  for (const auto& [key, origin] : told_)
    if (const auto process = processes_.find(key); process != processes_.end())
      imported::set_process_origin(writer_, process->second, origin);
  for (const auto& [key, tid] : thread_numbers_)
    if (const auto thread = threads_.find(key); thread != threads_.end()) tracker_.number_thread(thread->second, tid);
  for (const auto& [key, name] : thread_names_) {
    if (const auto thread = threads_.find(key); thread != threads_.end())
      tracker_.name_thread(thread->second, name / 2);
    if (const auto line = late_lines_.find(key); line != late_lines_.end())
      writer_.update(Table::kTrack, line->second, column::Track::name, name / 2);
  }
  tracker_.finish();
}

}  // namespace tacho::format::kineto
