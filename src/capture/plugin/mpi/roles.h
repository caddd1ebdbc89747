// The role of each MPI function and of its parameters, as far as tacho records them: the vocabulary of
// event/functions/functions_mpi.def.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::capture::mpi {

enum class Does : uint8_t {
  kPlain,          ///< only takes time
  kStartsMpi,      ///< MPI_Init
  kEndsMpi,        ///< MPI_Finalize
  kAborts,         ///< does not return
  kSends,          ///< a message, complete when it returns
  kReceives,       ///< likewise
  kExchanges,      ///< sends one and receives one
  kReplaces,       ///< likewise, with one buffer
  kProbes,         ///< finds a message, which another call receives by its handle
  kAsks,           ///< recorded only if it found something: programs call it in loops
  kStartsSend,     ///< a request completes it
  kStartsReceive,  ///< likewise
  kStartsCollective,
  kKeepsSend,  ///< a persistent request, which MPI_Start begins
  kKeepsReceive,
  kStarts,
  kStartsAll,
  kWaits,
  kWaitsAll,
  kWaitsAny,
  kWaitsSome,
  kTests,
  kTestsAll,
  kTestsAny,
  kTestsSome,
  kForgets,  ///< MPI_Request_free
  kCollective,
  kMakes,         ///< a communicator; collective on the one that it comes from
  kMakesLater,    ///< likewise; a request completes it
  kMakesApart,    ///< only the new one's ranks call it
  kMakesBetween,  ///< an intercommunicator
  kSpawns,        ///< likewise, with processes that it starts
  kFrees,
  kNames,
  kMakesWindow,  ///< of a communicator, for one-sided operations
  kFreesWindow,
  kPuts,  ///< one-sided: gives bytes to a rank
  kGets,
  kUpdates,  ///< both: the previous contents come back
  kReadsFile,
  kWritesFile,
  kStartsFileRead,  ///< a request completes it
  kStartsFileWrite,
};

/// How a collective's bytes follow from its parameters.
enum class Volume : uint8_t {
  kUnknown,
  kNothing,
  kBroadcast,
  kReduce,
  kAllReduce,
  kGather,
  kGatherV,
  kScatter,
  kScatterV,
  kAllGather,
  kAllGatherV,
  kAllToAll,
  kAllToAllV,
  kAllToAllW,
  kReduceScatter,
  kReduceScatterBlock,
};

inline constexpr int8_t kNone = -1;

/// Places of parameters, from 0.
struct Role {
  Does does = Does::kPlain;
  int8_t count = kNone, type = kNone, peer = kNone, tag = kNone, communicator = kNone;
  int8_t request = kNone;  ///< of MPI_Startall, MPI_Waitall ...: their number comes before
  int8_t status = kNone;
  int8_t flag = kNone;  ///< where the function says whether it found something
  int8_t made = kNone;  ///< the new communicator; of what MPI_Mprobe finds the message
  int8_t root = kNone;
  int8_t window = kNone;
  Volume volume = Volume::kUnknown;
  bool large = false;  ///< counts are 64 bit wide
};

