// The thread and its answers (jobs.h).
#include "view/jobs.h"

#include <algorithm>

#include "base/thread.h"

namespace tacho::view {

namespace {
constexpr size_t kMostKnown = 12;
constexpr size_t kMostKnownBytes = size_t{48} << 20;
constexpr size_t kMostWaiting = 4;
constexpr std::chrono::seconds kGivenUpAfter{5};
}  // namespace

Jobs::~Jobs() {
  {
    const std::lock_guard held(lock_);
    end_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Jobs::busy() {
  const std::lock_guard held(lock_);
  return !now_.empty();
}

double Jobs::done(const std::string& key) {
  const std::lock_guard held(lock_);
  return now_ == key ? done_ : 0;
}

Jobs::Answer Jobs::find(const std::string& key) {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& each) { return each.key == key; });
  if (found == known_.end()) return nullptr;
  known_.splice(known_.begin(), known_, found);
  return found->answer;
}

Jobs::Answer Jobs::ask(const std::string& key, const Work& work, int patience_ms) {
  std::unique_lock held(lock_);
  if (Answer answer = find(key)) return answer;
  if (now_ == key) {
    asked_ = std::chrono::steady_clock::now();
  } else {
    std::erase_if(waiting_, [&](const Waiting& each) { return each.key == key; });
    waiting_.push_front({key, work});
    if (waiting_.size() > kMostWaiting) waiting_.pop_back();
    if (!thread_.joinable()) thread_ = thread_without_signals([this] { run(); });
    changed_.notify_all();
  }
  Answer answer;
  changed_.wait_for(held, std::chrono::milliseconds(patience_ms),
                    [&] { return end_ || (answer = find(key)) != nullptr; });
  return answer;
}

void Jobs::run() {
  std::unique_lock held(lock_);
  for (;;) {
    changed_.wait(held, [&] { return end_ || !waiting_.empty(); });
    if (end_) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    now_ = next.key;
    done_ = 0;
    asked_ = std::chrono::steady_clock::now();
    held.unlock();
    bool left = false;
    auto answer = std::make_shared<const Result<std::string>>(next.work([this, &left](double done) {
      const std::lock_guard asking(lock_);
      done_ = done;
      return left = end_ || std::chrono::steady_clock::now() - asked_ > kGivenUpAfter;
    }));
    held.lock();
    now_.clear();
    if (left && !*answer) continue;
    known_.push_front({next.key, std::move(answer)});
    size_t bytes = 0, count = 0;
    for (auto at = known_.begin(); at != known_.end();) {
      bytes += *at->answer ? (*at->answer)->size() : 0;
      // The newest stays, whatever its size: somebody waits for it.
      at = ++count > 1 && (count > kMostKnown || bytes > kMostKnownBytes) ? known_.erase(at) : std::next(at);
    }
    changed_.notify_all();
  }
}

}  // namespace tacho::view
