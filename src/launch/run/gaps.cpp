// Gaps in a trace (gaps.h).
#include "launch/run/gaps.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <thread>

#include "base/format.h"
#include "vendor/vendor.h"

namespace tacho::launch {

using event::Table;

namespace {

using Fact = TreeMember::Fact;
using decode::ProcessFacts;

// Why a process is recorded in part or not at all. In the order of the sentences.
enum class Gap : uint8_t {
  kNone,
  kOtherUser,
  kSecure,
  kCleared,
  kStatic,
  kStaticInPart,
  kNoPreload,
  kNotFound,
  kDescriptors,
  kNotAttached,
  kEnd
};

// Whether the program to be started is this one.
bool is_tacho(const std::string& executable) {
  struct stat one {
  }, own{};
  return stat(executable.c_str(), &one) == 0 && stat("/proc/self/exe", &own) == 0 && one.st_dev == own.st_dev &&
         one.st_ino == own.st_ino;
}

std::string joined(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? fmt::format(" {} ", last) : ", ") + words[i];
  return text;
}

// Processes that share a gap.
struct Group {
  struct One {
    std::string name;
    pid_t pid;
  };
  std::vector<One> processes;
  double cpu_s = 0;

  void add(const std::string& name, pid_t pid, double cpu) {
    processes.push_back({name.empty() ? "unknown" : name, pid});
    cpu_s += cpu;
  }
  bool one() const { return processes.size() == 1; }
  // "cl1 (pid 24963; 0.52 s of CPU time)", "3 processes (cl1 24963, mk 24970 and 25001; 0.52 s of CPU time)".
  std::string who() const {
    constexpr size_t kMostNames = 6;
    const std::string time = cpu_s >= 0.005 ? fmt::format("; {:.2f} s of CPU time", cpu_s) : std::string();
    if (one()) return fmt::format("{} (pid {}{})", processes[0].name, processes[0].pid, time);
    std::string names;
    for (size_t i = 0; i < std::min(processes.size(), kMostNames); ++i)
      names += fmt::format("{}{} {}", i == 0 ? "" : ", ", processes[i].name, processes[i].pid);
    if (processes.size() > kMostNames) names += fmt::format(" and {} more", processes.size() - kMostNames);
    return fmt::format("{} processes ({}{})", processes.size(), names, time);
  }
  std::string_view was() const { return one() ? "was" : "were"; }
  std::string_view is() const { return one() ? "is" : "are"; }
  std::string_view it() const { return one() ? "it" : "them"; }
};

class Finder {
 public:
  explicit Finder(const RunEvidence& evidence)
      : evidence_(evidence),
        by_perf_(evidence.recording.target.sampler == event::Sampler::kPerf),
        by_timer_(evidence.recording.target.sampler == event::Sampler::kTimer) {
    for (const ProcessFacts& facts : evidence.attached) attached_.emplace(static_cast<pid_t>(facts.pid), &facts);
  }

  Gaps find() {
    if (evidence_.inject) sort_processes();
    for (size_t gap = 1; gap < groups_.size(); ++gap)
      if (const Group& group = groups_[gap]; !group.processes.empty()) {
        found_.warnings.push_back(sentence(static_cast<Gap>(gap), group));
        found_.processes += static_cast<int64_t>(group.processes.size());
      }
    tell_untimed();
    tell_unseen();
    tell_survivors();
    tell_nothing();
    return std::move(found_);
  }

 private:
  // Whether the image of a process that attached is the one that the tree saw last, and not one from before an exec.
  static bool same_image(const TreeMember& member, const ProcessFacts& facts) {
    if (!member.other_time && facts.start != 0) {
      if (facts.start < member.exec_after) return false;
      if (member.exec_before != 0 && facts.start > member.exec_before) return true;
    }
    return member.file.empty() || member.file == facts.name;
  }
  const ProcessFacts* facts_of(const TreeMember& member) const {
    const ProcessFacts* last = nullptr;
    for (auto [at, end] = attached_.equal_range(member.own_pid); at != end; ++at)
      if (same_image(member, *at->second) && (last == nullptr || last->row < at->second->row)) last = at->second;
    return last;
  }

  // Enough CPU time that something may be missing: short tools of a script are not worth a word.
  bool matters(const TreeMember& member) const {
    if (member.device || (member.main && evidence_.attached.empty())) return true;
    if (by_perf_) return false;
    return member.cpu_s >= (by_timer_ ? 0.02 : 0.1);
  }

