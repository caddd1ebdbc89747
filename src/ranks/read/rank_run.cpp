// Names and files that the passes over all ranks share (rank_run.h).
#include "ranks/read/rank_run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tacho::ranks {

uint64_t Names::number(std::string_view text) {
  const uint64_t number = std::max<uint64_t>(std::hash<std::string_view>{}(text), 1);
  const std::lock_guard lock(mutex_);
  texts_.try_emplace(number, text);
  return number;
}

std::string Names::text(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = texts_.find(number);
  return found == texts_.end() ? std::string() : found->second;
}

uint32_t Names::communicator(const StatedCollective& stated) {
  std::string key(stated.group);
  key += '\n';
  key += stated.members;
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = keys_.try_emplace(std::move(key), static_cast<uint32_t>(communicators_.size()));
  if (fresh)
    communicators_.push_back(
        {std::string(stated.group), std::string(stated.description), std::string(stated.members), stated.group_size});
  return found->second;
}

Names::Communicator Names::communicator(uint32_t number) const {
  const std::lock_guard lock(mutex_);
  return number < communicators_.size() ? communicators_[number] : Communicator{};
}

uint32_t Names::unnamed_communicator() const {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find("\n");
  return found != keys_.end() ? found->second : UINT32_MAX;
}

uint32_t Names::communicators() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(communicators_.size());
}

uint32_t Names::communicator(const std::string& identity, const Communicator& about) {
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = keys_.try_emplace("mpi\n" + identity, static_cast<uint32_t>(communicators_.size()));
  if (fresh)
    communicators_.push_back(about);
  else if (communicators_[found->second].name.empty())
    communicators_[found->second].name = about.name;
  return found->second;
}

uint32_t Names::new_communicator(const Communicator& about) {
  const std::lock_guard lock(mutex_);
  communicators_.push_back(about);
  return static_cast<uint32_t>(communicators_.size() - 1);
}

Result<SpoolFile> SpoolFile::create() {
  SpoolFile spool;
  TACHO_ASSIGN(spool.file_, TemporaryFile::create());
  return spool;
}

Result<size_t> SpoolFile::append(const void* from, size_t size) {
  const std::lock_guard lock(*mutex_);
  const size_t at = size_;
  const auto* bytes = static_cast<const char*>(from);
  size_t left = size;
  auto offset = static_cast<off_t>(at);
  while (left > 0) {
    const ssize_t done = pwrite(file_.descriptor(), bytes, left, offset);
    if (done <= 0) return fail("{}: no room for temporary data; set TMPDIR to a folder with more", temporary_folder());
    bytes += done;
    offset += done;
    left -= static_cast<size_t>(done);
  }
  size_ += size;
  return at;
}

Status SpoolFile::read(size_t at, size_t size, void* to) const {
  auto* bytes = static_cast<char*>(to);
  auto offset = static_cast<off_t>(at);
  while (size > 0) {
    const ssize_t done = pread(file_.descriptor(), bytes, size, offset);
    if (done <= 0) return fail("{}: temporary data cannot be read back", temporary_folder());
    bytes += done;
    offset += done;
    size -= static_cast<size_t>(done);
  }
  return {};
}

Result<Spools> Spools::create() {
  Spools spools;
  TACHO_ASSIGN(spools.arrivals, Spool<Arrival>::create());
  TACHO_ASSIGN(spools.messages, Spool<MessageEvent>::create());
  TACHO_ASSIGN(spools.steps, Spool<Times>::create());
  return spools;
}

Result<std::vector<Times>> steps_of(const RankRun& run, const Spools& spools) {
  std::vector<Times> steps(run.steps);
  TACHO_TRY(spools.steps.read(run.steps_at, run.steps, steps.data()));
  return steps;
}

}  // namespace tacho::ranks
