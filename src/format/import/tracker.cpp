// Rows by the numbers of a file (tracker.h).
#include "format/import/tracker.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/import/origin.h"
#include "format/import/rows.h"

namespace tacho::format::imported {

using event::kUnknown;
using event::Table;
namespace column = event::column;
namespace row = event::row;

int64_t ImportTracker::new_process(int64_t pid, int64_t name, ScopeId scope) {
  return writer_.dimension(row::Process{.pid = pid, .name = name, .run = scope});
}

int64_t ImportTracker::main_process(ScopeId scope) {
  const auto [found, fresh] = mains_.try_emplace(scope, 0);
  if (fresh) {
    found.value() = new_process(0, 0, scope);
    unclaimed_[found->second] = true;
  }
  return found->second;
}

int64_t ImportTracker::process(int64_t pid, ScopeId scope) {
  if (pid == 0 || pid == kUnknown) return main_process(scope);
  const auto [found, fresh] = processes_.try_emplace({scope, pid}, 0);
  if (fresh) {
    const int64_t main = pid > 0 ? main_process(scope) : 0;
    if (main != 0 && unclaimed_.erase(main) > 0) {
      found.value() = main;
      writer_.update(Table::kProcess, main, column::Process::pid, pid);
    } else {
      found.value() = new_process(pid, 0, scope);
    }
  }
  return found->second;
}

int64_t ImportTracker::process(std::string_view id, ScopeId scope) {
  return new_process(0, writer_.string(id), scope);
}

int64_t ImportTracker::thread_track(int64_t process, int64_t tid) {
  const auto [found, fresh] = thread_tracks_.try_emplace({process, tid, 0}, 0);
  if (fresh) {
    int64_t thread = 0;
    found.value() = thread_line(writer_, process, tid, tid, 0, &thread);
    threads_[found->second] = thread;
  }
  return found->second;
}

int64_t ImportTracker::thread_track(int64_t process, std::string_view id, int64_t native) {
  const int64_t name = writer_.string(id);
  const auto [found, fresh] = thread_tracks_.try_emplace({process, name, 1}, 0);
  if (fresh) {
    int64_t thread = 0;
    found.value() = thread_line(writer_, process, 0, native, name, &thread);
    threads_[found->second] = thread;
  }
  return found->second;
}

void ImportTracker::name_thread(int64_t track, std::string_view name) {
  while (name.ends_with(' ')) name.remove_suffix(1);
  name_thread(track, writer_.string(name));
}

void ImportTracker::name_thread(int64_t track, int64_t name) {
  const auto found = threads_.find(track);
  if (found != threads_.end()) writer_.update(Table::kThread, found->second, column::Thread::name, name);
}

void ImportTracker::number_thread(int64_t track, int64_t tid) {
  const auto found = threads_.find(track);
  if (found != threads_.end()) writer_.update(Table::kThread, found->second, column::Thread::tid, tid);
}

int64_t ImportTracker::device(int64_t index, ScopeId scope) {
  const auto [found, fresh] = devices_.try_emplace({scope, index}, 0);
  if (fresh)
    // The owner is part of the row from the start, or two scopes would share it. The first scope's stays 0 where it is
    // the only one.
    found.value() = writer_.dimension(row::Device{.process = scope == 0 ? 0 : main_process(scope),
                                                  .kind = event::DeviceKind::kGpu,
                                                  .index = index,
                                                  .name = writer_.string(fmt::format("GPU {}", index))});
  return found->second;
}

void ImportTracker::describe(int64_t index, DeviceHint facts, ScopeId scope) {
  if (facts_.size() < 4096) facts_.push_back({scope, index, std::move(facts)});
}

void ImportTracker::apply(int64_t device, const DeviceHint& facts) {
  const auto set = [&](int cell, std::string_view text) {
    if (!text.empty()) writer_.update(Table::kDevice, device, cell, writer_.string(text));
  };
  set(column::Device::name, facts.name);
  set(column::Device::vendor, facts.vendor);
  set(column::Device::architecture, facts.architecture);
  set(column::Device::uuid, facts.uuid);
  set(column::Device::driver, facts.driver);
  if (facts.kind != event::DeviceKind::kGpu)
    writer_.update(Table::kDevice, device, column::Device::kind, static_cast<int64_t>(facts.kind));
  for (const auto& [key, value] : facts.properties) writer_.property(Table::kDevice, device, key, value);
  if (!facts.origin.empty()) set_device_origin(writer_, device, facts.origin);
}

int64_t ImportTracker::counter_track(const CounterKey& key) {
  const int64_t id = writer_.string(key.id), series = writer_.string(key.series);
  const int64_t counter = writer_.dimension(row::Counter{
      .name = writer_.string(key.name), .unit = writer_.string(key.unit), .block = writer_.string(key.block)});
  if (counter_tracks_.size() >= kMostCounters) {
    counter_tracks_.clear();  // the writer knows their rows
    too_many_counters_ = true;
  }
  const auto [found, fresh] =
      counter_tracks_.try_emplace({key.process, key.device, key.gpu, key.scope, counter, id, series}, 0);
  if (fresh) {
    // Until finish() says which part of the name tells the counter's lines apart.
    std::string name = fmt::format("{} {}", key.id, key.series);
    if (key.gpu != kUnknown)
      name = fmt::format("GPU {}{} {}", key.gpu, key.scope != 0 ? fmt::format(" of run {}", key.scope) : "", name);
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                 .process = key.process,
                                                 .device = key.device,
                                                 .name = writer_.string(name),
                                                 .category = writer_.string("counter"),
                                                 .counter = counter});
    if (too_many_counters_) return found->second;
    const auto [group, first] = counter_groups_.try_emplace({key.process, key.device, key.gpu, key.scope, counter},
                                                            static_cast<int64_t>(groups_.size()));
    if (first) groups_.push_back({.gpu = key.gpu, .scope = key.scope, .lines = {}});
    groups_[static_cast<size_t>(group->second)].lines.push_back(
        {found->second, std::string(key.id), std::string(key.series)});
  }
  return found->second;
}

