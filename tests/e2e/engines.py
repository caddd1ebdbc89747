"""Runs a script of SQL in DuckDB or ClickHouse by their C libraries, which scripts/packages.sh fetches with npm. As a program
(engines.py duckdb|clickhouse SCRIPT) it prints the rows of every SELECT as JSON, so that a test does not get the library into
its own process."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = {"duckdb": TESTS / "duckdb/node_modules/@duckdb/node-bindings-linux-x64/libduckdb.so",
             "clickhouse": TESTS / "clickhouse/node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"}


def library(engine):
    """The library's path, or a skipped test; where all data must be there (CI) a failed one."""
    path = pathlib.Path(os.environ.get("TACHO_DUCKDB", LIBRARIES[engine]) if engine == "duckdb" else LIBRARIES[engine])
    if not path.exists():
        how = "scripts/packages.sh test" if engine == "duckdb" else "TACHO_REQUIRE_DATA=1 scripts/packages.sh test"
        if os.environ.get("TACHO_REQUIRE_DATA") == "1":
            raise AssertionError(f"{engine}'s library is not at {path}: {how} installs it")
        raise unittest.SkipTest(f"no {engine} at {path}; {how} installs it")
    return path


def statements(script):
    """Of a script without semicolons in its texts."""
    plain = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("--"))
    return [one.strip() for one in plain.split(";") if one.strip()]


def run(engine, script, cwd=None):
    """[{column: value} of each row] of every SELECT in the script; of ClickHouse numbers as numbers, of DuckDB all as texts."""
    library(engine)
    done = subprocess.run([sys.executable, __file__, engine], input=script.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
    if done.returncode != 0:
        raise AssertionError(f"{engine}: {done.stderr.decode()[-3000:]}")
    return json.loads(done.stdout)


class DuckDb:
    class Result(ctypes.Structure):
        _fields_ = [("deprecated", ctypes.c_uint64 * 5), ("data", ctypes.c_void_p)]

    def __init__(self):
        self.lib = lib = ctypes.CDLL(str(library("duckdb")))
        lib.duckdb_result_error.restype = lib.duckdb_column_name.restype = ctypes.c_char_p
        lib.duckdb_column_name.argtypes = [ctypes.POINTER(self.Result), ctypes.c_uint64]
        lib.duckdb_value_varchar.restype = ctypes.c_void_p
        lib.duckdb_value_varchar.argtypes = [ctypes.POINTER(self.Result), ctypes.c_uint64, ctypes.c_uint64]
        lib.duckdb_free.argtypes = [ctypes.c_void_p]
        for name in ("duckdb_row_count", "duckdb_column_count"):
            getattr(lib, name).restype = ctypes.c_uint64
        self.database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        if lib.duckdb_open(None, ctypes.byref(self.database)) != 0 or lib.duckdb_connect(self.database, ctypes.byref(self.connection)) != 0:
            raise SystemExit("DuckDB cannot open a database")

    def query(self, statement):
        lib, result = self.lib, self.Result()
        if lib.duckdb_query(self.connection, statement.encode(), ctypes.byref(result)) != 0:
            raise SystemExit(f"{lib.duckdb_result_error(ctypes.byref(result)).decode()}\n{statement}")
        names = [lib.duckdb_column_name(ctypes.byref(result), i).decode() for i in range(lib.duckdb_column_count(ctypes.byref(result)))]
        rows = []
        for row in range(lib.duckdb_row_count(ctypes.byref(result))):
            rows.append({})
            for column, name in enumerate(names):
                text = lib.duckdb_value_varchar(ctypes.byref(result), column, row)
                rows[-1][name] = ctypes.string_at(text).decode() if text else None
                lib.duckdb_free(text)
        lib.duckdb_destroy_result(ctypes.byref(result))
        return rows


class ClickHouse:
    def __init__(self):
        self.lib = lib = ctypes.CDLL(str(library("clickhouse")))
        lib.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
        lib.chdb_query.restype = ctypes.c_void_p
        lib.chdb_query.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        for name, kind in (("chdb_result_buffer", ctypes.c_void_p), ("chdb_result_length", ctypes.c_size_t), ("chdb_result_error", ctypes.c_char_p),
                           ("chdb_destroy_query_result", None)):
            getattr(lib, name).restype, getattr(lib, name).argtypes = kind, [ctypes.c_void_p]
        self.connection = lib.chdb_connect(1, (ctypes.c_char_p * 1)(b"clickhouse"))
        if not self.connection:
            raise SystemExit("ClickHouse's library gives no connection")

    def query(self, statement):
        result = self.lib.chdb_query(self.connection[0], statement.encode(), b"JSON")
        error = self.lib.chdb_result_error(result)
        if error:
            raise SystemExit(f"{error.decode()}\n{statement}")
        length = self.lib.chdb_result_length(result)
        text = ctypes.string_at(self.lib.chdb_result_buffer(result), length).decode() if length else ""
        self.lib.chdb_destroy_query_result(result)
        return json.loads(text)["data"] if text.strip() else []


if __name__ == "__main__":
    database = DuckDb() if sys.argv[1] == "duckdb" else ClickHouse()
    answers = []
    for one in statements(sys.stdin.read()):
        rows = database.query(one)
        if one.upper().startswith("SELECT"):
            answers.append(rows)
    json.dump(answers, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # the libraries' threads need not end in order
