// Asking watches, and adding up what they say (hosts.h).
#include "watch/live/hosts.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/thread.h"
#include "report/text.h"

namespace tacho::watch {
namespace {

using event::WatchKind;

constexpr size_t kMostHosts = 256;

Result<PushAddress> parse_one(std::string_view text) {
  std::string_view rest = text;
  if (constexpr std::string_view kScheme = "http://"; rest.starts_with(kScheme)) {
    rest.remove_prefix(kScheme.size());
    rest = rest.substr(0, rest.find('/'));
  }
  PushAddress address;
  address.host = "127.0.0.1";
  address.path = "/moment";
  std::string_view port = rest;
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    std::string_view host = rest.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (!host.empty()) address.host = host;
    port = rest.substr(colon + 1);
  }
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0 ||
      address.host.find_first_of("/@[]?# \r\n\t") != std::string::npos)
    return fail("--from {}: give HOST:PORT, as tacho watch --prometheus prints it there", text);
  address.port = port;
  return address;
}

// What makes two rows the same; of a graph its contents.
std::string key_of(const RowSums& row, const std::string& host) {
  std::string key = fmt::format("{} ", static_cast<int>(row.kind));
  // Rows for many graphs in parentheses, and "command buffers", mean the same everywhere.
  if (row.kind != WatchKind::kGraph || !row.name.starts_with("graph ")) return key + row.title();
  if (row.kernels.empty()) return key + row.title() + '\n' + host;
  std::vector<std::string> kernels;
  kernels.reserve(row.kernels.size());
  for (const GraphKernel& kernel : row.kernels) kernels.push_back(fmt::format("\n{} {}", kernel.nodes, kernel.title));
  std::sort(kernels.begin(), kernels.end());
  for (const std::string& kernel : kernels) key += kernel;
  return key + fmt::format("\n{}", row.other_nodes);
}

// One row of several hosts.
class RowAdder {
 public:
  void add(const RowSums& row) {
    const bool first = sums_.hosts == 0;
    if (first) {
      sums_ = row;
      sums_.kernels.clear();  // their shares are of one host
      sums_.other_nodes = 0;
    }
    add_time(row, first);
    ++sums_.hosts;
    if (first) return;
    sums_.count += row.count;
    sums_.bytes += row.bytes;
    sums_.level = std::max(sums_.level, row.level);
    sums_.each_ns = std::max(sums_.each_ns, row.each_ns);
    for (size_t i = 0; i < sums_.levels.size(); ++i) {
      LevelSums& to = sums_.levels[i];
      const LevelSums& from = row.levels[i];
      to = {to.count + from.count,     to.timed + from.timed,     to.time + from.time,
            to.squares + from.squares, to.bounded + from.bounded, to.bound_time + from.bound_time};
    }
    for (size_t i = 0; i < sums_.buckets.size(); ++i) sums_.buckets[i] += row.buckets[i];
    sums_.stood_ns += row.stood_ns;
  }
  void rename(std::string name) { sums_.name = std::move(name); }
  const std::string& name() const { return sums_.name; }
  RowSums take() {
    // Where a host has no times, its operations take the mean of the others, as strata without a time do.
    if (all_known_) sums_.together = together();
    return std::move(sums_);
  }

 private:
  void add_time(const RowSums& row, bool first) {
    const auto time = estimate_time(row.levels, row.each_ns);
    if (!time) {
      all_known_ = false;
      return;
    }
    if (!first && timed_) {
      sums_.shortest_ns = std::min(sums_.shortest_ns, row.shortest_ns);
      sums_.longest_ns = std::max(sums_.longest_ns, row.longest_ns);
    } else {
      sums_.shortest_ns = row.shortest_ns;
      sums_.longest_ns = row.longest_ns;
    }
    timed_ = true;
    sum_.timed += time->timed;
    sum_.total_ns += time->total_ns;
    if (!time->error_ns || !time->interval_ns) {
      errors_known_ = false;
      return;
    }
    const double common = row.each_ns * static_cast<double>(row.count);
    common_ += common;
    error_squares_ += std::max(0.0, *time->error_ns * *time->error_ns - common * common);
    chance_squares_ += std::max(0.0, *time->interval_ns * *time->interval_ns - 4 * common * common);
  }
  TimeEstimate together() const {
    TimeEstimate all = sum_;
    if (!errors_known_) return all;
    all.error_ns = std::sqrt(error_squares_ + common_ * common_);
    all.interval_ns = std::sqrt(chance_squares_ + 4 * common_ * common_);
    return all;
  }

  RowSums sums_;
  TimeEstimate sum_;
  bool all_known_ = true, errors_known_ = true, timed_ = false;
  double common_ = 0, error_squares_ = 0, chance_squares_ = 0;
};

WatchHost host_of(const HostAnswer& answer) {
  WatchHost host;
  host.address = answer.address;
  host.problem = answer.problem;
  if (!answer.last) return host;
  const RemoteMoment& last = *answer.last;
  const WatchSnapshot& snapshot = last.moment.snapshot;
  host.name = last.facts.host;
  host.title = last.facts.title;
  host.ago_s = answer.ago_s;
  host.seconds = snapshot.seconds;
  host.own_ns = snapshot.own_ns;
  host.cost = last.moment.cost;
  host.timing = !last.moment.counts_only;
  host.gpus = last.moment.gpus;
  host.notes = last.notes;
  for (const RowSums& row : snapshot.rows) {
    if (row.kind != WatchKind::kKernel && row.kind != WatchKind::kGraph) continue;
    host.launches += row.count;
    host.time_ns += row.weighted_time();
  }
  for (const WatchedProcess& process : snapshot.processes)
    host.processes += process.uses_devices && !process.ended ? 1 : 0;
  return host;
}

}  // namespace

