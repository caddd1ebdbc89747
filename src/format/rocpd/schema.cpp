// Tables and views of rocpd databases (schema.h). Names, columns and results match rocprofv3's databases.
#include "format/rocpd/schema.h"

#include <utility>

#include "format/rocpd/relations.h"

namespace tacho::format::rocpd {
namespace {

// Calls each(list) for every table, in the order of their creation.
void for_each_table(const auto& each) {
  const auto all = [&](auto... lists) { (each(lists), ...); };
  all(kMetadataTable, kStringTable, kNodeTable, kProcessTable, kThreadTable, kAgentTable, kQueueTable, kStreamTable,
      kPmcTable, kCodeObjectTable, kKernelSymbolTable, kTrackTable, kEventTable, kArgTable, kPmcEventTable,
      kRegionTable, kSampleTable, kKernelDispatchTable, kMemoryCopyTable, kMemoryAllocateTable);
}

// Reads the list of a table as its CREATE TABLE.
class SchemaFace {
 public:
  SchemaFace(std::string suffix, std::string guid) : suffix_(std::move(suffix)), guid_(std::move(guid)) {}
  void relation(std::string_view name, std::string_view constraints = {}) {
    name_ = name;
    constraints_ = constraints;
  }
  void keep(auto) {}
  void column(std::string_view name, relation::ColumnType type, unsigned, auto) {
    columns_ += (columns_.empty() ? "\"" : ", \"") + std::string(name) + "\" " + definition(type.code);
    if (type.text.size() > 1)
      keys_ += ", FOREIGN KEY (\"" + std::string(name) + "\") REFERENCES \"" + std::string(type.text.substr(2)) +
               suffix_ + "\" (id) ON UPDATE CASCADE";
  }
  const std::string& name() const { return name_; }
  std::string sql() const {
    return "CREATE TABLE \"" + name_ + suffix_ + "\" (" + columns_ + constraints_ + keys_ + ");\n";
  }

