"""The policies of the gradients, made from what bench/tune/backward measured:
profiling_results/<gpu>/header/tune_backward.csv. bench/tune/README.md says by which rules.
"""

import collections
import statistics

from bench.tune import policies

JOB, LEAF = "make tune S=backward", "bench/tune/backward"
CSV = "header/tune_backward.csv"
POLICIES = "include/rms_norm/policies/backward"
CALL = "rms_norm::backward<rms_norm::policies::backward::{}>(...)"
DEFAULT = "the default of backward() in include/rms_norm/backward.cuh"
TOLERANCE = 1.01  # so much slower than the fastest a form may be that is chosen for another reason

TABLES = {"kFewRows": False, "kFewRowsWithRstd": True}  # whether the forward pass has stored rstd
NUMBERS = "rows cols warps parts rows_at_once rows_of_thread multiprocessors".split()
COLUMNS = [*NUMBERS, *"launch verdict microseconds device runtime date".split()]
Form = collections.namedtuple("Form", "parts rows_at_once rows_of_thread")
Line = collections.namedtuple("Line", "warps rows form comment")
WARPS = 32  # of few_row_gradients, which has 64 registers in a thread, so many fit on a multiprocessor
WHOLE_ROWS = Form(0, 1, 1)  # with eight warps on a multiprocessor


def read(path):
    return policies.timed_rows(path, COLUMNS, NUMBERS, JOB)


def times_of(rows, stored_rstd=False):
    """{warps: {number of rows: {form: microseconds}}} of calls with or without a stored rstd, the mean of what was measured
    of plain and dependent launches; of forms without one of them, nothing."""
    rows = [row for row in rows if row["launch"].endswith("_rstd") == stored_rstd]
    launches = {row["launch"] for row in rows}
    found = collections.defaultdict(dict)
    for row in rows:
        form = Form(row["parts"], row["rows_at_once"], row["rows_of_thread"])
        found.setdefault((row["warps"], row["rows"], form), {})[row["launch"]] = row["microseconds"]
    times = collections.defaultdict(lambda: collections.defaultdict(dict))
    for (warps, count, form), by in found.items():
        if by.keys() == launches:
            times[warps][count][form] = statistics.fmean(by.values())
    return times


def choose(times, before):
    """The fastest form, or one that is about as fast: blocks with whole rows, or the form for fewer rows."""
    good = {form: time for form, time in times.items() if time <= TOLERANCE * min(times.values())}
    return next((form for form in (WHOLE_ROWS, before) if form in good), min(good, key=good.get))


def lines_of(times, multiprocessors=132):
    """The table's lines; of several numbers of rows that have one form, the last. More rows than were measured get blocks
    with whole rows."""
    lines = []
    for warps, counts in sorted(times.items()):
        of_length, form = [], None
        for count, measured in sorted(counts.items()):
            form = choose(measured, form)
            said = f"{count} rows: {measured[form]:.2f} us, fastest {min(measured.values()):.2f}"
            if of_length and of_length[-1].form == form:
                of_length.pop()
            most = policies.limit(counts, count)
            of_cluster = form.rows_at_once * form.rows_of_thread
            if form.parts and count <= of_cluster:
                most = min(most, of_cluster)  # a second cluster makes partial sums
            elif form.parts:
                at_once = WARPS * multiprocessors * form.rows_of_thread // (2 * warps)
                most = min(most, max(count, at_once))  # others would wait until these have ended
            of_length.append(Line(warps, most, form, said))
        *short, last = of_length
        if not last.form.parts:
            lines += [*short, last]
        else:
            last = last._replace(rows=max(counts))
            lines += [*short, last, Line(warps, policies.ANY_SIZE, WHOLE_ROWS, "more rows than were measured")]
    return lines


def taken(lines, warps, rows):
    """The form that few_rows.cuh finds in these lines for a problem."""
    form = next(line.form for line in lines if warps <= line.warps and rows <= line.rows)
    return form._replace(rows_at_once=min(form.rows_at_once, -(-rows // form.rows_of_thread)))


def written(line):
    rows = "INT64_MAX" if line.rows == policies.ANY_SIZE else str(line.rows)
    return ", ".join(map(str, (line.warps, rows, *line.form)))


def policy(rows, path):
    """The whole file, from the rows of the CSV at that path."""
    said = [policies.source_of(rows[0], path, JOB)]
    if "dependent" in {row["launch"] for row in rows}:
        said.append("A time is the mean of a plain and a dependent launch.")
    text = policies.wrapped(said)
    for name, stored_rstd in TABLES.items():
        if times := times_of(rows, stored_rstd):
            lines = lines_of(times, rows[0]["multiprocessors"])
            text += policies.table("FewRows", name, [(written(line), line.comment) for line in lines])
        else:
            text.append(f"  static constexpr auto& {name} = kFewRows;  // not measured on its own")
    struct = policies.names(policies.gpu_of(path), POLICIES)[1]
    title = f"The policy of one GPU, as {JOB} wrote it."
    return policies.file(title, "../../few_rows.cuh", "rms_norm::policies::backward", [("", struct, text)])
