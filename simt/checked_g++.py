"""g++ ($SIMT_GXX) for translated CUDA, and then the look at its calls of execution_space.py.

It takes the compiler's place under ccache, which so keeps what has passed and nothing else.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import execution_space

NOT_FOR_THE_GRAPH = re.compile(r"-(O|g|fsanitize|fdump|M)")


def graph_of(gxx, arguments, folder):
    """The text of -fcallgraph-info, with each call's line; nothing is inlined."""
    arguments = [word for word in arguments if not NOT_FOR_THE_GRAPH.match(word) and word != "-c"]
    at = arguments.index("-o")
    arguments[at + 1] = f"{folder}/graph.s"
    subprocess.run([*gxx, *arguments, "-O0", "-w", "-S", "-fcallgraph-info"], stderr=subprocess.DEVNULL)
    graph = Path(folder, "graph.ci")
    return graph.read_text(errors="surrogateescape") if graph.exists() else ""


def main():
    gxx, arguments = shlex.split(os.environ.get("SIMT_GXX", "g++")), sys.argv[1:]
    if "-c" not in arguments or "c++-cpp-output" not in arguments or "-o" not in arguments:
        os.execvp(gxx[0], [*gxx, *arguments])
    text = arguments[-1] if arguments[-1].endswith("ii") else arguments[arguments.index("-c") + 1]
    with tempfile.TemporaryDirectory(prefix="checked-") as folder:
        dump = Path(folder, "calls")
        code = subprocess.run([*gxx, *arguments, f"-fdump-ipa-cgraph={dump}"]).returncode
        if code or not dump.exists():
            return code
        found = execution_space.check(
            dump.read_text(errors="surrogateescape"),
            Path(text).read_text(errors="surrogateescape"),
            lambda: graph_of(gxx, arguments, folder),
        )
    if not found:
        return 0
    print(*found, sep="\n", file=sys.stderr)
    Path(arguments[arguments.index("-o") + 1]).unlink(missing_ok=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
