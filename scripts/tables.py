"""The tables and captions that readme.py puts between markers, made from the stored CSVs of one GPU."""

import os
import re

import cpu_device
import peer_tables
import results
from counters import COUNTERS, DURATION, MISSING, STALL
from markdown import link, table
from results import LADDER, ROOT, Unusable, number

MATRIX_COLUMNS = (
    "stage rows cols weight microseconds gb_per_s percent_of_copy percent_of_datasheet speedup_over_basic "
    "copy_microseconds iterations device runtime date"
).split()
ENVIRONMENT = ("gpu", "cuda_runtime", "driver", "date", "sm_clock_mhz")

SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
LOAD_SECTORS, STORE_SECTORS = SECTORS.format("ld"), SECTORS.format("st")
LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
L1_HITS, L1_BUSY = (
    "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
)
L2_TO_L1, L2_HITS = "l1tex__m_xbar2l1tex_read_bytes.sum", "lts__t_sector_hit_rate.pct"
DRAM_READ, DRAM_WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
DRAM_BUSY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
INSTRUCTIONS, ISSUE_BUSY = "smsp__inst_executed.sum", "smsp__issue_active.avg.pct_of_peak_sustained_active"
SHARED = ["smsp__sass_inst_executed_op_shared_ld.sum", "smsp__sass_inst_executed_op_shared_st.sum"]
CONFLICTS = [f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{kind}.sum" for kind in ("ld", "st")]
PASSES = [f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum" for kind in ("ld", "st")]
BLOCKS, THREADS, REGISTERS = "launch__grid_size", "launch__block_size", "launch__registers_per_thread"
BY_REGISTERS, BY_SHARED, BY_WARPS = (f"launch__occupancy_limit_{limit}" for limit in ("registers", "shared_mem", "warps"))
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
POSSIBLE_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
ACTIVE, ELAPSED = "sm__cycles_active.avg", "sm__cycles_elapsed.max"
WAITS = "smsp__average_warp_latency_per_inst_issued.ratio"
GLOBAL_WAIT, BARRIER, LG_THROTTLE = (STALL.format(name) for name in ("long_scoreboard", "barrier", "lg_throttle"))

# What a write-up shows of its own stage and the one before; the others are in PROFILING.md and in the CSVs.
FEW = [LOAD_SECTORS, LOAD_REQUESTS, INSTRUCTIONS, OCCUPANCY, WAITS, BARRIER, L1_HITS, L2_TO_L1, DRAM_READ, DRAM_BUSY]
# PROFILING.md: the comparison of all stages, and for each stage the counters that its section speaks of.
ALL_STAGES = [DURATION, DRAM_READ, DRAM_WRITTEN, DRAM_BUSY, L2_TO_L1, L2_HITS, L1_HITS, L1_BUSY, LOAD_SECTORS]
ALL_STAGES += [STORE_SECTORS, LOAD_REQUESTS, BLOCKS, THREADS, REGISTERS, BY_REGISTERS, BY_SHARED, POSSIBLE_OCCUPANCY]
ALL_STAGES += [OCCUPANCY, ACTIVE, ELAPSED, *SHARED]
ALL_STAGES += [*CONFLICTS, INSTRUCTIONS, ISSUE_BUSY, WAITS, GLOBAL_WAIT, BARRIER, LG_THROTTLE]
BYTES = [DRAM_READ, DRAM_WRITTEN, DRAM_BUSY]
STORY = {
    "01_basic": [
        *(DURATION, LOAD_SECTORS, STORE_SECTORS, L1_HITS, L2_TO_L1, L1_BUSY),
        *(BLOCKS, ACTIVE, ELAPSED, OCCUPANCY, *BYTES),
    ],
    "02_reduction5": [
        *(DURATION, LOAD_SECTORS, STORE_SECTORS, L1_BUSY, BLOCKS, ACTIVE, ELAPSED, OCCUPANCY),
        *(*BYTES, L1_HITS, L2_TO_L1, WAITS, BARRIER),
    ],
    "03_tiled": [
        *(DURATION, *BYTES, THREADS, BY_WARPS, L2_TO_L1, L1_HITS, LOAD_SECTORS, INSTRUCTIONS),
        *(*SHARED, *CONFLICTS, *PASSES, WAITS, GLOBAL_WAIT, BARRIER),
    ],
    "04_hybrid": [
        *(DURATION, *BYTES, LOAD_REQUESTS, LOAD_SECTORS, INSTRUCTIONS, ISSUE_BUSY, *SHARED),
        *(WAITS, GLOBAL_WAIT, BARRIER),
    ],
    "05_warp_shuffle": [
        *(DURATION, *BYTES, *SHARED, LOAD_REQUESTS, INSTRUCTIONS, ISSUE_BUSY),
        *(WAITS, GLOBAL_WAIT, BARRIER, LG_THROTTLE),
    ],
    "06_vectorized": [
        *(DURATION, *BYTES, L2_TO_L1, L1_HITS, THREADS, REGISTERS, BY_REGISTERS, OCCUPANCY),
        *(LOAD_REQUESTS, INSTRUCTIONS, ISSUE_BUSY, WAITS, GLOBAL_WAIT, BARRIER),
    ],
}
# The stage that PROFILING.md holds a stage against, where it is not the one before.
AGAINST = {"04_hybrid": ["02_reduction5", "03_tiled"]}
# The stage that a write-up holds its stage against, where it is not the one before; and counters of its own.
BUILDS_ON = {name: "10_block_shapes" for name in ("13_cluster", "14_dependent_launch", "15_many_blocks")}
MORE = {
    "07_registers": [REGISTERS],
    "08_critical_path": [REGISTERS, BY_REGISTERS, SHARED[0]],
    "09_streaming": [L2_HITS, DRAM_WRITTEN, REGISTERS],
    "10_block_shapes": [THREADS, REGISTERS, BY_REGISTERS, ISSUE_BUSY, ACTIVE, ELAPSED],
    "11_persistent": [GLOBAL_WAIT, BLOCKS, REGISTERS, BY_REGISTERS, ACTIVE, ELAPSED],
    "12_bulk_copy": [GLOBAL_WAIT, BLOCKS, REGISTERS, BY_SHARED, ACTIVE, ELAPSED],
    "13_cluster": [BLOCKS, THREADS, REGISTERS, BY_REGISTERS],
    "14_dependent_launch": [REGISTERS, BY_REGISTERS],
    "15_many_blocks": [BLOCKS, THREADS, REGISTERS, BY_REGISTERS],
}


def image(folder, name, text, page):
    """The plot, where it has been drawn."""
    path = ROOT / "plots" / f"{folder.name}_{name}.png"
    return [f"![{text}]({os.path.relpath(path, page.parent)})"] if path.is_file() else []


def stages_of(ladder=LADDER):
    return sorted(path.parent.name for path in (ROOT / ladder).glob("[0-9]*_*/kernel.cuh"))


# The ladder.


def matrix_rows(folder):
    rows = results.read(folder / results.MATRIX_CSV, MATRIX_COLUMNS)
    if not rows:
        raise Unusable(f"{results.shown(folder / results.MATRIX_CSV)} holds no stage")
    return rows


def copy_row(rows):
    """The copy kernel of the same run, in the columns of a stage. It moves no weight."""
    microseconds = number(rows[0], "copy_microseconds")
    rate = 8e-3 * int(rows[0]["rows"]) * int(rows[0]["cols"]) / microseconds
    of_datasheet = ""
    for row in rows:  # the same datasheet, told by any stage that has a percentage
        if number(row, "percent_of_datasheet"):
            of_datasheet = f"{rate / number(row, 'gb_per_s') * number(row, 'percent_of_datasheet'):.1f}"
    return ["copy kernel, same bytes", f"{microseconds:.2f}", f"{rate:.0f}", "100", of_datasheet]


def measured(row, name):
    rate = number(row, "gb_per_s")
    cells = [name, row["microseconds"], f"{rate:.0f}" if rate else ""]
    return cells + [row["percent_of_copy"], row["percent_of_datasheet"]]


def matrix_caption(folder, rows, page):
    facts = results.environment(folder)
    clocks = "clocks as found"
    if "SM clock right after" in facts and "SM clock at most" in facts:
        clocks += f" (SM: {facts['SM clock right after']} right after the run, at most {facts['SM clock at most']})"
    row, path = rows[0], folder / results.MATRIX_CSV
    weight = " with a weight" if row["weight"] == "1" else ""
    return (
        f"{row['rows']} × {row['cols']} float32{weight}, cold cache, median of {row['iterations']} samples. "
        f"{row['device']}, {clocks}, CUDA {results.version(row['runtime'])}, {row['date']}. "
        f"From {link(results.shown(path), path, page)}."
    )


def matrix_ladder(folder, page):
    """The plot and the table of the whole ladder."""
    rows = matrix_rows(folder)
    header = ["stage", "µs", "GB/s", "% of copy", "% of datasheet", "speed-up over 01_basic"]
    lines = []
    for row in rows:
        name = link(row["stage"], ROOT / LADDER / row["stage"] / "README.md", page)
        lines.append(measured(row, name) + [row["speedup_over_basic"]])
    lines.append(copy_row(rows) + [""])
    parts = image(folder, "matrix_bandwidth", "Bandwidth of each stage beside the copy kernel and the datasheet", page)
    return "\n\n".join(parts + [table(header, lines), matrix_caption(folder, rows, page)])


def ladder_index(folder, page):
    """The same for the ladder's own page, and the bandwidth over columns."""
    parts = image(folder, "matrix_by_columns", "Bandwidth of each stage from 256 to 65536 columns", page)
    path = folder / results.COLUMNS_CSV
    if path.is_file():
        parts.append(f"The same number of elements in rows of other lengths: {link(results.shown(path), path, page)}.")
    return "\n\n".join([matrix_ladder(folder, page), *parts])


SWEEPS = {"few_rows": results.FEW_CSV, "long_rows": results.LONG_CSV}


def sweep_table(path, page, chosen):
    """Microseconds: a row a stage, of those chosen or of all; a column a shape."""
    rows = results.read(path, MATRIX_COLUMNS)
    unknown = set(chosen) - {row["stage"] for row in rows}
    if unknown:
        raise Unusable(f"{results.shown(page)}: {path.name} has no stage {', '.join(sorted(unknown))}")
    shapes = list(dict.fromkeys((row["rows"], row["cols"]) for row in rows))
    times = {(row["stage"], row["rows"], row["cols"]): row["microseconds"] for row in rows}
    copies = {(row["rows"], row["cols"]): row["copy_microseconds"] for row in rows}
    lines = []
    for stage in dict.fromkeys(row["stage"] for row in rows):
        if chosen and stage not in chosen:
            continue
        name = link(stage, ROOT / LADDER / stage / "README.md", page)
        lines.append([name] + [times.get((stage, *shape), "") for shape in shapes])
    lines.append(["copy kernel, same bytes"] + [copies[shape] for shape in shapes])
    first = rows[0]
    caption = (
        "Microseconds a launch, float32, back to back in one CUDA graph over 64 pairs of buffers or 600 MB, whichever is "
        f"less: what fits into the L2 cache comes from there. Median of {first['iterations']} samples. "
        f"{first['device']}, CUDA {results.version(first['runtime'])}, {first['date']}. "
        f"From {link(results.shown(path), path, page)}."
    )
    body = table(["stage"] + [f"{count} × {cols}" for count, cols in shapes], lines)
    picture = [] if chosen else image(path.parent, path.stem, "Microseconds of each stage, by shape", page)
    return "\n\n".join([*picture, body, caption])


def against(row, before):
    now, then = number(row, "microseconds"), number(before, "microseconds")
    if then / now >= 2:
        return f"{row['stage']} is {then / now:.1f} times as fast as {before['stage']}."
    word = "less" if now < then else "more"
    return f"{row['stage']} takes {abs(100 * (now - then) / then):.1f} % {word} time than {before['stage']}."


def stage_figures(folder, page):
    """One stage's row, what changed against the stage before, and its few counters; None if it was not measured."""
    stage = page.parent.name
    rows = [row for row in matrix_rows(folder) if row["microseconds"]]
    names = [row["stage"] for row in rows]
    if stage not in names:
        return None
    place = names.index(stage)
    header = ["", "µs", "GB/s", "% of copy", "% of datasheet"]
    parts = [table(header, [measured(rows[place], stage), copy_row(rows)])]
    before = BUILDS_ON.get(stage, names[max(place - 1, 0)])
    if place > 0 and before in names:
        parts.append(against(rows[place], rows[names.index(before)]))
    parts.append(matrix_caption(folder, rows, page))
    few = counter_table(folder, page, FEW + MORE.get(stage, []), list(dict.fromkeys([before, stage])))
    return "\n\n".join(parts + ([few] if few else []))


# The counters.


def counters(folder, stage):
    """One stage's stored counters: {ncu's name: (unit, number or None)}, and what else its file says."""
    rows = results.read(folder / "ncu" / f"{stage}.csv", ["name", "metric", "unit", "value"])
    about = {row["name"]: row["value"] for row in rows if not row["metric"]}
    values = {}
    for row in rows:
        if row["metric"]:
            values[row["metric"]] = (row["unit"], None if row["value"] == MISSING else number(row, "value"))
    return values, about


def plain(value):
    """As many digits as a reader compares."""
    if value is None:
        return MISSING
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def scaled(unit, values):
    """The unit that all cells of a row share, and its size."""
    most = max((abs(value) for value in values if value is not None), default=0)
    if unit in ("ns", "nsecond"):
        return "µs", 1e3
    if unit in ("byte", "bytes"):
        return ("MB", 1e6) if most >= 1e6 else ("bytes", 1)
    if unit == "%":
        return "%", 1
    return ("million", 1e6) if most >= 1e7 else ("", 1)


def counter_table(folder, page, metrics, stages):
    """Counters against stages, with the files they came from; None where none of these stages has been profiled."""
    stages = [stage for stage in stages if (folder / "ncu" / f"{stage}.csv").is_file()]
    if not stages:
        return None
    profiles = [counters(folder, stage) for stage in stages]
    lines = []
    for metric in metrics:
        if not any(metric in values for values, _ in profiles):
            continue  # not asked for when these were profiled
        cells = [values.get(metric, ("", None)) for values, _ in profiles]
        values = [value for _, value in cells]
        unit, scale = scaled(next((unit for unit, value in cells if value is not None), ""), values)
        name = COUNTERS[metric] + (f", {unit}" if unit else "")
        lines.append([name] + [plain(None if value is None else value / scale) for value in values])
    about = profiles[-1][1]
    files = ", ".join(link(stage, folder / "ncu" / f"{stage}.csv", page) for stage in stages)
    caption = (
        f"One launch, caches emptied first. {about.get('GPU', '')}, Nsight Compute {about.get('Nsight Compute', '')}, "
        f"{about.get('date', '')}. All counters: {files}."
    )
    return f"{table(['counter', *stages], lines)}\n\n{caption}"


def counters_of(name):
    """The function for the table counters, of all stages or of those chosen, or counters_<stage>: that stage beside the
    one before."""

    def build(folder, page, chosen):
        stages = stages_of()
        if name == "counters":
            unknown = sorted(set(chosen) - set(stages))
            if unknown:
                raise Unusable(f"{results.shown(page)}: table {name}: there is no stage {', '.join(unknown)}")
            return counter_table(folder, page, ALL_STAGES, chosen or stages)
        stage = name[len("counters_") :]
        if stage not in stages:
            raise Unusable(f"{results.shown(page)}: table {name}: there is no stage {stage}")
        place = stages.index(stage)
        before = AGAINST.get(stage, stages[max(place - 1, 0) : place])
        return counter_table(folder, page, STORY.get(stage, FEW), [*before, stage])

    return build


# Any other CSV.

TITLES = {
    "graph_microseconds": "in a graph, µs",
    "plain_microseconds": "in a stream, µs",
    "submit_microseconds": "CPU's share, µs",
    "event_pair_microseconds": "an event pair each, µs",
    "right": "right?",
}
UNITS = (("microseconds", "µs"), ("gb_per_s", "GB/s"), ("mhz", "MHz"), ("spread_percent", "spread, %"))


def title(column):
    """cold_gb_per_s -> "cold, GB/s"; percent_of_ceiling -> "% of ceiling"; buffer_bytes -> "buffer"."""
    if column in TITLES:
        return TITLES[column]
    before, percent, after = column.partition("percent_of_")
    if percent:
        return (before.replace("_", " ").strip() + ", " if before else "") + "% of " + after.replace("_", " ")
    for suffix, unit in UNITS:
        if column.endswith(suffix):
            words = column[: -len(suffix)].replace("_", " ").strip()
            return f"{words}, {unit}" if words else unit
    return re.sub(r"_bytes$|^is_", "", column).replace("_", " ")


def size(count):
    """Bytes as people write them: powers of two as KiB, MiB, GiB."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale and count * 16 % scale == 0:
            return f"{count / scale:g} {unit}"
    return f"{count:,}"


def cell(column, text):
    if column.endswith("_bytes") and text.isdigit():
        return size(int(text))
    if column.startswith("is_"):
        return {"1": "yes", "0": ""}.get(text, text)
    return text.replace("|", "\\|")


def is_numeric(rows, column):
    return all(re.fullmatch(r"[-+]?[\d.]*(e[-+]?\d+)?", row[column]) for row in rows) and not column.startswith("is_")


def any_csv(path, page, chosen):
    """A CSV's table: the columns chosen, or all; what is the same in every row is said once, below it."""
    rows = results.read(path)
    if not rows:
        raise Unusable(f"{results.shown(path)} holds no rows")
    unknown = [column for column in chosen if column not in rows[0]]
    if unknown:
        where = f"{results.shown(page)}: {path.name}"
        raise Unusable(f"{where} has no column {', '.join(unknown)}; it has {', '.join(rows[0])}")
    same = [column for column in rows[0] if len({row[column] for row in rows}) == 1 and column not in chosen]
    same = [column for column in same if len(rows) > 1 or column in ENVIRONMENT]
    columns = list(chosen) or [column for column in rows[0] if column not in same]
    words = [place for place, column in enumerate(columns) if not is_numeric(rows, column)]
    body = table([title(column) for column in columns], [[cell(c, row[c]) for c in columns] for row in rows], words)
    first = rows[0]
    facts = [column for column in same if column not in ENVIRONMENT and first[column]]
    facts = "; ".join(f"{title(column)} {cell(column, first[column])}" for column in facts)
    where = [first.get("gpu", "")]
    where += [f"clocks as found (SM: at most {first['sm_clock_mhz']} MHz)"] if first.get("sm_clock_mhz") else []
    where += [f"CUDA {first['cuda_runtime']}"] if first.get("cuda_runtime") else []
    where = ", ".join(word for word in [*where, first.get("date", "")] if word)
    sentences = [facts[:1].upper() + facts[1:], where, f"From {link(results.shown(path), path, page)}"]
    return body + "\n\n" + " ".join(f"{sentence}." for sentence in sentences if sentence)


# Made from what the CPU device counted, also where no GPU is stored.
CPU_DEVICE = {"cpu_device": cpu_device.lines, "ncu_comparison": cpu_device.beside_ncu}


def known_tables():
    names = ["matrix_ladder", "counters", *SWEEPS, *CPU_DEVICE, *peer_tables.FILES, "peers_plot"]
    return names + [f"counters_{stage}" for stage in stages_of()]


def build(name, chosen, folder, page):
    """The text of the table `name` on a page; None where nothing is stored for it yet."""
    if name in CPU_DEVICE:
        return CPU_DEVICE[name](folder, page)
    if folder is None:
        return None
    if name == "figures":
        parent = page.parent
        return (ladder_index if parent == ROOT / LADDER else stage_figures)(folder, page)
    if name == "matrix_ladder":
        return matrix_ladder(folder, page)
    if name == "counters" or name.startswith("counters_"):
        return counters_of(name)(folder, page, chosen)
    path = folder / f"{name}.csv"
    if name in SWEEPS:
        return sweep_table(path, page, chosen) if path.is_file() else None
    if name in peer_tables.FILES:
        return peer_tables.markdown(path, page) if path.is_file() else None
    if name == "peers_plot":
        text = "Speed of the header and its peers beside a copy of the same bytes"
        return "".join(image(folder, "peers", text, page)) or None
    if not path.is_file() and path.name == results.SHAPES_CSV:
        return None
    if not path.is_file():
        there = ", ".join(sorted(csv.stem for csv in folder.glob("*.csv")))
        raise Unusable(
            f"{results.shown(page)}: unknown table {name}: there is no {results.shown(path)}; "
            f"known are {', '.join(known_tables())} and the CSVs stored beside it: {there}"
        )
    picture = image(folder, name, f"Plot of {name}.csv", page)
    return "\n\n".join([*picture, any_csv(path, page, chosen)])
