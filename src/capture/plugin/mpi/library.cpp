// Which MPI it is (library.h).
#include "capture/plugin/mpi/library.h"

#include <dlfcn.h>
#include <stdio.h>

namespace tacho::capture::mpi {

constinit const MpiHost* g_host = nullptr;
constinit LoadedMpi g_mpi = {};
namespace {
constinit char g_name[128] = {};
}

Status read_status(const void* status) {
  int32_t words[6] = {};
  memcpy(words, status, g_mpi.status_bytes);
  if (g_mpi.open_mpi) {  // source, tag, error, cancelled, size_t bytes
    uint64_t bytes;
    memcpy(&bytes, words + 4, sizeof bytes);
    return {words[0], words[1], bytes};
  }
  // low half of the bytes, high half << 1 | cancelled, source, tag, error
  return {words[2], words[3],
          static_cast<uint32_t>(words[0]) | static_cast<uint64_t>(static_cast<uint32_t>(words[1]) >> 1) << 32};
}

bool find_library(void* mpi) {
  bool whole = true;
  const auto find = [&](auto& to, const char* name) {
    void* const found = dlsym(mpi, name);
    whole = whole && found != nullptr;
    memcpy(&to, &found, sizeof to);
  };
  find(g_mpi.comm_size, "PMPI_Comm_size");
  find(g_mpi.comm_rank, "PMPI_Comm_rank");
  find(g_mpi.comm_test_inter, "PMPI_Comm_test_inter");
  find(g_mpi.comm_group, "PMPI_Comm_group");
  find(g_mpi.comm_remote_group, "PMPI_Comm_remote_group");
  find(g_mpi.comm_get_name, "PMPI_Comm_get_name");
  find(g_mpi.comm_get_parent, "PMPI_Comm_get_parent");
  find(g_mpi.group_size, "PMPI_Group_size");
  find(g_mpi.group_translate_ranks, "PMPI_Group_translate_ranks");
  find(g_mpi.group_free, "PMPI_Group_free");
  find(g_mpi.type_size, "PMPI_Type_size_x");
  find(g_mpi.get_library_version, "PMPI_Get_library_version");
  if (!whole) return false;

  static constinit char version[8192 + 1] = {};  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  g_mpi.get_library_version(version, &length);
  void* const open_world = dlsym(mpi, "ompi_mpi_comm_world");
  const auto says = [&](const char* word) { return strstr(version, word) != nullptr; };
  if (open_world != nullptr) {
    // Programs may have copies of these (copy relocations), which then are the real ones.
    const auto address = [&](const char* name) {
      void* const found = dlsym(RTLD_DEFAULT, name);
      return reinterpret_cast<Word>(found != nullptr ? found : dlsym(mpi, name));
    };
    g_mpi.open_mpi = true;
    g_mpi.world = address("ompi_mpi_comm_world");
    g_mpi.self = address("ompi_mpi_comm_self");
    g_mpi.no_communicator = address("ompi_mpi_comm_null");
    g_mpi.no_request = address("ompi_request_null");
    g_mpi.any_source = -1;
    g_mpi.proc_null = -2;
    g_mpi.root = -4;
    g_mpi.in_place = 1;
    g_mpi.ignore = 0;
    g_mpi.status_bytes = 24;
    g_mpi.known = true;
  } else if (says("MPICH") || says("Intel(R) MPI")) {  // also MVAPICH, CRAY MPICH, ParaStation
    g_mpi.world = 0x44000000;
    g_mpi.self = 0x44000001;
    g_mpi.no_communicator = 0x04000000;
    g_mpi.no_request = 0x2c000000;
    g_mpi.any_source = -2;
    g_mpi.proc_null = -1;
    g_mpi.root = -3;
    g_mpi.in_place = ~Word{0};
    g_mpi.ignore = 1;
    g_mpi.status_bytes = 20;
    g_mpi.known = true;
  }
  // "Open MPI v4.1.4, package: ...", "MPICH Version:        4.0.2\nMPICH Release date: ..."
  size_t end = 0;
  for (const char* at = version; *at != '\0' && *at != ',' && *at != '\n' && end + 1 < sizeof g_name; ++at)
    g_name[end++] = *at == '\t' ? ' ' : *at;
  return true;
}

void tell_library() {
  g_host->property("mpi.library", g_name);
  if (g_mpi.known) return;
  char line[512];
  snprintf(line, sizeof line,
           "tacho knows neither handles nor constants of this MPI (%s): its calls "
           "are recorded without bytes, peers and communicators",
           g_name);
  g_host->warn(line);
}

}  // namespace tacho::capture::mpi
