"""Runs a command on a terminal of its own, and writes what is shown there to standard output.

terminal.py COLUMNS KEYS COMMAND...: KEYS are typed at once. Exits as the command does.
"""

import fcntl
import os
import pty
import struct
import sys
import termios

columns, keys = int(sys.argv[1]), sys.argv[2].encode()
terminal, inner = pty.openpty()
fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(inner, termios.TIOCSCTTY, 0)
    for stream in range(3):
        os.dup2(inner, stream)
    os.closerange(3, 64)
    os.execv(sys.argv[3], sys.argv[3:])
os.close(inner)
os.write(terminal, keys)
shown = b""
while True:
    try:
        piece = os.read(terminal, 1 << 16)
    except OSError:  # Nobody has the terminal any more.
        break
    if not piece:
        break
    shown += piece
os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
