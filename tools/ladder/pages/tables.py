"""Which table a marker names: a registered one, a sweep of ladder.json, or any CSV that is stored of a ladder."""

from dataclasses import replace

from ..core import ladders, registry, results
from ..core.ladders import Unusable
from ..core.markdown import image
from . import any_csv


def ladder_of(block):
    """(ladder or None, the rest of the name): the ladder that the name begins with, or in whose folder the page is."""
    first, slash, rest = block.name.partition("/")
    climbed = {ladder.id: ladder for ladder in ladders.all_ladders()}
    if slash:
        if first not in climbed and first != results.HEADER:
            raise Unusable(
                f"{block.where}: there is no ladder {first}; there is {', '.join(climbed)}, {results.HEADER}"
            )
        return climbed.get(first), rest
    for ladder in climbed.values():
        if ladder.folder in (block.page.parent, block.page.parent.parent):
            return ladder, first
    choices = f"{next(iter(climbed), 'matrix')}/{first}"
    raise Unusable(f"{block.where} stands on a page of no ladder; name the ladder too, for example {choices}")


def own_folder(ladder):
    return ladder.id if ladder else results.HEADER


def place_of(folder, ladder, name):
    """Where the CSV of that name is stored: of an experiment that needs no GPU, with what the CPU device counted if it
    was not run on a GPU."""
    own = folder / own_folder(ladder) if folder else None
    if ladder and name in ladder.computed and not (own and (own / f"{name}.csv").is_file()):
        return results.store() / results.CPU_DEVICE / ladder.id
    return own


def known(place, ladder):
    """What a marker of the ladder, or of the header, may name."""
    prefix = f"{own_folder(ladder)}/"
    names = [name for name in [*registry.TABLES, *registry.stored()] if "/" not in name or name.startswith(prefix)]
    names = [name.removeprefix(prefix) for name in names if ladder or "/" in name]
    return sorted({*names, *(ladder.sweeps if ladder else ()), *(path.stem for path in place.glob("*.csv"))})


def stored_csv(folder, ladder, block, name):
    """A stored CSV as it is, below its plot."""
    place = place_of(folder, ladder, name)
    if place is None or ladder and not place.is_dir():
        return None
    path = place / f"{name}.csv"
    if path.is_file():
        picture = image(place.parent.name, f"{place.name}_{name}", f"Plot of {path.name}", block.page)
        chosen = block.words
        if place.parent.name == results.CPU_DEVICE:  # where no time is measured
            chosen = [word for word in chosen if word in results.read(path)[0]]
        return "\n\n".join([*picture, any_csv.build(path, block.page, chosen, block.values)])
    if f"{place.name}/{name}" in registry.stored() or place.parent.name == results.CPU_DEVICE:
        return None
    raise Unusable(
        f"{block.where}: unknown table {name}: there is no {results.shown(path)}; "
        f"known are {', '.join(known(place, ladder))}"
    )


def build(block, folder):
    """The text of a block, from the folder of a GPU's results; None if nothing is stored for it yet."""
    registry.load_pages()
    if block.name.startswith("index/") and block.name in registry.TABLES:  # of the whole tree
        return registry.TABLES[block.name].make(folder, None, block)
    ladder, name = ladder_of(block)
    values = dict(block.values)
    if gpu := values.pop("gpu", None):
        folder, block = results.stored(gpu), replace(block, values=values)
    else:
        folder = results.measured(folder, own_folder(ladder), f"{name.removesuffix('_plot')}.csv")
    own = registry.TABLES.get(f"{own_folder(ladder)}/{name}")
    found = own or (registry.TABLES.get("<sweep>" if name in ladder.sweeps else name) if ladder else None)
    if not found:
        return stored_csv(folder, ladder, block, name)
    return found.make(folder, ladder, block) if folder or found.without_gpu else None
