#!/usr/bin/env python3
"""Makes a large .rpd (schema 3) out of a small one of schema 2: its rows COPIES times, shifted in time, and below every
API call that is not a marker two nested calls as a driver would make them. Standard library only.

    make_large_rpd.py IN.rpd OUT.rpd [COPIES]        494 copies of mytrace.rpd: 5.0 M operations, 10.1 M API calls
"""
import os
import sqlite3
import sys

TABLES = """
CREATE TABLE rocpd_metadata (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, tag varchar(4096) NOT NULL, value varchar(4096) NOT NULL);
CREATE TABLE rocpd_string (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
CREATE TABLE rocpd_ustring (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
CREATE TABLE rocpd_api (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, pid integer NOT NULL, tid integer NOT NULL, start integer NOT NULL,
  "end" integer NOT NULL, apiName_id bigint NOT NULL, category_id bigint NOT NULL, domain_id bigint NOT NULL, args_id bigint NOT NULL);
CREATE TABLE rocpd_copyapi (api_ptr_id bigint NOT NULL PRIMARY KEY, stream varchar(18) NOT NULL, size integer NOT NULL, width integer NOT NULL,
  height integer NOT NULL, kind integer NOT NULL, dst varchar(18) NOT NULL, src varchar(18) NOT NULL, dstDevice integer NOT NULL,
  srcDevice integer NOT NULL, sync bool NOT NULL, pinned bool NOT NULL);
CREATE TABLE rocpd_kernelapi (api_ptr_id bigint NOT NULL PRIMARY KEY, stream varchar(18) NOT NULL, gridX integer NOT NULL, gridY integer NOT NULL,
  gridZ integer NOT NULL, workgroupX integer NOT NULL, workgroupY integer NOT NULL, workgroupZ integer NOT NULL, groupSegmentSize integer NOT NULL,
  privateSegmentSize integer NOT NULL, kernelName_id bigint NOT NULL);
CREATE TABLE rocpd_op (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, gpuId integer NOT NULL, queueId integer NOT NULL, sequenceId integer NOT NULL,
  start integer NOT NULL, "end" integer NOT NULL, description_id bigint NOT NULL, opType_id bigint NOT NULL);
CREATE TABLE rocpd_api_ops (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, api_id bigint NOT NULL, op_id bigint NOT NULL);
CREATE TABLE rocpd_monitor (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, deviceType varchar(16) NOT NULL, deviceId integer NOT NULL,
  monitorType varchar(16) NOT NULL, start integer NOT NULL, "end" integer NOT NULL, value varchar(255) NOT NULL);
INSERT INTO rocpd_metadata(tag, value) VALUES ('gpu_stride', '1000'), ('pid_stride', '10000000'), ('schema_version', '3');
"""
# The views of the current upstream schema, for comparing with what SQLite makes of them.
VIEWS = """
CREATE VIEW api AS SELECT rocpd_api.id, pid, tid, start, end, A.string AS domain, B.string AS category, C.string AS apiName, D.string AS args
  FROM rocpd_api JOIN rocpd_string A ON A.id = domain_id JOIN rocpd_string B ON B.id = category_id
  JOIN rocpd_string C ON C.id = apiName_id JOIN rocpd_ustring D ON D.id = args_id;
CREATE VIEW op AS SELECT rocpd_op.id, gpuId, queueId, sequenceId, start, end, A.string AS description, B.string AS opType
  FROM rocpd_op JOIN rocpd_string A ON A.id = description_id JOIN rocpd_string B ON B.id = opType_id;
CREATE VIEW busy AS SELECT A.gpuId, GpuTime, WallTime, GpuTime * 1.0 / WallTime AS Busy
  FROM (SELECT gpuId, sum(end - start) AS GpuTime FROM rocpd_op GROUP BY gpuId) A JOIN (SELECT max(end) - min(start) AS WallTime FROM rocpd_op);
CREATE VIEW top AS SELECT C.string AS Name, count(C.string) AS TotalCalls, sum(A.end - A.start) / 1000 AS TotalDuration_us,
  (sum(A.end - A.start) / count(C.string)) / 1000.0 AS Ave_us, sum(A.end - A.start) * 100.0 / (SELECT sum(end - start) FROM rocpd_op) AS Percentage
  FROM (SELECT opType_id AS name_id, start, end FROM rocpd_op WHERE description_id IN (SELECT id FROM rocpd_string WHERE string = '')
        UNION SELECT description_id, start, end FROM rocpd_op WHERE description_id NOT IN (SELECT id FROM rocpd_string WHERE string = '')) A
  JOIN rocpd_string C ON C.id = A.name_id GROUP BY Name ORDER BY TotalDuration_us DESC;
"""


