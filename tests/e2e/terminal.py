"""Programs on a terminal of a given width."""
import fcntl
import os
import pty
import select
import struct
import termios

TIOCGPTN = 0x80045430  # the number of a terminal's other end; Python 3.11 does not name it


def run(command, width, rows=50, cwd=None, env=None):
    """(output, exit code) of a command whose three streams are a terminal with this many columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, width, 0, 0))
            os.chdir(cwd or ".")
            os.execvpe(str(command[0]), [str(word) for word in command], env or os.environ)
        finally:
            os._exit(99)
    # While this side holds the program's end, too, its last output is not lost when the program goes.
    number = struct.unpack("I", fcntl.ioctl(terminal, TIOCGPTN, bytes(4)))[0]
    other = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)
    output, status = b"", None
    while True:
        ready = select.select([terminal], [], [], 0.02)[0]
        if ready:
            output += os.read(terminal, 65536)
        elif status is not None:
            break
        else:
            done, ended = os.waitpid(pid, os.WNOHANG)
            status = ended if done == pid else None
    os.close(other)
    os.close(terminal)
    return output, os.waitstatus_to_exitcode(status)
