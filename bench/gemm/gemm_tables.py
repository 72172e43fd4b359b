"""include/q4_gemm beside its peers, and its norm beside separate launches: what bench/gemm/gemm_peers.py stores, and tables.

Both CSVs have one row for each competitor at each shape; one that was not timed has its reason in the row. In peers.csv
a time is cold, with copies of the weights in turn, or warm, with one copy that the L2 cache holds. error is that of y
against float64, as a norm of the difference over the norm, and limit the largest that the competitor's roundings allow.
"""

from ladder.core import registry, results
from ladder.core.ladders import Unusable
from ladder.core.markdown import aligned, link, table
from ladder.core.results import number

from bench.norm import peer_tables

FOLDER = "q4_gemm"  # of a GPU's results; the ladder of that name has it too
PEERS, NORM = "peers", "norm"
MEASURED = "verdict microseconds spread_percent error limit reason replays gpu cuda_runtime driver date sm_clock_mhz"
COLUMNS = {
    PEERS: f"m k n competitor cache gb_per_s tflop_per_s rounds copies weight_bytes version {MEASURED}".split(),
    NORM: f"m k n competitor copies {MEASURED}".split(),
}
COLD, WARM = "cold", "warm"
OURS, ROUNDED, CUBLAS = "ours", "ours_rounded", "cublas"
FOUR_BITS = ("llama_cpp", "int4pack")
TITLES = {
    OURS: "this header",
    "ours_bf16": "bfloat16 x",
    "ours_plain": "plain launch",
    "ours_invariant": "batch-invariant",
    ROUNDED: "rounded",
    "ours_rounded_bf16": "rounded, bfloat16 x",
    "llama_cpp": "llama.cpp",
    "int4pack": "PyTorch int4",
    CUBLAS: "cuBLAS float16",
    "fused": "fused",
    "fused_plain": "fused, plain launches",
    "two": "norm, then product",
    "apart": "apart",
    "apart_plain": "apart, plain launches",
}
FEW = 16  # columns from which on multiplications count, and below which the weights' bandwidth does


def title(competitor):
    return TITLES.get(competitor, competitor)


def shape_name(key):
    m, k, n = key
    return f"{m} × {k}, {n} column{'' if n == '1' else 's'}"


def read(path, kind):
    """{(m, k, n): {(competitor, cache): row}}, in the file's order; cache is cold in norm.csv."""
    return results.grouped(
        path,
        COLUMNS[kind],
        lambda row: (row["m"], row["k"], row["n"]),
        lambda row: (row["competitor"], row.get("cache", COLD)),
    )


def store(path, kind, rows):
    results.replace(path, lambda partial: results.write_csv(partial, COLUMNS[kind], rows))


def with_cache(shapes, cache):
    """{shape: {competitor: row}} of one state of the cache, without the shapes that have none."""
    chosen = {key: {name: row for (name, state), row in rows.items() if state == cache} for key, rows in shapes.items()}
    return {key: rows for key, rows in chosen.items() if rows}


def fastest(rows, names):
    """(competitor, microseconds) of the fastest of these that is right; None if none was timed."""
    timed = [(name, peer_tables.time_of(rows, name)) for name in names]
    return min(((name, time) for name, time in timed if time), key=lambda pair: pair[1], default=None)


def over(rows, mine, names):
    """How many times as fast as the fastest of these; None if one of both was not timed."""
    other, time = fastest(rows, names), peer_tables.time_of(rows, mine)
    return other[1] / time if other and time else None


def rate(row):
    if row["verdict"] != "ok":
        return peer_tables.NOT_TIMED.get(row["verdict"], row["verdict"])
    if int(row["n"]) < FEW:
        return f"{number(row, 'gb_per_s'):.0f} GB/s"
    return f"{number(row, 'tflop_per_s'):.1f} TFLOP/s"


def competitors(shapes):
    met = dict.fromkeys(name for rows in shapes.values() for name in rows)
    return [name for name in TITLES if name in met] + [name for name in met if name not in TITLES]


def factor(value):
    return f"{value:.2f}" if value else ""


def lines(shapes, kind, rates=False):
    """The table's first line, and one line for each shape."""
    names = competitors(shapes)
    header = ["m × k", "n", *map(title, names)]
    factors = []
    if kind == PEERS and not rates:
        factors = [("over the fastest with 4 bits", OURS, FOUR_BITS), ("over cuBLAS", OURS, [CUBLAS])]
        factors += [("rounded, over cuBLAS", ROUNDED, [CUBLAS])] if ROUNDED in names else []
    if kind == NORM:
        factors = [("fused over the fastest other", "fused", [name for name in names if name.split("_")[0] != "fused"])]
    body = []
    for key, rows in shapes.items():
        cells = [rate(rows[name]) if rates and name in rows else peer_tables.cell(rows, name) for name in names]
        body.append([f"{key[0]} × {key[1]}", key[2], *cells])
        body[-1] += [factor(over(rows, mine, others)) for _, mine, others in factors]
    return header + [name for name, _, _ in factors], body


