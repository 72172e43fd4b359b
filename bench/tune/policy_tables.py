"""What a GPU loses with the policy of another one, for the norms and for the gradients: of each length of row and size of
problem, the time of the shape or form that the policy takes over that of the GPU's own, as make tune measured both."""

import statistics

from ladder.core import registry, results
from ladder.core.markdown import link, table

from bench.tune.backward import policy as backward
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
    """The ratios with the policy of another GPU."""
    clusters = any(
        timed.shape.parts > 1 for operator in own.values() for found in operator.plain.values() for timed in found
    )
    return [*ratios(other, own, clusters)]


def gradients(gpu):
    """What was measured for each table of a policy."""
    rows = backward.read(results.store() / gpu / backward.CSV)
    return {name: backward.times_of(rows, stored_rstd) for name, stored_rstd in backward.TABLES.items()}


def loss_of_gradients(other, own):
    """The same, of the forms that the GPU has measured."""
    found = []
    for name, lengths in own.items():
        lines, own_lines = backward.lines_of(other[name] or other["kFewRows"]), backward.lines_of(lengths)
        for warps, counts in lengths.items():
            for rows, times in counts.items():
                form, own_form = (backward.taken(of, warps, rows) for of in (lines, own_lines))
                if form in times:
                    found.append(times[form] / times[own_form])
    return found


def said(found):
    return f"{statistics.geometric_mean(found):.3f}, up to {max(found):.2f}"


def losses(csv, measure, loss, what, block):
    gpus = results.stored_gpus(csv)
    of = {gpu: measure(gpu) for gpu in gpus}
    body = [[gpu.upper(), *("1" if other == gpu else said(loss(of[other], of[gpu])) for other in gpus)] for gpu in gpus]
    paths = [results.store() / gpu / csv for gpu in gpus]
    caption = (
        f"{what}: the time over that with the GPU's own policy, as the geometric mean of all "
        "lengths of rows and sizes of problems, and at the worst of them. "
        f"From {', '.join(link(results.shown(path), path, block.page) for path in paths)}."
    )
    return table(["GPU", *(f"policy of the {gpu.upper()}" for gpu in gpus)], body) + "\n\n" + caption


@registry.table("header/policies")
def norms_markdown(_folder, _ladder, block):
    """What each measured GPU loses with the norms' policies of the others."""
    return losses(policy.CSV, measured, loss, "Plain launches of rows without gaps", block)


@registry.table("header/backward_policies")
def gradients_markdown(_folder, _ladder, block):
    """What each measured GPU loses with the gradients' policies of the others."""
    return losses(
        backward.CSV, gradients, loss_of_gradients, "Gradients, the mean of plain and dependent launches", block
    )
