// The column codec. Bytes of a column:
//
//   byte 0:  bit 7 zstd | bit 6 unknowns | bits 5..4 zero | bits 3..0 Encoding
//   zstd:      u32 bytes of what follows before compression, then one zstd frame of it
//   unknowns:  where rows hold kUnknown (their values below are meaningless)
//   body:      by Encoding
#include "trace/store/codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/multiversion.h"
#include "event/schema.h"
#include "trace/store/bitpack.h"

namespace tacho::trace {
namespace {

constexpr uint8_t kZstdFlag = 0x80;
constexpr uint8_t kUnknownFlag = 0x40;
constexpr uint8_t kEncodingMask = 0x0f;

constexpr size_t kBlock = 1024;          // values with a base and a width of their own
constexpr unsigned kPositionBits = 10;   // an exception's position within its block
constexpr size_t kBlockHeader = 5;       // width, high width, u16 exceptions, bytes of the base
constexpr size_t kSampledBlocks = 4;     // what the choice of an encoding is estimated from
constexpr size_t kMaxDictionary = 2048;  // distinct values
constexpr size_t kSlots = 8192;          // of the hash table that counts them
constexpr int kZstdLevel = 1;
constexpr size_t kZstdTrial = 32 * 1024;  // bytes that a trial of zstd looks at
constexpr uint32_t kMaxBackoff = 64;
constexpr size_t kPairsSeen = 4096;  // neighbours that are looked at before such a trial
constexpr size_t kPairSlots = 8192;
// What a column can take before zstd, for a reader's check: a body that exceeds it was not written by us.
constexpr size_t max_body(size_t count) {
  return count * 9 + 64 * 1024;
}

enum class UnknownForm : uint8_t { kPositions = 0, kBitmap = 1 };

unsigned bits_of(uint64_t value) {
  return static_cast<unsigned>(std::bit_width(value));
}

uint64_t zigzag(uint64_t value) {
  return (value << 1) ^ (uint64_t{0} - (value >> 63));
}
uint64_t unzigzag(uint64_t value) {
  return (value >> 1) ^ (uint64_t{0} - (value & 1));
}

template <typename T>
void put(std::vector<uint8_t>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

// How one block will be packed.
struct Plan {
  uint64_t base = 0;
  unsigned width = 0;  // bits per value
  unsigned high = 0;   // further bits of an exception
  size_t exceptions = 0;
  size_t bits = 0;  // cost without the header
};

// The cheapest width for `count` offsets from `base` of which none needs more than `full` bits: every value that needs
// more becomes an exception of position and high part.
TACHO_MULTIVERSION Plan plan_widths(const uint64_t* values, size_t count, uint64_t base, unsigned full) {
  uint32_t needs[2][65] = {};  // two, so that equal neighbours do not wait for one counter
  for (size_t i = 0; i < count; ++i) ++needs[i & 1][bits_of(values[i] - base)];
  Plan best;
  best.base = base;
  best.width = full;
  best.bits = count * full;
  size_t exceptions = 0;
  for (unsigned width = full; width-- > 0;) {
    exceptions += needs[0][width + 1] + needs[1][width + 1];
    const size_t bits = count * width + exceptions * (kPositionBits + full - width);
    if (bits < best.bits) best = Plan{base, width, full - width, exceptions, bits};
  }
  return best;
}

// Plans one block of at most kBlock values. The base is the smallest value, or, when a few values lie far below the
// rest (the jump back in time where the next track begins), the smallest of the rest.
TACHO_MULTIVERSION Plan plan_block(const uint64_t* values, size_t count) {
  constexpr size_t kGroups = kBlock / kPackGroup;
  int64_t lows[kGroups] = {};
  int64_t highs[kGroups] = {};
  const size_t groups = (count + kPackGroup - 1) / kPackGroup;
  for (size_t group = 0; group < groups; ++group) {
    const size_t begin = group * kPackGroup;
    const size_t end = std::min(count, begin + kPackGroup);
    int64_t low = static_cast<int64_t>(values[begin]);
    int64_t high = low;
    for (size_t i = begin + 1; i < end; ++i) {
      const auto value = static_cast<int64_t>(values[i]);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    lows[group] = low;
    highs[group] = high;
  }
  const auto low = static_cast<uint64_t>(*std::min_element(lows, lows + groups));
  const auto high = static_cast<uint64_t>(*std::max_element(highs, highs + groups));
  const unsigned full = bits_of(high - low);
  if (full == 0) return Plan{low, 0, 0, 0, 0};
  Plan best = plan_widths(values, count, low, full);
  if (groups >= 4) {
    std::sort(lows, lows + groups);
    std::sort(highs, highs + groups);
    size_t cut = 1;
    uint64_t gap = 0;
    for (size_t i = 1; i <= groups / 2; ++i) {
      const uint64_t step = static_cast<uint64_t>(lows[i]) - static_cast<uint64_t>(lows[i - 1]);
      if (step > gap) gap = step, cut = i;
    }
    const auto usual_low = static_cast<uint64_t>(lows[cut]);
    const auto usual_high = static_cast<uint64_t>(highs[groups * 3 / 4]);
    if (gap > usual_high - usual_low) {
      // Values below the base wrap around to 64-bit offsets: exceptions.
      const Plan other = plan_widths(values, count, usual_low, 64);
      if (other.bits < best.bits) best = other;
    }
  }
  return best;
}

// Whole bytes per value and no exceptions, so that zstd sees equal values as equal bytes.
TACHO_MULTIVERSION Plan align_plan(const uint64_t* values, size_t count) {
  int64_t low = static_cast<int64_t>(values[0]);
  int64_t high = low;
  for (size_t i = 1; i < count; ++i) {
    low = std::min(low, static_cast<int64_t>(values[i]));
    high = std::max(high, static_cast<int64_t>(values[i]));
  }
  const unsigned full = bits_of(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
  const unsigned width = (full + 7) / 8 * 8;
  return Plan{static_cast<uint64_t>(low), width, 0, 0, count * width};
}

TACHO_MULTIVERSION void write_block(const uint64_t* values, size_t count, const Plan& plan, std::vector<uint8_t>& out) {
  uint64_t positions[kBlock];
  uint64_t tops[kBlock];
  size_t exceptions = 0;
  unsigned high = 0;
  if (plan.exceptions > 0) {
    uint64_t all = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t top = (values[i] - plan.base) >> plan.width;
      positions[exceptions] = i;
      tops[exceptions] = top;
      all |= top;
      exceptions += top != 0;
    }
    high = bits_of(all);
  }
  const uint64_t base = zigzag(plan.base);
  const unsigned base_bytes = (bits_of(base) + 7) / 8;
  const size_t packed = packed_bytes(count, plan.width);
  const size_t position_bytes = packed_bytes(exceptions, kPositionBits);
  const size_t top_bytes = packed_bytes(exceptions, high);
  const size_t at = out.size();
  out.resize(at + kBlockHeader + base_bytes + packed + position_bytes + top_bytes);
  uint8_t* to = out.data() + at;
  to[0] = static_cast<uint8_t>(plan.width);
  to[1] = static_cast<uint8_t>(high);
  to[2] = static_cast<uint8_t>(exceptions);
  to[3] = static_cast<uint8_t>(exceptions >> 8);
  to[4] = static_cast<uint8_t>(base_bytes);
  to += kBlockHeader;
  std::memcpy(to, &base, base_bytes);
  to += base_bytes;
  pack_bits(values, plan.width, plan.base, to, count);
  to += packed;
  pack_bits(positions, kPositionBits, 0, to, exceptions);
  to += position_bytes;
  pack_bits(tops, high, 0, to, exceptions);
}

void write_blocks(const uint64_t* values, size_t count, bool aligned, std::vector<uint8_t>& out) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    const uint64_t* block = values + begin;
    write_block(block, size, aligned ? align_plan(block, size) : plan_block(block, size), out);
  }
}

}  // namespace

struct ColumnEncoder::Scratch {
  std::vector<uint64_t> clean;       // values with kUnknown replaced
  std::vector<uint64_t> stream;      // deltas or dictionary numbers
  std::vector<uint8_t> body;         // chosen body
  std::vector<uint8_t> other;        // body with whole bytes, for zstd
  std::vector<uint8_t> squeezed;     // zstd's output
  std::vector<uint64_t> slot_value;  // hash table of distinct values
  std::vector<uint16_t> slot_id;     // id + 1; 0 = free
  std::vector<uint16_t> slots_used;
  std::vector<uint64_t> pairs;     // hashes of neighbours
  std::vector<uint64_t> distinct;  // by id
  std::vector<uint32_t> counts;    // by id
  ZSTD_CCtx* zstd = nullptr;

