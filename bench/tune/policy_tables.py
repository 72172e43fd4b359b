"""What a GPU loses with the norms' policy of another one: of each length of row and size of problem, the time of the
shape that the policy takes over that of the GPU's own, as make tune measured both."""

import statistics

from ladder.core import registry, results
from ladder.core.markdown import link, table

from bench.tune.rms_norm import policy


def measured(gpu, clusters=True):
    """{function: what was measured}; without clusters, what a GPU without them, and so without dependent launches, has."""
    rows = policy.read(results.store() / gpu / policy.CSV)
    rows = [row for row in rows if clusters or (row["parts"] == 1 and row["launch"] == "plain")]
    return {name: policy.Operator(rows, name) for name in policy.TABLES}


def ratios(other, own, clusters=True, layouts=(True,)):
    """In each cell, and for rows without and with gaps: the time of the other's shape over that of the own, of plain
    launches."""
    for name, operator in own.items():
        lines, own_lines = policy.table(other[name]), policy.table(operator)
        for contiguous in layouts:
            for (packs, size), found in operator.plain.items():
                times = {timed.shape: timed.microseconds for timed in found}
                cell = packs, operator.limit(size), contiguous, clusters
                yield times[policy.taken(lines, *cell)] / times[policy.taken(own_lines, *cell)]


def loss(other, own):
    """The mean of all cells, and the worst one."""
    clusters = any(
        timed.shape.parts > 1 for operator in own.values() for found in operator.plain.values() for timed in found
    )
    found = [*ratios(other, own, clusters)]
    return f"{statistics.geometric_mean(found):.3f}, up to {max(found):.2f}"


@registry.table("header/policies")
def markdown(_folder, _ladder, block):
    """What each measured GPU loses with the norms' policies of the others."""
    gpus = results.stored_gpus(policy.CSV)
    of = {gpu: measured(gpu) for gpu in gpus}
    body = [[gpu.upper(), *("1" if other == gpu else loss(of[other], of[gpu]) for other in gpus)] for gpu in gpus]
    paths = [results.store() / gpu / policy.CSV for gpu in gpus]
    caption = (
        "Plain launches of rows without gaps: the time over that with the GPU's own policy, as the geometric mean of all "
        "lengths of rows and sizes of problems, and at the worst of them. "
        f"From {', '.join(link(results.shown(path), path, block.page) for path in paths)}."
    )
    return table(["GPU", *(f"policy of the {gpu.upper()}" for gpu in gpus)], body) + "\n\n" + caption