void ImportTracker::unread(std::string_view what, int64_t count) {
  constexpr size_t kMostKinds = 32;
  auto known = std::find_if(unread_.begin(), unread_.end(), [&](const UnreadKind& kind) { return kind.what == what; });
  if (known == unread_.end() && unread_.size() >= kMostKinds) known = unread_.end() - 1;
  if (known != unread_.end())
    known->count += count;
  else
    unread_.push_back({std::string(unread_.size() + 1 < kMostKinds ? what : "other events"), count});
}

void ImportTracker::finish_counters() {
  for (const auto& [gpu, scope, lines] : groups_) {
    const CounterSeries& first = lines.front();
    const bool ids = std::ranges::any_of(lines, [&](const CounterSeries& each) { return each.id != first.id; });
    const bool series =
        std::ranges::any_of(lines, [&](const CounterSeries& each) { return each.series != first.series; });
    const bool came = gpu != kUnknown && has_device(gpu, scope);
    for (const CounterSeries& each : lines) {
      std::string name = gpu != kUnknown && !came ? fmt::format("GPU {}", gpu) : std::string();
      if (ids) name += (name.empty() ? "" : " ") + each.id;
      if (series) name += (name.empty() && !ids ? "" : " ") + each.series;
      writer_.update(Table::kTrack, each.track, column::Track::name, writer_.string(name));
      if (came) writer_.update(Table::kTrack, each.track, column::Track::device, device(gpu, scope));
    }
  }
}

void ImportTracker::finish() {
  finish_counters();
  struct ScopeFacts {
    size_t count = 0;
    const DeviceHint* first = nullptr;
  };
  NumberMap<2> told;  // places in facts_ by scope and index
  tsl::robin_map<ScopeId, ScopeFacts> of_scopes;
  for (size_t i = 0; i < facts_.size(); ++i) {
    const DescribedDevice& each = facts_[i];
    told.try_emplace({each.scope, each.index}, static_cast<int64_t>(i));
    ScopeFacts& scope = of_scopes[each.scope];
    if (++scope.count == 1) scope.first = &each.facts;
  }
  const auto facts_at = [&](int64_t scope, int64_t index) -> const DeviceHint* {
    const auto found = told.find({scope, index});
    return found == told.end() ? nullptr : &facts_[static_cast<size_t>(found->second)].facts;
  };
  for (const auto& [key, device] : devices_) {
    const auto& [scope, index] = key;
    const auto known = of_scopes.find(static_cast<ScopeId>(scope));
    const ScopeFacts of_scope = known == of_scopes.end() ? ScopeFacts() : known->second;
    const DeviceHint* facts = facts_at(scope, index);
    // What the file says about its devices holds for all its scopes that say nothing themselves.
    if (facts == nullptr && of_scope.count == 0 && scope != 0) facts = facts_at(0, index);
    // Some tools number devices by agent among events and from 0 where they describe them. A single one must be it.
    if (facts == nullptr && of_scope.count == 1) facts = of_scope.first;
    if (facts != nullptr) apply(device, *facts);
    if (last_scope_ > 0 && scope == 0) writer_.update(Table::kDevice, device, column::Device::process, main_process(0));
  }
  if (unread_.empty()) return;
  std::string text;
  int64_t count = 0;
  for (const UnreadKind& kind : unread_) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", kind.what, kind.count);
    count += kind.count;
  }
  writer_.lose(0, Table::kEnd, event::LossReason::kUnknownRecord, count);
  writer_.note(0, event::NoteSeverity::kWarning, fmt::format("tacho does not read: {}", text));
}

}  // namespace tacho::format::imported