  Scratch() : slot_value(kSlots), slot_id(kSlots) {}
  ~Scratch() { ZSTD_freeCCtx(zstd); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void forget_distinct() {
    for (const uint16_t slot : slots_used) slot_id[slot] = 0;
    slots_used.clear();
    distinct.clear();
    counts.clear();
  }

  // Number of `value` among the distinct ones; kMaxDictionary when there are too many.
  size_t number(uint64_t value) {
    size_t slot = (value * 0x9e3779b97f4a7c15ULL) >> 51;  // 13 bits
    while (slot_id[slot] != 0) {
      if (slot_value[slot] == value) return slot_id[slot] - 1u;
      slot = (slot + 1) % kSlots;
    }
    if (distinct.size() == kMaxDictionary) return kMaxDictionary;
    distinct.push_back(value);
    counts.push_back(0);
    slot_value[slot] = value;
    slot_id[slot] = static_cast<uint16_t>(distinct.size());
    slots_used.push_back(static_cast<uint16_t>(slot));
    return distinct.size() - 1;
  }

  // Numbers in order of falling frequency, so that the usual values get the small ones. False: too many.
  bool build_dictionary(std::span<const uint64_t> values) {
    forget_distinct();
    stream.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t id = number(values[i]);
      if (id == kMaxDictionary) return false;
      ++counts[id];
      stream[i] = id;
    }
    std::vector<uint16_t> order(distinct.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint16_t>(i);
    std::sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) {
      return counts[a] != counts[b] ? counts[a] > counts[b] : distinct[a] < distinct[b];
    });
    std::vector<uint64_t> rank(order.size());
    std::vector<uint64_t> sorted(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = i;
      sorted[i] = distinct[order[i]];
    }
    for (uint64_t& id : stream) id = rank[id];
    distinct.swap(sorted);
    return true;
  }

