// The few functions of DuckDB's C library that write Parquet. tacho declares them here and loads them at run time; it
// does not link DuckDB. The signatures are those of DuckDB's stable C API (duckdb.h, since 1.0).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacho::format::parquet {

struct DuckResult {
  uint64_t deprecated[5];
  void* data;
};

/// Typed pointers into libduckdb.so, loaded once and never unloaded.
struct DuckLibrary {
  using Handle = void*;  // database, connection, table function, logical type, chunk, vector, info

  /// Loads $TACHO_DUCKDB (a file or its folder) if set; else looks beside the tacho program, in ../lib and ../lib/tacho
  /// from there, then where the loader looks. The error says how to get the library.
  static Result<const DuckLibrary*> load();

  int (*open)(const char* path, Handle* database);
  void (*close)(Handle* database);
  int (*connect)(Handle database, Handle* connection);
  void (*disconnect)(Handle* connection);
  int (*query)(Handle connection, const char* sql, DuckResult* result);
  const char* (*result_error)(DuckResult* result);
  void (*destroy_result)(DuckResult* result);
  uint64_t (*vector_size)();

  Handle (*create_table_function)();
  void (*destroy_table_function)(Handle* function);
  void (*table_function_set_name)(Handle function, const char* name);
  void (*table_function_set_extra_info)(Handle function, void* extra, void (*destroy)(void*));
  void (*table_function_set_bind)(Handle function, void (*bind)(Handle info));
  void (*table_function_set_init)(Handle function, void (*init)(Handle info));
  void (*table_function_set_function)(Handle function, void (*run)(Handle info, Handle chunk));
  int (*register_table_function)(Handle connection, Handle function);
  Handle (*create_logical_type)(int type);
  void (*destroy_logical_type)(Handle* type);
  void* (*bind_get_extra_info)(Handle info);
  void (*bind_add_result_column)(Handle info, const char* name, Handle type);
  void (*init_set_max_threads)(Handle info, uint64_t threads);
  void* (*function_get_extra_info)(Handle info);
  void (*function_set_error)(Handle info, const char* message);
  Handle (*data_chunk_get_vector)(Handle chunk, uint64_t column);
  void (*data_chunk_set_size)(Handle chunk, uint64_t rows);
  void* (*vector_get_data)(Handle vector);
  uint64_t* (*vector_get_validity)(Handle vector);
  void (*vector_ensure_validity_writable)(Handle vector);
  void (*vector_assign_string_element_len)(Handle vector, uint64_t index, const char* text, uint64_t length);
};

inline constexpr int kDuckBigint = 5, kDuckDouble = 11, kDuckVarchar = 17;

}  // namespace tacho::format::parquet