Result<std::vector<PushAddress>> parse_host_addresses(std::string_view text) {
  std::vector<PushAddress> addresses;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    TACHO_ASSIGN(PushAddress address, parse_one(text.substr(from, comma - from)));
    const auto same = [&](const PushAddress& other) { return other.text() == address.text(); };
    if (std::any_of(addresses.begin(), addresses.end(), same))
      return fail("--from {}: {}:{} is there twice", text, address.host, address.port);
    addresses.push_back(std::move(address));
    from = comma + 1;
  }
  if (addresses.size() > kMostHosts) return fail("--from: at most {} hosts", kMostHosts);
  return addresses;
}

WatchMoment add_up(const std::vector<HostAnswer>& answers, double seconds) {
  WatchMoment sum;
  WatchSnapshot& snapshot = sum.snapshot;
  snapshot.seconds = seconds;
  std::map<std::string, size_t> places;
  std::vector<RowAdder> rows;
  std::map<std::string, uint64_t> names;  // of graphs
  for (const HostAnswer& answer : answers) {
    sum.hosts.push_back(host_of(answer));
    if (!answer.last) continue;
    const RemoteMoment& last = *answer.last;
    for (const RowSums& row : last.moment.snapshot.rows) {
      const auto [at, is_new] = places.try_emplace(key_of(row, answer.address), rows.size());
      if (is_new) {
        RowAdder& adder = rows.emplace_back();
        adder.add(row);
        // Another graph of that name is known already.
        if (row.kind == WatchKind::kGraph && names[row.name]++ > 0)
          adder.rename(fmt::format("{} of {}", row.name, answer.address));
      } else {
        rows[at->second].add(row);
      }
    }
    const WatchSnapshot& one = last.moment.snapshot;
    snapshot.failed += one.failed;
    snapshot.lost_rows += one.lost_rows;
    snapshot.lost_times += one.lost_times;
    snapshot.operations += one.operations;
    snapshot.device_ns += one.device_ns;
  }
  for (RowAdder& row : rows) snapshot.rows.push_back(row.take());
  sum.counts_only = !sum.hosts.empty() &&
                    std::none_of(sum.hosts.begin(), sum.hosts.end(), [](const WatchHost& host) { return host.timing; });
  return sum;
}

HostPoller::HostPoller(std::vector<PushAddress> addresses) : began_(raw_now()) {
  for (PushAddress& address : addresses) {
    auto host = std::make_unique<Host>();
    const bool six = address.host.find(':') != std::string::npos;
    host->text = fmt::format("{}{}{}:{}", six ? "[" : "", address.host, six ? "]" : "", address.port);
    host->address = std::move(address);
    hosts_.push_back(std::move(host));
  }
  for (const auto& host : hosts_) threads_.push_back(thread_without_signals([this, &one = *host] { follow(one); }));
}

HostPoller::~HostPoller() {
  {
    const std::lock_guard held(lock_);
    end_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HostPoller::follow(Host& host) {
  constexpr double kTimeout = 2;
  constexpr int kOk = 200;
  std::unique_lock held(lock_);
  while (!end_) {
    const auto next = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    held.unlock();
    std::string problem;
    std::optional<RemoteMoment> made;
    if (const auto answer = get(host.address, kTimeout); !answer)
      problem = answer.error().message;
    else if (answer->status != kOk)
      problem = fmt::format("it answered {}{}{}", answer->status, answer->reason.empty() ? "" : " ", answer->reason);
    else if (auto moment = parse_moment_text(answer->body); !moment)
      problem = moment.error().message;
    else
      made = std::move(*moment);
    held.lock();
    host.asked = true;
    host.problem = std::move(problem);
    if (made) {
      if (!host.last || host.last->facts.run != made->facts.run) ++generation_;
      host.last = std::move(made);
      host.answered = raw_now();
    }
    changed_.notify_all();
    changed_.wait_until(held, next, [this] { return end_; });
  }
}

Status HostPoller::wait_for_first() {
  std::unique_lock held(lock_);
  changed_.wait(
      held, [this] { return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->asked; }); });
  for (const auto& host : hosts_)
    if (host->last) return {};
  return fail("--from: {}{} does not answer: {}; start the watch there with --prometheus", hosts_.front()->text,
              hosts_.size() > 1 ? fmt::format(" (and {} more)", hosts_.size() - 1) : "", hosts_.front()->problem);
}

WatchMoment HostPoller::now() const {
  const std::lock_guard held(lock_);
  const int64_t at = raw_now();
  std::vector<HostAnswer> answers;
  for (const auto& host : hosts_)
    answers.push_back({host->text, host->last, static_cast<double>(at - host->answered) * 1e-9, host->problem});
  WatchMoment moment = add_up(answers, static_cast<double>(at - began_) * 1e-9);
  moment.snapshot.generation = generation_;
  return moment;
}

}  // namespace tacho::watch
