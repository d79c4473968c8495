"""A terminal as a picture: what a program draws in it, with its colours, as a page for the browser."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from html import escape

# The colours of ECMA-48 (SGR) on a dark ground.
STYLES = {"1": "font-weight: 700", "2": "color: #8b98a5", "31": "color: #ff7b72", "32": "color: #5fd38d", "33": "color: #e3b341",
          "34": "color: #6cb6ff", "36": "color: #56d4dd"}
HOME = "\x1b[H"
CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[=>78]|\r")
PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>terminal</title><style>
body {{ margin: 0; background: #fff }}
figure {{ display: inline-block; margin: 0; background: #10161d; color: #dbe2e8; border-radius: 8px }}
figcaption {{ padding: 8px 16px; color: #8b98a5; background: #1b242e; border-radius: 8px 8px 0 0; font: 14px sans-serif }}
pre {{ margin: 0; padding: 14px 16px 18px; font: 15px/1.35 "DejaVu Sans Mono", monospace }}
</style><figure><figcaption>{title}</figcaption><pre>{text}</pre></figure>"""


class Terminal:
    """A program in a terminal of its own; it is ended with `close`."""

    def __init__(self, command, columns=100, rows=30):
        self.drawn = b""
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.environ |= {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
            os.environ.pop("NO_COLOR", None)
            os.execvp(command[0], command)

    def picture(self, *texts, seconds=30):
        """The last whole picture that has all `texts`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.screen], [], [], 0.2)[0]:
                self.drawn += os.read(self.screen, 65536)
            frames = self.drawn.decode(errors="replace").split(HOME)
            # The last one may not be drawn to its end yet.
            for frame in reversed(frames[1:-1]):
                if all(text in CONTROL.sub("", frame) for text in texts):
                    return frame
        raise TimeoutError(f"no picture has {texts}: {self.drawn[-2000:]!r}")

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        os.close(self.screen)
        os.waitpid(self.pid, 0)


def html(text):
    """`text` with its colours as spans, and nothing else of what moves a terminal."""
    out, position, is_open = [], 0, False
    for control in CONTROL.finditer(text):
        out.append(escape(text[position:control.start()]))
        position = control.end()
        if control[2] != "m":
            continue
        if is_open:
            out.append("</span>")
        styles = "; ".join(STYLES[code] for code in control[1].split(";") if code in STYLES)
        is_open = bool(styles)
        if styles:
            out.append(f'<span style="{styles}">')
    out.append(escape(text[position:]))
    if is_open:
        out.append("</span>")
    return "".join(out)


def page(title, text):
    return PAGE.format(title=escape(title), text=html(text).rstrip())
