// The spool: a folder in which a counting library inside a target leaves its data for tacho, which makes one for each
// execution of the program. It is for data that does not fit the pool: from libraries with their own C++ runtime, and
// counter data of a megabyte. This file has plain data only, since such libraries include it.
//
//   config              lines key=value, written by tacho: the filter and what the provider adds
//   state               one SpoolState, mapped by all processes of the target and by tacho
//   mpi                 empty; there when a process of the target has called MPI_Init (virtual GPU)
//   <process>.records   SpoolRecords (this file) or CounterRecords (event/spool/spool_ranges.h)
//   <process>.samples   SampleRecords (event/spool/spool_samples.h)
//   <process>.instances InstanceRecords (event/spool/spool_instances.h)
//   <process>.sampled   PC samples of AMD GPUs (vendor/amd/sdk_sampling.h)
//
// Records lie one after the other, each a multiple of 8 bytes, appended with a single write(), so that a killed target
// loses at most the dispatch it was in. All numbers are little-endian; tacho and the libraries are of one build, which
// SpoolState::layout proves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tacho::spool {

/// The environment variable that names the folder.
inline constexpr char kSpoolVariable[] = "TACHO_COUNTER_SPOOL";
inline constexpr char kMpiFile[] = "mpi";
inline constexpr uint32_t kSpoolMagic = 0x31735443;  // "CTs1"

/// Shared by the processes of a target and tacho. Written with relaxed atomics: the numbers are independent.
struct SpoolState {
  std::atomic<uint64_t> layout;           ///< kSpoolLayout of the tacho that made the spool
  std::atomic<uint64_t> dispatches;       ///< begun so far: the next one's 0-based index
  std::atomic<uint64_t> dispatches_done;  ///< measured and written
  std::atomic<uint64_t> groups_total;     ///< work-groups of the dispatch that runs
  std::atomic<uint64_t> groups_done;
  std::atomic<uint64_t> attached;            ///< processes in which the library was loaded
  std::atomic<uint64_t> failures;            ///< records that could not be written
  std::atomic<uint64_t> refused;             ///< processes in which nothing can be counted; they have said why
  std::atomic<uint64_t> failures_of_replay;  ///< batches of launches that could not be run again
};

/// A dispatch with its values.
//
//    0      4      8    12   16     24     32     40   48        72         96   104     112
//   +------+------+----+----+------+------+------+----+---------+----------+----+-------+-----------+
//   | magic| bytes| pid| tid| index| queue| start| end| grid[3] | group[3] | lds| groups| groups_run|
//   +------+------+----+----+------+------+------+----+---------+----------+----+-------+-----------+
//    120         124     128   136       144
//   +-----------+-------+-----+---------+--------------------------------------+-----------------+
//   | name_bytes| values| pass| selected| kernel name, filled up to a multiple | values x double |
//   +-----------+-------+-----+---------+--------------------------------------+-----------------+
struct SpoolRecord {
  uint32_t magic, bytes;  ///< of the whole record
  uint32_t pid, tid;
  uint64_t index;  ///< over all dispatches of all processes, from 0
  uint64_t queue;
  int64_t start, end;  ///< ns, CLOCK_MONOTONIC_RAW, of the interpretation or the measured call
  uint64_t grid[3], workgroup[3];
  uint64_t lds;  ///< bytes
  uint64_t groups, groups_run;
  uint32_t name_bytes, values;
  uint64_t pass;      ///< which group of counters was on
  uint64_t selected;  ///< 0: left out by the filter, without values
};
static_assert(sizeof(SpoolRecord) == 144 && offsetof(SpoolRecord, name_bytes) == 120);

}  // namespace tacho::spool
