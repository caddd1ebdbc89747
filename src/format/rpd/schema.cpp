// Tables and views of .rpd files (schema.h). Upstream's tools and users' queries rely on the names, column order and
// types. The views give upstream's results, defects included (docs/databases.md lists them).
#include "format/rpd/schema.h"

#include <vector>

namespace tacho::format::rpd {
namespace {

struct TableColumns {
  std::string_view name;
  std::string_view columns;  // "name:type" separated by spaces; see column_definition()
};

// Types: k = integer primary key that the file counts up, p>TABLE = primary key that is a row of TABLE, i = integer, b
// = flag, r = real, s = any text, sN = text of about N characters, >TABLE = row of TABLE.
constexpr TableColumns kTables2[] = {
    {"rocpd_kernelcodeobject", "id:k vgpr:i sgpr:i fbar:i"},
    {"rocpd_string", "id:k string:s4096"},
    {"rocpd_barrierop", "op_ptr_id:p>op signalCount:i aquireFence:s8 releaseFence:s8"},
    {"rocpd_copyapi", "api_ptr_id:p>api stream:s18 size:i width:i height:i kind:i dst:s18 "
                      "src:s18 dstDevice:i srcDevice:i sync:b pinned:b"},
    {"rocpd_op_inputSignals", "id:k from_op_id:>op to_op_id:>op"},
    {"rocpd_op",
     "id:k gpuId:i queueId:i sequenceId:i completionSignal:s18 start:i end:i description_id:>string opType_id:>string"},
    {"rocpd_api", "id:k pid:i tid:i start:i end:i apiName_id:>string args_id:>string"},
    {"rocpd_api_ops", "id:k api_id:>api op_id:>op"},
    {"rocpd_kernelapi",
     "api_ptr_id:p>api stream:s18 gridX:i gridY:i gridZ:i workgroupX:i workgroupY:i workgroupZ:i groupSegmentSize:i "
     "privateSegmentSize:i kernelArgAddress:s18 aquireFence:s8 releaseFence:s8 "
     "codeObject_id:>kernelcodeobject kernelName_id:>string"},
    {"rocpd_metadata", "id:k tag:s4096 value:s4096"},
    {"rocpd_monitor", "id:k deviceType:s16 deviceId:i monitorType:s16 start:i end:i value:s255"},
};
constexpr TableColumns kTables3[] = {
    {"rocpd_metadata", "id:k tag:s4096 value:s4096"},
    {"rocpd_string", "id:k string:s4096"},
    {"rocpd_ustring", "id:k string:s4096"},
    {"rocpd_api",
     "id:k pid:i tid:i start:i end:i apiName_id:>string category_id:>string domain_id:>string args_id:>ustring"},
    {"rocpd_copyapi", "api_ptr_id:p>api stream:s18 size:i width:i height:i kind:i dst:s18 "
                      "src:s18 dstDevice:i srcDevice:i sync:b pinned:b"},
    {"rocpd_kernelapi",
     "api_ptr_id:p>api stream:s18 gridX:i gridY:i gridZ:i workgroupX:i workgroupY:i workgroupZ:i groupSegmentSize:i "
     "privateSegmentSize:i kernelName_id:>string"},
    {"rocpd_op", "id:k gpuId:i queueId:i sequenceId:i start:i end:i description_id:>string opType_id:>string"},
    {"rocpd_api_ops", "id:k api_id:>api op_id:>op"},
    {"rocpd_monitor", "id:k deviceType:s16 deviceId:i monitorType:s16 start:i end:i value:s255"},
    {"rocpd_counter", "id:k value:r op_id:>op name_id:>string"},
    {"rocpd_stackframe", "id:k api_ptr_id:>api depth:i name_id:>string"},
};

std::string column_definition(std::string_view name, std::string_view type, int version) {
  std::string text = "\"" + std::string(name) + "\" ";
  const std::string_view whole = version >= 3 ? "bigint" : "integer";
  const auto reference = [](std::string_view table) {
    return " REFERENCES \"rocpd_" + std::string(table) + "\" (\"id\") DEFERRABLE INITIALLY DEFERRED";
  };
  switch (type.front()) {
    case 'k':
      return text + "integer NOT NULL PRIMARY KEY AUTOINCREMENT";
    case 'p':
      return text + std::string(whole) + " NOT NULL PRIMARY KEY" + reference(type.substr(2));
    case 'b':
      return text + "bool NOT NULL";
    case 'r':
      return text + "real NOT NULL";
    case 's':
      return text + "varchar(" + std::string(type.substr(1)) + ") NOT NULL";
    case '>':
      return text + std::string(whole) + " NOT NULL" + reference(type.substr(1));
    default:
      return text + "integer NOT NULL";
  }
}

constexpr std::string_view kApi2 =
    "api AS SELECT rocpd_api.id,pid,tid,start,end,A.string AS apiName, B.string AS args FROM rocpd_api JOIN "
    "rocpd_string A ON A.id = apiName_id JOIN rocpd_string B ON B.id = args_id";
constexpr std::string_view kApi3 =
    "api AS SELECT rocpd_api.id,pid,tid,start,end,A.string AS domain, B.string AS category, C.string AS apiName, "
    "D.string AS args FROM rocpd_api JOIN rocpd_string A ON A.id = domain_id JOIN rocpd_string B ON B.id = category_id "
    "JOIN rocpd_string C ON C.id = apiName_id JOIN rocpd_ustring D ON D.id = args_id";
constexpr std::string_view kOp =
    "op AS SELECT rocpd_op.id,gpuId,queueId,sequenceId,start,end,A.string AS description, B.string AS opType FROM "
    "rocpd_op JOIN rocpd_string A ON A.id = description_id JOIN rocpd_string B ON B.id = opType_id";
constexpr std::string_view kBusy =
    "busy AS select A.gpuId, GpuTime, WallTime, GpuTime * 1.0 / WallTime AS Busy FROM (SELECT gpuId, sum(end - start) "
    "AS GpuTime FROM rocpd_op GROUP BY gpuId) A JOIN (SELECT max(end) - min(start) AS WallTime FROM rocpd_op)";
constexpr std::string_view kKtop =
    "ktop as select C.string as Name, count(C.string) AS TotalCalls, sum(A.end - A.start) / 1000 AS TotalDuration, "
    "(sum(A.end - A.start) / count(C.string)) / 1000 AS Ave, sum(A.end - A.start) * 100.0 / (SELECT sum(A.end - "
    "A.start) FROM rocpd_api A JOIN rocpd_kernelapi B ON B.api_ptr_id = A.id) AS Percentage FROM rocpd_api A JOIN "
    "rocpd_kernelapi B ON B.api_ptr_id = A.id JOIN rocpd_string C ON C.id = "
    "B.kernelName_id GROUP BY Name ORDER BY TotalDuration DESC";
// UNION (without ALL) drops operations equal in name, start and end. This keeps upstream's numbers.
#define TACHO_RPD_TOP_SOURCE                                                                             \
  "FROM (SELECT opType_id AS name_id, start, end FROM rocpd_op WHERE description_id IN (SELECT id FROM " \
  "rocpd_string WHERE string = '') "                                                                     \
  "UNION SELECT description_id, start, end FROM rocpd_op WHERE description_id NOT IN (SELECT id FROM "   \
  "rocpd_string WHERE string = '')) A "                                                                  \
  "JOIN rocpd_string C ON C.id = A.name_id GROUP BY Name "
constexpr std::string_view kTop2 =
    "top as select C.string as Name, count(C.string) AS TotalCalls, sum(A.end - A.start) / 1000 AS TotalDuration, "
    "(sum(A.end - A.start) / count(C.string)) / 1000 AS Ave, sum(A.end - A.start) * "
    "100.0 / (SELECT sum(end - start) FROM rocpd_op) AS Percentage " TACHO_RPD_TOP_SOURCE "ORDER BY TotalDuration DESC";
constexpr std::string_view kTop3 =
    "top as select C.string as Name, count(C.string) AS TotalCalls, sum(A.end - A.start) / 1000 AS TotalDuration_us, "
    "(sum(A.end - A.start) / count(C.string)) / 1000.0 AS Ave_us, sum(A.end - A.start) * 100.0 / (SELECT sum(end - "
    "start) FROM rocpd_op) AS Percentage " TACHO_RPD_TOP_SOURCE "ORDER BY TotalDuration_us DESC";
constexpr std::string_view kKernel =
    "kernel AS SELECT B.id, gpuId, queueId, sequenceId, start, end, (end - start) AS duration, stream, gridX, gridY, "
    "gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, privateSegmentSize, D.string AS kernelName FROM "
    "rocpd_api_ops A JOIN rocpd_op B ON B.id = A.op_id JOIN rocpd_kernelapi C ON C.api_ptr_id = A.api_id JOIN "
    "rocpd_string D ON D.id = kernelName_id";
constexpr std::string_view kCopy =
    "copy AS SELECT B.id, pid, tid, start, end, C.string AS apiName, stream, size, width, height, kind, dst, src, "
    "dstDevice, srcDevice, sync, pinned FROM rocpd_copyapi A JOIN rocpd_api B ON B.id "
    "= A.api_ptr_id JOIN rocpd_string C ON C.id = B.apiName_id";
constexpr std::string_view kCopyop =
    "copyop AS SELECT B.id, gpuId, queueId, sequenceId, B.start, B.end, (B.end - B.start) AS duration, stream, size, "
    "width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned, E.string AS apiName FROM rocpd_api_ops A JOIN "
    "rocpd_op B ON B.id = A.op_id JOIN rocpd_copyapi C ON C.api_ptr_id = A.api_id JOIN rocpd_api D ON D.id = A.api_id "
    "JOIN rocpd_string E ON E.id = D.apiName_id";
constexpr std::string_view kStackframe =
    "stackframe AS SELECT B.id, C.string, depth, D.string FROM rocpd_stackframe A JOIN rocpd_api B ON B.id = "
    "A.api_ptr_id JOIN rocpd_string C ON C.id = B.apiName_id JOIN rocpd_string D ON D.id = A.name_id";
#define TACHO_RPD_STRIDE(tag) "(SELECT value FROM rocpd_metadata WHERE tag = '" tag "')"
constexpr std::string_view kNapi =
    "napi as SELECT rocpd_api.id, pid / " TACHO_RPD_STRIDE("pid_stride") " AS node, pid % " TACHO_RPD_STRIDE(
        "pid_stride") " AS pid, tid % " TACHO_RPD_STRIDE("pid_stride") " AS tid, start, end, A.string AS domain, "
                                                                       "B.string AS category, C.string AS apiName, "
                                                                       "D.string AS args FROM rocpd_api JOIN "
                                                                       "rocpd_string A ON A.id = domain_id JOIN "
                                                                       "rocpd_string B ON B.id = category_id JOIN "
                                                                       "rocpd_string C ON C.id = apiName_id JOIN "
                                                                       "rocpd_ustring D ON D.id = args_id";
constexpr std::string_view kNop =
    "nop AS SELECT rocpd_op.id, gpuId / " TACHO_RPD_STRIDE("gpu_stride") " AS node, gpuId % " TACHO_RPD_STRIDE(
        "gpu_stride") " AS gpuId, queueId % " TACHO_RPD_STRIDE("gpu_stride") " AS queueId, sequenceId, start, end, "
                                                                             "A.string AS description, B.string AS "
                                                                             "opType FROM rocpd_op JOIN rocpd_string A "
                                                                             "ON A.id = description_id JOIN "
                                                                             "rocpd_string B ON B.id = opType_id";

constexpr ViewDefinition kViews2[] = {{"api", kApi2}, {"op", kOp},         {"busy", kBusy}, {"ktop", kKtop},
                                      {"top", kTop2}, {"kernel", kKernel}, {"copy", kCopy}, {"copyop", kCopyop}};
constexpr ViewDefinition kViews3[] = {
    {"api", kApi3},      {"op", kOp},     {"busy", kBusy},     {"top", kTop3},
    {"kernel", kKernel}, {"copy", kCopy}, {"copyop", kCopyop}, {"stackframe", kStackframe},
    {"napi", kNapi},     {"nop", kNop}};

}  // namespace

std::string table_schema(int version) {
  std::string sql;
  const std::span<const TableColumns> tables =
      version >= 3 ? std::span<const TableColumns>(kTables3) : std::span<const TableColumns>(kTables2);
  for (const TableColumns& table : tables) {
    sql += "CREATE TABLE \"" + std::string(table.name) + "\" (";
    std::string_view rest = table.columns;
    bool first = true;
    while (!rest.empty()) {
      const size_t space = rest.find(' ');
      const std::string_view one = rest.substr(0, space);
      const size_t colon = one.find(':');
      sql += (first ? "" : ", ") + column_definition(one.substr(0, colon), one.substr(colon + 1), version);
      first = false;
      rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    }
    sql += ");\n";
  }
  return sql;
}

std::span<const ViewDefinition> views(int version) {
  return version >= 3 ? std::span<const ViewDefinition>(kViews3) : std::span<const ViewDefinition>(kViews2);
}

std::string_view index_schema(int version) {
  return version >= 3 ? "CREATE INDEX \"rocpd_strin_string_c7b9cd_idx\" ON \"rocpd_string\" (\"string\");\n"
                        "CREATE INDEX \"rocpd_ustri_string_84d4a7_idx\" ON \"rocpd_ustring\" (\"string\");\n"
                      : "CREATE INDEX \"rocpd_strin_string_c7b9cd_idx\" ON \"rocpd_string\" (\"string\");\n";
}

}  // namespace tacho::format::rpd