  Gap gap_of(const TreeMember& member) const {
    if (const ProcessFacts* const facts = facts_of(member); facts != nullptr) {
      if (!evidence_.preload || lacking().empty()) return Gap::kNone;
      // It loaded libtacho.so itself, for the markers of tacho.h, whatever its LD_PRELOAD names.
      if (member.dynamic == Fact::kNo) return by_timer_ ? Gap::kStaticInPart : Gap::kNone;
      return facts->preloaded ? Gap::kNone : Gap::kNoPreload;
    }
    if (member.other_tacho || member.looks == 0) return Gap::kNone;
    const bool unloaded = member.loaded != Fact::kYes;
    if (member.other_user || (member.pool == Fact::kUnknown && member.looks > 2)) return Gap::kOtherUser;
    if (member.secure == Fact::kYes && unloaded) return Gap::kSecure;
    if (member.pool == Fact::kNo && unloaded) return Gap::kCleared;
    if (!evidence_.preload) return Gap::kNone;
    if (member.dynamic == Fact::kNo && unloaded) return Gap::kStatic;
    if (member.preload == Fact::kNo && unloaded) return Gap::kNoPreload;
    if (unloaded) return member.loaded == Fact::kNo && member.looks > 2 ? Gap::kNotFound : Gap::kNone;
    const double period = 1.0 / static_cast<double>(std::max<uint64_t>(evidence_.recording.target.sample_hz, 1));
    const bool should_attach = by_timer_ && !member.forked && member.cpu_s >= std::max(0.1, 5 * period);
    if (member.descriptors_left == 0) return Gap::kDescriptors;
    return should_attach ? Gap::kNotAttached : Gap::kNone;
  }

  void sort_processes() {
    std::set<pid_t> told;
    // Of those that matter only together, if at all.
    std::vector<std::pair<Gap, const TreeMember*>> small;
    const auto tell = [&](Gap gap, const TreeMember& member) {
      group(gap).add(member.name, member.pid, member.cpu_s);
      told.insert(member.own_pid);
    };
    for (const TreeMember& member : evidence_.members) {
      const Gap gap = gap_of(member);
      if (gap == Gap::kNone) continue;
      if (matters(member) || facts_of(member) != nullptr) {
        tell(gap, member);
      } else if (by_timer_) {
        small.emplace_back(gap, &member);
        small_s_ += member.cpu_s;
      }
    }
    if (small_s_ >= std::max(0.5, 0.1 * evidence_.cpu_s)) {
      for (const auto& [gap, member] : small) tell(gap, *member);
      small_s_ = 0;
    } else {
      small_ = small.size();
    }
    // Processes that ended before a look at them, and said themselves how they are recorded.
    if (evidence_.preload && !lacking().empty())
      for (const ProcessFacts& facts : evidence_.attached)
        if (!facts.preloaded && told.insert(static_cast<pid_t>(facts.pid)).second)
          group(Gap::kNoPreload).add(facts.name, static_cast<pid_t>(facts.pid), 0);
    Group& others = group(Gap::kOtherUser);
    refused_beyond_ = evidence_.refused > others.processes.size()
                          ? evidence_.refused - static_cast<uint32_t>(others.processes.size())
                          : 0;
  }

  Group& group(Gap gap) { return groups_[static_cast<size_t>(gap)]; }

  // What only a preloaded libtacho.so sees.
  std::vector<std::string> lacking() const {
    std::vector<std::string> words;
    const uint64_t sources = evidence_.recording.sources;
    if (by_timer_ && (sources & tape::source_bit::kSample) != 0) words.emplace_back("call stacks");
    if ((sources & tape::source_bit::kMarker) != 0) words.emplace_back("ROCTx ranges");
    if ((sources & tape::source_bit::kApi) != 0) words.emplace_back("MPI calls");
    return words;
  }

  std::string nothing_of(const Group& group) const {
    return fmt::format("nothing of {}{} is in this trace", group.it(), by_perf_ ? " but call stacks" : "");
  }
  std::string_view or_perf() const { return by_timer_ ? ", or sample it from outside (--sampler perf)" : ""; }

