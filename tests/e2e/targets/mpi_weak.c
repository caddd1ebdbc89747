/* No program of MPI: it looks for MPI_Init, as libraries do that can work with MPI or without, and for libtacho-mpi.so. With an
   argument it loads that library of MPI's afterwards and calls it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int MPI_Init(int*, char***) __attribute__((weak));
int PMPI_Init(int*, char***) __attribute__((weak));

static int mapped(void) {
  char line[4096];
  int found = 0;
  FILE* const maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) found = found || strstr(line, "libtacho-mpi") != NULL;
  if (maps != NULL) fclose(maps);
  return found;
}

int main(int argc, char** argv) {
  void* const by_name = dlsym(RTLD_DEFAULT, "MPI_Init");
  printf("weak %d, by name %d, loaded %d\n", MPI_Init != NULL || PMPI_Init != NULL, by_name != NULL, mapped());
  if (argc < 2) return 0;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 2;
  int (*const initialized)(int*) = (int (*)(int*))dlsym(library, "MPI_Initialized");
  int (*const init)(int*, char***) = (int (*)(int*, char***))dlsym(library, "MPI_Init");
  int (*const finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
  int before = 1, after = 0;
  initialized(&before);
  init(NULL, NULL);
  initialized(&after);
  finalize();
  printf("before %d, after %d, weak %d, loaded %d\n", before, after, MPI_Init != NULL, mapped());
  return 0;
}
