// Tables and views of .rpd files (schema.h). Upstream's tools and users' queries rely on the names, column order and
// types. The views give upstream's results, defects included (docs/databases.md lists them).
#include "format/rpd/schema.h"

#include <vector>

#include "format/rpd/relations.h"

namespace tacho::format::rpd {
namespace {

// Reads the list of a table as the columns of its CREATE TABLE.
class SchemaFace {
 public:
  explicit SchemaFace(int version) : version_(version) {}
  int version() const { return version_; }
  void relation(std::string_view name) { sql_ = "CREATE TABLE \"" + std::string(name) + "\" ("; }
  void keep(auto) {}
  void column(std::string_view name, relation::ColumnType type, unsigned, auto) {
    sql_ += (sql_.back() == '(' ? "\"" : ", \"") + std::string(name) + "\" " + definition(type.text);
  }
  const std::string& sql() const { return sql_; }

 private:
  std::string definition(std::string_view type) const {
    const std::string whole = version_ >= 3 ? "bigint" : "integer";
    const auto reference = [](std::string_view table) {
      return " REFERENCES \"rocpd_" + std::string(table) + "\" (\"id\") DEFERRABLE INITIALLY DEFERRED";
    };
    switch (type.front()) {
      case 'k':
        return "integer NOT NULL PRIMARY KEY AUTOINCREMENT";
      case 'p':
        return whole + " NOT NULL PRIMARY KEY" + reference(type.substr(2));
      case 'b':
        return "bool NOT NULL";
      case 'r':
        return "real NOT NULL";
      case 's':
        return "varchar(" + std::string(type.substr(1)) + ") NOT NULL";
      case '>':
        return whole + " NOT NULL" + reference(type.substr(1));
      default:
        return "integer NOT NULL";
    }
  }
  int version_;
  std::string sql_;
};

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
        "pid_stride") " AS pid, tid % " TACHO_RPD_STRIDE("pid_stride") " AS tid, start, end, A.string AS domain, B.string AS category, C.string AS "
                                                                       "apiName, D.string AS args FROM rocpd_api JOIN rocpd_string A ON A.id = domain_id "
                                                                       "JOIN rocpd_string B ON B.id = category_id JOIN rocpd_string C ON C.id = apiName_id "
                                                                       "JOIN rocpd_ustring D ON D.id = args_id";
constexpr std::string_view kNop =
    "nop AS SELECT rocpd_op.id, gpuId / " TACHO_RPD_STRIDE("gpu_stride") " AS node, gpuId % " TACHO_RPD_STRIDE(
        "gpu_stride") " AS gpuId, queueId % " TACHO_RPD_STRIDE("gpu_stride") " AS queueId, sequenceId, start, end, A.string AS description, B.string AS opType "
                                                                             "FROM rocpd_op JOIN rocpd_string A ON A.id = "
                                                                             "description_id JOIN rocpd_string B ON B.id = opType_id";

constexpr RpdView kViews2[] = {{"api", kApi2}, {"op", kOp},         {"busy", kBusy}, {"ktop", kKtop},
                               {"top", kTop2}, {"kernel", kKernel}, {"copy", kCopy}, {"copyop", kCopyop}};
constexpr RpdView kViews3[] = {{"api", kApi3},      {"op", kOp},     {"busy", kBusy},     {"top", kTop3},
                               {"kernel", kKernel}, {"copy", kCopy}, {"copyop", kCopyop}, {"stackframe", kStackframe},
                               {"napi", kNapi},     {"nop", kNop}};

}  // namespace

std::string table_schema(int version) {
  std::string sql;
  const auto tables = [&](auto... lists) {
    const auto table = [&](auto list) {
      SchemaFace face(version);
      list(face);
      sql += face.sql() + ");\n";
    };
    (table(lists), ...);
  };
  // In upstream's order.
  if (version >= 3)
    tables(kMetadataTable, kStringTable, kUstringTable, kApiTable, kCopyapiTable, kKernelapiTable, kOpTable,
           kApiOpsTable, kMonitorTable, kCounterTable, kStackframeTable);
  else
    tables(kKernelcodeobjectTable, kStringTable, kBarrieropTable, kCopyapiTable, kOpInputSignalsTable, kOpTable,
           kApiTable, kApiOpsTable, kKernelapiTable, kMetadataTable, kMonitorTable);
  return sql;
}

std::span<const RpdView> views(int version) {
  return version >= 3 ? std::span<const RpdView>(kViews3) : std::span<const RpdView>(kViews2);
}

std::string_view index_schema(int version) {
  return version >= 3 ? "CREATE INDEX \"rocpd_strin_string_c7b9cd_idx\" ON \"rocpd_string\" (\"string\");\n"
                        "CREATE INDEX \"rocpd_ustri_string_84d4a7_idx\" ON \"rocpd_ustring\" (\"string\");\n"
                      : "CREATE INDEX \"rocpd_strin_string_c7b9cd_idx\" ON \"rocpd_string\" (\"string\");\n";
}

}  // namespace tacho::format::rpd
