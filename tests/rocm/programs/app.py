"""A Python application on the bed: HIP through a library (plugin.hip), some work on the host, and results on stdout."""
import ctypes
import json
import sys

library = ctypes.CDLL("./libplugin.so")
for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    sum(len(json.dumps(list(range(2000)))) for _ in range(50))
    if library.run_plugin() != 0:
        sys.exit(1)
print("trained")