  std::string sentence(Gap gap, const Group& group) const {
    const std::string who = group.who();
    switch (gap) {
      case Gap::kOtherUser:
        return fmt::format("{} ran as another user (setuid, su, sudo), who may not open the pool: {}; run tacho as "
                           "that user",
                           who, nothing_of(group));
      case Gap::kSecure:
        return fmt::format("{} {} setuid or {} capabilities, so that the loader ignores LD_PRELOAD: {}; run a copy "
                           "without these, as the user that it needs",
                           who, group.is(), group.one() ? "has" : "have", nothing_of(group));
      case Gap::kCleared:
        return fmt::format("{} ran with a cleared environment: {}; keep TACHO_POOL, LD_PRELOAD and all variables that "
                           "name libtacho.so{}",
                           who, nothing_of(group), or_perf());
      case Gap::kStatic:
        return fmt::format("{} {} statically linked, so that libtacho.so cannot be loaded: {}; link it dynamically{}",
                           who, group.is(), nothing_of(group), or_perf());
      case Gap::kStaticInPart:
        return fmt::format(
            "{} {} statically linked and loaded libtacho.so late: no {} of {} are in this trace; link it "
            "dynamically{}",
            who, group.is(), joined(lacking(), "or"), group.it(), or_perf());
      case Gap::kNoPreload:
        return fmt::format("{} ran without libtacho.so in LD_PRELOAD, which was replaced or unset: no {} of {} are in "
                           "this trace; add to LD_PRELOAD instead of setting it{}",
                           who, joined(lacking(), "or"), group.it(), or_perf());
      case Gap::kNotFound:
        return fmt::format("{} could not load libtacho.so, which {} mount namespace, root or architecture does not "
                           "have: {}; make its folder visible there{}",
                           who, group.one() ? "its" : "their", nothing_of(group), or_perf());
      case Gap::kDescriptors:
        return fmt::format("{} had no file descriptor left to open the pool: {}; raise the limit (ulimit -n)", who,
                           nothing_of(group));
      case Gap::kNotAttached:
        return fmt::format("{} loaded libtacho.so, which could not attach: {}; what it wrote to stderr says why", who,
                           nothing_of(group));
      case Gap::kNone:
      case Gap::kEnd:
        break;
    }
    return {};
  }

  void tell_untimed() {
    Group group;
    int64_t threads = 0;
    for (const ProcessFacts& facts : evidence_.attached)
      if (facts.untimed_threads > 0) {
        group.add(facts.name, static_cast<pid_t>(facts.pid), 0);
        threads += facts.untimed_threads;
      }
    if (threads == 0) return;
    found_.warnings.push_back(fmt::format(
        "{} thread{} of {} {} no call stacks, or only late ones: the user's limit of pending signals left no timer; raise "
        "it (ulimit -i){}",
        threads, threads == 1 ? "" : "s", group.who(), threads == 1 ? "has" : "have", or_perf()));
  }

  // CPU time of processes that ended between two looks, and that neither attached nor were seen.
  void tell_unseen() {
    if (refused_beyond_ != 0) {
      found_.warnings.push_back(fmt::format(
          "{} process{} of the program ran as another user (setuid, su, sudo), who may not open the pool: nothing of {} "
          "is in this trace; run tacho as that user",
          refused_beyond_, refused_beyond_ == 1 ? "" : "es", refused_beyond_ == 1 ? "it" : "them"));
      found_.processes += refused_beyond_;
    }
    // Only where every process should attach.
    if (!by_timer_ || !evidence_.inject || !evidence_.preload) return;
    std::set<pid_t> seen;
    for (const TreeMember& member : evidence_.members) seen.insert(member.own_pid);
    const auto unseen = static_cast<double>(
        std::count_if(attached_.begin(), attached_.end(), [&](const auto& one) { return !seen.contains(one.first); }));
    const double missing = evidence_.cpu_s - evidence_.cpu_seen_s;
    // The last look at a process may lag by a tick of the kernel. Those that were seen and recorded nothing, too short
    // to be told one by one, are of the kind that is looked for: their time counts, and their lag is missing as well.
    const double lag = 0.01 * static_cast<double>(seen.size() - std::min(small_, seen.size()));
    if (missing <= 0 || missing + small_s_ < 0.5 + 0.2 * evidence_.cpu_s + 0.1 * unseen + lag) return;
    found_.warnings.push_back(fmt::format(
        "{:.2f} s of {:.2f} s of CPU time went into processes that ended before tacho could look at them, and recorded "
        "nothing (cleared environment, other LD_PRELOAD, or static); --sampler perf samples them from outside",
        missing, evidence_.cpu_s));
    ++found_.processes;
  }

  void tell_survivors() {
    Group working, idle;
    for (const Survivor& survivor : evidence_.survivors) {
      const TreeMember& member = survivor.process;
      const ProcessFacts* const facts = facts_of(member);
      const bool worked = facts != nullptr && (facts->hooks > 0 || facts->attached != 0);
      (member.device || worked || survivor.busy ? working : idle).add(member.name, member.pid, 0);
    }
    if (!working.processes.empty()) {
      found_.warnings.push_back(fmt::format(
          "{} still run{} after the program, where this trace ends; --follow (tacho trace, tacho sys) waits for {}",
          working.who(), working.one() ? "s" : "", working.it()));
      found_.processes += static_cast<int64_t>(working.processes.size());
    }
    if (!idle.processes.empty())
      found_.remarks.push_back(fmt::format(
          "{} still run{} after the program, and used no GPU until its end; --follow (tacho trace, tacho sys) waits for {}",
          idle.who(), idle.one() ? "s" : "", idle.it()));
  }