  // Cost in bits of the three block encodings, and of a dictionary, estimated from a few blocks.
  struct Estimate {
    size_t packed = 0, delta = 0, delta_delta = 0, dictionary = 0;
  };
  TACHO_MULTIVERSION Estimate estimate(std::span<const uint64_t> values) {
    Estimate sum;
    forget_distinct();
    bool few = true;
    size_t seen = 0;
    const size_t blocks = (values.size() + kBlock - 1) / kBlock;
    const size_t samples = std::min(blocks, kSampledBlocks);
    uint64_t delta[kBlock];
    uint64_t second[kBlock];
    for (size_t sample = 0; sample < samples; ++sample) {
      const size_t begin = sample * blocks / samples * kBlock;
      const size_t count = std::min(kBlock, values.size() - begin);
      const uint64_t* block = values.data() + begin;
      // As in the real streams, where the first difference and the first second difference are 0.
      delta[0] = begin > 0 ? block[0] - block[-1] : 0;
      for (size_t i = 1; i < count; ++i) delta[i] = block[i] - block[i - 1];
      second[0] = begin > 1 ? delta[0] - (block[-1] - block[-2]) : 0;
      for (size_t i = 1; i < count; ++i) second[i] = begin == 0 && i == 1 ? 0 : delta[i] - delta[i - 1];
      constexpr size_t kHeaderBits = kBlockHeader * 8;
      const auto cost = [&](const uint64_t* stream_values) {
        const Plan plan = plan_block(stream_values, count);
        return plan.bits + kHeaderBits + (bits_of(zigzag(plan.base)) + 7) / 8 * 8;
      };
      sum.packed += cost(block);
      sum.delta += cost(delta);
      sum.delta_delta += cost(second);
      for (size_t i = 0; few && i < count; ++i) few = number(block[i]) != kMaxDictionary;
      seen += count;
    }
    const auto scale = [&](size_t bits) {
      return static_cast<size_t>(static_cast<double>(bits) * static_cast<double>(values.size()) /
                                 static_cast<double>(seen));
    };
    sum = {scale(sum.packed), scale(sum.delta) + 64, scale(sum.delta_delta) + 128, SIZE_MAX};
    // Values of which most occur once in the sample will not repeat in the rest either.
    if (few && distinct.size() * 4 <= seen) {
      sum.dictionary = values.size() * bits_of(distinct.size() - 1) + distinct.size() * 64 + 512;
    }
    return sum;
  }

