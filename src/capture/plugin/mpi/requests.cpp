// Requests (requests.h): a table without locks. A handle has eight places by its hash. Only the request's owner calls
// MPI with it, so two threads never take one entry at a time.
#include "capture/plugin/mpi/requests.h"

#include <sys/mman.h>

#include <atomic>

#include "capture/plugin/mpi/communicators.h"

namespace tacho::capture::mpi {
namespace {

constexpr size_t kBuckets = 1 << 14, kPlaces = 8;
constexpr Word kEmpty = 0, kFilling = 1;  // being filled in
struct Bucket {
  std::atomic<Word> handles[kPlaces];  // a cache line
  MpiRequest requests[kPlaces];
};

Bucket* buckets(bool make = true) {
  static constinit std::atomic<Bucket*> made{nullptr};
  Bucket* all = made.load(std::memory_order_acquire);
  if (__builtin_expect(all != nullptr, 1) || !make) return all;
  void* const memory = mmap(nullptr, kBuckets * sizeof(Bucket), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (made.compare_exchange_strong(all, static_cast<Bucket*>(memory), std::memory_order_acq_rel))
    return static_cast<Bucket*>(memory);
  munmap(memory, kBuckets * sizeof(Bucket));
  return all;
}

struct Place {
  Bucket* bucket = nullptr;
  size_t at = 0;
};

Bucket* bucket_of(Word handle) {
  Bucket* const all = buckets();
  return all == nullptr ? nullptr : &all[(handle * 0x9e3779b97f4a7c15ULL >> 40) % kBuckets];
}

Place place_of_request(Word handle) {
  if (handle == kEmpty || handle == g_mpi.no_request) return {};
  Bucket* const bucket = bucket_of(handle);
  if (bucket != nullptr)
    for (size_t i = 0; i < kPlaces; ++i)
      if (bucket->handles[i].load(std::memory_order_acquire) == handle) return {bucket, i};
  return {};
}

}  // namespace

void keep_request(Word handle, const MpiRequest& request) {
  if (handle == g_mpi.no_request) return;
  // The same handle once more: the one before was completed by a call that tacho does not see.
  if (const Place old = place_of_request(handle); old.bucket != nullptr) {
    old.bucket->requests[old.at] = request;
    return;
  }
  Bucket* const bucket = bucket_of(handle);
  if (bucket == nullptr) return;
  for (size_t i = 0; i < kPlaces; ++i) {
    Word expected = kEmpty;
    if (!bucket->handles[i].compare_exchange_strong(expected, kFilling, std::memory_order_acq_rel)) continue;
    bucket->requests[i] = request;
    bucket->handles[i].store(handle, std::memory_order_release);
    return;
  }
}

bool see_request(Word handle, MpiRequest& request) {
  const Place place = place_of_request(handle);
  if (place.bucket != nullptr) request = place.bucket->requests[place.at];
  return place.bucket != nullptr;
}

bool known_request(Word handle) {
  return place_of_request(handle).bucket != nullptr;
}

bool complete_request(Word handle, MpiRequest& request) {
  const Place place = place_of_request(handle);
  if (place.bucket == nullptr) return false;
  MpiRequest& kept = place.bucket->requests[place.at];
  request = kept;
  if (!request.persistent) {
    place.bucket->handles[place.at].store(kEmpty, std::memory_order_release);
    return true;
  }
  kept.active = false;
  return request.active;
}

bool start_request(Word handle, uint64_t begun, MpiRequest& request) {
  const Place place = place_of_request(handle);
  if (place.bucket == nullptr) return false;
  MpiRequest& kept = place.bucket->requests[place.at];
  kept.active = true;
  kept.begun = begun;
  request = kept;
  return true;
}

void forget_request(Word handle) {
  if (const Place place = place_of_request(handle); place.bucket != nullptr)
    place.bucket->handles[place.at].store(kEmpty, std::memory_order_release);
}

void forget_requests() {
  Bucket* const all = buckets(false);
  if (all == nullptr) return;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket)
    for (size_t i = 0; i < kPlaces; ++i) {
      const Word handle = all[bucket].handles[i].load(std::memory_order_acquire);
      if (handle == kEmpty || handle == kFilling) continue;
      const MpiRequest& kept = all[bucket].requests[i];
      if (kept.kind == MpiRequest::Kind::kWindow) release_communicator(reinterpret_cast<Communicator*>(kept.place));
      all[bucket].handles[i].store(kEmpty, std::memory_order_release);
    }
}

}  // namespace tacho::capture::mpi
