"""Keeps what Python makes of the modules below the checkout's build/simt, where later starts read it.

Where there is no checkout nothing is kept, and nothing is ever written beside the modules.
"""

import os
import sys

from . import SIMT, TOOLKIT


def keep_bytecode():
    """Call it before the modules are imported that it concerns."""
    if not TOOLKIT:
        build = os.path.abspath(os.environ.get("SIMT_BUILD_DIR") or SIMT.parent / "build/simt")
        sys.pycache_prefix, sys.dont_write_bytecode = os.path.join(build, "python"), False
