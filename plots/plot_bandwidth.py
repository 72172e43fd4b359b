"""Draws each stage's bandwidth against the copy kernel and the datasheet, from the CSV that rms_norm_matrix_test writes.

    plot_bandwidth.py [CSV ...]

Each CSV of a GPU becomes plots/<ladder>_<gpu>.png and .svg. Where none of those given holds a time (the CPU device is
never timed), the stored ones, profiling_results/<gpu>/rms_norm_matrix.csv, are drawn instead.
"""

import csv
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LADDER = "rms_norm_matrix"
COLUMNS = (
    "stage verdict rows cols gb_per_s percent_of_copy percent_of_datasheet device sm runtime date".split()
)
# Okabe and Ito's palette: told apart by the colour-blind.
BLUE, ORANGE, VERMILLION = "#0072B2", "#E69F00", "#D55E00"


class Unusable(Exception):
    """A CSV that cannot be drawn: one sentence."""


def read(path):
    """The rows of one CSV as dictionaries; Unusable if the file or a column is missing."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows, columns = list(reader), reader.fieldnames or []
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
    missing = [column for column in COLUMNS if column not in columns]
    if missing:
        raise Unusable(f"{path} lacks the column {', '.join(missing)}; write it with rms_norm_matrix_test --csv")
    return rows


def number(row, column):
    """The value of a cell, None where it is empty."""
    try:
        return float(row[column]) if row[column] else None
    except ValueError:
        raise Unusable(f"column {column} of stage {row['stage']} is no number: {row[column]}")


def ceiling(rows, column):
    """What 100 percent of `column` is in GB/s, from the fastest timed stage; None where that is not told."""
    timed = [(number(row, "gb_per_s"), number(row, column)) for row in rows]
    timed = [(rate, percent) for rate, percent in timed if rate and percent]
    return 100 * max(timed)[0] / max(timed)[1] if timed else None


def draw(rows, target):
    """Writes target.png and target.svg."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": LADDER, "font.size": 10})
    import matplotlib.pyplot as plt

    rates = [number(row, "gb_per_s") or 0 for row in rows]
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    bars = axes.bar([row["stage"] for row in rows], rates, color=BLUE, width=0.65, zorder=2)
    labels = [f"{rate:.0f}" if rate else row["verdict"] for rate, row in zip(rates, rows)]
    axes.bar_label(bars, labels, padding=3, zorder=4, backgroundcolor=(1, 1, 1, 0.8))
    for column, name, color, style in (
        ("percent_of_copy", "copy kernel, same run", ORANGE, "--"),
        ("percent_of_datasheet", "datasheet", VERMILLION, "-"),
    ):
        rate = ceiling(rows, column)
        if rate:
            axes.axhline(rate, color=color, linestyle=style, linewidth=2, zorder=3, label=f"{name}: {rate:.0f} GB/s")
    axes.margins(y=0.12)
    axes.set_ylabel("bandwidth, GB/s (1 GB = 10$^9$ bytes)")
    axes.grid(axis="y", color="#dddddd", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", rotation=20)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
    first = rows[0]
    runtime = int(number(first, "runtime") or 0)
    figure.supxlabel(
        f"RMSNorm, {first['rows']} × {first['cols']} float32 · {first['device']} (sm_{first['sm']}) · "
        f"CUDA {runtime // 1000}.{runtime % 1000 // 10} · {first['date']}",
        fontsize=9,
    )
    figure.savefig(target.with_suffix(".png"), dpi=150)
    figure.savefig(target.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)


def is_timed(rows):
    return any(number(row, "gb_per_s") for row in rows)


def main(arguments):
    given = [pathlib.Path(argument) for argument in arguments]
    tables = [(path, read(path)) for path in given]
    tables = [(path, rows) for path, rows in tables if is_timed(rows)]
    if not tables:
        stored = sorted(ROOT.glob(f"profiling_results/*/{LADDER}.csv"))
        if given:
            print("plot: this run was not timed (no GPU)" + (", so the stored results are drawn" if stored else ""))
        tables = [(path, read(path)) for path in stored]
        tables = [(path, rows) for path, rows in tables if is_timed(rows)]
    if not tables:
        print("plot: no GPU has been measured yet, so there is nothing to draw; scripts/gpu_check.sh measures one")
    for path, rows in tables:
        gpu = re.sub(r"[^a-z0-9]+", "-", rows[0]["device"].lower().replace("nvidia ", "")).strip("-")
        target = ROOT / "plots" / f"{LADDER}_{gpu}"
        draw(rows, target)
        print(f"plot: {target.relative_to(ROOT)}.png and .svg, from {path}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Unusable as error:
        sys.exit(f"plot_bandwidth.py: {error}")