  // Makes `stream` the first or second differences of the values.
  TACHO_MULTIVERSION void make_deltas(std::span<const uint64_t> values, bool twice) {
    stream.resize(values.size());
    stream[0] = 0;
    for (size_t i = 1; i < values.size(); ++i) stream[i] = values[i] - values[i - 1];
    if (!twice || values.size() < 2) return;
    for (size_t i = values.size() - 1; i >= 2; --i) stream[i] -= stream[i - 1];
    stream[1] = 0;
  }

  void write_body(std::span<const uint64_t> values, Encoding encoding, bool aligned, std::vector<uint8_t>& to) {
    switch (encoding) {
      case Encoding::kConstant:
        put(to, values[0]);
        break;
      case Encoding::kPacked:
        write_blocks(values.data(), values.size(), aligned, to);
        break;
      case Encoding::kDelta:
      case Encoding::kDeltaDelta: {
        const bool twice = encoding == Encoding::kDeltaDelta;
        put(to, values[0]);
        if (twice) put(to, values.size() > 1 ? values[1] - values[0] : uint64_t{0});
        make_deltas(values, twice);
        write_blocks(stream.data(), stream.size(), aligned, to);
        break;
      }
      case Encoding::kDictionary:
        put(to, static_cast<uint16_t>(distinct.size()));
        write_blocks(distinct.data(), distinct.size(), aligned, to);
        write_blocks(stream.data(), stream.size(), aligned, to);
        break;
      case Encoding::kRaw:
      case Encoding::kEnd: {
        const size_t at = to.size();
        to.resize(at + values.size_bytes());
        std::memcpy(to.data() + at, values.data(), values.size_bytes());
        break;
      }
    }
  }

  // Does the column repeat itself, so that zstd may find what packing cannot? Judged by how many of the first pairs of
  // neighbours came before: in traces of training steps and of loops nearly all do, and zstd never paid where under a
  // quarter did, while its trial costs ten times this look.
  TACHO_MULTIVERSION bool repeats(std::span<const uint64_t> packed) {
    pairs.assign(kPairSlots, 0);
    const size_t looked = std::min(packed.size() - 1, kPairsSeen);
    size_t found = 0;
    for (size_t i = 0; i < looked; ++i) {
      const uint64_t pair = (packed[i] * 0x9e3779b97f4a7c15ULL ^ std::rotl(packed[i + 1] * 0xd6e8feb86659fd93ULL, 32)) *
                            0x9e3779b97f4a7c15ULL;
      uint64_t& slot = pairs[pair >> 51];  // 13 bits
      found += slot == pair;
      slot = pair;
    }
    return found * 4 >= looked;
  }

  // zstd's output of the first `bytes` bytes of `other` in `squeezed`; false when it failed.
  bool compress(size_t bytes) {
    if (zstd == nullptr) zstd = ZSTD_createCCtx();
    if (zstd == nullptr) return false;
    squeezed.resize(ZSTD_compressBound(bytes));
    const size_t size = ZSTD_compressCCtx(zstd, squeezed.data(), squeezed.size(), other.data(), bytes, kZstdLevel);
    if (ZSTD_isError(size)) return false;
    squeezed.resize(size);
    return true;
  }

  // Writes to `body` where the `unknowns` unknown values stand; the result has the value before each in its place.
  TACHO_MULTIVERSION std::span<const uint64_t> set_unknowns_aside(std::span<const uint64_t> values, size_t unknowns) {
    const size_t count = values.size();
    clean.resize(count);
    uint64_t last = 0;
    for (const uint64_t value : values) {
      if (value != static_cast<uint64_t>(event::kUnknown)) {
        last = value;
        break;
      }
    }
    const bool positions = unknowns * 16 < count;
    body.push_back(static_cast<uint8_t>(positions ? UnknownForm::kPositions : UnknownForm::kBitmap));
    put(body, static_cast<uint16_t>(unknowns - 1));
    const size_t at = body.size();
    body.resize(at + (positions ? unknowns * 2 : (count + 7) / 8));
    uint8_t* map = body.data() + at;
    for (size_t i = 0; i < count; ++i) {
      const bool unknown = values[i] == static_cast<uint64_t>(event::kUnknown);
      if (!unknown) {
        last = values[i];
      } else if (positions) {
        const auto position = static_cast<uint16_t>(i);
        std::memcpy(map, &position, 2);
        map += 2;
      } else {
        map[i / 8] = static_cast<uint8_t>(map[i / 8] | 1u << (i % 8));
      }
      clean[i] = last;
    }
    return clean;
  }

