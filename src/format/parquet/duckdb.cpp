// Finds and loads DuckDB (duckdb.h).
#include "format/parquet/duckdb.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/format.h"

namespace tacho::format::parquet {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFile = "libduckdb.so";

std::vector<std::string> candidates() {
  std::vector<std::string> found;
  const auto add = [&](const fs::path& place) {
    std::error_code error;
    if (fs::is_directory(place, error))
      found.push_back((place / kFile).string());
    else if (fs::exists(place, error))
      found.push_back(place.string());
  };
  char self[PATH_MAX];
  if (const ssize_t length = readlink("/proc/self/exe", self, sizeof self); length > 0) {
    const fs::path folder = fs::path(std::string(self, static_cast<size_t>(length))).parent_path();
    for (const fs::path& place : {folder, folder.parent_path() / "lib", folder.parent_path() / "lib" / "tacho"})
      add(place / kFile);
  }
  found.emplace_back(kFile);
  return found;
}

Result<const DuckLibrary*> bind(void* handle, const std::string& from) {
  static DuckLibrary library;
  const char* missing = nullptr;
  const auto get = [&]<typename F>(F*& to, const char* name) {
    to = reinterpret_cast<F*>(dlsym(handle, name));
    if (to == nullptr && missing == nullptr) missing = name;
  };
#define TACHO_DUCK(name) get(library.name, "duckdb_" #name)
  TACHO_DUCK(open);
  TACHO_DUCK(close);
  TACHO_DUCK(connect);
  TACHO_DUCK(disconnect);
  TACHO_DUCK(query);
  TACHO_DUCK(result_error);
  TACHO_DUCK(destroy_result);
  TACHO_DUCK(vector_size);
  TACHO_DUCK(create_table_function);
  TACHO_DUCK(destroy_table_function);
  TACHO_DUCK(table_function_set_name);
  TACHO_DUCK(table_function_set_extra_info);
  TACHO_DUCK(table_function_set_bind);
  TACHO_DUCK(table_function_set_init);
  TACHO_DUCK(table_function_set_function);
  TACHO_DUCK(register_table_function);
  TACHO_DUCK(create_logical_type);
  TACHO_DUCK(destroy_logical_type);
  TACHO_DUCK(bind_get_extra_info);
  TACHO_DUCK(bind_add_result_column);
  TACHO_DUCK(init_set_max_threads);
  TACHO_DUCK(function_get_extra_info);
  TACHO_DUCK(function_set_error);
  TACHO_DUCK(data_chunk_get_vector);
  TACHO_DUCK(data_chunk_set_size);
  TACHO_DUCK(vector_get_data);
  TACHO_DUCK(vector_get_validity);
  TACHO_DUCK(vector_ensure_validity_writable);
  TACHO_DUCK(vector_assign_string_element_len);
#undef TACHO_DUCK
  if (missing != nullptr) return fail("{}: has no function {}: DuckDB 1.0 or newer is needed", from, missing);
  return &library;
}

Result<const DuckLibrary*> find() {
  // Uses or refuses the library that the user names, but never silently skips it.
  if (const char* const named = std::getenv("TACHO_DUCKDB"); named != nullptr && *named != 0) {
    std::error_code error;
    const std::string path = fs::is_directory(named, error) ? (fs::path(named) / kFile).string() : std::string(named);
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return fail("TACHO_DUCKDB: {} cannot be loaded: {}", path, dlerror());
    return bind(handle, path);
  }
  std::string reason;
  for (const std::string& path : candidates()) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return bind(handle, path);
    if (path != kFile) reason = fmt::format(" ({})", dlerror());
  }
  return fail("-f parquet needs DuckDB's C library, and libduckdb.so was not found{}: npm install "
              "@duckdb/node-bindings-linux-x64 (or take libduckdb from "
              "https://duckdb.org/docs/installation) and set TACHO_DUCKDB to the file",
              reason);
}

}  // namespace

Result<const DuckLibrary*> DuckLibrary::load() {
  static const Result<const DuckLibrary*> library = find();
  return library;
}

}  // namespace tacho::format::parquet
