"""Stands in for libpyrocpd, the compiled part of AMD's rocpd package (rocpd.sh): connections and the schema's files."""
import os
import sqlite3
import types


def connect(path):
    return sqlite3.connect(path)


class RocpdImportData:
    def __init__(self, connection, filenames=None):
        self.connection = connection.connection if isinstance(connection, RocpdImportData) else connection
        self.filenames = filenames


class output_config:  # noqa: N801, the package's own name
    pass


def format_path(path, _tag):
    return path


def schema_jinja_variables():
    return types.SimpleNamespace(uuid="", guid="")


sql_engine = types.SimpleNamespace(sqlite3=1)
sql_option = types.SimpleNamespace(none=0, sqlite3_pragma_foreign_keys=1)
sql_schema = types.SimpleNamespace(rocpd_tables="rocpd_tables", rocpd_indexes="rocpd_indexes", rocpd_views="rocpd_views",
                                   data_views="data_views", summary_views="summary_views", marker_views="marker_views")


def load_schema(_engine, kind, _options, variables):
    with open(os.path.join(os.environ["ROCPD_SQL"], kind + ".sql"), encoding="utf-8") as file:
        text = file.read()
    return text.replace("{{uuid}}", variables.uuid).replace("{{guid}}", variables.guid)
