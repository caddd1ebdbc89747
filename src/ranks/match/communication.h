// What tacho knows about collective operations: their names in NCCL, RCCL and torch.distributed, sizes of data types,
// and the definitions of bandwidth (docs/ranks.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::ranks {

enum class Operation : uint8_t {
  kUnknown,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kBarrier,
  kSendReceive,
};

/// "all_reduce", "all_gather" ...: how tacho writes it; "collective" for kUnknown.
std::string_view operation_name(Operation operation);
/// From torch.distributed's names ("allreduce", "_allgather_base", "reduce_scatter_tensor_coalesced", "all_to_allv").
/// Case, underscores and spaces do not matter.
Operation operation_of(std::string_view name);

/// The operation in the name of such a kernel (vendor/collective_kernels.h); kUnknown for kernels that carry out any
/// operation ("ncclDevKernel_Generic").
Operation operation_of_kernel(std::string_view kernel);

/// Bytes of an element: "Float", "BFloat16", "f32", "Half", "Long" ...; 0 = unknown.
int64_t bytes_of_type(std::string_view type);

/// Everything that a trace states about one collective. Unknown numbers are -1.
struct StatedCollective {
  Operation operation = Operation::kUnknown;
  int64_t in_elements = -1, out_elements = -1;  // of this rank
  int64_t element_bytes = -1;
  int64_t group_size = -1;
  int64_t number = -1;       // among those of its group, as torch.distributed counts them ("Seq")
  uint64_t identity = 0;     // a hash of torch's "Comms Id", which one collective has on all of its ranks; 0 = none
  std::string_view group;    // name of the communicator (torch: of the process group)
  std::string_view members;  // "[0, 1, 2, 3]"
  std::string_view description;
};
/// From the arguments of a dispatch: "Collective name=allreduce, In msg nelems=4197376, ..." as the reader of Kineto
/// files keeps them. Views into `text`.
StatedCollective stated_by(std::string_view text);
/// The numbers in "[0, 1, 2, 3]" or "[0-3]"; empty when the list is cut short ("...") or is none.
std::vector<int64_t> members_of(std::string_view text);

/// S of nccl-tests, from which they compute algorithm bandwidth, in bytes. All-gather: the result on one rank;
/// reduce-scatter and all-to-all: the input of one rank; else the message. 0 = unknown.
int64_t message_bytes(const StatedCollective& stated, int64_t ranks);
/// Bus bandwidth divided by algorithm bandwidth, by nccl-tests' PERFORMANCE.md; 0 where that defines none.
double bus_factor(Operation operation, int64_t ranks);

}  // namespace tacho::ranks
