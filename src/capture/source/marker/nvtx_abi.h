// The part of NVTX 3's injection interface that a tool needs, declared by ourselves so that no CUDA header is needed:
// module and function numbers, the export table, and the event attributes. Numbers are ABI.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::capture::nvtx {

using Function = void (*)();
/// Slot n of a module's table points to the program's pointer to function n; null if the program's NVTX is older.
using FunctionTable = Function**;

enum NvtxModule : int { kCore = 1, kCore2 = 5 };

enum CoreFunction : unsigned {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW
};
enum Core2Function : unsigned {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kInitialize
};

inline constexpr uint32_t kExportCallbacks = 1;
struct ExportCallbacks {
  size_t struct_size;
  int (*get_module_function_table)(int module, FunctionTable* table, unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t id);

struct EventAttributes {
  uint16_t version;
  uint16_t size;  // of the struct as the caller knows it
  uint32_t category;
  int32_t color_type;  // 1: ARGB
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
  } payload;
  int32_t message_type;
  int32_t padding;
  union {
    const char* ascii;
    const wchar_t* unicode;
    const void* registered;
  } message;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);
enum PayloadType : int32_t { kUnsigned64 = 1, kSigned64, kFloat64, kUnsigned32, kSigned32, kFloat32 };
enum MessageType : int32_t { kAscii = 1, kUnicode, kRegistered };

}  // namespace tacho::capture::nvtx
