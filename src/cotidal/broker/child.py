"""A forked child: what it does from its first to its last moment."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Final

EXIT_FAULT: Final = 70
"""Something was raised that nobody caught (EX_SOFTWARE)."""


def fork(be: Callable[[], int]) -> int:
    """A child that does ``be`` and exits with what that returns; its pid. It is a process group of
    its own: Ctrl-C in a terminal reaches the parent only, which decides."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = EXIT_FAULT
    try:
        os.setpgid(0, 0)
        code = be()
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
