"""Pictures of what the pages explain, drawn from what is counted and stored; make plots draws them, too.

Each function draws one picture, and takes its numbers from the files of profiling_results that it names. A picture whose
files are not there is left out.
"""

import re

from ..core import ladders, registry, results
from ..core.results import number
from ..measure import cpu_device
from ..measure.counters import SHORT
from .counter_tables import read as counters_of
from .drawing import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from .svg import GREY, INK, ON_BRIGHT, PALE, Picture

LANES, SECTOR, WORD = 32, 32, 4
LANE_COLORS = [BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE]


def lines_of(stage, what):
    """The counted lines of a stage ("matrix/01_basic") with accesses of this kind; () if it has not been counted."""
    path = results.store() / results.CPU_DEVICE / f"{stage}.csv"
    return [row for row in cpu_device.read(path)[1] if row["what"] == what] if path.is_file() else ()


def each(row, column):
    """Of one request."""
    return number(row, column) / number(row, "requests")


def draw_grid(target):
    """The grid of W1L1's who_am_i: its blocks, their warps and lanes, and the element of each thread."""
    program = ladders.ROOT / "lectures/W1L1_first_kernel/who_am_i.cu"
    if not program.is_file():
        return
    blocks, threads = (
        int(count) for count in re.findall(r"argc > \d \? .* : (\d+);", program.read_text(encoding="utf-8"))
    )
    title = f"A grid of {blocks} blocks of {threads} threads: its warps, their lanes, and the elements that they take"
    warps = -(-threads // LANES)
    left, cell, line, block = 92, 16, 24, 40 + 24 * warps
    picture = Picture(760, 62 + blocks * block + 92, title)
    picture.words(20, 30, f"One grid: {blocks} blocks of {threads} threads", 15, bold=True)
    for lane in (0, 8, 16, 24, 31):
        picture.words(left + lane * cell + 8, 52, f"lane {lane}", 10, GREY, "middle")
    colors = [LANE_COLORS[place % len(LANE_COLORS)] for place in range(blocks * warps)]
    for number_of_block in range(blocks):
        top = 58 + number_of_block * block
        picture.box(12, top, 736, block - 8, "none", GREY, 6)
        picture.words(20, top + 18, f"block {number_of_block}", 13, bold=True)
        for warp in range(warps):
            y = top + 26 + warp * line
            first, count = warp * LANES, min(LANES, threads - warp * LANES)
            picture.words(left - 8, y + 12, f"warp {warp}", 12, INK, "end")
            for lane in range(LANES):
                busy = lane < count
                color = colors[number_of_block * warps + warp]
                picture.box(left + lane * cell, y, cell - 2, 17, color if busy else "none", "none" if busy else PALE, 2)
                if busy:
                    picture.words(left + lane * cell + 7, y + 12, str(first + lane), 9, "#ffffff", "middle")
            element = number_of_block * threads + first
            said = f"elements {element} to {element + count - 1}"
            picture.words(left + LANES * cell + 6, y + 13, said, 12)
    y, width = 78 + blocks * block, 700 / (blocks * threads)
    for element in range(blocks * threads):
        place, thread = divmod(element, threads)
        picture.box(20 + element * width, y, width - 1, 18, colors[place * warps + thread // LANES])
    for element in sorted({0, blocks * threads - 1, *(place * threads for place in range(blocks))}):
        picture.words(20 + (element + 0.5) * width, y + 34, str(element), 11, GREY, "middle")
    said = "The array: thread threadIdx.x of block blockIdx.x takes element blockIdx.x * blockDim.x + threadIdx.x."
    picture.words(20, y + 54, said, 12, GREY)
    picture.save(target.with_name("pictures_grid"))


def draw_coalesced(target):
    """The first load of a warp in W1L1's vector_add1, and where each thread takes a piece of the array for itself."""
    found = lines_of("W1L1/vector_add1", "global load")
    if not found:
        return
    threads, per = 1024, SECTOR // WORD
    piece = next(ladder for ladder in ladders.all_ladders() if ladder.id == "W1L1").analyze["n"] // threads
    picture = Picture(760, 372, "The sectors of one load of a warp: a piece for each thread, and neighbouring elements")

    def panel(top, name, does, stride, counted=None):
        sectors = sorted({lane * stride // per for lane in range(LANES)})
        count = counted or len(sectors)
        picture.words(20, top, name, 15, bold=True)
        picture.words(20, top + 20, does)
        said = f"{count:g} sectors per request: {count * SECTOR:g} bytes move for {LANES * WORD} that are requested"
        picture.words(20, top + 40, said, color=BLUE if count * SECTOR == LANES * WORD else VERMILLION, bold=True)
        for place, sector in enumerate(sectors[:4]):
            left = 40 + place * 150
            lanes = [lane for lane in range(LANES) if lane * stride // per == sector]
            for lane in lanes:
                x = left + (lane * stride % per) * 16 + 7
                picture.words(x, top + 66, str(lane), 10, INK, "middle")
                picture.arrow(x, top + 70, x, top + 84)
            picture.box(left - 3, top + 84, 8 * 16 + 4, 26, "none", GREY)
            for word in range(per):
                taken = sector * per + word in [lane * stride for lane in lanes]
                color = LANE_COLORS[place] if taken else "#f2f2f2"
                picture.box(left + word * 16, top + 86, 14, 22, color)
            picture.words(
                left + 62, top + 126, f"elements {sector * per} to {sector * per + per - 1}", 11, GREY, "middle"
            )
        rest = len(sectors) - 4
        picture.words(640, top + 101, f"… and {rest} more" if rest else "and no more", 12, GREY)

    panel(32, "A piece for each thread", f"Thread t begins at element {piece} t.", piece)
    picture.line(20, 174, 740, 174, PALE)
    panel(206, "vector_add1", "Thread t begins at element t.", 1, each(found[0], "sectors"))
    said = "Numbers: the lanes of warp 0. A box is a sector of 32 bytes, with its 8 floats. Counted by make analyze:"
    picture.words(20, 350, said + " profiling_results/cpu_device/W1L1/vector_add1.csv.", 10, GREY)
    picture.save(target.with_name("pictures_coalesced"))


def draw_sectors(target):
    """The first load of a warp in 01_basic and in 02_reduction5: which sectors its lanes touch."""
    found = [lines_of(f"matrix/{name}", "global load") for name in ("01_basic", "02_reduction5")]
    if not all(found):
        return
    scattered, together = (each(rows[0], "sectors") for rows in found)
    picture = Picture(760, 380, "The sectors that one load of a warp touches in 01_basic and in 02_reduction5")

    def sectors(x, y, count, taken, label):
        for place in range(count):
            left = x + place * 88
            picture.box(left, y, 80, 26, "none", GREY)
            for word in range(SECTOR // WORD):
                if taken(place, word) is not None:
                    color = LANE_COLORS[taken(place, word) % len(LANE_COLORS)]
                    picture.box(left + word * 10 + 1, y + 1, 8, 24, color)
            picture.words(left + 40, y + 42, label(place), 11, GREY, "middle")

    def heading(y, name, does, count):
        picture.words(20, y, name, 15, bold=True)
        picture.words(20, y + 20, does)
        moved, asked = count * SECTOR, LANES * WORD
        said = f"{count:g} sectors per request: {moved:g} bytes move for {asked} that the warp uses"
        picture.words(20, y + 40, said, color=VERMILLION if moved > asked else BLUE, bold=True)

    heading(
        32,
        "01_basic: a lane per row",
        "Neighbouring lanes read the same column of neighbouring rows, 32,768 bytes apart.",
        scattered,
    )
    sectors(20, 88, 3, lambda place, word: place if word == 0 else None, lambda place: f"row {place}: lane {place}")
    picture.words(20 + 3 * 88 + 20, 106, "…", 18, GREY, "middle")
    left = 20 + 3 * 88 + 44
    picture.box(left, 88, 80, 26, "none", GREY)
    picture.box(left + 1, 89, 8, 24, LANE_COLORS[(LANES - 1) % len(LANE_COLORS)])
    picture.words(left + 40, 130, "row 31: lane 31", 11, GREY, "middle")
    picture.words(left + 100, 102, "One word of eight is used,", 12, GREY)
    picture.words(left + 100, 118, "the other seven are moved, too.", 12, GREY)
    picture.line(20, 160, 740, 160, PALE)
    heading(192, "02_reduction5: a block per row", "Neighbouring lanes read neighbouring columns of one row.", together)
    per = SECTOR // WORD
    sectors(
        20,
        248,
        round(together),
        lambda place, word: place * per + word,
        lambda place: f"lanes {place * per} to {place * per + per - 1}",
    )
    picture.words(20 + together * 88 + 12, 266, "Every word is used.", 12, GREY)
    picture.words(
        20,
        330,
        "A box is a sector of 32 bytes, the smallest piece that memory moves; a coloured bar is the 4-byte word of one lane.",
        12,
        GREY,
    )
    picture.words(
        20,
        350,
        "Counted by make analyze: profiling_results/cpu_device/matrix/01_basic.csv and 02_reduction5.csv.",
        11,
        GREY,
    )
    picture.save(target.with_name("pictures_sectors"))


def draw_tree_and_butterfly(target):
    """Eight lanes add up: by a tree in shared memory, and by shuffles."""
    paths = [
        results.store() / results.CPU_DEVICE / f"matrix/{name}.csv" for name in ("02_reduction5", "05_warp_shuffle")
    ]
    if not all(path.is_file() for path in paths):
        return
    (tree_barriers, _), (barriers, shuffles) = (cpu_device.operations(cpu_device.read(path)[1]) for path in paths)
    picture = Picture(760, 400, "A tree of additions in shared memory beside a butterfly of shuffles, with eight lanes")
    lanes, step, top, down = 8, 42, 116, 66

    def panel(left, name, does, counts, partners, final):
        picture.words(left, 30, name, 15, bold=True)
        picture.words(left, 50, does, 12)
        picture.words(left, 70, counts, 12, BLUE, bold=True)
        for lane in range(lanes):
            picture.words(left + lane * step + 12, 98, str(lane), 11, GREY, "middle")
        active = [set(range(lanes)) for _ in range(4)]
        for depth, (_distance, of_lane) in enumerate(partners):
            active[depth + 1] = {lane for lane in range(lanes) if of_lane(lane) is not None}
            for lane in sorted(active[depth + 1]):
                for other in (lane, of_lane(lane)):
                    x1, x2 = (left + place * step + 12 for place in (other, lane))
                    picture.arrow(x1, top + depth * down + 12, x2, top + (depth + 1) * down - 12, GREY, 1.2)
        for depth in range(4):
            for lane in range(lanes):
                busy = lane in active[depth]
                picture.box(
                    left + lane * step,
                    top + depth * down - 11,
                    24,
                    22,
                    (BLUE if depth < 3 else final) if busy else "none",
                    PALE,
                    4,
                )

    panel(
        20,
        "02_reduction5: a tree",
        "Half of the lanes stop after each step.",
        f"{tree_barriers:g} barriers per row of 256 threads",
        [
            (4, lambda lane: lane + 4 if lane < 4 else None),
            (2, lambda lane: lane + 2 if lane < 2 else None),
            (1, lambda lane: lane + 1 if lane < 1 else None),
        ],
        GREEN,
    )
    panel(
        400,
        "05_warp_shuffle: a butterfly",
        "Every lane adds what its partner holds.",
        f"{barriers:g} barrier per row, {shuffles:g} shuffles per warp",
        [(4, lambda lane: lane ^ 4), (2, lambda lane: lane ^ 2), (1, lambda lane: lane ^ 1)],
        GREEN,
    )
    for depth, mask in enumerate((4, 2, 1)):
        picture.words(380, top + depth * down + 37, f"{mask}", 12, GREY, "middle")
    picture.words(380, 98, "apart", 11, GREY, "middle")
    picture.words(
        20,
        352,
        "Green: who holds the whole sum. In the tree that is lane 0, and the others must read it from shared memory; in the",
        12,
        GREY,
    )
    picture.words(
        20,
        368,
        "butterfly it is every lane. Eight lanes are drawn; a warp has 32, and so five steps in place of three.",
        12,
        GREY,
    )
    picture.words(
        20,
        388,
        "Counted by make analyze: profiling_results/cpu_device/matrix/02_reduction5.csv and 05_warp_shuffle.csv.",
        11,
        GREY,
    )
    picture.save(target.with_name("pictures_tree_and_butterfly"))


def draw_banks(target):
    """A column of a tile in shared memory, without and with a column of padding."""
    found = [lines_of(f"W2L3/transpose_{name}", "shared load") for name in ("v1", "v2")]
    if not all(found):
        return
    picture = Picture(760, 470, "Bank conflicts of a column of a tile, without and with padding")
    _rows, size = 12, 10
    for left, name, pitch, counted in (
        (20, "transpose_v1: float tile[32][32]", 32, each(found[0][0], "wavefronts")),
        (400, "transpose_v2: float tile[32][33]", 33, each(found[1][0], "wavefronts")),
    ):
        banks = {(row * pitch) % 32 for row in range(LANES)}
        picture.words(left, 30, name, 15, bold=True)
        said = (
            "All 32 words of a column lie in one bank."
            if len(banks) == 1
            else "The 32 words of a column lie in 32 banks."
        )
        picture.words(left, 50, said, 12)
        plural = "s" if counted != 1 else ""
        picture.words(
            left, 70, f"{counted:g} wavefront{plural} per request", 13, BLUE if counted == 1 else VERMILLION, bold=True
        )
        for bank in (0, 8, 16, 24, 31):
            picture.words(left + 14 + bank * size + size / 2, 96, str(bank), 10, GREY, "middle")
        for row in range(LANES):
            for bank in range(32):
                taken = (row * pitch) % 32 == bank
                fill = (BLUE if counted == 1 else VERMILLION) if taken else "#f2f2f2"
                picture.box(left + 14 + bank * size, 102 + row * size, size - 1, size - 1, fill)
    picture.words(
        20,
        440,
        "Across: the 32 banks. Down: the lanes of a warp, each reading its word of column 0. Words in one bank take turns.",
        12,
        GREY,
    )
    picture.words(
        20,
        458,
        "Counted by make analyze: profiling_results/cpu_device/W2L3/transpose_v1.csv and transpose_v2.csv.",
        11,
        GREY,
    )
    picture.save(target.with_name("pictures_banks"))


def draw_hierarchy(folder, target):
    """The memories of a GPU with their sizes and measured bandwidths."""
    ceilings, query = folder / "W3L1/ceilings.csv", folder / "W1L1/outputs/device_query.txt"
    if not (ceilings.is_file() and query.is_file()):
        return
    said = dict(re.findall(r"^(\w.*?)  +(.*)$", query.read_text(encoding="utf-8"), re.MULTILINE))
    rates = {row["stage"]: number(row, "tera_per_s") for row in results.read(ceilings, ["stage", "tera_per_s"])}
    row = results.read(ceilings)[0]
    sheet = number(row, "datasheet_tera_per_s")
    picture = Picture(760, 430, f"The memories of an {row['gpu']} with their sizes and measured bandwidths")
    registers = int(said["registers of an SM"]) * 4 // 1024
    picture.words(20, 32, f"The memories of an {row['gpu']}", 15, bold=True)
    picture.words(560, 32, "measured bandwidth", 12, GREY, "middle")
    levels = [
        ("Registers", f"{registers} KiB in each of {said['SMs']} SMs", "a thread's own", "not measured", 0, PURPLE),
        (
            "Shared memory and L1",
            f"{said['shared memory of an SM']} of shared memory in each SM",
            "a block's",
            "",
            rates["04_shared_read"],
            BLUE,
        ),
        ("L2 cache", said["L2 cache"], "all SMs share it", "", rates["03_l2_read"], GREEN),
        (
            "DRAM",
            said["global memory"],
            "global memory",
            f"the datasheet says {sheet:g}",
            rates["01_dram_read"],
            ORANGE,
        ),
    ]
    most = max(rate for *_, rate, _ in levels)
    for place, (name, size, whose, note, rate, color) in enumerate(levels):
        y, inset = 52 + place * 84, 90 - place * 30
        picture.box(20 + inset, y, 360 - 2 * inset, 58, color, "none", 5)
        picture.words(200, y + 24, name, 14, "#ffffff" if color != ORANGE else ON_BRIGHT, "middle", True)
        picture.words(200, y + 44, whose, 12, "#ffffff" if color != ORANGE else ON_BRIGHT, "middle")
        picture.words(400, y + 14, size, 12)
        if rate:
            picture.box(400, y + 24, 260 * rate / most, 16, color)
            picture.words(406 + 260 * rate / most, y + 37, f"{rate:.1f} TB/s", 13, bold=True)
        picture.words(400, y + (56 if rate else 37), note, 11, GREY)
        if place < 3:
            picture.line(200, y + 60, 200, y + 82, GREY, 3)
    picture.words(
        20,
        402,
        "A read of each, all SMs together. The nearer a memory is to the threads, the faster and the smaller it is.",
        12,
        GREY,
    )
    picture.words(
        20, 420, f"From profiling_results/{folder.name}/W3L1/ceilings.csv and W1L1/outputs/device_query.txt.", 11, GREY
    )
    picture.save(target.with_name(f"{folder.name}_pictures_memories"))


def draw_rows_in_flight(folder, target):
    """Of each stage that keeps whole rows on the way: the bytes of its rows in flight beside L2, and its reads of DRAM."""
    matrix = ladders.ROOT / "assignment1/rms_norm/matrix/ladder.json"
    query = folder / "W1L1/outputs/device_query.txt"
    names = ["02_reduction5", "04_hybrid", "05_warp_shuffle", "06_vectorized", "07_registers"]
    paths = [folder / f"matrix/ncu/{name}.csv" for name in names]
    if not (matrix.is_file() and query.is_file() and all(path.is_file() for path in paths)):
        return
    main = ladders.read(matrix).main
    row_bytes, matrix_bytes = main["cols"] * WORD, main["rows"] * main["cols"] * WORD
    said = query.read_text(encoding="utf-8")
    l2 = float(re.search(r"L2 cache +([\d.]+) MiB", said).group(1)) * 2**20
    sms = int(re.search(r"^SMs +(\d+)", said, re.MULTILINE).group(1))
    picture = Picture(
        760,
        90 + 66 * len(names) + 60,
        "Bytes of the rows in flight beside the L2 cache, and the bytes that are read from DRAM",
    )
    picture.words(20, 30, "Rows in flight against L2", 15, bold=True)
    picture.words(20, 50, "input (blue) and output (light blue) of all rows that are being worked on", 12, GREY)
    picture.words(560, 50, "read from DRAM", 12, GREY)
    scale, left = 300 / 70e6, 150
    for place, (name, path) in enumerate(zip(names, paths)):
        values = {short: counters_of(path)[0].get(metric, ("", None))[1] for short, metric in SHORT.items()}
        warps = 64 * values["occupancy"] / 100 / (values["threads"] / LANES)  # blocks on an SM, on average
        size, y = warps * sms * row_bytes, 70 + place * 66
        picture.words(20, y + 22, name, 13)
        picture.box(left, y, size * scale, 30, BLUE)
        picture.box(left + size * scale, y, size * scale, 30, SKY)
        picture.words(
            left, y + 46, f"{warps:.1f} rows per SM: {size / 1e6:.0f} MB in, {size / 1e6:.0f} MB out", 11, GREY
        )
        read = values["dram_read"]
        picture.box(560, y, 60 * read / matrix_bytes, 30, ORANGE)
        picture.words(560, y + 46, f"{read / 1e6:.0f} MB, {read / matrix_bytes:.2f} × the matrix", 11, GREY)
    bottom = 70 + 66 * len(names)
    picture.line(left + l2 * scale, 60, left + l2 * scale, bottom, VERMILLION, 1.6, "5 3")
    picture.words(left + l2 * scale, bottom + 14, f"L2, {l2 / 1e6:.0f} MB", 12, VERMILLION, "middle")
    picture.words(
        20,
        bottom + 36,
        "Rows in flight: achieved occupancy over the warps of a block. 07 keeps its rows in registers and reads none twice.",
        12,
        GREY,
    )
    picture.words(20, bottom + 54, f"From profiling_results/{folder.name}/matrix/ncu/*.csv.", 11, GREY)
    picture.save(target.with_name(f"{folder.name}_pictures_rows_in_flight"))


LOAD, SUM, STORE, WAIT, SET_UP = BLUE, ORANGE, GREEN, "#eeeeee", PURPLE
PARTS = {
    LOAD: "row arrives",
    SUM: "sum",
    STORE: "row is scaled and written",
    SET_UP: "launch and weight",
    WAIT: "waits",
}


def draw_times(target, name, title, about, lanes, height):
    """Lines of time: a name and its pieces (color, from, length) each. They show an order, and no measured length."""
    picture = Picture(760, height, title)
    picture.words(20, 30, title, 15, bold=True)
    picture.words(20, 50, "The order of events, not measured lengths; time goes to the right.", 12, GREY)
    used, y = [], 66
    for label, pieces in lanes:
        if pieces is None:
            picture.words(20, y + 24, label, 13, bold=True)
            y += 34
            continue
        picture.words(20, y + 17, label, 12)
        for color, start, length, *said in pieces:
            picture.box(150 + start * 20, y, length * 20 - 1, 24, color, "none" if color != WAIT else PALE)
            if said:
                ink = INK if color == WAIT else ON_BRIGHT if color in (ORANGE, SKY) else "#ffffff"
                picture.words(150 + (start + length / 2) * 20, y + 16, said[0], 11, ink, "middle")
            used.append(color)
        y += 30
    x = 20
    for color, words in PARTS.items():
        if color in used:
            picture.box(x, y + 12, 14, 14, color, PALE)
            picture.words(x + 20, y + 24, words, 12)
            x += 34 + 7 * len(words)
    for place, line in enumerate(about):
        picture.words(20, y + 50 + place * 17, line, 12, GREY)
    picture.save(target.with_name(name))


def row(start, number="", load=3, total=1, store=3):
    return [(LOAD, start, load, number), (SUM, start + load, total), (STORE, start + load + total, store, number)]


def draw_time_lines(target):
    if not lines_of("matrix/11_persistent", "global load"):
        return
    draw_times(
        target,
        "pictures_time_line_11",
        "11_persistent: the block loads the next row before it adds up this one",
        [
            "In 09 a new block needs a place, and then asks for its row. In 11 a block that stays asks for row 1 as soon as it has",
            "row 0, and adds up and writes row 0 meanwhile. This is the hope; the page has the measured times, and what they say of it.",
        ],
        [
            ("09: a block per row", None),
            (
                "a place",
                [
                    (SET_UP, 0, 1),
                    *row(1, "row 0"),
                    (SET_UP, 8, 1),
                    *row(9, "row 1"),
                    (SET_UP, 16, 1),
                    *row(17, "row 2"),
                ],
            ),
            ("11: a block for many rows", None),
            (
                "its loads",
                [
                    (SET_UP, 0, 1),
                    (LOAD, 1, 3, "row 0"),
                    (LOAD, 4, 3, "row 1"),
                    (LOAD, 8, 3, "row 2"),
                    (LOAD, 12, 3, "row 3"),
                ],
            ),
            (
                "its threads",
                [
                    (WAIT, 1, 3),
                    (SUM, 4, 1),
                    (STORE, 5, 3, "row 0"),
                    (SUM, 8, 1),
                    (STORE, 9, 3, "row 1"),
                    (SUM, 12, 1),
                    (STORE, 13, 3, "row 2"),
                ],
            ),
        ],
        320,
    )
    draw_times(
        target,
        "pictures_time_line_12",
        "12_bulk_copy: rows arrive in one buffer while the threads use the other",
        [
            "One thread asks for a whole row and goes on; the row arrives in shared memory without passing a register.",
            "The copy of row 2 starts when all threads have added up row 1: then none still reads row 0, whose buffer it takes.",
        ],
        [
            ("buffer A", [(LOAD, 1, 4, "row 0"), (LOAD, 10, 4, "row 2"), (LOAD, 20, 4, "row 4")]),
            ("buffer B", [(LOAD, 1, 4, "row 1"), (LOAD, 15, 4, "row 3")]),
            (
                "the threads",
                [
                    (SET_UP, 0, 1),
                    (WAIT, 1, 4),
                    (SUM, 5, 1),
                    (STORE, 6, 3, "row 0"),
                    (SUM, 9, 1),
                    (STORE, 10, 3, "row 1"),
                    (WAIT, 13, 1),
                    (SUM, 14, 1),
                    (STORE, 15, 3, "row 2"),
                    (WAIT, 18, 1),
                    (SUM, 19, 1),
                    (STORE, 20, 3, "row 3"),
                ],
            ),
        ],
        250,
    )
    draw_times(
        target,
        "pictures_time_line_14",
        "14_dependent_launch: a kernel begins while the one before it ends",
        [
            "What does not depend on the kernel before (the launch, and reading the weight) happens while that kernel still runs.",
            "Before it touches its input the second kernel waits until the first has ended and its writes are visible.",
        ],
        [
            ("in order", None),
            ("kernel 1", [(SET_UP, 0, 3, "1"), (LOAD, 3, 4, "1"), (SUM, 7, 1), (STORE, 8, 4, "1")]),
            ("kernel 2", [(SET_UP, 12, 3, "2"), (LOAD, 15, 4, "2"), (SUM, 19, 1), (STORE, 20, 4, "2")]),
            ("dependent launch", None),
            ("kernel 1", [(SET_UP, 0, 3, "1"), (LOAD, 3, 4, "1"), (SUM, 7, 1), (STORE, 8, 4, "1")]),
            ("kernel 2", [(SET_UP, 8, 3, "2"), (WAIT, 11, 1), (LOAD, 12, 4, "2"), (SUM, 16, 1), (STORE, 17, 4, "2")]),
        ],
        380,
    )


def draw_exchange(target):
    """How the blocks of a row learn each other's sums: in a cluster, and through L2."""
    if not lines_of("matrix/13_cluster", "global load"):
        return
    picture = Picture(760, 440, "The exchange of sums between the blocks of a row: in a cluster, and through L2")
    for left, name, does in (
        (20, "13_cluster: into shared memory", "A block writes its sum into the memory of every block of"),
        (400, "15_many_blocks: through L2", "A block writes its sum to global memory, and reads the"),
    ):
        picture.words(left, 30, name, 15, bold=True)
        picture.words(left, 50, does, 12)
    picture.words(20, 66, "its cluster; a barrier of the cluster says when all are there.", 12)
    picture.words(400, 66, "others' again and again until all of them have come.", 12)
    places = [20 + block * 88 for block in range(4)]
    for place, left in enumerate(places):
        for x, top in ((left, 96), (left, 262)):
            picture.box(x, top, 74, 76, "none", GREY, 5)
            picture.words(x + 37, top + 18, f"block {place}", 12, INK, "middle")
            picture.box(x + 10, top + 28, 54, 38, BLUE if top == 96 else SKY, "none", 3)
            picture.words(x + 37, top + 45, "shared", 11, "#ffffff" if top == 96 else ON_BRIGHT, "middle")
            picture.words(x + 37, top + 59, "memory", 11, "#ffffff" if top == 96 else ON_BRIGHT, "middle")
    for start in range(4):
        for end in range(4):
            picture.arrow(
                places[start] + 37,
                174,
                places[end] + 37 + 6 * (start - 1.5),
                260,
                [BLUE, ORANGE, GREEN, PURPLE][start],
                1.3,
            )
    picture.words(20, 362, "above: each writes its sum; below: each has all four", 11, GREY)
    for place in range(4):
        x = 400 + place * 88
        picture.box(x, 96, 74, 50, "none", GREY, 5)
        picture.words(x + 37, 126, f"block {place}", 12, INK, "middle")
        picture.arrow(x + 26, 148, x + 26, 226, [BLUE, ORANGE, GREEN, PURPLE][place], 1.5)
        picture.arrow(x + 48, 226, x + 48, 148, GREY, 1.5, "4 3")
        picture.box(x + 8, 240, 58, 30, [BLUE, ORANGE, GREEN, PURPLE][place], "none", 3)
        picture.words(x + 37, 260, f"sum {place}", 12, "#ffffff" if place != 1 else ON_BRIGHT, "middle")
    picture.box(400, 230, 338, 50, "none", GREEN, 5)
    picture.words(569, 300, "L2, 64-bit words: a sum and the number of its launch", 12, INK, "middle")
    picture.words(400, 322, "solid: written once; dashed: all words are read until each", 11, GREY)
    picture.words(400, 337, "has this launch's number", 11, GREY)
    picture.words(
        20,
        392,
        "Four blocks are drawn. A cluster has at most 8 (without special permission); through L2 the row of one long problem is",
        12,
        GREY,
    )
    picture.words(
        20,
        408,
        "shared by up to 128 blocks, all of which must be running, or those that run would wait for ever.",
        12,
        GREY,
    )
    picture.save(target.with_name("pictures_exchange"))


CALLS = {  # a line of Nsight Compute's own report: what to read in it
    "Section: GPU Speed Of Light Throughput": "a section; the window has the same, in the same order",
    "DRAM Throughput": "how busy the memory was: the first number to read",
    "Duration": "one launch, with empty caches",
    "L2 Cache Throughput": "how busy L2 was, which also serves second reads",
    "Compute (SM) Throughput": "how busy arithmetic was: compare with the memory",
    "Section: Warp State Statistics": "the section that says what the warps wait for",
    "Warp Cycles Per Issued Instruction": "from one instruction of a warp to its next",
    "Avg. Active Threads Per Warp": "how many of the 32 lanes take part",
}


def draw_report(folder, target):
    """Nsight Compute's own text, as it is stored of 02_reduction5, with numbers at the lines to read."""
    path = folder / "matrix/ncu_details/02_reduction5.txt"
    if not path.is_file():
        return
    sections = re.split(r"^(?=    Section: )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    chosen = [section for name in CALLS if name.startswith("Section") for section in sections if name in section]
    lines = []
    for section in chosen:
        lines += [line[4:] for line in section.partition("\n\n")[0].splitlines()] + [""]
    picture = Picture(
        960,
        70 + 17 * len(lines) + 30,
        "A part of Nsight Compute's report on 02_reduction5, with the lines to read numbered",
    )
    picture.words(20, 30, "What ncu --page details prints of 02_reduction5", 15, bold=True)
    calls, number = dict(CALLS), 0
    for place, line in enumerate(lines):
        y = 60 + 17 * place
        key = next((name for name in calls if line.strip().startswith(name)), None)
        if key:
            number += 1
            picture.box(14, y - 12, 484, 16, "#fff3d6", "none", 3)
            picture.words(524, y, str(number), 13, VERMILLION, "middle", True)
            picture.words(540, y, calls.pop(key), 13)
            picture.line(498, y - 4, 514, y - 4, VERMILLION)
        picture.fixed(20, y, line)
    picture.words(
        20,
        60 + 17 * len(lines),
        f"From profiling_results/{folder.name}/matrix/ncu_details/02_reduction5.txt.",
        11,
        GREY,
    )
    picture.save(target.with_name(f"{folder.name}_pictures_report"))


@registry.plot("pictures")
def draw(folder, _, target):
    """All pictures; those of a GPU's results have its name, and pages show those of the first GPU alone."""
    target = target.with_name("pictures")
    for one in (
        draw_grid,
        draw_coalesced,
        draw_sectors,
        draw_tree_and_butterfly,
        draw_banks,
        draw_time_lines,
        draw_exchange,
    ):
        one(target)
    if folder == results.stored():
        for one in (draw_hierarchy, draw_rows_in_flight, draw_report):
            one(folder, target)
