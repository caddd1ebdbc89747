// The tables behind rocprof_words.h.
#include "format/shared/rocprof_words.h"

#include "vendor/definitions.h"

namespace tacho::format {

using event::Domain;

std::string_view copy_direction_name(int64_t direction) {
  switch (static_cast<event::CopyDirection>(direction)) {
    case event::CopyDirection::kHostToHost:
      return "MEMORY_COPY_HOST_TO_HOST";
    case event::CopyDirection::kHostToDevice:
      return "MEMORY_COPY_HOST_TO_DEVICE";
    case event::CopyDirection::kDeviceToHost:
      return "MEMORY_COPY_DEVICE_TO_HOST";
    case event::CopyDirection::kDeviceToDevice:
      return "MEMORY_COPY_DEVICE_TO_DEVICE";
    case event::CopyDirection::kPeerToPeer:
      return "MEMORY_COPY_PEER_TO_PEER";
    default:
      return "MEMORY_COPY_UNKNOWN";
  }
}

bool is_free(int64_t operation) {
  return operation == static_cast<int64_t>(event::AllocationOperation::kFree);
}
std::string_view allocation_name(int64_t operation) {
  return is_free(operation) ? "MEMORY_ALLOCATION_FREE" : "MEMORY_ALLOCATION_ALLOCATE";
}

std::string_view api_of(Domain domain) {
  if (const std::string_view family = vendor::api_family(domain); !family.empty()) return family;
  switch (domain) {
    case Domain::kMarker:
      return "marker";
    case Domain::kPython:
      return "python";
    case Domain::kMpi:
      return "mpi";
    case Domain::kHost:
      return "host";
    case Domain::kOperator:
      return "operator";
    default:
      return "";
  }
}

std::string_view api_domain_name(Domain domain) {
  if (const vendor::ApiDefinition* const api = vendor::api_definition(domain)) return api->kind;
  switch (domain) {
    case Domain::kMarker:
      return "MARKER_CORE_API";
    case Domain::kPython:
      return "PYTHON";
    case Domain::kMpi:
      return "MPI_API";
    case Domain::kHost:
      return "HOST";
    case Domain::kOperator:
      return "OPERATOR";
    default:
      return "UNKNOWN_API";
  }
}

Domain domain_of_kind(std::string_view kind) {
  for (int64_t at = 0; at < static_cast<int64_t>(Domain::kEnd); ++at)
    if (api_domain_name(static_cast<Domain>(at)) == kind) return static_cast<Domain>(at);
  const Domain named = vendor::domain_by_word(kind);
  return named != Domain::kUnknown ? named : kind.starts_with("MARKER") ? Domain::kMarker : Domain::kHost;
}

}  // namespace tacho::format