  // zstd finds what packing cannot: sequences that repeat, as the kernels of a training step do. True where that pays:
  // `squeezed` then holds `other`, which is `body` with blocks that zstd can read. The first `prefix` bytes stay.
  bool compress_body(std::span<const uint64_t> values, Encoding encoding, size_t prefix, ColumnMemory* memory) {
    bool worth = false;
    const bool differences = encoding == Encoding::kDelta || encoding == Encoding::kDeltaDelta;
    constexpr size_t kWorthTrying = 512;
    if (encoding != Encoding::kConstant && body.size() >= kWorthTrying && (memory == nullptr || memory->wait == 0) &&
        repeats(differences || encoding == Encoding::kDictionary ? stream : values)) {
      other.assign(body.begin(), body.begin() + static_cast<ptrdiff_t>(prefix));
      write_body(values, encoding, true, other);
      const auto pays = [&](size_t bytes) { return bytes + bytes / 16 < body.size(); };
      const size_t trial = std::min(other.size(), kZstdTrial);
      if (compress(trial)) {
        worth = pays(static_cast<size_t>(static_cast<double>(squeezed.size()) * static_cast<double>(other.size()) /
                                         static_cast<double>(trial)));
        if (worth && trial < other.size()) worth = compress(other.size()) && pays(squeezed.size());
      }
      if (memory != nullptr) {
        memory->backoff = worth ? 1 : std::min(memory->backoff * 2, kMaxBackoff);
        memory->wait = worth ? 0 : memory->backoff;
      }
    } else if (memory != nullptr && memory->wait > 0) {
      --memory->wait;
    }
    return worth;
  }
};

ColumnEncoder::ColumnEncoder() : scratch_(std::make_unique<Scratch>()) {}
ColumnEncoder::~ColumnEncoder() = default;

TACHO_MULTIVERSION void ColumnEncoder::encode(std::span<const int64_t> input, std::vector<uint8_t>& out,
                                              ColumnMemory* memory) {
  Scratch& s = *scratch_;
  const size_t count = input.size();
  std::span<const uint64_t> values(reinterpret_cast<const uint64_t*>(input.data()), count);

  size_t unknowns = 0;
  uint64_t differs = 0;
  for (const uint64_t value : values) {
    unknowns += value == static_cast<uint64_t>(event::kUnknown);
    differs |= value ^ values[0];
  }
  if (differs == 0) {
    out.push_back(static_cast<uint8_t>(Encoding::kConstant));
    put(out, values[0]);
    return;
  }

  uint8_t flags = 0;
  s.body.clear();
  if (unknowns > 0) {  // not all are: they differ
    flags = kUnknownFlag;
    values = s.set_unknowns_aside(values, unknowns);
    differs = 0;
    for (const uint64_t value : values) differs |= value ^ values[0];
  }
  const size_t prefix = s.body.size();

  Encoding encoding = Encoding::kConstant;
  if (differs != 0) {
    const Scratch::Estimate cost = s.estimate(values);
    encoding = Encoding::kPacked;
    size_t best = cost.packed;
    if (cost.delta < best) encoding = Encoding::kDelta, best = cost.delta;
    if (cost.delta_delta + cost.delta_delta / 32 < best) encoding = Encoding::kDeltaDelta, best = cost.delta_delta;
    if (cost.dictionary != SIZE_MAX && cost.dictionary + cost.dictionary / 16 < best && s.build_dictionary(values)) {
      encoding = Encoding::kDictionary;
    } else if (best >= count * 64) {
      encoding = Encoding::kRaw;
    }
  }
  s.write_body(values, encoding, false, s.body);
  if (s.body.size() - prefix > count * 8) {
    encoding = Encoding::kRaw;
    s.body.resize(prefix);
    s.write_body(values, encoding, false, s.body);
  }

  const bool zstd = s.compress_body(values, encoding, prefix, memory);
  out.push_back(static_cast<uint8_t>(static_cast<uint8_t>(encoding) | flags | (zstd ? kZstdFlag : 0)));
  if (zstd) put(out, static_cast<uint32_t>(s.other.size()));
  const std::vector<uint8_t>& body = zstd ? s.squeezed : s.body;
  out.insert(out.end(), body.begin(), body.end());
}

