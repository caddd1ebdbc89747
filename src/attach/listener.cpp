// Asks a process that listens (listener.h). What its file holds is untrusted.
#include "attach/listener.h"

#include <string.h>
#include <time.h>

#include <algorithm>

#include "attach/listen_file.h"
#include "attach/remote_memory.h"
#include "base/clock.h"
#include "event/schema.h"
#include "tape/sleep.h"

namespace tacho::attach {
namespace {

using tape::AttachBlock;
using tape::AttachState;
using tape::ListenBlock;
using tape::ListenState;

template <size_t N>
bool copy_text(char (&into)[N], const std::string& text) {
  if (text.size() >= N) return false;
  memcpy(into, text.c_str(), text.size() + 1);
  return true;
}

}  // namespace

Result<EnterResult> ask(const TargetFacts& facts, int listener, const EnterRequest& request) {
  const auto file = ListenFile::open(facts.pid, listener);
  if (!file) return fail("process {} has ceased to listen", facts.pid);
  ListenBlock& listens = file->block();
  if (!file->lock()) return fail("process {}: another tacho is attaching to it", facts.pid);
  if (listens.state.load(std::memory_order_acquire) != static_cast<uint32_t>(ListenState::kFree))
    return fail("process {}: another tacho is attached to it", facts.pid);
  if (listens.version != tape::kAttachVersion)
    return fail("process {} listens with another version of tacho's library; start it anew", facts.pid);
  AttachBlock& block = listens.block;
  memset(static_cast<void*>(&block), 0, sizeof block);
  block.version = tape::kAttachVersion;
  block.descriptor = -1;
  block.schema_hash = event::schema_hash();
  if (!copy_text(block.pool, request.pool)) return fail("a path is too long: {}", request.pool);
  listens.state.store(static_cast<uint32_t>(ListenState::kAsked), std::memory_order_release);
  tape::wake_all(listens.state);
  EnterResult result;
  const int64_t begin = raw_now();
  for (;;) {
    const uint32_t state = block.state.load(std::memory_order_acquire);
    if (state == static_cast<uint32_t>(AttachState::kAttached) ||
        state == static_cast<uint32_t>(AttachState::kRefused)) {
      std::string why(sizeof block.message, '\0');
      memcpy(why.data(), block.message, why.size());
      block.state.store(static_cast<uint32_t>(AttachState::kSeen), std::memory_order_release);
      if (state == static_cast<uint32_t>(AttachState::kAttached)) return result;
      return fail("process {}: {}", facts.pid, one_line(why.c_str()));
    }
    if (has_ended(facts)) return fail("process {} ended while tacho was attaching", facts.pid);
    if (static_cast<double>(raw_now() - begin) * 1e-9 > request.patience_s) {
      uint32_t asked = static_cast<uint32_t>(ListenState::kAsked);
      listens.state.compare_exchange_strong(asked, static_cast<uint32_t>(ListenState::kFree));
      return fail("process {} listens but has not answered within {} s: it is stopped, or has no time", facts.pid,
                  request.patience_s);
    }
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
  }
}

}  // namespace tacho::attach
