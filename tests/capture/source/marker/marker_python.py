"""Uses every function of python/tacho's markers; run by marker_test.cpp."""
import sys
import threading

import tacho

if "untraced" in sys.argv:
    assert not tacho.active()
else:
    assert tacho.active()
tacho.mark("plain")
tacho.mark("gr\u00fc\u00df", domain="d", category="c", color=0xff00ff00, payload=3)
tacho.mark("real", payload=1.5)
with tacho.range("outer"):
    with tacho.range("inner", domain="d"):
        pass


@tacho.range("call", payload=7)
def recursive(depth):
    return 1 if depth == 0 else 1 + recursive(depth - 1)


assert recursive(2) == 3
try:
    with tacho.range("raises"):
        raise ValueError
except ValueError:
    pass
started = tacho.range_start("across", domain="d")
worker = threading.Thread(target=lambda: (tacho.name_thread("worker"), tacho.range_stop(started)))
worker.start()
worker.join()
tacho.pause()
tacho.mark("paused")
tacho.resume()
tacho.flush()
print("ok")
