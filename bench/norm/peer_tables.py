"""The comparison of the production header with its peers: what peers.py stores, and the tables made from it.

A CSV has one row for each competitor at each shape. A competitor that was not timed has its reason in the row.
"""

import math

from ladder.core import registry, results
from ladder.core.markdown import aligned, link, table
from ladder.core.results import number

FILES = {
    "peers_forward": "RMSNorm forward",
    "peers_residual": "residual add + RMSNorm",
    "peers_backward": "RMSNorm backward",
    "peers_step": "RMSNorm forward and backward, as training calls them",
    "peers_fp8_static": "RMSNorm to float8, the scale given",
    "peers_fp8_token": "RMSNorm to float8, a scale of each row",
    "peers_fp8_block": "RMSNorm to float8, a scale of each 128 columns",
    "peers_int8_token": "RMSNorm to int8, a scale of each row",
    "peers_add_fp8_token": "residual add + RMSNorm to float8, a scale of each row",
    "peers_add_fp8_static": "residual add + RMSNorm to float8, the scale given",
    "peers_add_fp8_block": "residual add + RMSNorm to float8, a scale of each 128 columns, and the norm itself",
}
COLUMNS = (
    "rows cols dtype weight competitor verdict microseconds spread_percent gb_per_s percent_of_copy "
    "percent_of_datasheet worst_error pairs pool_bytes cache launches replays reason version gpu "
    "cuda_runtime driver date sm_clock_mhz"
).split()

OURS, OURS_PDL, OURS_INVARIANT = "ours", "ours_pdl", "ours_invariant"
OURS_RSTD, OURS_RSTD_PDL = "ours_rstd", "ours_rstd_pdl"  # with the rstd that the forward pass stores
ALL_OURS = (OURS, OURS_PDL, OURS_INVARIANT, OURS_RSTD, OURS_RSTD_PDL)
APART = "apart"
PACKAGE = "package"  # of Python, which is OURS where autograd calls the header
COPIES = ["copy_kernel", "copy_memcpy"]
TITLES = {
    OURS: "this header",
    OURS_PDL: "with PDL",
    OURS_INVARIANT: "batch-invariant",
    OURS_RSTD: "rstd stored",
    OURS_RSTD_PDL: "rstd stored, with PDL",
    "copy_kernel": "copy kernel",
    "copy_memcpy": "memcpy",
    "torch_eager": "torch eager",
    "torch_compile": "torch.compile",
    "torch_compile_max": "torch.compile, max-autotune",
    "liger": "Liger",
    "flashinfer": "FlashInfer",
    "flashinfer_cuda": "FlashInfer, CUDA C++",
    "quack": "QuACK",
    "vllm": "vLLM",
    APART: "this header's norm, then torch.compile",
}
LAUNCHES = {
    OURS: "Plain launch",
    OURS_PDL: "Programmatic dependent launch",
    OURS_RSTD: "Plain launch with the stored rstd, which peers get",
    OURS_RSTD_PDL: "Programmatic dependent launch with it",
}
NOT_TIMED = {"missing": "missing", "refused": "refuses", "wrong": "wrong", "impossible": "not believed"}
DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def is_peer(competitor):
    return competitor not in (*ALL_OURS, *COPIES)


def title(competitor):
    return TITLES.get(competitor, competitor)


def shape(row):
    return row["rows"], row["cols"], row["dtype"], row["weight"]


def shape_name(key):
    rows, cols, dtype, weight = key
    return f"{rows} × {cols} {dtype}" + ("" if weight == "1" else ", no weight")


def read(path):
    """{shape: {competitor: row}}, in the file's order."""
    return results.grouped(path, COLUMNS, shape, lambda row: row["competitor"])


def time_of(rows, competitor):
    """Microseconds, None if this competitor was not timed."""
    row = rows.get(competitor)
    return number(row, "microseconds") if row and row["verdict"] == "ok" else None


def fastest_peer(rows):
    """(name, microseconds) of the fastest peer that is right, None if no peer was timed."""
    timed = [(name, time_of(rows, name)) for name in rows if is_peer(name) and time_of(rows, name)]
    return min(timed, key=lambda pair: pair[1]) if timed else None


def speed_up(rows, competitor):
    """How many times as fast as the fastest peer; None if either was not timed."""
    peer, mine = fastest_peer(rows), time_of(rows, competitor)
    return peer[1] / mine if peer and mine else None


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def summary(shapes, competitor):
    """(geometric mean, worst speed-up, its shape, how many shapes); None if there is none to compare."""
    known = [(speed_up(rows, competitor), key) for key, rows in shapes.items() if speed_up(rows, competitor)]
    if not known:
        return None
    worst = min(known)
    return geometric_mean([value for value, _ in known]), worst[0], worst[1], len(known)