namespace {

// Bytes still to be read; every take() is checked.
struct Input {
  const uint8_t* at;
  const uint8_t* end;

  size_t left() const { return static_cast<size_t>(end - at); }
  // nullptr when fewer bytes are left.
  const uint8_t* take(size_t bytes) {
    if (bytes > left()) return nullptr;
    const uint8_t* start = at;
    at += bytes;
    return start;
  }
  template <typename T>
  bool get(T& value) {
    const uint8_t* from = take(sizeof value);
    if (from == nullptr) return false;
    std::memcpy(&value, from, sizeof value);
    return true;
  }
};

void widen(ColumnRange* range, int64_t low, int64_t high) {
  range->low = range->known ? std::min(range->low, low) : low;
  range->high = range->known ? std::max(range->high, high) : high;
  range->known = true;
}

// Values from `base` on that take so many bits; more bits than fit say nothing.
void widen_by_bits(ColumnRange* range, uint64_t base, unsigned bits) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  const auto low = static_cast<int64_t>(base);
  int64_t high = 0;
  if (bits > 62 || __builtin_add_overflow(low, (int64_t{1} << bits) - 1, &high)) return widen(range, kLeast, kMost);
  widen(range, low, high);
}

TACHO_MULTIVERSION bool read_block(Input& in, uint64_t* out, size_t count, ColumnRange* range = nullptr) {
  const uint8_t* header = in.take(kBlockHeader);
  if (header == nullptr) return false;
  const unsigned width = header[0];
  const unsigned high = header[1];
  const size_t exceptions = static_cast<size_t>(header[2]) | static_cast<size_t>(header[3]) << 8;
  const unsigned base_bytes = header[4];
  if (width > 64 || high > 64 - width || exceptions > count || base_bytes > 8) return false;
  uint64_t base = 0;
  const uint8_t* base_at = in.take(base_bytes);
  const uint8_t* packed = in.take(packed_bytes(count, width));
  const uint8_t* positions_at = in.take(packed_bytes(exceptions, kPositionBits));
  const uint8_t* tops_at = in.take(packed_bytes(exceptions, high));
  if (base_at == nullptr || packed == nullptr || positions_at == nullptr || tops_at == nullptr) return false;
  std::memcpy(&base, base_at, base_bytes);
  unpack_bits(packed, width, unzigzag(base), out, count);
  if (range != nullptr) widen_by_bits(range, unzigzag(base), exceptions > 0 ? width + high : width);
  if (exceptions == 0) return true;
  uint64_t positions[kBlock];
  uint64_t tops[kBlock];
  unpack_bits(positions_at, kPositionBits, 0, positions, exceptions);
  unpack_bits(tops_at, high, 0, tops, exceptions);
  uint64_t worst = 0;
  for (size_t i = 0; i < exceptions; ++i) worst = std::max(worst, positions[i]);
  if (worst >= count || width == 64) return false;
  for (size_t i = 0; i < exceptions; ++i) out[positions[i]] += tops[i] << width;
  return true;
}

bool read_blocks(Input& in, uint64_t* out, size_t count, ColumnRange* range = nullptr) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    if (!read_block(in, out + begin, std::min(kBlock, count - begin), range)) return false;
  }
  return true;
}

TACHO_MULTIVERSION bool read_deltas(Input& in, uint64_t* out, size_t count, bool twice) {
  uint64_t value = 0;
  uint64_t step = 0;
  if (!in.get(value) || (twice && !in.get(step))) return false;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    uint64_t* block = out + begin;
    if (!read_block(in, block, size)) return false;
    if (!twice) {
      for (size_t i = 0; i < size; ++i) block[i] = value += block[i];
      continue;
    }
    size_t i = 0;
    if (begin == 0) {  // row 0 is the value, row 1 one step further
      block[0] = value;
      i = 1;
    }
    for (; i < size; ++i) {
      step += block[i];
      block[i] = value += step;
    }
  }
  return true;
}

