"""Commands in a terminal of their own."""

from __future__ import annotations

import os
import select
import sys


def in_terminal(arguments, columns, interrupt=lambda: False):
    """Exit code, and what a terminal of some width shows of a command.

    Ctrl-C is typed once, when ``interrupt`` says so.
    """
    import fcntl
    import pty
    import struct
    import termios

    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.pop("COLUMNS", None)
        os.execv(sys.executable, [sys.executable, "-m", "mcce.cli", *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = b""
    typed = False
    while True:
        if not typed and interrupt():
            typed = bool(os.write(terminal, b"\x03"))
        if not select.select([terminal], [], [], 0.05)[0]:
            continue
        try:
            got = os.read(terminal, 4096)
        except OSError:
            break
        if not got:
            break
        shown += got
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()
