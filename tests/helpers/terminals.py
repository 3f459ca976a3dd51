"""Commands in a terminal of their own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

# A new session has no terminal until it asks for one; with it, Ctrl-C reaches the whole group.
PROGRAM = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from mcce.cli import main
sys.exit(main(sys.argv[1:]))
"""
SECONDS = 240


def in_terminal(arguments, columns=80, *, act_when=None, act=None, **environment):
    """Exit code, and what a terminal of some width shows of a command.

    As soon as ``act_when`` says so, ``act`` is called with the process, or else Ctrl-C is typed.
    """
    import termios

    terminal, inner = os.openpty()
    termios.tcsetwinsize(inner, (24, columns))
    inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        env={**inherited, **environment},
    )
    os.close(inner)
    shown, deadline = b"", time.monotonic() + SECONDS
    try:
        while True:
            ended = process.poll() is not None
            if act_when is not None and act_when():
                act_when = None
                act(process) if act else os.write(terminal, b"\x03")
            # Workers that outlive the command keep the terminal open, so its end is not waited for.
            if select.select([terminal], [], [], 0 if ended else 0.05)[0]:
                got = _read(terminal)
                shown += got
                if got:
                    continue
            if ended:
                break
            assert time.monotonic() < deadline, f"the command goes on: {shown.decode()}"
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return process.returncode, shown.decode()


def _read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody has it open any more
        return b""