  // Of a trace of no process at all: the reason, where no sentence has given it.
  void tell_nothing() {
    const bool nobody = evidence_.attached.empty();
    std::string problem;
    for (const vendor::Vendor* const vendor : vendor::vendors())
      if (problem.empty() && std::none_of(evidence_.attached.begin(), evidence_.attached.end(),
                                          [&](const auto& process) { return process.sees(vendor->api()); }))
        problem = vendor->program_problem(evidence_.executable);
    if (nobody && found_.processes > 0) return;
    const auto main =
        std::find_if(evidence_.members.begin(), evidence_.members.end(), [](const auto& one) { return one.main; });
    if (nobody && is_tacho(evidence_.executable))
      found_.warnings.emplace_back("the program is tacho itself, which traces the program that it starts: that trace "
                                   "has the events, and this one has none");
    else if (!problem.empty())
      found_.warnings.push_back(problem);
    else if (nobody && !by_perf_ && evidence_.inject && main != evidence_.members.end() && main->loaded == Fact::kYes)
      found_.warnings.emplace_back(
          "the program made no call of a GPU runtime and set no marker: none is in this trace (call stacks need a "
          "sampler: tacho sys sample, rocprof-sys-sample)");
    else if (nobody && !by_perf_ && evidence_.inject)
      found_.warnings.emplace_back(
          "no process attached: the program ended before it made a GPU API call or set a marker, is statically linked "
          "or setuid, clears its environment, or sees another /dev/shm (a container) "
          "(--sampler perf samples its call stacks from outside)");
  }

  const RunEvidence& evidence_;
  bool by_perf_, by_timer_;
  std::multimap<pid_t, const ProcessFacts*> attached_;
  std::array<Group, static_cast<size_t>(Gap::kEnd)> groups_;
  double small_s_ = 0;           // CPU time of processes that recorded nothing and are too small to be told
  size_t small_ = 0;             // how many
  uint32_t refused_beyond_ = 0;  // of RunEvidence::refused, those that no member explains
  Gaps found_;
};

}  // namespace

std::vector<std::string> device_marks() {
  std::vector<std::string> marks = {"/libOpenCL.so", "/libze_loader.so"};
  for (const vendor::Vendor* const vendor : vendor::vendors())
    for (const char* const mark : vendor->device_marks()) marks.emplace_back(mark);
  return marks;
}

void count_losses(tape::Pool& pool, trace::TraceWriter& writer, decode::Decoder& decoder) {
  tape::PoolHeader& header = pool.header();
  for (size_t i = 0; i <= event::kFactTables; ++i) {
    const uint64_t dropped = header.dropped[i].load(std::memory_order_relaxed);
    if (dropped != 0)
      writer.lose(0, i < event::kFactTables ? static_cast<Table>(i) : Table::kEnd, event::LossReason::kPoolFull,
                  static_cast<int64_t>(dropped));
  }
  uint64_t dropped[event::kFactTables];
  for (size_t i = 0; i < event::kFactTables; ++i) dropped[i] = header.dropped[i].load(std::memory_order_relaxed);
  decoder.count_in_flight(dropped);
}

std::vector<TreeMember> still_recorded(ProcessTree& tree, pid_t target) {
  tree.look(target);
  std::vector<TreeMember> running = tree.running();
  std::erase_if(running, [](const TreeMember& one) {
    return one.other_tacho || (one.pool != Fact::kYes && one.loaded != Fact::kYes && !one.device);
  });
  return running;
}

std::vector<Survivor> survivors(ProcessTree& tree, pid_t target) {
  constexpr int kLooks = 30;
  constexpr auto kPause = std::chrono::milliseconds(10);
  std::map<std::pair<pid_t, uint64_t>, double> before;
  std::vector<TreeMember> running;
  for (int look = 0; look <= kLooks; ++look) {
    running = still_recorded(tree, target);
    if (running.empty()) return {};
    // Ending takes CPU time as well: what counts is the later part.
    if (look == kLooks / 3)
      for (const TreeMember& one : running) before[{one.pid, one.start}] = one.cpu_s;
    if (look < kLooks) std::this_thread::sleep_for(kPause);
  }
  std::vector<Survivor> left;
  for (TreeMember& one : running) {
    const auto at = before.find({one.pid, one.start});
    const bool busy = at != before.end() && one.cpu_s > at->second;
    left.push_back({std::move(one), busy});
  }
  return left;
}

Gaps find_gaps(const RunEvidence& evidence) {
  return Finder(evidence).find();
}

}  // namespace tacho::launch
