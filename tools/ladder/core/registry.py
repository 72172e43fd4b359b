"""What the jobs, the tables and the plots are called, and where their code is.

tools/ladder, and each folder of the root that has a plugin.py, list in it
    JOBS      {name: module}    python3 -m ladder NAME calls the module's arguments(parser) and run(given)
    PAGES     [module]          their tables and plots register themselves here when they are imported
    STORED    [name]            tables that show a CSV as it is; until it is stored, a page keeps its sentence
    STORES    {pattern: (what, command)}    what the files are that a command writes to profiling_results/<gpu>/
    PROGRAMS  {name: folder}    programs of which make bench stores the table, as header/<name>.csv
so that nothing here names what compares with other libraries. A job imports what it needs when it starts.
"""

import functools
import importlib
import sys
from dataclasses import dataclass
from typing import Callable

from .ladders import ROOT
from .markdown import image

OWN = "ladder.plugin"
TABLES: "dict[str, Table]" = {}
PLOTS: dict = {}


@dataclass(frozen=True)
class Table:
    """make(folder, ladder, block) is the text of a block, None if what it needs is not stored. folder: that of the
    GPU's results, or None if there are none; then only tables with without_gpu are asked."""

    make: Callable
    form: str  # the words and values that its marker may have
    about: str
    without_gpu: bool = False


def add(registered, name, one):
    if name in registered:
        raise ValueError(f"{name} is registered twice")
    registered[name] = one


def table(*names, form="", without_gpu=False):
    """Registers a table of make readme. A name is that of every ladder's ("counters"), or of one's ("serving/grid")."""

    def register(make):
        for name in names:
            add(TABLES, name, Table(make, form, make.__doc__, without_gpu))
        return make

    return register


def csv_table(*names, file="", form=""):
    """Registers a table of one stored CSV, <place>/<name>.csv for the name "place/name" or another file there:
    make(path, page), and with a form make(path, page, words)."""

    def register(make):
        for name in names:
            place, _, own = name.partition("/")

            def of_block(folder, _, block, path=f"{place}/{file or f'{own}.csv'}"):
                words = [block.words] if form else []
                return make(folder / path, block.page, *words) if (folder / path).is_file() else None

            add(TABLES, name, Table(of_block, form, make.__doc__))
        return make

    return register


def plot(file, marker="", alt=""):
    """Registers draw(folder, ladder, target) for make plots. target is the file's path without the ending, and file its
    name after the GPU's: with {ladder} in it, make plots draws one for each ladder, else one, for which ladder is None.
    With a marker, the plot is a table, too: the picture with that text."""

    def register(draw):
        add(PLOTS, file, draw)
        if marker:
            add(TABLES, marker, Table(functools.partial(show, file, alt), "", alt))
        return draw

    return register


def show(file, alt, folder, ladder, block):
    name = file.format(ladder=ladder.id if ladder else "")
    return "".join(image(folder.name, name, alt, block.page)) or None


@functools.cache
def plugins():
    """The modules ladder.plugin and <folder>.plugin."""
    folders = [path.parent.name for path in sorted(ROOT.glob("*/plugin.py"))]
    if folders and str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return [importlib.import_module(name) for name in (OWN, *(f"{folder}.plugin" for folder in folders))]


def listed(what):
    """JOBS, STORES or PROGRAMS of all plugins, tools/ladder's last."""
    return {name: value for plugin in reversed(plugins()) for name, value in getattr(plugin, what, {}).items()}


@functools.cache
def load_pages():
    """Fills TABLES and PLOTS."""
    for plugin in plugins():
        for module in plugin.PAGES:
            importlib.import_module(module)


def stored():
    """The names of the tables that show a CSV as it is."""
    return [name for plugin in plugins() for name in getattr(plugin, "STORED", [])]