def main():
    source, target = sys.argv[1], sys.argv[2]
    copies = int(sys.argv[3]) if len(sys.argv) > 3 else 494
    if os.path.exists(target):
        os.unlink(target)
    db = sqlite3.connect(target, isolation_level=None)
    db.execute("PRAGMA journal_mode=OFF")
    db.execute("PRAGMA synchronous=OFF")
    db.executescript(TABLES)
    db.execute("ATTACH ? AS source", (source,))
    first, last = db.execute("SELECT min(start), max(end) FROM source.rocpd_api").fetchone()
    step = (last - first) + 1_000_000
    strings = dict(db.execute("SELECT id, string FROM source.rocpd_string"))
    text_of = {text: number for number, text in strings.items()}
    markers = {number for number, text in strings.items() if text == "UserMarker"}
    used = {row[0] for row in db.execute("SELECT apiName_id FROM source.rocpd_api UNION SELECT description_id FROM source.rocpd_op "
                                         "UNION SELECT opType_id FROM source.rocpd_op UNION SELECT kernelName_id FROM source.rocpd_kernelapi")}
    used |= {text_of[""]}
    db.execute("BEGIN")
    names = {}
    for text in [""] + sorted(strings[number] for number in used if strings[number]) + ["hip", "roctx", "driver_submit", "driver_ring"]:
        if text not in names:
            names[text] = len(names) + 1
            db.execute("INSERT INTO rocpd_string(id, string) VALUES (?, ?)", (names[text], text))
    api = list(db.execute("SELECT id, pid, tid, start, end, apiName_id, args_id FROM source.rocpd_api ORDER BY id"))
    ops = list(db.execute("SELECT id, gpuId, queueId, sequenceId, start, end, description_id, opType_id FROM source.rocpd_op ORDER BY id"))
    links = list(db.execute("SELECT api_id, op_id FROM source.rocpd_api_ops ORDER BY id"))
    launches = list(db.execute("SELECT api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, "
                               "privateSegmentSize, kernelName_id FROM source.rocpd_kernelapi ORDER BY api_ptr_id"))
    calls = list(db.execute("SELECT api_ptr_id, stream, size, width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned "
                            "FROM source.rocpd_copyapi ORDER BY api_ptr_id"))
    monitor = list(db.execute("SELECT deviceType, deviceId, monitorType, start, end, value FROM source.rocpd_monitor ORDER BY id"))
    db.execute("INSERT INTO rocpd_ustring(id, string) VALUES (1, '')")
    next_api, next_op, next_text = 1, 1, 2
    for copy in range(copies):
        shift = copy * step
        rows, texts, api_id, op_id = [], [], {}, {}
        for number, pid, tid, start, end, name, args in api:
            start += shift
            end += shift
            api_id[number] = next_api
            text = strings[args]
            text_id = 1
            if text:
                text_id = next_text
                next_text += 1
                texts.append((text_id, text))
            is_marker = name in markers
            rows.append((next_api, pid, tid, start, end, names[strings[name]], names[""], names["roctx" if is_marker else "hip"], text_id))
            next_api += 1
            if not is_marker:
                fourth = (end - start) // 4
                rows.append((next_api, pid, tid, start + fourth, end - fourth, names["driver_submit"], names[""], names["hip"], 1))
                rows.append((next_api + 1, pid, tid, start + fourth, start + 2 * fourth, names["driver_ring"], names[""], names["hip"], 1))
                next_api += 2
        db.executemany("INSERT INTO rocpd_ustring VALUES (?, ?)", texts)
        db.executemany("INSERT INTO rocpd_api VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        rows = []
        for number, gpu, queue, sequence, start, end, description, kind in ops:
            op_id[number] = next_op
            rows.append((next_op, gpu, queue, sequence, start + shift, end + shift, names[strings[description]], names[strings[kind]]))
            next_op += 1
        db.executemany("INSERT INTO rocpd_op VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        db.executemany("INSERT INTO rocpd_api_ops(api_id, op_id) VALUES (?, ?)", [(api_id[a], op_id[o]) for a, o in links])
        db.executemany("INSERT INTO rocpd_kernelapi VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       [(api_id[row[0]],) + tuple(row[1:10]) + (names[strings[row[10]]],) for row in launches])
        db.executemany("INSERT INTO rocpd_copyapi VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [(api_id[row[0]],) + tuple(row[1:]) for row in calls])
        db.executemany("INSERT INTO rocpd_monitor(deviceType, deviceId, monitorType, start, end, value) VALUES (?, ?, ?, ?, ?, ?)",
                       [(row[0], row[1], row[2], row[3] + shift, row[4] + shift, row[5]) for row in monitor])
    db.execute("COMMIT")
    db.executescript(VIEWS)
    db.execute("CREATE INDEX rocpd_strin_string_c7b9cd_idx ON rocpd_string (string)")
    db.close()


if __name__ == "__main__":
    main()
