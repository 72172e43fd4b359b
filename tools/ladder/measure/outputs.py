"""What a ladder's plain programs print on a GPU: make bench stores it, make readme shows it (pages/ladder_tables.py).

ladder.json names them: {"errors_launch": "./errors launch"}. In front of the program compute-sanitizer may stand with its
options. The exit code does not matter, since some of the programs show what an error looks like.
"""

import subprocess

from ..core import ladders, machine
from ..core.ladders import Unusable

SECONDS = 60
SANITIZER = "compute-sanitizer"


def path_of(folder, ladder, name):
    return folder / ladder.id / f"outputs/{name}.txt"


def words_of(ladder, command):
    """The command with the paths of its tools; None if compute-sanitizer is not installed."""
    words = []
    for word in command.split():
        if word == SANITIZER:
            try:
                word = machine.find(SANITIZER, f"{SANITIZER} is not installed")
            except Unusable:
                return None
        words.append(machine.program(ladder, word[2:]) if word.startswith("./") else word)
    return words


def store(ladder, folder):
    """Runs them all and writes <folder>/<ladder>/outputs/<name>.txt."""
    for name, command in ladder.outputs.items():
        words = words_of(ladder, command)
        if words is None:
            print(f"bench: {ladder.id}: {name} was left out, because {SANITIZER} is not installed")
            continue
        try:
            done = machine.run(*words, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unusable(f"{ladder.id}: {command} did not run to its end: {error}")
        text = done.stdout.decode(errors="replace").replace(f"{ladders.ROOT}/", "")
        path = path_of(folder, ladder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line.rstrip()}\n" for line in text.splitlines()), encoding="utf-8")