 private:
  std::string definition(char type) const {
    switch (type) {
      case 'k':
        return "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT";
      case 'g':
        return "TEXT DEFAULT '" + guid_ + "' NOT NULL";
      case 't':
        return "TEXT";
      case 'e':
        return "TEXT DEFAULT ''";
      case 'T':
        return "TEXT NOT NULL";
      case 'U':
        return "TEXT NOT NULL UNIQUE";
      case 'N':
        return "BIGINT NOT NULL UNIQUE";
      case 'i':
        return "INTEGER";
      case 'I':
        return "INTEGER NOT NULL";
      case 'b':
        return "BIGINT";
      case 'B':
        return "BIGINT NOT NULL";
      case 'r':
        return "REAL DEFAULT 0.0";
      case 'j':
        return "JSONB DEFAULT '{}' NOT NULL";
      default:
        return "JSONB DEFAULT '{}'";
    }
  }
  std::string suffix_, guid_, name_, constraints_, columns_, keys_;
};

std::string category(const char* alias) {
  const std::string e = alias;
  return "(SELECT string FROM rocpd_string RS WHERE RS.id = " + e + ".category_id AND RS.guid = " + e +
         ".guid) AS category";
}

// "JOIN table alias ON alias.id = key AND alias.guid = owner.guid"; `key` has the form owner.column.
std::string join(const char* kind, const char* table, const char* alias, const std::string& key) {
  const std::string owner = key.substr(0, key.find('.'));
  return std::string(" ") + kind + " rocpd_" + table + " " + alias + " ON " + alias + ".id = " + key + " AND " + alias +
         ".guid = " + owner + ".guid";
}

}  // namespace

std::string table_schema(const std::string& suffix, const std::string& guid) {
  std::string sql;
  for_each_table([&](const auto& list) {
    SchemaFace face(suffix, guid);
    list(face);
    sql += face.sql();
  });
  return sql;
}

std::vector<ViewDefinition> plain_views(std::span<const std::string> suffixes) {
  std::vector<ViewDefinition> views;
  for_each_table([&](const auto& list) {
    SchemaFace face({}, {});
    list(face);
    std::string select;
    for (const std::string& suffix : suffixes)
      select += (select.empty() ? "SELECT * FROM \"" : " UNION ALL SELECT * FROM \"") + face.name() + suffix + "\"";
    views.push_back({face.name(), select});
  });
  return views;
}

std::vector<ViewDefinition> data_views() {
  const std::string event = "E.stack_id, E.parent_stack_id, E.correlation_id AS corr_id";
  const std::string node =
      "N.id AS nid, N.machine_id, N.system_name, N.hostname, N.release AS system_release, N.version AS "
      "system_version, P.guid, P.ppid, P.pid";
  const auto agent = [](const char* alias, const std::string& prefix) {
    const std::string a = alias;
    return a + ".absolute_index AS " + prefix + "_abs_index, " + a + ".logical_index AS " + prefix + "_log_index, " +
           a + ".type_index AS " + prefix + "_type_index, " + a + ".type AS " + prefix + "_type";
  };
  const auto json = [](const char* from, const char* path, const char* name) {
    return "json_extract(" + std::string(from) + ".extdata, '$." + path + "') AS " + name;
  };
  const std::string sample_name =
      "(SELECT string FROM rocpd_string RS WHERE RS.id = T.name_id AND RS.guid = T.guid) AS name";
  const std::string sample_from =
      " FROM rocpd_sample R" + join("JOIN", "track", "T", "R.track_id") + join("JOIN", "event", "E", "R.event_id") +
      join("JOIN", "info_process", "P", "T.pid") + join("JOIN", "info_thread", "TH", "T.tid");
  const std::string extra = "E.extdata, E.call_stack, E.line_info";
  const std::string kernel_time = "(SELECT sum(A.end - A.start) FROM rocpd_kernel_dispatch A)";
  std::vector<ViewDefinition> views;
  const auto add = [&](const char* name, std::string select) { views.push_back({name, std::move(select)}); };
  add("code_objects",
      "SELECT CO.id, CO.guid, CO.nid, P.pid, A.absolute_index AS agent_abs_index, CO.uri, CO.load_base, CO.load_size, "
      "CO.load_delta, CO.storage_type AS storage_type_str, " +
          json("CO", "size", "code_object_size") + ", " + json("CO", "storage_type", "storage_type") + ", " +
          json("CO", "memory_base", "memory_base") + ", " + json("CO", "memory_size", "memory_size") +
          " FROM rocpd_info_code_object CO" + join("JOIN", "info_agent", "A", "CO.agent_id") +
          join("JOIN", "info_process", "P", "CO.pid"));
  add("kernel_symbols",
      "SELECT KS.id, KS.guid, KS.nid, P.pid, KS.code_object_id, KS.kernel_name, KS.display_name, KS.kernel_object, "
      "KS.kernarg_segment_size, KS.kernarg_segment_alignment, KS.group_segment_size, KS.private_segment_size, "
      "KS.sgpr_count, KS.arch_vgpr_count, KS.accum_vgpr_count, " +
          json("KS", "size", "kernel_symbol_size") + ", " + json("KS", "kernel_id", "kernel_id") + ", " +
          json("KS", "kernel_code_entry_byte_offset", "kernel_code_entry_byte_offset") + ", " +
          json("KS", "formatted_kernel_name", "formatted_kernel_name") + ", " +
          json("KS", "demangled_kernel_name", "demangled_kernel_name") + ", " +
          json("KS", "truncated_kernel_name", "truncated_kernel_name") + ", " +
          json("KS", "kernel_address.handle", "kernel_address") + " FROM rocpd_info_kernel_symbol KS" +
          join("JOIN", "info_process", "P", "KS.pid"));
  add("processes", "SELECT " + node + ", P.init, P.start, P.end, P.fini, P.command FROM rocpd_info_process P" +
                       join("JOIN", "info_node", "N", "P.nid"));
  add("threads", "SELECT " + node + ", T.tid, T.start, T.end, T.name FROM rocpd_info_thread T" +
                     join("JOIN", "info_process", "P", "T.pid") + join("JOIN", "info_node", "N", "T.nid"));
  add("regions", "SELECT R.id, R.guid, " + category("E") +
                     ", S.string AS name, R.nid, P.pid, T.tid, R.start, R.end, "
                     "(R.end - R.start) AS duration, R.event_id, " +
                     event + ", " + extra + " FROM rocpd_region R" + join("JOIN", "event", "E", "R.event_id") +
                     join("JOIN", "string", "S", "R.name_id") + join("JOIN", "info_process", "P", "R.pid") +
                     join("JOIN", "info_thread", "T", "R.tid"));
  add("region_args", "SELECT R.id, R.guid, R.nid, P.pid, A.type, A.name, A.value FROM rocpd_region R" +
                         join("JOIN", "event", "E", "R.event_id") +
                         " JOIN rocpd_arg A ON A.event_id = E.id AND A.guid = R.guid" +
                         join("JOIN", "info_process", "P", "R.pid"));
  add("samples", "SELECT R.id, R.guid, " + category("E") + ", " + sample_name +
                     ", T.nid, P.pid, TH.tid, R.timestamp, R.event_id, " + event + ", " + extra + sample_from);
  add("sample_regions", "SELECT R.id, R.guid, " + category("E") + ", " + sample_name +
                            ", T.nid, P.pid, TH.tid, R.timestamp AS start, R.timestamp AS END, (R.timestamp "
                            "- R.timestamp) AS duration, R.event_id, " +
                            event + ", " + extra + sample_from);
  add("regions_and_samples", "SELECT * FROM regions UNION ALL SELECT * FROM sample_regions");
  add("kernels",
      "SELECT K.id, K.guid, T.tid, " + category("E") + ", R.string AS region, S.display_name AS name, K.nid, P.pid, " +
          agent("A", "agent") +
          ", S.code_object_id AS code_object_id, K.kernel_id, K.dispatch_id, K.stream_id, K.queue_id, Q.name "
          "AS queue, ST.name AS stream, K.start, K.end, (K.end - K.start) AS duration, "
          "K.grid_size_x AS grid_x, K.grid_size_y AS grid_y, K.grid_size_z AS grid_z, K.workgroup_size_x AS "
          "workgroup_x, K.workgroup_size_y AS workgroup_y, K.workgroup_size_z AS workgroup_z, "
          "K.group_segment_size AS lds_size, K.private_segment_size AS scratch_size, S.arch_vgpr_count AS "
          "vgpr_count, S.accum_vgpr_count, S.sgpr_count, "
          "S.group_segment_size AS static_lds_size, S.private_segment_size AS static_scratch_size, " +
          event + " FROM rocpd_kernel_dispatch K" + join("JOIN", "info_agent", "A", "K.agent_id") +
          join("JOIN", "event", "E", "K.event_id") + join("JOIN", "string", "R", "K.region_name_id") +
          join("JOIN", "info_kernel_symbol", "S", "K.kernel_id") +
          join("LEFT JOIN", "info_stream", "ST", "K.stream_id") + join("LEFT JOIN", "info_queue", "Q", "K.queue_id") +
          join("JOIN", "info_process", "P", "Q.pid") + join("JOIN", "info_thread", "T", "K.tid"));
  add("pmc_info", "SELECT PMC_I.id, PMC_I.guid, PMC_I.nid, P.pid, A.absolute_index AS agent_abs_index, "
                  "PMC_I.is_constant, PMC_I.is_derived, PMC_I.name, PMC_I.description, PMC_I.block, PMC_I.expression "
                  "FROM rocpd_info_pmc PMC_I" +
                      join("JOIN", "info_agent", "A", "PMC_I.agent_id") +
                      join("JOIN", "info_process", "P", "PMC_I.pid"));
  add("pmc_events",
      "SELECT PMC_E.id, PMC_E.guid, PMC_E.pmc_id, E.id AS event_id, " + category("E") +
          ", (SELECT display_name FROM rocpd_info_kernel_symbol KS WHERE KS.id = K.kernel_id AND KS.guid = "
          "K.guid) AS name, K.nid, P.pid, K.dispatch_id, K.start, K.end, "
          "(K.end - K.start) AS duration, PMC_I.name AS counter_name, PMC_E.value AS counter_value FROM "
          "rocpd_pmc_event PMC_E" +
          join("JOIN", "info_pmc", "PMC_I", "PMC_E.pmc_id") + join("JOIN", "event", "E", "PMC_E.event_id") +
          " JOIN rocpd_kernel_dispatch K ON K.event_id = PMC_E.event_id AND K.guid = PMC_E.guid" +
          join("JOIN", "info_process", "P", "K.pid"));
  add("events_args", "SELECT E.id AS event_id, " + category("E") +
                         ", E.stack_id, E.parent_stack_id, E.correlation_id, A.position AS arg_position, "
                         "A.type AS arg_type, A.name AS arg_name, "
                         "A.value AS arg_value, E.call_stack, E.line_info, A.extdata FROM rocpd_event E JOIN "
                         "rocpd_arg A ON A.event_id = E.id AND A.guid = E.guid");
  add("stream_args",
      "SELECT A.id AS argument_id, A.event_id AS event_id, A.position AS arg_position, A.type AS arg_type, "
      "A.value AS arg_value, " +
          json("A", "stream_id", "stream_id") +
          ", S.nid, P.pid, S.name AS stream_name, S.extdata AS extdata FROM rocpd_arg A JOIN "
          "rocpd_info_stream S ON json_extract(A.extdata, '$.stream_id') = S.id AND A.guid = S.guid" +
          join("JOIN", "info_process", "P", "S.pid") + " WHERE A.name = 'stream'");
  add("memory_copies",
      "SELECT M.id, M.guid, " + category("E") +
          ", M.nid, P.pid, T.tid, M.start, M.end, (M.end - M.start) AS duration, S.string AS name, R.string "
          "AS region_name, M.stream_id, M.queue_id, "
          "ST.name AS stream_name, Q.name AS queue_name, M.size, dst_agent.name AS dst_device, " +
          agent("dst_agent", "dst_agent") + ", M.dst_address, src_agent.name AS src_device, " +
          agent("src_agent", "src_agent") + ", M.src_address, " + event + " FROM rocpd_memory_copy M" +
          join("JOIN", "string", "S", "M.name_id") + join("LEFT JOIN", "string", "R", "M.region_name_id") +
          join("JOIN", "info_agent", "dst_agent", "M.dst_agent_id") +
          join("JOIN", "info_agent", "src_agent", "M.src_agent_id") +
          join("LEFT JOIN", "info_queue", "Q", "M.queue_id") + join("LEFT JOIN", "info_stream", "ST", "M.stream_id") +
          join("JOIN", "event", "E", "M.event_id") + join("JOIN", "info_process", "P", "M.pid") +
          join("JOIN", "info_thread", "T", "M.tid"));
  const std::string allocation_from = " FROM rocpd_memory_allocate M" +
                                      join("LEFT JOIN", "info_agent", "A", "M.agent_id") +
                                      join("LEFT JOIN", "info_queue", "Q", "M.queue_id");
  const std::string allocation_rest = join("JOIN", "event", "E", "M.event_id") +
                                      join("JOIN", "info_process", "P", "M.pid") +
                                      join("JOIN", "info_thread", "T", "M.tid");
  add("memory_allocations",
      "SELECT M.id, M.guid, " + category("E") +
          ", M.nid, P.pid, T.tid, M.start, M.end, (M.end - M.start) AS duration, M.type, M.level, A.name AS "
          "agent_name, " +
          agent("A", "agent") +
          ", M.address, M.size, M.queue_id, Q.name AS queue_name, M.stream_id, ST.name AS stream_name, " + event +
          allocation_from + join("LEFT JOIN", "info_stream", "ST", "M.stream_id") + allocation_rest);
  add("scratch_memory", "SELECT M.id, M.guid, M.nid, P.pid, M.type AS operation, A.name AS agent_name, " +
                            agent("A", "agent") + ", M.queue_id, T.tid, " + json("M", "flags", "alloc_flags") +
                            ", M.start, M.end, (M.end - M.start) AS duration, M.size, M.address, E.correlation_id, " +
                            event + ", " + category("E") + ", E.extdata AS event_extdata" + allocation_from +
                            allocation_rest + " WHERE M.level = 'SCRATCH' ORDER BY M.start");
  add("counters_collection",
      "SELECT min(PMC_E.id) AS id, PMC_E.guid, K.dispatch_id, K.kernel_id, E.id AS event_id, "
      "E.correlation_id, E.stack_id, E.parent_stack_id, P.pid, T.tid, K.agent_id, " +
          agent("A", "agent") +
          ", K.queue_id, K.grid_size_x AS grid_size_x, K.grid_size_y AS grid_size_y, K.grid_size_z AS "
          "grid_size_z, "
          "(K.grid_size_x * K.grid_size_y * K.grid_size_z) AS grid_size, S.display_name AS kernel_name, "
          "(SELECT string FROM rocpd_string RS WHERE RS.id = K.region_name_id AND RS.guid = K.guid) AS "
          "kernel_region, K.workgroup_size_x AS workgroup_size_x, "
          "K.workgroup_size_y AS workgroup_size_y, K.workgroup_size_z AS workgroup_size_z, "
          "(K.workgroup_size_x * K.workgroup_size_y * K.workgroup_size_z) AS workgroup_size, "
          "K.group_segment_size AS lds_block_size, K.private_segment_size AS scratch_size, S.arch_vgpr_count "
          "AS vgpr_count, S.accum_vgpr_count, S.sgpr_count, "
          "PMC_I.name AS counter_name, PMC_I.symbol AS counter_symbol, PMC_I.component, PMC_I.description, "
          "PMC_I.block, PMC_I.expression, PMC_I.value_type, "
          "PMC_I.id AS counter_id, sum(PMC_E.value) AS value, K.start, K.end, PMC_I.is_constant, "
          "PMC_I.is_derived, (K.end - K.start) AS duration, " +
          category("E") + ", K.nid, E.extdata, S.code_object_id FROM rocpd_pmc_event PMC_E" +
          join("JOIN", "info_pmc", "PMC_I", "PMC_E.pmc_id") + join("JOIN", "event", "E", "PMC_E.event_id") +
          " JOIN rocpd_kernel_dispatch K ON K.event_id = PMC_E.event_id AND K.guid = PMC_E.guid" +
          join("JOIN", "info_agent", "A", "K.agent_id") + join("JOIN", "info_kernel_symbol", "S", "K.kernel_id") +
          join("JOIN", "info_process", "P", "K.pid") + join("JOIN", "info_thread", "T", "K.tid") +
          " GROUP BY PMC_E.guid, K.dispatch_id, PMC_I.name, K.agent_id");
  add("top_kernels",
      "SELECT S.display_name AS name, count(K.kernel_id) AS total_calls, sum(K.end - K.start) / 1000.0 AS "
      "total_duration, "
      "(sum(K.end - K.start) / count(K.kernel_id)) / 1000.0 AS average, sum(K.end - K.start) * 100.0 / " +
          kernel_time + " AS percentage FROM rocpd_kernel_dispatch K" +
          join("JOIN", "info_kernel_symbol", "S", "K.kernel_id") + " GROUP BY name ORDER BY total_duration DESC");
  add("busy", "SELECT A.agent_id, AG.type, GpuTime, WallTime, GpuTime * 1.0 / WallTime AS Busy FROM "
              "(SELECT agent_id, guid, sum(end - start) AS GpuTime FROM (SELECT agent_id, guid, end, start FROM "
              "rocpd_kernel_dispatch "
              "UNION ALL SELECT dst_agent_id AS agent_id, guid, end, start FROM rocpd_memory_copy) GROUP BY "
              "agent_id, guid) A "
              "JOIN (SELECT max(end) - min(start) AS WallTime FROM (SELECT end, start FROM rocpd_kernel_dispatch "
              "UNION ALL SELECT end, start FROM rocpd_memory_copy)) W "
              "JOIN rocpd_info_agent AG ON AG.id = A.agent_id AND AG.guid = A.guid");
  add("top", "SELECT name, count(*) AS total_calls, sum(duration) / 1000.0 AS total_duration, (sum(duration) / "
             "count(*)) / 1000.0 AS average, sum(duration) * 100.0 / total_time AS percentage FROM "
             "(SELECT ks.display_name AS name, (kd.end - kd.start) AS duration FROM rocpd_kernel_dispatch kd JOIN "
             "rocpd_info_kernel_symbol ks ON kd.kernel_id = ks.id AND kd.guid = ks.guid "
             "UNION ALL SELECT rs.string AS name, (mc.end - mc.start) AS duration FROM rocpd_memory_copy mc JOIN "
             "rocpd_string rs ON rs.id = mc.name_id AND rs.guid = mc.guid "
             "UNION ALL SELECT rs.string AS name, (rr.end - rr.start) AS duration FROM rocpd_region rr JOIN "
             "rocpd_string rs ON rs.id = rr.name_id AND rs.guid = rr.guid) operations "
             "CROSS JOIN (SELECT sum(end - start) AS total_time FROM (SELECT end, start FROM rocpd_kernel_dispatch "
             "UNION ALL SELECT end, start FROM rocpd_memory_copy "
             "UNION ALL SELECT end, start FROM rocpd_region)) GROUP BY name ORDER BY total_duration DESC");
  return views;
}

}  // namespace tacho::format::rocpd
