#!/usr/bin/env python3
"""`tacho watch --from`: several watches as one, by their endpoints; and the page of --view, as far as its server goes."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time
import unittest
import urllib.error
import urllib.request

from harness import BUILD, Case, TACHO, main, sanitized

DRIVER = BUILD / "tests" / "fake_cuda"
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": str(DRIVER / "driver"), "TACHO_NVML": str(BUILD / "tests" / "libstandin_nvml.so"), "TACHO_AMD_SMI": "",
               "TACHO_ROCM_SMI": ""}


def setUpModule():
    if sanitized():
        raise unittest.SkipTest("a sanitizer's runtime wants to be the first library of a program")


def sums(moment, kind, what="count"):
    found = {}
    for row in moment["rows"]:
        if row["kind"] == kind:
            found[row["name"]] = found.get(row["name"], 0) + row.get(what, 0)
    return found


class Watches(Case):
    def start(self, count, *options):
        """A watch whose program makes `count` launches and then waits for its file NUMBER.end."""
        self.number = getattr(self, "number", 0) + 1
        end = self.folder / f"{self.number}.end"
        # The folder goes with the test, whose watch may have been killed.
        wait = f"while [ -d {self.folder} ] && [ ! -e {end} ]; do sleep 0.05; done"
        work = f"{DRIVER / 'fake_watched'} dlsym plain {count} > {self.number}.json; touch {self.number}.done; {wait}"
        watch = subprocess.Popen([str(TACHO), "watch", *options, "--output-format", "json", "-o", f"{self.number}.jsonl", "--", "sh", "-c", work],
                                 cwd=self.folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watch.stderr.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        watch.address = re.search(r"http://\S+", watch.stderr.readline())[0]
        watch.place = watch.address.split("/")[2]
        watch.number = self.number
        self.addCleanup(end.touch)
        return watch

    def done(self, *watches):
        for watch in watches:
            end = time.monotonic() + 60
            while not (self.folder / f"{watch.number}.done").exists():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)

    def finish(self, watch):
        """Its own last object."""
        (self.folder / f"{watch.number}.end").touch()
        self.assertEqual(watch.wait(60), 0)
        return json.loads((self.folder / f"{watch.number}.jsonl").read_text().splitlines()[-1])

    def listen(self, count):
        return self.start(count, "--prometheus", "127.0.0.1:0")


class Hosts(Watches):
    def test_the_sum_of_two_watches(self):
        one, two = self.listen(20000), self.listen(50000)
        self.done(one, two)
        self.run_command(TACHO, "watch", "--from", f"{one.address},{two.place}", "--duration", "2", "--interval", "0.5", "--output-format", "json", "-o", "f.jsonl")
        moments = [json.loads(line) for line in (self.folder / "f.jsonl").read_text().splitlines()]
        self.assertGreaterEqual(len(moments), 3)
        last = moments[-1]
        self.assertTrue(last["final"])
        self.assertEqual([(host["address"], host["problem"], host["processes"]) for host in last["hosts"]], [(one.place, "", 0), (two.place, "", 0)])
        self.assertEqual([host["name"] for host in last["hosts"]], [socket.gethostname()] * 2)
        self.assertEqual([host["launches"] for host in last["hosts"]], [20200, 50500])
        self.assertEqual(len(last["hosts"][0]["gpus"]) > 4, True)
        own = [self.finish(one), self.finish(two)]
        for kind in ("kernel", "copy", "wait", "allocation"):
            with self.subTest(kind):
                expected = {}
                for moment in own:
                    for name, count in sums(moment, kind).items():
                        expected[name] = expected.get(name, 0) + count
                self.assertEqual(sums(last, kind), expected)
                self.assertGreater(sum(expected.values()), 0)
        [often] = [row for row in last["rows"] if row["name"] == "often_1000"]
        self.assertEqual((often["count"], often["hosts"]), (70000, 2))
        parts = [next(row for row in moment["rows"] if row["name"] == "often_1000") for moment in own]
        self.assertAlmostEqual(often["total_ns"], sum(row["total_ns"] for row in parts), delta=1)
        self.assertLessEqual(often["interval_95_ns"], sum(row["interval_95_ns"] for row in parts))
        self.assertGreaterEqual(often["interval_95_ns"], max(row["interval_95_ns"] for row in parts))
        self.assertEqual(often["timed"], sum(row["timed"] for row in parts))

    def test_a_host_that_does_not_answer_is_named_and_keeps_its_numbers(self):
        one, two = self.listen(2000), self.listen(3000)
        self.done(one, two)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = f"127.0.0.1:{free.getsockname()[1]}"
        shown = subprocess.Popen([str(TACHO), "watch", "--from", f"{one.place},{two.place},{nobody}", "--output-format", "json", "-o", "f.jsonl", "--interval", "0.3"],
                                 cwd=self.folder)
        self.addCleanup(shown.kill)
        self.until(lambda: self.last().get("rows"))
        two.kill()
        two.wait()
        self.until(lambda: self.last()["hosts"][1]["problem"])
        shown.send_signal(signal.SIGINT)
        self.assertEqual(shown.wait(20), 0)
        last = self.last()
        self.assertEqual(sums(last, "kernel")["often_1000"], 5000)
        self.assertEqual([host["problem"] == "" for host in last["hosts"]], [True, False, False])
        self.assertEqual([host["ago_s"] is None for host in last["hosts"]], [False, False, True])
        self.assertGreater(last["hosts"][1]["ago_s"], 0)
        self.assertTrue(any(two.place in note and "has not answered for" in note for note in last["notes"]), last["notes"])
        self.assertIn(f"{nobody} has never answered: Connection refused.", last["notes"])

    def last(self):
        lines = [line for line in (self.folder / "f.jsonl").read_text().splitlines() if line.endswith("}")] if (self.folder / "f.jsonl").exists() else []
        return json.loads(lines[-1]) if lines else {}

    def until(self, what):
        end = time.monotonic() + 30
        while not what():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def test_what_a_host_did_before_is_not_of_now(self):
        """A host that comes late brings its counts, and no rate of them; one that begins anew counts from 0."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        one = self.listen(2000)
        self.done(one)
        shown = subprocess.Popen([str(TACHO), "watch", "--from", f"{one.place},{port}", "--interval", "0.5"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(shown.stderr.close)
        self.addCleanup(shown.kill)
        shown.stderr.readline()
        late = self.start(900000, "--prometheus", f"127.0.0.1:{port}")
        self.done(late)
        time.sleep(3)
        shown.send_signal(signal.SIGINT)
        said = shown.stderr.read()
        self.assertIn("902000", said.replace(",", ""))
        rates = re.findall(r"s  ([\d.]+)(k|M|G)? launches/s", said)
        self.assertTrue(rates)
        late_lines = [line for line in said.splitlines() if "launches/s" in line][-3:]
        for line in late_lines:
            self.assertIn(" 0.0 launches/s", line)

    def test_the_page_of_the_terminal(self):
        one, two = self.listen(20000), self.listen(50000)
        self.done(one, two)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = f"127.0.0.1:{free.getsockname()[1]}"
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(str(TACHO), [str(TACHO), "watch", "--page", "--from", f"{one.place},{two.place},{nobody}", "--interval", "0.3"])
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 130, 0, 0))
        seen = b""
        end = time.monotonic() + 30
        needles = [b"3 hosts", b"often_1000 4096/256", b"Hosts", one.place.encode(), two.place.encode(), f"{nobody} has never answered".encode(), b"70.0k"]
        while any(needle not in seen for needle in needles) and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 65536)
        self.assertEqual([needle for needle in needles if needle not in seen], [])
        os.write(terminal, b"q")
        while True:
            try:
                if not os.read(terminal, 65536):
                    break
            except OSError:
                break
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_bad_words(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.one_sentence(self.run_command(TACHO, "watch", "--from", f"127.0.0.1:{port}", code=1), f"127.0.0.1:{port}", "--prometheus")
        self.one_sentence(self.run_command(TACHO, "watch", "--from", "node1", code=1), "--from node1", "HOST:PORT")
        self.one_sentence(self.run_command(TACHO, "watch", "--from", "1,1", code=1), "twice")
        self.one_sentence(self.run_command(TACHO, "watch", "--from", "1", "--", "true", code=1), "leave out the program")
        self.one_sentence(self.run_command(TACHO, "watch", "--from", "1", "--prometheus", "9400", code=1), "--prometheus")
        self.one_sentence(self.run_command(TACHO, "watch", "--from", "1", "-o", "x.tacho", code=1), "-o FILE.tacho")
        self.one_sentence(self.run_command(TACHO, "watch", "--page", "--view", "--", "true", code=125), "--view")

    def test_an_answer_that_is_none(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            shown = subprocess.Popen([str(TACHO), "watch", "--from", str(server.getsockname()[1])], stderr=subprocess.PIPE, text=True, cwd=self.folder)
            with server.accept()[0] as client:
                client.recv(65536)
                client.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"tacho_watch": 1, "rows": [{]}')
            said = shown.communicate(timeout=20)[1]
        self.assertEqual(shown.returncode, 1)
        self.assertIn("no moment of tacho watch", said)


class Page(Watches):
    """The server of --view: its page and its data are for who has the token."""
    def test_a_page_and_its_data(self):
        watch = self.start(3000, "--view")
        self.done(watch)
        page, token = watch.address.split("?token=")
        with urllib.request.urlopen(watch.address, timeout=10) as answer:
            text = answer.read().decode()
        self.assertIn("<title>tacho watch</title>", text)
        self.assertIn("connect-src 'self'", text)
        with urllib.request.urlopen(urllib.request.Request(page + "moment", headers={"X-Tacho-Token": token}), timeout=10) as answer:
            moment = json.loads(answer.read())
        self.assertEqual(sums(moment, "kernel")["often_1000"], 3000)
        self.assertIn("fake_watched", moment["title"])
        for path in ("", "moment"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(page + path, timeout=10)
            self.assertEqual(refused.exception.code, 403)
            refused.exception.close()
        self.finish(watch)

    def test_lines_of_the_host(self):
        (self.folder / "hot.c").write_text(
            '#include <dlfcn.h>\n#include <time.h>\nstatic volatile unsigned long turns;\n'
            'static __attribute__((noinline)) void hot(void) { struct timespec now; time_t end; clock_gettime(CLOCK_MONOTONIC, &now); end = now.tv_sec + 30; do {\n'
            'for (int i = 0; i < 10000000; ++i) ++turns;\n'  # line 5
            'clock_gettime(CLOCK_MONOTONIC, &now); } while (now.tv_sec < end); }\n'
            'int main(void) { void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *made = 0;\n'
            'int (*function)(void**, void*, const char*) = (int (*)(void**, void*, const char*))dlsym(cuda, "cuModuleGetFunction");\n'
            'int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) = dlsym(cuda, "cuLaunchKernel");\n'
            'function(&made, 0, "often_1000"); launch(made, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0); hot(); return 0; }\n')
        self.run_command("gcc", "-g", "-O1", "-o", "hot", "hot.c", "-ldl")
        watch = subprocess.Popen([str(TACHO), "watch", "--view", "-q", "--", "./hot"], cwd=self.folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watch.stderr.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        page, token = re.search(r"http://\S+", watch.stderr.readline())[0].split("?token=")
        end, code = time.monotonic() + 25, {"samples": 0}
        while code["samples"] < 60 and time.monotonic() < end:
            time.sleep(0.3)
            with urllib.request.urlopen(urllib.request.Request(page + "moment", headers={"X-Tacho-Token": token}), timeout=10) as answer:
                moment = json.loads(answer.read())
            code = moment["host_code"]
            refused = [note for note in moment["notes"] if "does not let tacho sample the host's code" in note]
            if refused:
                watch.send_signal(signal.SIGTERM)
                self.skipTest(refused[0])
        watch.send_signal(signal.SIGTERM)
        watch.wait(20)
        self.assertGreaterEqual(code["samples"], 60)
        hottest = code["lines"][0]
        self.assertEqual((hottest["function"], hottest["file"].rsplit("/")[-1], hottest["line"], hottest["module"].rsplit("/")[-1]), ("hot", "hot.c", 5, "hot"))
        self.assertGreater(hottest["share"], 0.8)
        self.assertLess(code["processors"], 1.1)

    def test_through_a_tunnel(self):
        """ssh -L gives it another port, which the header Host then has."""
        watch = self.listen(1000)
        self.done(watch)
        request = urllib.request.Request(f"http://{watch.place}/moment", headers={"Host": "127.0.0.1:1"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            self.assertEqual(sums(json.loads(answer.read()), "kernel")["often_1000"], 1000)
        port = watch.place.split(":")[1]
        for headers in ({"Host": f"evil.example:{port}"}, {"Host": "evil.example"}, {"Host": f"127.0.0.1.evil.example:{port}"},
                        {"Host": "127.0.0.1:1", "Origin": "http://evil.example"},
                        {"Host": watch.place, "Origin": "http://127.0.0.1:1"}):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(f"http://{watch.place}/moment", headers=headers), timeout=10)
            self.assertEqual(refused.exception.code, 403)
            refused.exception.close()


if __name__ == "__main__":
    main()
