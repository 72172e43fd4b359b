"""The tables of what the CPU device counts: a stage's lines, and the sums beside those of Nsight Compute."""

import math

import results
from counters import MISSING
from markdown import code, link, table
from results import LADDER, ROOT, STORE, number

FOLDER = STORE / "cpu_device"
ROWS = 64  # as analyze_stages.py measures

# The sums that Nsight Compute tells as well: title -> (its metric, what the CPU device sums up).
COMPARED = {
    "load requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "global load", "requests"),
    "load sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "global load", "sectors"),
    "store requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "global store", "requests"),
    "store sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "global store", "sectors"),
    "shared load wavefronts": (
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "shared load",
        "wavefronts",
    ),
    "shared store wavefronts": (
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "shared store",
        "wavefronts",
    ),
}
# The older profiles hold sectors as a mean over requests.
SECTORS_EACH = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"


def read(stage):
    """(sums by what they are of, rows of lines) of all kernels of a stage; None where it has not been analysed."""
    path = FOLDER / f"{stage}.csv"
    if not path.is_file():
        return None
    rows = results.read(path, ["kernel", "file", "line", "source", "what", "requests", "distinct_bytes"])
    return [row for row in rows if not row["file"]], [row for row in rows if row["file"]]


def total(sums, what, column):
    return sum(number(row, column) or 0 for row in sums if row["what"] == what)


def short(value):
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def several(value, unit):
    return f"{short(value)} {unit}" + ("" if value == 1 else "s")


def line_cells(row, before, page):
    """One access of one line; what the row before says of the same line is not said again."""
    requests, lanes = number(row, "requests"), number(row, "lanes")
    unit = "sector" if row["sectors"] else "wavefront"
    transfers, ideal = number(row, f"{unit}s"), number(row, f"ideal_{unit}s")
    place = row["line"]
    if not row["file"].endswith("/kernel.cuh"):
        place = f"{link(row['file'].split('/')[-1], ROOT / row['file'], page)} {place}"
    same = before and (before["file"], before["line"]) == (row["file"], row["line"])
    where = ["", ""] if same else [place, code(row["source"])]
    what = f"{row['what']} {row['bytes_per_lane']} B"
    each = [several(transfers / requests, unit), short(ideal / requests)]
    return [*where, what, short(requests / ROWS), *each, short(lanes / requests)]


def product(text):
    return math.prod(map(int, text.split("x")))


def operations(sums, rows):
    """Barriers a block and shuffles a warp, summed over a stage's kernels."""
    barriers = shuffles = 0
    for row in rows:
        threads = product(row["grid"]) * product(row["block"]) * int(row["launches"])
        warps = product(row["grid"]) * -(-product(row["block"]) // 32) * int(row["launches"])
        barriers += number(row, "lanes") / threads if row["what"] == "block_barrier" else 0
        shuffles += number(row, "requests") / warps if row["what"] == "shuffle" else 0
    return f"{several(barriers, 'barrier')} a block, {several(shuffles, 'shuffle')} a warp"


def summary(sums, rows, cols):
    """What a reader compares between stages."""
    elements = ROWS * cols
    asked, sectors = total(sums, "global load", "bytes"), total(sums, "global load", "sectors")
    said = f"For an element, loads ask for {short(asked / elements)} bytes and move {short(32 * sectors / elements)}"
    return f"{said}; {operations(sums, rows)}."


def lines(_, page):
    """Every line of the stage on whose page it stands: its requests, and what they cost."""
    stage = page.parent.name
    found = read(stage)
    if found is None:
        return None
    sums, rows = found
    given = results.environment(FOLDER).get("input", f"{ROWS} x 8192")
    accesses = [row for row in rows if row["sectors"] or row["wavefronts"]]
    cells = [line_cells(row, before, page) for before, row in zip([None, *accesses], accesses)]
    header = ["line", "source", "access", "requests a row", "each takes", "at best", "lanes"]
    path = FOLDER / f"{stage}.csv"
    caption = f"{summary(sums, rows, int(given.split()[2]))} {given.replace(' x ', ' × ')}, counted without a GPU by "
    caption += f"`make analyze S={stage}`. From {link(results.shown(path), path, page)}."
    return f"{table(header, cells, words=(0, 1, 2))}\n\n{caption}"


def profile_of(folder, stage):
    """The stored counters that fit best, and what brings them to 64 rows: measured so, or else on 8192."""
    for name, scale in (("ncu_64x8192", 1), ("ncu", ROWS / 8192)):
        if (folder / name / f"{stage}.csv").is_file():
            return folder / name / f"{stage}.csv", scale
    return None, 0


def ncu_sums(folder, stage):
    """{metric: number} of one launch on 64 rows, as Nsight Compute counts it."""
    path, scale = profile_of(folder, stage)
    if path is None:
        return {}
    rows = [row for row in results.read(path, ["metric", "value"]) if row["metric"] and row["value"] != MISSING]
    sums = {row["metric"]: number(row, "value") * scale for row in rows if row["metric"].endswith(".sum")}
    ratios = {row["metric"]: number(row, "value") for row in rows if row["metric"].endswith(".ratio")}
    for kind, op in (("load", "ld"), ("store", "st")):
        requests, sectors = (COMPARED[f"{kind} {what}"][0] for what in ("requests", "sectors"))
        if sectors not in sums and SECTORS_EACH.format(op) in ratios and requests in sums:
            sums[sectors] = sums[requests] * ratios[SECTORS_EACH.format(op)]
    return sums


def comparison(folder, stage):
    """{title: (counted here, counted by ncu)} of the sums that both have."""
    found, ncu = read(stage), ncu_sums(folder, stage)
    if not found:
        return {}
    return {
        title: (total(found[0], what, column), ncu[metric])
        for title, (metric, what, column) in COMPARED.items()
        if metric in ncu
    }


def agree(here, there):
    return abs(here - there) <= 0.005 * max(here, there)


def beside_ncu(folder, page):
    """Every stage's sums, counted here and by Nsight Compute on the GPU; None where it counted none of them."""
    cells = []
    for path in sorted((ROOT / LADDER).glob("[0-9]*_*/kernel.cuh")) if folder else []:
        both = comparison(folder, path.parent.name)
        row = [path.parent.name]
        for title in COMPARED:
            here, there = both.get(title, (None, None))
            same = here is not None and agree(here, there)
            row.append("" if here is None else f"{here:,.0f}" if same else f"{here:,.0f} / {there:,.0f}")
        cells += [row] if both else []
    if not cells:
        return None
    used = {profile_of(folder, row[0])[0].parent for row in cells}
    sources = " and ".join(link(results.shown(path), path, page) for path in sorted(used))
    scaled = "; those of 8192 rows are divided by 128" if folder / "ncu" in used else ""
    return f"{table(['one launch on 64 rows', *COMPARED], cells)}\n\nThe GPU's counts: {sources}{scaled}."
