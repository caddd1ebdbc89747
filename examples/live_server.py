"""A server that records itself for whoever asks on this machine: GET /debug/tacho?seconds=5 answers with a trace.

    TACHO_DEBUG=1 python3 live_server.py 8000                              the standard library's server
    TACHO_DEBUG=1 uvicorn live_server:app --host 127.0.0.1 --port 8000     the same under uvicorn
    curl -o now.tacho 'http://127.0.0.1:8000/debug/tacho?seconds=5' && tacho view now.tacho

Without TACHO_DEBUG=1 the path does not exist, and nothing of tacho is loaded. Only this machine is answered, and one at a time: a
trace tells much about a program. TACHO_DEBUG_OPTIONS: options of tacho attach, as in "--sampler timer".
"""
import asyncio
import http.server
import ipaddress
import os
import sys
import tempfile
import threading
import urllib.parse

MOST_SECONDS = 60
OFFERED = os.environ.get("TACHO_DEBUG") == "1"
if OFFERED:
    import tacho

    tacho.listen()
recording = threading.Lock()


def work():
    """What this server is for."""
    total = 0
    for i in range(20_000):
        total = (total * 31 + i) % 1_000_000_007
    return f"{total}\n".encode()


def debug(query, client):
    """Status, type and body of the answer to /debug/tacho."""
    if not OFFERED or not ipaddress.ip_address(client).is_loopback:
        return 404, "text/plain", b"not found\n"
    try:
        seconds = float(urllib.parse.parse_qs(query).get("seconds", ["5"])[0])
        if not 0 < seconds <= MOST_SECONDS:
            raise ValueError
    except ValueError:
        return 400, "text/plain", f"seconds: a number above 0, at most {MOST_SECONDS}\n".encode()
    if not recording.acquire(blocking=False):
        return 409, "text/plain", b"another recording is under way\n"
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = tacho.snapshot(seconds, os.path.join(folder, "now.tacho"), *os.environ.get("TACHO_DEBUG_OPTIONS", "").split())
            with open(path, "rb") as file:
                return 200, "application/octet-stream", file.read()
    except tacho.Error as problem:
        return 500, "text/plain", f"{problem}\n".encode()
    finally:
        recording.release()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        status, kind, body = debug(query, self.client_address[0]) if path == "/debug/tacho" else (200, "text/plain", work())
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def app(scope, receive, send):
    """The same as an ASGI application."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/debug/tacho":
        client = (scope.get("client") or ("0.0.0.0", 0))[0]
        status, kind, body = await asyncio.to_thread(debug, scope["query_string"].decode(), client)
    else:
        status, kind, body = 200, "text/plain", work()
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
