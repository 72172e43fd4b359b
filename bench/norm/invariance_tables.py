"""What batch invariance costs the RMSNorm header: of each length of row and size of problem, the time of the shape that
Options::batch_invariant takes over that of the shape that the policy takes, as make tune measured both."""

from ladder.core import registry, results
from ladder.core.ladders import Unusable
from ladder.core.markdown import link, table

from bench.tune.policies import ANY_SIZE
from bench.tune.rms_norm import policy

FORM = "forward|fused_add_rms_norm"


def shape_of(row):
    return policy.Shape(*(row[field] for field in policy.Shape._fields))


def ratios(rows, name):
    """{(packs, kilobytes): how many times as long, None where that shape was not timed}, of plain launches."""
    operator = policy.Operator(rows, name)
    lines = policy.table(operator)
    times, chosen = {}, {}
    for row in rows:
        if row["operator"] == name and row["launch"] == "plain":
            cell = row["packs"], row["kilobytes"]
            if row["role"] == "winner":
                chosen[cell] = row["microseconds"]
            else:
                times[cell, shape_of(row)] = row["microseconds"]
    found = {}
    for packs, size in operator.cells:
        shape = policy.taken(lines, packs, ANY_SIZE, contiguous=False, clusters=True)  # as takes() of launch.cuh
        time = times.get(((packs, size), shape))
        found[packs, size] = time / chosen[packs, size] if time and (packs, size) in chosen else None
    return found


@registry.csv_table("header/batch_invariance", file="tune.csv", form=FORM)
def markdown(path, page, words):
    """Batch-invariant kernels beside those of the policy, by length of row and size of problem."""
    if words not in (["forward"], ["fused_add_rms_norm"]):
        raise Unusable(f"{results.shown(page)}: table:header/batch_invariance shows one function; say {FORM}")
    rows = policy.read(path)
    found = ratios(rows, words[0])
    lengths, sizes = (sorted(set(values)) for values in zip(*found))
    shown = {cell: f"{ratio:.2f}" if ratio else "" for cell, ratio in found.items()}
    header = ["bytes of a row of x", *(f"{size} KB" for size in sizes)]
    body = [[str(16 * packs), *(shown[packs, size] for size in sizes)] for packs in lengths]
    first = rows[0]
    caption = (
        f"`{words[0]}`: the time of the shape that `batch_invariant` takes, over that of the policy's shape, by the size of "
        f"a problem (all tensors except the weight). Plain launches. {first['device']}, {first['date']}. "
        f"From {link(results.shown(path), path, page)}."
    )
    return table(header, body) + "\n\n" + caption
