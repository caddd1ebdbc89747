// States of a growing recording (live.h).
#include "view/live.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/files/temporary.h"
#include "base/format.h"
#include "base/thread.h"

namespace tacho::view {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kKept = 10 * kSecond;  // a state without requests
constexpr size_t kMostStates = 3;
constexpr int64_t kRest = 3;  // times as long as making a state took

int64_t rows_of(const trace::Trace& trace) {
  int64_t rows = 0;
  for (const event::TableInfo& info : event::all_tables())
    if (event::is_fact(info.table)) rows += trace.rows(info.table);
  return rows;
}

}  // namespace

LiveDocument::LiveDocument(std::string recording, std::string name)
    : recording_(std::move(recording)), name_(std::move(name)) {
  thread_ = thread_without_signals([this] { follow(); });
}

LiveDocument::~LiveDocument() {
  {
    const std::lock_guard held(lock_);
    end_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// The writer puts larger slabs over small ones, so we read from a copy. A slab that changed meanwhile fails its
// checksum, and the copy ends there.
Result<std::shared_ptr<const trace::Trace>> LiveDocument::copy() const {
  const int from = open(recording_.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return fail("{}: {}", recording_, strerror(errno));
  auto file = TemporaryFile::create();
  struct stat about {};
  bool whole = file && fstat(from, &about) == 0;
  for (off_t left = about.st_size; whole && left > 0;) {
    const ssize_t copied =
        sendfile(file->descriptor(), from, nullptr, static_cast<size_t>(std::min<off_t>(left, 1 << 30)));
    if (copied < 0 && errno == EINTR) continue;
    whole = copied >= 0;
    if (copied <= 0) break;  // shorter than it was
    left -= copied;
  }
  close(from);
  if (!file) return fail("{}", file.error().message);
  if (!whole) return fail("{}: cannot be copied to {}: {}", recording_, temporary_folder(), strerror(errno));
  return trace::Trace::open(fmt::format("/proc/self/fd/{}", file->descriptor()));
}

void LiveDocument::follow() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);  // of this thread, and of those that it starts
  int64_t rest = kSecond / 2;                                  // the first state soon
  std::unique_lock held(lock_);
  while (!end_) {
    changed_.wait_for(held, std::chrono::nanoseconds(rest), [this] { return end_; });
    if (end_) return;
    forget_old();
    rest = kSecond;
    if (states_.size() == kMostStates) continue;
    const int64_t rows = states_.empty() ? 0 : states_.back().rows;
    held.unlock();
    const int64_t began = read_clock(CLOCK_MONOTONIC);
    if (auto trace = copy(); trace && rows_of(**trace) > rows) show(std::move(*trace), true, nullptr);
    rest = std::max(rest, kRest * (read_clock(CLOCK_MONOTONIC) - began));
    held.lock();
  }
}

void LiveDocument::show(std::shared_ptr<const trace::Trace> trace, bool live, FindingsOf findings) {
  State next;
  next.rows = rows_of(*trace);
  next.document = std::make_shared<Document>();
  std::shared_ptr<Document> last;
  {
    const std::lock_guard held(lock_);
    if (!states_.empty()) last = states_.back().document;
    next.generation = ++generation_;
  }
  Growing growing;
  growing.generation = next.generation;
  growing.live = live;
  growing.naming = naming_;
  if (last != nullptr) growing.before = &last->runs().front()->names();
  Run& run = next.document->add(name_, std::move(trace), {}, std::move(findings), growing);
  naming_ = run.naming();
  static_cast<void>(run.index().wait());  // the page shows its sentence
  const std::lock_guard held(lock_);
  next.asked = read_clock(CLOCK_MONOTONIC);
  states_.push_back(std::move(next));
}

void LiveDocument::finished(std::shared_ptr<const trace::Trace> trace, FindingsOf findings) {
  {
    const std::lock_guard held(lock_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
  show(std::move(trace), false, std::move(findings));
}

void LiveDocument::forget_old() {
  const int64_t now = read_clock(CLOCK_MONOTONIC);
  for (size_t i = 0; i + 1 < states_.size();)
    if (now - states_[i].asked > kKept)
      states_.erase(states_.begin() + static_cast<ptrdiff_t>(i));
    else
      ++i;
}

std::shared_ptr<Document> LiveDocument::state(uint32_t generation) {
  const std::lock_guard held(lock_);
  for (State& each : states_)
    if (each.generation == generation || (generation == 0 && &each == &states_.back())) {
      each.asked = read_clock(CLOCK_MONOTONIC);
      return each.document;
    }
  return nullptr;
}

bool LiveDocument::computing() {
  const std::lock_guard held(lock_);
  return std::any_of(states_.begin(), states_.end(), [](const State& each) { return each.document->computing(); });
}

report::HttpResponse LiveDocument::answer(const report::HttpRequest& request) {
  report::HttpResponse response;
  if (request.path == "/") {
    response.type = "text/html";
    response.body = served_page();
    return response;
  }
  uint32_t generation = 0;
  const std::string_view asked = request.parameter("generation");
  if (!asked.empty() &&
      (std::from_chars(asked.data(), asked.data() + asked.size(), generation).ec != std::errc() || generation == 0))
    return report::http_error(400, fmt::format("generation={}: is not the number of a state", asked));
  if (request.path == "/api/document") {
    // A page that looks at an older state wants to keep it.
    if (generation != 0) static_cast<void>(state(generation));
    generation = 0;
  }
  if (const auto document = state(generation)) return document->answer(request);
  if (generation != 0) return report::http_error(409, "the recording went on: this state no longer exists");
  if (request.path == "/api/document") {
    response.body = R"({"version": "", "live": true, "runs": [], "views": [], "compare": {"aligned_on": null}})";
    return response;
  }
  return report::http_error(404, "nothing was recorded so far");
}

}  // namespace tacho::view