bool read_dictionary(Input& in, uint64_t* out, size_t count, ColumnRange* range) {
  uint16_t size = 0;
  if (!in.get(size) || size == 0 || size > kMaxDictionary) return false;
  uint64_t values[kMaxDictionary];
  if (!read_blocks(in, values, size) || !read_blocks(in, out, count)) return false;
  uint64_t worst = 0;
  for (size_t i = 0; i < count; ++i) worst = std::max(worst, out[i]);
  if (worst >= size) return false;
  for (size_t i = 0; i < count; ++i) out[i] = values[out[i]];
  for (size_t i = 0; range != nullptr && i < size; ++i)
    widen(range, static_cast<int64_t>(values[i]), static_cast<int64_t>(values[i]));
  return true;
}

bool read_body(Input& in, Encoding encoding, uint64_t* out, size_t count, ColumnRange* range) {
  switch (encoding) {
    case Encoding::kConstant: {
      uint64_t value = 0;
      if (!in.get(value)) return false;
      std::fill_n(out, count, value);
      if (range != nullptr) widen(range, static_cast<int64_t>(value), static_cast<int64_t>(value));
      return true;
    }
    case Encoding::kPacked:
      return read_blocks(in, out, count, range);
    case Encoding::kDelta:
    case Encoding::kDeltaDelta:
      return read_deltas(in, out, count, encoding == Encoding::kDeltaDelta);
    case Encoding::kDictionary:
      return read_dictionary(in, out, count, range);
    case Encoding::kRaw: {
      const uint8_t* from = in.take(count * 8);
      if (from == nullptr) return false;
      std::memcpy(out, from, count * 8);
      return true;
    }
    case Encoding::kEnd:
      break;
  }
  return false;
}

struct Decompressor {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<uint8_t> buffer;
  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { ZSTD_freeDCtx(context); }
};

}  // namespace

bool decode_column(std::span<const uint8_t> bytes, int64_t* out, size_t count, ColumnRange* range) {
  if (bytes.empty() || count == 0 || count > kMaxColumnValues) return false;
  const uint8_t first = bytes[0];
  Input in{bytes.data() + 1, bytes.data() + bytes.size()};
  if ((first & kZstdFlag) != 0) {
    thread_local Decompressor zstd;
    uint32_t size = 0;
    if (zstd.context == nullptr || !in.get(size) || size > max_body(count)) return false;
    zstd.buffer.resize(size);
    const size_t got = ZSTD_decompressDCtx(zstd.context, zstd.buffer.data(), size, in.at, in.left());
    if (ZSTD_isError(got) || got != size) return false;
    in = {zstd.buffer.data(), zstd.buffer.data() + size};
  }
  uint16_t unknowns_less_1 = 0;
  uint8_t form = 0;
  const uint8_t* map = nullptr;
  if ((first & kUnknownFlag) != 0) {
    if (!in.get(form) || form > static_cast<uint8_t>(UnknownForm::kBitmap) || !in.get(unknowns_less_1)) return false;
    const bool positions = form == static_cast<uint8_t>(UnknownForm::kPositions);
    map = in.take(positions ? (size_t{unknowns_less_1} + 1) * 2 : (count + 7) / 8);
    if (map == nullptr) return false;
  }
  auto* values = reinterpret_cast<uint64_t*>(out);
  if (range != nullptr) *range = {.unknowns = map != nullptr};
  if (!read_body(in, static_cast<Encoding>(first & kEncodingMask), values, count, range) || in.left() != 0)
    return false;
  if (map == nullptr) return true;
  if (form == static_cast<uint8_t>(UnknownForm::kBitmap)) {
    for (size_t i = 0; i < count; ++i) {
      if ((map[i / 8] >> (i % 8) & 1) != 0) out[i] = event::kUnknown;
    }
    return true;
  }
  for (size_t i = 0; i <= unknowns_less_1; ++i) {
    uint16_t position = 0;
    std::memcpy(&position, map + i * 2, 2);
    if (position >= count) return false;
    out[position] = event::kUnknown;
  }
  return true;
}

Encoding encoding_of(std::span<const uint8_t> bytes) {
  if (bytes.empty() || (bytes[0] & kEncodingMask) >= static_cast<uint8_t>(Encoding::kEnd)) return Encoding::kEnd;
  return static_cast<Encoding>(bytes[0] & kEncodingMask);
}
bool is_compressed(std::span<const uint8_t> bytes) {
  return !bytes.empty() && (bytes[0] & kZstdFlag) != 0;
}

}  // namespace tacho::trace