def verdicts(shapes, kind):
    """Sentences on the factors: the geometric mean, and the worst shape."""
    asked = [(OURS, FOUR_BITS, "This header is", "the fastest peer that computes from 4-bit weights")]
    asked += [(OURS, [CUBLAS], "It is", "cuBLAS float16"), (ROUNDED, [CUBLAS], "Rounded, it is", "cuBLAS float16")]
    if kind == NORM:
        asked = [
            ("fused", ("apart", "apart_plain"), "Fused, a norm and a product are", "the faster form of three launches")
        ]
    said = []
    for mine, others, who, what in asked:
        known = [(over(rows, mine, others), key) for key, rows in shapes.items() if over(rows, mine, others)]
        if known:
            worst, key = min(known)
            mean = peer_tables.geometric_mean([value for value, _ in known])
            said.append(
                f"{who} {mean:.2f} times as fast as {what} (geometric mean of {len(known)}); "
                f"at worst {worst:.2f} times, at {shape_name(key)}."
            )
    return said


def roundings(shapes):
    """A sentence for each competitor that says what it rounds, its largest error and its limit."""
    said = []
    for name in competitors(shapes):
        rows = [rows[name] for rows in shapes.values() if name in rows and rows[name]["verdict"] == "ok"]
        if rows:
            error, limit = (max(float(row[column]) for row in rows) for column in ("error", "limit"))
            said.append(f"{title(name)}: {rows[0]['rounds']}, error up to {error:.1e}, limit {limit:.1e}.")
    return said


def excluded(shapes):
    return peer_tables.excluded(shapes, title, shape_name)


def is_chosen(key, words):
    """A marker's words may name one matrix, as in 4096x14336, or all others than that one: not4096x14336."""
    matrix = f"{key[0]}x{key[1]}"
    named = [word for word in words if "x" in word]
    return not named or matrix in named or any(word[:3] == "not" and word[3:] != matrix for word in named)


@registry.csv_table(f"{FOLDER}/{PEERS}", f"{FOLDER}/{NORM}", form="[cold|warm] [rates] [MxK|notMxK ...]")
def markdown(path, page, words):
    """include/q4_gemm beside its peers, and its norm beside separate launches, with captions."""
    kind = path.stem
    unknown = [word for word in words if word not in (COLD, WARM, "rates") and "x" not in word]
    if unknown:
        where = f"{results.shown(page)}: {unknown[0]} is no word of table:{FOLDER}/{kind}"
        raise Unusable(f"{where}; say cold, warm, rates or 4096x14336")
    cache, rates = WARM if WARM in words else COLD, "rates" in words
    shapes = with_cache(read(path, kind), cache)
    shapes = {key: rows for key, rows in shapes.items() if is_chosen(key, words)}
    if not shapes:
        return None
    header, body = lines(shapes, kind, rates)
    row = next(iter(next(iter(shapes.values())).values()))
    what = {
        (PEERS, False): "Microseconds per product",
        (PEERS, True): f"GB/s of weights below {FEW} columns, TFLOP/s from there on",
        (NORM, False): "Microseconds for norm and product together",
    }[kind, rates]
    weights = {
        COLD: "copies of the weights in turn, so that none is in the L2 cache",
        WARM: "one copy, in the L2 cache",
    }
    caption = (
        f"{what}, {cache}: {weights[cache]}. Median of {row['replays']} replays. "
        f"{peer_tables.measured_on(shapes)}. From {link(results.shown(path), path, page)}."
    )
    notes = [caption] if rates else [" ".join(verdicts(shapes, kind)), caption]
    if kind == PEERS and not rates:
        notes.append(" ".join(roundings(shapes)))
    return "\n\n".join(filter(None, [table(header, body), *notes, " ".join(excluded(shapes))]))


def printed(path):
    """The same for a terminal."""
    kind, text = path.stem, []
    for cache in (COLD, WARM):
        shapes = with_cache(read(path, kind), cache)
        if shapes:
            text += [f"{title(kind)}, {cache}, microseconds ({results.shown(path)})", *aligned(*lines(shapes, kind))]
            text += [*verdicts(shapes, kind), *excluded(shapes), ""]
    return "\n".join(text)


def line_of(rows, kind):
    """What one shape gave, for the progress."""
    cells = []
    for row in (dict(zip(COLUMNS[kind], row)) for row in rows):
        time = f"{float(row['microseconds']):.2f}" if row["verdict"] == "ok" else row["verdict"]
        cells.append(f"{title(row['competitor'])} {time}{' warm' if row.get('cache') == WARM else ''}")
    return ", ".join(cells)


def complaints(path):
    """Sentences on wrong results of the header's and on measurements that cannot be."""
    said = []
    for key, rows in read(path, path.stem).items():
        for (name, cache), row in rows.items():
            peer = name in (*FOUR_BITS, CUBLAS)
            if row["verdict"] == "impossible" or (row["verdict"] in ("wrong", "refused") and not peer):
                where = f"{path.stem} {shape_name(key)}, {cache}"
                said.append(f"{where}: {title(name)} {row['verdict']}: {row['reason']}")
    return said
