// The MPI library of the process: which one it is, what its constants and handles look like, and its own functions
// under their PMPI_ names. Nothing of MPI is needed to build this: handles are pointers in Open MPI and ints in MPICH
// and all that share its ABI (MVAPICH, Intel MPI, Cray MPICH), and a word holds either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "event/mpi_host.h"

namespace tacho::capture::mpi {

using Word = uint64_t;  ///< a parameter of any function of MPI's: an integer, a pointer or a handle

extern const MpiHost* g_host;

struct LoadedMpi {
  bool open_mpi = false;  ///< else of MPICH's ABI
  bool known = false;     ///< else only names and times of calls are recorded
  Word world = 0, self = 0, no_communicator = 0, no_request = 0;
  int proc_null = 0, any_source = 0, root = 0;
  Word in_place = 0, ignore = 0;  ///< MPI_IN_PLACE; MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE
  size_t status_bytes = 0;

  // Its functions; none is missing.
  int (*comm_size)(Word, int*);
  int (*comm_rank)(Word, int*);
  int (*comm_test_inter)(Word, int*);
  int (*comm_group)(Word, Word*);
  int (*comm_remote_group)(Word, Word*);
  int (*comm_get_name)(Word, char*, int*);
  int (*comm_get_parent)(Word*);
  int (*group_size)(Word, int*);
  int (*group_translate_ranks)(Word, int, const int*, Word, int*);
  int (*group_free)(Word*);
  int (*type_size)(Word, int64_t*);  ///< MPI_Type_size_x
  int (*get_library_version)(char*, int*);

  Word handle(Word word) const { return open_mpi ? word : word & 0xffffffff; }
  /// The handle in a variable of the program's.
  Word read_handle(const void* at) const {
    if (open_mpi) {
      Word word;
      memcpy(&word, at, sizeof word);
      return word;
    }
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
  }
  const void* element(Word array, size_t i) const {
    return reinterpret_cast<const char*>(array) + i * (open_mpi ? 8 : 4);
  }
};
extern LoadedMpi g_mpi;

/// The fields of an MPI_Status that tacho reads.
struct Status {
  int source, tag;
  uint64_t bytes;
};
Status read_status(const void* status);

/// Fills in g_mpi. `mpi`: a handle for dlsym. False when it lacks functions.
bool find_library(void* mpi);
/// Writes into the trace which MPI it is, and what of it tacho does not know.
void tell_library();

}  // namespace tacho::capture::mpi
