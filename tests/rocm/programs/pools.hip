// HSA without HIP: memory from a pool of the GPU and one of the processor, and a queue that makes tacho find the devices.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdio>
#include <cstdlib>

#define HSA(call)                                       \
  do {                                                  \
    const hsa_status_t status_ = (call);                \
    if (status_ != HSA_STATUS_SUCCESS) {                \
      fprintf(stderr, "%s: %x\\n", #call, status_); \
      exit(1);                                          \
    }                                                   \
  } while (0)

static hsa_agent_t g_gpu{}, g_cpu{};

static hsa_status_t see_agent(hsa_agent_t agent, void*) {
  hsa_device_type_t type;
  HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  (type == HSA_DEVICE_TYPE_GPU ? g_gpu : g_cpu) = agent;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t see_pool(hsa_amd_memory_pool_t pool, void* found) {
  bool allowed = false;
  HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
  if (!allowed) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_amd_memory_pool_t*>(found) = pool;
  return HSA_STATUS_INFO_BREAK;
}

int main() {
  HSA(hsa_init());
  HSA(hsa_iterate_agents(see_agent, nullptr));
  hsa_queue_t* queue = nullptr;
  HSA(hsa_queue_create(g_gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue));
  hsa_amd_memory_pool_t of_gpu{}, of_cpu{};
  hsa_amd_agent_iterate_memory_pools(g_gpu, see_pool, &of_gpu);
  hsa_amd_agent_iterate_memory_pools(g_cpu, see_pool, &of_cpu);
  void *device = nullptr, *host = nullptr;
  HSA(hsa_amd_memory_pool_allocate(of_gpu, 1 << 20, 0, &device));
  HSA(hsa_amd_memory_pool_allocate(of_cpu, 2 << 20, 0, &host));
  HSA(hsa_amd_memory_pool_free(device));
  HSA(hsa_amd_memory_pool_free(host));
  HSA(hsa_queue_destroy(queue));
  HSA(hsa_shut_down());
  printf("done\n");
  return 0;
}
