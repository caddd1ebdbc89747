// Bytes of collectives (volume.h).
#include "capture/plugin/mpi/volume.h"

namespace tacho::capture::mpi {
namespace {

uint64_t size_of(Word type) {
  int64_t bytes = 0;
  return g_mpi.type_size(g_mpi.handle(type), &bytes) == 0 && bytes >= 0 ? static_cast<uint64_t>(bytes) : kUnknownBytes;
}
uint64_t product(uint64_t count, uint64_t bytes) {
  uint64_t result = 0;
  return bytes == kUnknownBytes || __builtin_mul_overflow(count, bytes, &result) ? kUnknownBytes : result;
}
uint64_t number(Word word, bool large) {
  const int64_t count = large ? static_cast<int64_t>(word) : static_cast<int32_t>(word);
  return count > 0 ? static_cast<uint64_t>(count) : 0;
}
uint64_t element(Word array, int i, bool large) {
  return large ? number(reinterpret_cast<const Word*>(array)[i], true)
               : number(static_cast<Word>(reinterpret_cast<const int32_t*>(array)[i]), false);
}
uint64_t sum(Word array, int count, bool large) {
  uint64_t all = 0;
  for (int i = 0; i < count; ++i) all += element(array, i, large);
  return all;
}

}  // namespace

uint64_t bytes_of(Word count, Word type, bool large) {
  return product(number(count, large), size_of(type));
}

Bytes bytes_of_collective(const Role& role, const Word* given, const Communicator& communicator) {
  const bool large = role.large;
  const int ranks = communicator.peers;
  const auto times = static_cast<uint64_t>(ranks);
  const bool in_place = given[0] == g_mpi.in_place;
  const int root = role.root != kNone ? static_cast<int32_t>(given[role.root]) : 0;
  // Of an intercommunicator the roots are MPI_ROOT.
  const bool is_root = root == g_mpi.root || root == communicator.rank;
  if (role.root != kNone && root == g_mpi.proc_null) return {0, 0};
  const auto plain = [&](int count) { return bytes_of(given[count], given[count + 1], large); };
  switch (role.volume) {
    case Volume::kUnknown:
      return {};
    case Volume::kNothing:
      return {0, 0};
    case Volume::kBroadcast: {
      const uint64_t bytes = plain(1);
      return is_root ? Bytes{bytes, 0} : Bytes{0, bytes};
    }
    case Volume::kReduce: {
      const uint64_t bytes = plain(2);
      return {bytes, is_root ? bytes : 0};
    }
    case Volume::kAllReduce: {
      const uint64_t bytes = plain(2);
      return {bytes, bytes};
    }
    case Volume::kGather: {
      if (!is_root) return {plain(1), 0};
      const uint64_t each = plain(4);
      return {in_place ? each : plain(1), product(times, each)};
    }
    case Volume::kGatherV: {
      if (!is_root) return {plain(1), 0};
      const uint64_t size = size_of(given[6]);
      return {in_place ? product(element(given[4], communicator.rank, large), size) : plain(1),
              product(sum(given[4], ranks, large), size)};
    }
    case Volume::kScatter: {
      if (!is_root) return {0, plain(4)};
      const uint64_t each = plain(1);
      return {product(times, each), given[3] == g_mpi.in_place ? each : plain(4)};
    }
    case Volume::kScatterV: {
      if (!is_root) return {0, plain(5)};
      const uint64_t size = size_of(given[3]);
      return {product(sum(given[1], ranks, large), size),
              given[4] == g_mpi.in_place ? product(element(given[1], communicator.rank, large), size) : plain(5)};
    }
    case Volume::kAllGather: {
      const uint64_t each = plain(4);
      return {in_place ? each : plain(1), product(times, each)};
    }
    case Volume::kAllGatherV: {
      const uint64_t size = size_of(given[6]);
      return {in_place ? product(element(given[4], communicator.rank, large), size) : plain(1),
              product(sum(given[4], ranks, large), size)};
    }
    case Volume::kAllToAll: {
      const uint64_t each = plain(4);
      return {product(times, in_place ? each : plain(1)), product(times, each)};
    }
    case Volume::kAllToAllV: {
      const uint64_t received = product(sum(given[5], ranks, large), size_of(given[7]));
      return {in_place ? received : product(sum(given[1], ranks, large), size_of(given[3])), received};
    }
    case Volume::kAllToAllW: {
      const auto all = [&](Word counts, Word types) {
        uint64_t bytes = 0;
        for (int i = 0; i < ranks; ++i) {
          const uint64_t count = element(counts, i, large);
          if (count != 0)
            bytes += product(count, size_of(g_mpi.read_handle(g_mpi.element(types, static_cast<size_t>(i)))));
        }
        return bytes;
      };
      const uint64_t received = all(given[5], given[7]);
      return {in_place ? received : all(given[1], given[3]), received};
    }
    case Volume::kReduceScatter: {
      const uint64_t size = size_of(given[3]);
      return {product(sum(given[2], ranks, large), size), product(element(given[2], communicator.rank, large), size)};
    }
    case Volume::kReduceScatterBlock: {
      const uint64_t each = plain(2);
      return {product(times, each), each};
    }
  }
  return {};
}

}  // namespace tacho::capture::mpi
