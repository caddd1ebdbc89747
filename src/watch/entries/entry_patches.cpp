// Patches of entry functions (entry_patches.h). What the process says of itself is untrusted: tacho writes only what it
// may read before, and only into that process.
#include "watch/entries/entry_patches.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "event/watch_patches.h"
#include "watch/entries/relocate.h"
#include "watch/entries/stopped_process.h"

namespace tacho::watch {

using event::WatchPatches, event::WatchPatchState, event::WatchPatchStage;

namespace {

// WatchPatch as it is read and written from outside.
struct PatchCopy {
  WatchPatchState state;
  uint32_t at;
  std::array<uint8_t, 8> own;
  uint64_t function, hook, next, room;
  std::array<char, 64> name;
};
static_assert(sizeof(PatchCopy) == sizeof(event::WatchPatch) &&
              offsetof(PatchCopy, room) == offsetof(event::WatchPatch, room));

bool is_within(uint64_t address, uint64_t begin, uint64_t end) {
  return address > begin && address < end;
}

}  // namespace

struct EntryPatches::Prepared {
  uint32_t index = 0;
  PatchCopy patch = {};
  std::vector<uint8_t> jump;
  uint64_t at() const { return patch.function + patch.at; }
};

Result<EntryPatches> EntryPatches::open(pid_t pid, uint64_t block) {
  TACHO_ASSIGN(attach::RemoteMemory memory, attach::RemoteMemory::open(pid));
  const auto magic = memory.value<uint64_t>(block + offsetof(WatchPatches, magic));
  const auto size = memory.value<uint32_t>(block + offsetof(WatchPatches, size));
  if (magic != event::kWatchPatchMagic || size != sizeof(WatchPatches))
    return fail("process {} has no list of functions to patch: another version of tacho's library is in it", pid);
  return EntryPatches(pid, block, std::move(memory));
}

uint64_t EntryPatches::place_of(uint32_t index) const {
  return block_ + offsetof(WatchPatches, each) + uint64_t{index} * sizeof(event::WatchPatch);
}

// Reads the function, and writes its copy and the way to the hook, where nothing runs yet.
Result<EntryPatches::Prepared> EntryPatches::prepare(uint32_t index) const {
  const auto patch = memory_.value<PatchCopy>(place_of(index));
  if (!patch) return fail("its entry in tacho's list cannot be read");
  Prepared result;
  result.index = index;
  result.patch = *patch;
  // Up to the end of what is mapped there.
  std::vector<uint8_t> code(1024);
  while (!code.empty() && !memory_.read(patch->function, code.data(), code.size())) code.resize(code.size() / 2);
  TACHO_ASSIGN(MovedHead head, move_head(code, patch->function, patch->room));
  if (head.code.size() > event::kWatchPatchStub) return fail("its first instructions are too long");
  const uint64_t stub = patch->room + event::kWatchPatchStub;
  result.patch.at = static_cast<uint32_t>(head.at);
  std::copy_n(code.begin() + static_cast<ptrdiff_t>(head.at), kJumpBytes, result.patch.own.begin());
  TACHO_ASSIGN(result.jump, jump(result.at(), stub));
  const std::vector<uint8_t> way = far_jump(patch->hook);
  if (!memory_.write(patch->room, head.code.data(), head.code.size()) || !memory_.write(stub, way.data(), way.size()))
    return fail("the room for its copy cannot be written");
  return result;
}

void EntryPatches::refuse(uint32_t index, const std::string& why) {
  const auto patch = memory_.value<PatchCopy>(place_of(index));
  std::string name = patch ? std::string(patch->name.data(), strnlen(patch->name.data(), patch->name.size())) : "?";
  refused_.push_back(fmt::format("{}: {}", name, why));
  put(place_of(index) + offsetof(event::WatchPatch, state), WatchPatchState::kRefused);
}

Status EntryPatches::write_all(const std::vector<Prepared>& prepared) {
  constexpr int kTries = 200;
  constexpr uint64_t kStack = 64 * 1024;
  const auto in_head = [&](uint64_t address) {
    return std::any_of(prepared.begin(), prepared.end(),
                       [&](const Prepared& each) { return is_within(address, each.at(), each.at() + kJumpBytes); });
  };
  // A thread that is inside of what is changed, or returns there, even from a signal's handler.
  std::vector<uint64_t> words(kStack / sizeof(uint64_t));
  const auto is_busy = [&](const StoppedProcess::Place& place) {
    if (in_head(place.instruction)) return true;
    size_t count = words.size();
    const uint64_t from = place.stack & ~uint64_t{7};
    while (count > 0 && !memory_.read(from, words.data(), count * sizeof(uint64_t))) count /= 2;
    return std::any_of(words.begin(), words.begin() + static_cast<ptrdiff_t>(count), in_head);
  };
  for (int tries = 0; tries < kTries; ++tries) {
    const int64_t begin = raw_now();
    {
      TACHO_ASSIGN(const StoppedProcess stopped, StoppedProcess::stop(pid_));
      if (std::none_of(stopped.places().begin(), stopped.places().end(), is_busy)) {
        for (const Prepared& each : prepared) {
          PatchCopy patch = each.patch;
          patch.state = WatchPatchState::kPatched;
          // First what the hook calls and how to take it back, then the way to the hook.
          if (!put(place_of(each.index), patch) || !put(patch.next, patch.room) ||
              !memory_.write(each.at(), each.jump.data(), each.jump.size()))
            return fail("the code of process {} cannot be written: {}", pid_, strerror(errno));
          ++patched_;
        }
        stopped_s_ = std::max(stopped_s_, static_cast<double>(raw_now() - begin) * 1e-9);
        return {};
      }
    }
    const timespec moment{0, 2'000'000};
    nanosleep(&moment, nullptr);
  }
  for (const Prepared& each : prepared) refuse(each.index, "a thread is always in its first instructions");
  return {};
}

Status EntryPatches::serve() {
  release_late();
  const auto asked = memory_.value<uint32_t>(block_ + offsetof(WatchPatches, asked));
  const auto answered = memory_.value<uint32_t>(block_ + offsetof(WatchPatches, answered));
  if (!asked || !answered || *asked == *answered) return {};
  std::vector<Prepared> prepared;
  for (uint32_t index = 0; index < event::kMostWatchPatches; ++index) {
    const auto state = memory_.value<WatchPatchState>(place_of(index) + offsetof(event::WatchPatch, state));
    if (!state || *state != WatchPatchState::kWanted) continue;
    auto one = prepare(index);
    if (one)
      prepared.push_back(std::move(*one));
    else
      refuse(index, one.error().message);
  }
  if (!prepared.empty()) TACHO_TRY(write_all(prepared));
  if (!put(block_ + offsetof(WatchPatches, answered), *asked)) return fail("process {} cannot be written", pid_);
  return {};
}

bool EntryPatches::is_settled() const {
  const auto asked = memory_.value<uint32_t>(block_ + offsetof(WatchPatches, asked));
  const auto seen = memory_.value<uint32_t>(block_ + offsetof(WatchPatches, seen));
  return !asked || asked == seen;
}

bool EntryPatches::leaves() const {
  return memory_.value<WatchPatchStage>(block_ + offsetof(WatchPatches, stage)) == WatchPatchStage::kLeaving;
}

Status EntryPatches::take_out() {
  std::vector<std::pair<uint32_t, PatchCopy>> there;
  for (uint32_t index = 0; index < event::kMostWatchPatches; ++index)
    if (const auto patch = memory_.value<PatchCopy>(place_of(index));
        patch && patch->state == WatchPatchState::kPatched)
      there.emplace_back(index, *patch);
  Status result;
  if (!there.empty()) {
    const int64_t begin = raw_now();
    // A jump is one instruction: no thread is inside of it.
    TACHO_ASSIGN(const StoppedProcess stopped, StoppedProcess::stop(pid_));
    for (auto& [index, patch] : there) {
      const uint64_t at = patch.function + patch.at;
      const auto ours = jump(at, patch.room + event::kWatchPatchStub);
      const auto now = memory_.value<std::array<uint8_t, kJumpBytes>>(at);
      // Else another library is there since.
      if (ours && now && std::equal(now->begin(), now->end(), ours->begin()) &&
          !memory_.write(at, patch.own.data(), kJumpBytes))
        result = fail("the code of process {} cannot be written: {}", pid_, strerror(errno));
      put(patch.next, patch.function);
      put(place_of(index) + offsetof(event::WatchPatch, state), WatchPatchState::kTakenOut);
    }
    stopped_s_ = std::max(stopped_s_, static_cast<double>(raw_now() - begin) * 1e-9);
  }
  put(block_ + offsetof(WatchPatches, stage), WatchPatchStage::kOut);
  return result;
}

}  // namespace tacho::watch