namespace roles {

constexpr Role plain() {
  return {};
}
constexpr Role starts_mpi() {
  return {.does = Does::kStartsMpi};
}
constexpr Role ends_mpi() {
  return {.does = Does::kEndsMpi};
}
constexpr Role aborts() {
  return {.does = Does::kAborts};
}
constexpr Role sends(int8_t count, int8_t type, int8_t peer, int8_t tag, int8_t communicator) {
  return {.does = Does::kSends, .count = count, .type = type, .peer = peer, .tag = tag, .communicator = communicator};
}
constexpr Role receives(int8_t count, int8_t type, int8_t peer, int8_t tag, int8_t communicator, int8_t status) {
  Role role = sends(count, type, peer, tag, communicator);
  role.does = Does::kReceives;
  role.status = status;
  return role;
}
constexpr Role exchanges() {
  return {.does = Does::kExchanges, .communicator = 10, .status = 11};
}
constexpr Role replaces() {
  return {.does = Does::kReplaces, .communicator = 7, .status = 8};
}
constexpr Role probes(int8_t communicator, int8_t message, int8_t flag = kNone) {
  return {.does = Does::kProbes, .communicator = communicator, .flag = flag, .made = message};
}
constexpr Role receives_probed(int8_t message, int8_t status) {
  return {.does = Does::kReceives, .status = status, .made = message};
}
constexpr Role starts_probed(int8_t message, int8_t request) {
  return {.does = Does::kStartsReceive, .request = request, .made = message};
}
constexpr Role asks(int8_t flag) {
  return {.does = Does::kAsks, .flag = flag};
}
constexpr Role starts_send(int8_t count, int8_t type, int8_t peer, int8_t tag, int8_t communicator, int8_t request) {
  Role role = sends(count, type, peer, tag, communicator);
  role.does = Does::kStartsSend;
  role.request = request;
  return role;
}
constexpr Role starts_receive(int8_t count, int8_t type, int8_t peer, int8_t tag, int8_t communicator, int8_t request) {
  Role role = starts_send(count, type, peer, tag, communicator, request);
  role.does = Does::kStartsReceive;
  return role;
}
constexpr Role keeps_send(int8_t count, int8_t type, int8_t peer, int8_t tag, int8_t communicator, int8_t request) {
  Role role = starts_send(count, type, peer, tag, communicator, request);
  role.does = Does::kKeepsSend;
  return role;
}
constexpr Role keeps_receive(int8_t count, int8_t type, int8_t peer, int8_t tag, int8_t communicator, int8_t request) {
  Role role = starts_send(count, type, peer, tag, communicator, request);
  role.does = Does::kKeepsReceive;
  return role;
}
constexpr Role starts(int8_t request) {
  return {.does = Does::kStarts, .request = request};
}
constexpr Role starts_all(int8_t count, int8_t requests) {
  return {.does = Does::kStartsAll, .count = count, .request = requests};
}
constexpr Role waits(int8_t request, int8_t status) {
  return {.does = Does::kWaits, .request = request, .status = status};
}
constexpr Role waits_all() {
  return {.does = Does::kWaitsAll, .count = 0, .request = 1, .status = 2};
}
constexpr Role waits_any() {  // count, requests, index, status
  return {.does = Does::kWaitsAny, .count = 0, .request = 1, .status = 3};
}
constexpr Role waits_some() {  // count, requests, how many, indices, statuses
  return {.does = Does::kWaitsSome, .count = 0, .request = 1, .status = 4};
}
constexpr Role tests(int8_t request, int8_t flag, int8_t status) {
  return {.does = Does::kTests, .request = request, .status = status, .flag = flag};
}
constexpr Role tests_all() {  // count, requests, flag, statuses
  return {.does = Does::kTestsAll, .count = 0, .request = 1, .status = 3, .flag = 2};
}
constexpr Role tests_any() {  // count, requests, index, flag, status
  return {.does = Does::kTestsAny, .count = 0, .request = 1, .status = 4, .flag = 3};
}
constexpr Role tests_some() {  // as MPI_Waitsome: its number says whether it found something
  return {.does = Does::kTestsSome, .count = 0, .request = 1, .status = 4};
}
constexpr Role forgets(int8_t request) {
  return {.does = Does::kForgets, .request = request};
}
constexpr Role collective(Volume volume, int8_t communicator, int8_t root = kNone) {
  return {.does = Does::kCollective, .communicator = communicator, .root = root, .volume = volume};
}
constexpr Role starts_collective(Volume volume, int8_t communicator, int8_t root = kNone) {
  Role role = collective(volume, communicator, root);
  role.does = Does::kStartsCollective;
  role.request = static_cast<int8_t>(communicator + 1);
  return role;
}
constexpr Role makes(int8_t communicator, int8_t made) {
  return {.does = Does::kMakes, .communicator = communicator, .made = made, .volume = Volume::kNothing};
}
constexpr Role makes_later(int8_t communicator, int8_t made, int8_t request) {
  return {.does = Does::kMakesLater,
          .communicator = communicator,
          .request = request,
          .made = made,
          .volume = Volume::kNothing};
}
constexpr Role makes_apart(int8_t communicator, int8_t made) {
  return {.does = Does::kMakesApart, .communicator = communicator, .made = made};
}
constexpr Role makes_between(int8_t communicator, int8_t made) {
  return {.does = Does::kMakesBetween, .communicator = communicator, .made = made};
}
constexpr Role spawns(int8_t root, int8_t communicator, int8_t made) {
  return {.does = Does::kSpawns, .communicator = communicator, .made = made, .root = root};
}
constexpr Role frees(int8_t communicator) {
  return {.does = Does::kFrees, .communicator = communicator};
}
constexpr Role names(int8_t communicator, int8_t name) {
  return {.does = Does::kNames, .communicator = communicator, .made = name};
}
constexpr Role makes_window(int8_t communicator, int8_t window) {
  return {.does = Does::kMakesWindow, .communicator = communicator, .window = window};
}
constexpr Role frees_window() {
  return {.does = Does::kFreesWindow, .window = 0};
}
constexpr Role one_sided(Does does, int8_t count, int8_t type, int8_t peer, int8_t window) {
  return {.does = does, .count = count, .type = type, .peer = peer, .window = window};
}
constexpr Role puts(int8_t window) {
  return one_sided(Does::kPuts, 1, 2, 3, window);
}
constexpr Role gets() {
  return one_sided(Does::kGets, 1, 2, 3, 7);
}
constexpr Role updates(int8_t count, int8_t type, int8_t peer, int8_t window) {
  return one_sided(Does::kUpdates, count, type, peer, window);
}
constexpr Role reads_file(int8_t status) {  // which says how many bytes came
  return {.does = Does::kReadsFile, .status = status};
}
constexpr Role writes_file(int8_t status) {
  return {.does = Does::kWritesFile, .status = status};
}
constexpr Role starts_file_read(int8_t count) {
  return {.does = Does::kStartsFileRead,
          .count = count,
          .type = static_cast<int8_t>(count + 1),
          .request = static_cast<int8_t>(count + 2)};
}
constexpr Role starts_file_write(int8_t count) {
  Role role = starts_file_read(count);
  role.does = Does::kStartsFileWrite;
  return role;
}
constexpr Role large(Role role) {
  role.large = true;
  return role;
}

struct MpiFunction {
  const char* name;
  size_t parameters;
  Role role;
};
/// All of them, by the number in event/functions/functions_mpi.def; 0 is none.
inline constexpr MpiFunction kCalls[] = {
    {"", 0, {}},
#define TACHO_MPI(name, parameters, role) {#name, parameters, role},
#include "event/functions/functions_mpi.def"
};

}  // namespace roles

using roles::kCalls;
inline constexpr size_t kCallCount = sizeof kCalls / sizeof kCalls[0];

}  // namespace tacho::capture::mpi
