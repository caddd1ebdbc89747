// Hardware counters of the imitated GPU (driver.h): reads the command buffers (PM4) with which AMD's aqlprofile
// selects, starts, stops and reads counters, and deals out values. Every instance of a block has a value of its own,
// computed from the dispatches that ran while counting was on. The ledger gets each value at the moment it is read:
//
//   PID count GPU QUEUE BLOCK EVENT XCC SE INSTANCE VALUE     SE and INSTANCE are -1 where a block has none
//
// Work of a unit, per dispatch:
//   SQ, SPI, TA, TD, TCP   waves of its shader engine: group g runs on die g % dies and there on engine g / dies % engines
//   TCC, TCA               lines of 128 bytes, four bytes per work-item, taken in turn by the channels of all dies
//   all others             2 cycles for each nanosecond that a dispatch of its size takes
// SQ's event 4 (waves launched) and GRBM's 0 and 2 (cycles; one more on each further die) are that; any other event e
// is work * (1 + e % 7) + e + the unit's number, so that no two of a kernel's values are alike. Events whose number
// ends in a hexadecimal f are beyond 32 bits.
#include <cstring>
#include <fstream>
#include <mutex>

#include "driver.h"

namespace kfd {
namespace {

namespace pm4 {
constexpr uint32_t kPredicate = 0x23, kIndirectBuffer = 0x3f, kCopyData = 0x40, kSetConfig = 0x79;
// Where COPY_DATA copies from and to.
constexpr uint32_t kRegister = 0, kPerfCounters = 4, kMemory = 5, kImmediate = 5;
}  // namespace pm4

// Registers by their number (GFX9), which is the offset from 0xa000.
constexpr uint32_t kRegisters = 0xa000, kConfigSpace = 0xc000;
constexpr uint32_t kGfxIndex = 0x2200, kPerfmonControl = 0x3808;

constexpr int kMostSlots = 16;
struct Block {
  const char* name;
  int slots;
  bool by_engine;  // has an instance in every shader engine
  uint32_t low[kMostSlots];
  int32_t high;  // relative to the low word
  uint32_t select[kMostSlots];
};
constexpr Block kBlocks[] = {
    {"SQ",
     16,
     true,
     {0x31c0, 0x31c2, 0x31c4, 0x31c6, 0x31c8, 0x31ca, 0x31cc, 0x31ce, 0x31d0, 0x31d2, 0x31d4, 0x31d6, 0x31d8, 0x31da,
      0x31dc, 0x31de},
     1,
     {0x39c0, 0x39c1, 0x39c2, 0x39c3, 0x39c4, 0x39c5, 0x39c6, 0x39c7, 0x39c8, 0x39c9, 0x39ca, 0x39cb, 0x39cc, 0x39cd,
      0x39ce, 0x39cf}},
    {"GRBM", 2, false, {0x3040, 0x3043}, 1, {0x3840, 0x3841}},
    {"CPG", 2, false, {0x3002, 0x3000}, 1, {0x3802, 0x3800}},
    {"CPC", 2, false, {0x3006, 0x3004}, 1, {0x3809, 0x3803}},
    {"CPF", 2, false, {0x300a, 0x3008}, 1, {0x3807, 0x3805}},
    {"SPI",
     6,
     true,
     {0x3181, 0x3183, 0x3185, 0x3187, 0x3189, 0x318b},
     -1,
     {0x3980, 0x3981, 0x3982, 0x3983, 0x3988, 0x3989}},
    {"GDS", 4, false, {0x3280, 0x3282, 0x3284, 0x3286}, 1, {0x3a80, 0x3a81, 0x3a82, 0x3a83}},
    {"TA", 2, true, {0x32c0, 0x32c2}, 1, {0x3ac0, 0x3ac2}},
    {"TD", 2, true, {0x3300, 0x3302}, 1, {0x3b00, 0x3b02}},
    {"TCP", 4, true, {0x3340, 0x3342, 0x3344, 0x3346}, 1, {0x3b40, 0x3b42, 0x3b44, 0x3b45}},
    {"TCC", 4, false, {0x3380, 0x3382, 0x3384, 0x3386}, 1, {0x3b80, 0x3b82, 0x3b84, 0x3b85}},
    {"TCA", 4, false, {0x3390, 0x3392, 0x3394, 0x3396}, 1, {0x3b90, 0x3b92, 0x3b94, 0x3b95}},
};
constexpr int kChannels = 16;  // of a die's L2

struct Counting {
  std::mutex mutex;
  uint32_t dies = 1, engines = 1;  // shader engines of a die
  uint32_t channels = kChannels;   // of a die's L2
  bool on = false;
  std::vector<Work> work;  // since counting was reset
  uint32_t gfx_index = 0;
  // (register << 8 | instance, or 0xff for all of them) -> the event
  std::map<uint32_t, uint32_t> selected;
};

// A fact of the GPU's node in the topology.
uint32_t fact(const Gpu& gpu, const char* wanted) {
  std::ifstream file("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(gpu.node) + "/properties");
  std::string key;
  for (uint64_t value = 0; file >> key >> value;)
    if (key == wanted) return static_cast<uint32_t>(value);
  return 0;
}

Counting& counting(uint32_t gpu) {
  static std::mutex mutex;
  static auto* const made = new std::map<uint32_t, Counting*>;
  const std::lock_guard lock(mutex);
  Counting*& one = (*made)[gpu];
  if (one == nullptr) {
    one = new Counting;
    const Gpu& device = gpus().at(gpu);
    one->dies = std::max(fact(device, "num_xcc"), 1u);
    one->engines =
        std::max(fact(device, "array_count") / std::max(fact(device, "simd_arrays_per_engine"), 1u) / one->dies, 1u);
    if (one->dies == 1) one->channels = 32;
  }
  return *one;
}

// How many of `all` things fall to `unit` when `units` take them in turn.
uint64_t share(uint64_t all, uint64_t units, uint64_t unit) {
  return all / units + (unit < all % units ? 1 : 0);
}

uint64_t value_of(const Counting& state, const Block& block, uint32_t event, uint32_t die, int engine, int instance) {
  const std::string name = block.name;
  const bool l2 = name == "TCC" || name == "TCA";
  uint64_t work = 0;
  for (const Work& each : state.work) {
    if (l2) {
      work += share((each.items + 31) / 32, uint64_t{state.dies} * state.channels,
                    die + uint64_t{state.dies} * static_cast<uint32_t>(std::max(instance, 0)));
    } else if (block.by_engine) {
      const uint64_t groups = share(each.groups, state.dies, die);
      work +=
          each.waves_per_group * (engine < 0 ? groups : share(groups, state.engines, static_cast<uint32_t>(engine)));
    } else {
      work += 2 * each.nanoseconds;
    }
  }
  if (name == "SQ" && event == 4) return work;
  if (name == "GRBM" && (event == 0 || event == 2)) return work + die;
  const uint64_t unit = (die * state.engines + static_cast<uint32_t>(std::max(engine, 0))) * 32 +
                        static_cast<uint32_t>(std::max(instance, 0));
  return work * (1 + event % 7) + event + unit + (event % 16 == 15 ? uint64_t{1} << 32 : 0);
}

struct Reader {
  Queue& queue;
  Counting& state;
  uint32_t die = 0;         // of the packets that follow, as a predicate says
  uint32_t predicated = 0;  // words that the predicate still covers

  // The fields of GRBM_GFX_INDEX; -1 = all.
  int instance() const { return (state.gfx_index >> 30 & 1) != 0 ? -1 : static_cast<int>(state.gfx_index & 0xff); }
  int engine() const { return (state.gfx_index >> 31) != 0 ? -1 : static_cast<int>(state.gfx_index >> 16 & 0xff); }

  void write(uint32_t number, uint32_t value) {
    if (number == kGfxIndex) {
      state.gfx_index = value;
    } else if (number == kPerfmonControl) {
      const uint32_t what = value & 0xf;
      if (what == 0) {
        state.work.clear();  // the selection stays
        state.on = false;
      } else {
        state.on = what == 1;  // also while values are read
      }
    } else {
      state.selected[number << 8 | static_cast<uint8_t>(instance())] = value;
    }
  }

  uint32_t read(uint32_t number) {
    for (const Block& block : kBlocks) {
      for (int slot = 0; slot < block.slots; ++slot) {
        const bool low = number == block.low[slot];
        if (!low && static_cast<int64_t>(number) != static_cast<int64_t>(block.low[slot]) + block.high) continue;
        const auto select = [&](uint8_t which) { return state.selected.find(block.select[slot] << 8 | which); };
        auto found = select(static_cast<uint8_t>(instance()));
        if (found == state.selected.end()) found = select(0xff);
        if (found == state.selected.end()) {
          log("unknown counter %s slot %d was never selected", block.name, slot);
          return 0;
        }
        const uint32_t event = found->second & (strcmp(block.name, "SQ") == 0 ? 0x1ffu : 0x3ffu);
        const int which_engine = block.by_engine ? engine() : -1;
        const uint64_t value = value_of(state, block, event, die, which_engine, instance());
        if (low)
          log("count %u %u %s %u %u %d %d %llu", queue.gpu, queue.id, block.name, event, die, which_engine, instance(),
              static_cast<unsigned long long>(value));
        return static_cast<uint32_t>(low ? value : value >> 32);
      }
    }
    log("unknown register %x was read", number);
    return 0;
  }

  void copy(const uint32_t* words) {
    const uint32_t from = words[1] & 0xf, to = words[1] >> 8 & 0xf;
    const uint64_t target = words[4] | static_cast<uint64_t>(words[5]) << 32;
    const bool wide = (words[1] >> 16 & 1) != 0;
    uint64_t value = 0;
    if (from == pm4::kImmediate) {
      value = words[2];
    } else if (from == pm4::kRegister || from == pm4::kPerfCounters) {
      value = read(words[2] - kRegisters);
    } else {
      log("unknown copy from %u", from);
    }
    if (to == pm4::kRegister || to == pm4::kPerfCounters) {
      write(static_cast<uint32_t>(target) - kRegisters, static_cast<uint32_t>(value));
    } else if (to != pm4::kMemory) {
      log("unknown copy to %u", to);
    } else if (wide) {
      __atomic_store_n(memory().host<uint64_t>(target), value, __ATOMIC_RELEASE);
    } else {
      __atomic_store_n(memory().host<uint32_t>(target), static_cast<uint32_t>(value), __ATOMIC_RELEASE);
    }
  }

  void run(uint64_t address, uint32_t count) {
    const auto* const words = memory().host<uint32_t>(address);
    for (uint32_t at = 0; at < count;) {
      const uint32_t header = words[at], kind = header >> 30;
      const uint32_t length = kind == 3 ? (header >> 16 & 0x3fff) + 2 : 1;
      if (at + length > count) return log("unknown command: %u words are left of %u", count - at, length);
      if (kind == 3) packet(words + at, header >> 8 & 0xff);
      at += length;
      if ((header >> 8 & 0xff) != pm4::kPredicate && predicated > 0) {
        predicated -= std::min(predicated, length);
        if (predicated == 0) die = 0;
      }
    }
  }

  void packet(const uint32_t* words, uint32_t operation) {
    switch (operation) {
      case pm4::kPredicate: {
        const uint32_t dies = words[1] >> 24;
        predicated = words[1] & 0x3fff;
        die = dies == 0 ? 0 : static_cast<uint32_t>(__builtin_ctz(dies));
        return;
      }
      case pm4::kSetConfig:
        return write(words[1] + kConfigSpace - kRegisters, words[2]);
      case pm4::kCopyData:
        return copy(words);
      case pm4::kIndirectBuffer:
        return run(words[1] | static_cast<uint64_t>(words[2] & 0xffff) << 32, words[3] & 0xfffff);
      default:  // waits, cache flushes, atomic locks: nothing to do
        return;
    }
  }
};

}  // namespace

void run_commands(Queue& queue, uint64_t address, uint32_t words) {
  Counting& state = counting(queue.gpu);
  const std::lock_guard lock(state.mutex);
  Reader{queue, state}.run(address, words);
}

void count(const Queue& queue, const Work& work) {
  Counting& state = counting(queue.gpu);
  const std::lock_guard lock(state.mutex);
  if (state.on) state.work.push_back(work);
}

}  // namespace kfd