def cell(rows, competitor):
    row = rows.get(competitor)
    if row is None:
        return ""
    if row["verdict"] == "ok":
        return f"{float(row['microseconds']):.2f}"
    return NOT_TIMED.get(row["verdict"], row["verdict"])


def competitors(shapes):
    """The columns: ours, the copies, then the peers in the order in which they were first met."""
    met = dict.fromkeys(name for rows in shapes.values() for name in rows)
    first = [name for name in (*ALL_OURS, *COPIES) if name in met]
    return first + [name for name in met if is_peer(name)]


def lines(shapes):
    """The table's first line, and one line for each shape."""
    names = competitors(shapes)
    mine = [name for name in (OURS, OURS_PDL) if name in names]
    header = ["rows × cols", "type", *map(title, names), "fastest peer"]
    header += ["speed-up" if name == OURS else "speed-up with PDL" for name in mine]
    body = []
    for key, rows in shapes.items():
        peer = fastest_peer(rows)
        kind = DTYPES.get(key[2], key[2]) + ("" if key[3] == "1" else ", no weight")
        factors = [speed_up(rows, name) for name in mine]
        line = [f"{key[0]} × {key[1]}", kind, *(cell(rows, name) for name in names), title(peer[0]) if peer else ""]
        body.append(line + [f"{factor:.2f}" if factor else "" for factor in factors])
    return header, body


def verdicts(shapes):
    """Sentences on the speed-ups: the geometric mean and the worst shape, for each way to launch."""
    said = []
    for competitor, how in LAUNCHES.items():
        found = summary(shapes, competitor)
        if found:
            mean, worst, key, count = found
            said.append(
                f"{how}: {mean:.3f} times as fast as the fastest peer of each shape (geometric mean of {count}); "
                f"at worst {worst:.3f} times, at {shape_name(key)}."
            )
    return said


def reasons(shapes, title):
    """{(title, verdict, reason): [shape, ...]} of the competitors that were not timed."""
    found = {}
    for key, rows in shapes.items():
        for name, row in rows.items():
            if row["verdict"] != "ok":
                what = (title(name), NOT_TIMED.get(row["verdict"], row["verdict"]), row["reason"])
                found.setdefault(what, []).append(key)
    return found


def excluded(shapes, title=title, shape_name=shape_name):
    """Sentences on the competitors that were not timed, each reason once with its shapes."""
    said = []
    for (name, verdict, reason), keys in reasons(shapes, title).items():
        where = [shape_name(key) for key in keys]
        place = "everywhere" if len(where) == len(shapes) else "at " + "; ".join(where)
        said.append(f"{name} {place}: {verdict}" + (f" ({reason})" if reason else "") + ".")
    return said


def cached(shapes):
    """A sentence on the shapes whose pool fits in the L2 cache, so that their rate is not the memory's bandwidth."""
    named = {"all": [], "partly": []}
    for key, rows in shapes.items():
        state = next(iter(rows.values()))["cache"]
        if state in named:
            named[state].append(shape_name(key))
    said = []
    if named["all"]:
        said.append(f"The pool fits in the L2 cache at {'; '.join(named['all'])}.")
    if named["partly"]:
        said.append(f"It is less than four times the L2 cache at {'; '.join(named['partly'])}.")
    return " ".join(said)


def measured_on(shapes):
    """The GPU, its clocks, CUDA and the date, for a caption: the first and the last date of what was measured in parts."""
    rows = [row for found in shapes.values() for row in found.values()]
    row, dates = rows[0], sorted({row["date"] for row in rows})
    clock = f", clocks as found (SM: at most {row['sm_clock_mhz']} MHz)" if row["sm_clock_mhz"] else ""
    return f"{row['gpu']}{clock}, CUDA {row['cuda_runtime']}, {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}"


@registry.csv_table(*(f"header/{name}" for name in FILES))
def markdown(path, page):
    """The header beside its peers at every shape, with captions."""
    shapes = read(path)
    header, body = lines(shapes)
    words = [0, 1, header.index("fastest peer")]
    row = next(iter(next(iter(shapes.values())).values()))
    caption = (
        f"Microseconds per launch in a CUDA graph, median of {row['replays']} replays. "
        f"{measured_on(shapes)}. From {link(results.shown(path), path, page)}."
    )
    notes = [cached(shapes), *excluded(shapes)]
    parts = [table(header, body, words), " ".join(verdicts(shapes)), caption, " ".join(filter(None, notes))]
    return "\n\n".join(filter(None, parts))


def printed(shapes):
    """The same for a terminal."""
    header, body = lines(shapes)
    text = aligned(header, body, (0, 1, header.index("fastest peer")))
    return "\n".join([*text, *verdicts(shapes), *filter(None, [cached(shapes), *excluded(shapes)])])
