"""The norm behind an all-reduce beside its peers: what job.py stores, and the table made from it."""

from ladder.core import registry, results
from ladder.core.markdown import aligned, link, table

COLUMNS = "ranks rows cols dtype competitor microseconds least_microseconds".split() + [*results.OF_THE_RUN]
TITLES = {
    "header_one_shot": "one shot",
    "header_one_shot_dependent": "one shot, dependent",
    "header_two_shot": "two shots",
    "header_two_shot_dependent": "two shots, dependent",
    "header_sharded": "residual sharded",
    "header_sharded_dependent": "residual sharded, dependent",
    "package": "Python package",
    "package_dependent": "Python package, dependent",
    "nccl_alone": "NCCL alone",
    "nccl_header_norm": "NCCL, header's norm",
    "nccl_header_norm_dependent": "NCCL, header's norm, dependent",
    "torch_nccl": "NCCL alone, of PyTorch",
    "torch_nccl_compile": "NCCL, torch.compile",
    "torch_nccl_package": "NCCL, package's norm",
    "torch_one_shot_compile": "symmetric memory one-shot, torch.compile",
    "torch_two_shot_compile": "symmetric memory two-shot, torch.compile",
    "flashinfer_one_shot": "FlashInfer one-shot, fused",
    "flashinfer_two_shot": "FlashInfer two-shot, fused",
    "vllm_compile": "vLLM's custom all-reduce, torch.compile",
}
# They norm the sum, have the same residual everywhere, and are not this project's in one kernel.
PEERS = [
    name
    for name in TITLES
    if name.startswith(("nccl", "torch", "flashinfer", "vllm")) and not name.endswith(("alone", "torch_nccl"))
]
OURS = ["header_one_shot", "header_two_shot"]


def read(path):
    """{(ranks, rows, cols, type): {competitor: microseconds}}, in the file's order."""
    found = results.grouped(
        path,
        COLUMNS,
        lambda row: (row["ranks"], row["rows"], row["cols"], row["dtype"]),
        lambda row: row["competitor"],
    )
    return {
        shape: {name: results.number(row, "microseconds") for name, row in rows.items()}
        for shape, rows in found.items()
    }


def lines(shapes):
    """The head of the table and its lines: a line for each shape, a column for each competitor that was timed."""
    names = [name for name in TITLES if any(name in rows for rows in shapes.values())]
    body = []
    for (_, rows, cols, _), times in shapes.items():
        ours = min(
            (times[name] for name in (*OURS, *(f"{one}_dependent" for one in OURS)) if name in times), default=None
        )
        peer = min((times[name] for name in PEERS if name in times), default=None)
        speed_up = f"{peer / ours:.2f}" if ours and peer else ""
        body.append([f"{rows} × {cols}", *(f"{times[name]:.2f}" if name in times else "" for name in names), speed_up])
    return ["rows × cols", *(TITLES[name] for name in names), "speed-up"], body


@registry.csv_table("header/all_reduce")
def markdown(path, page):
    """The norm behind an all-reduce beside its peers, at each shape."""
    shapes, first = read(path), results.read(path, COLUMNS)[0]
    caption = (
        f"Microseconds per call in a CUDA graph of 40, of the slowest of {first['ranks']} ranks; the median of several replays. "
        f"bfloat16. The speed-up is the fastest peer's time, which has a norm, over that of the header's fastest form that leaves "
        f"the residual on every rank. {first['gpu']}, CUDA {first['cuda_runtime']}, {first['date']}. "
        f"From {link(results.shown(path), path, page)}."
    )
    return table(*lines(shapes)) + "\n\n" + caption


# Of the tensor-parallel ladder's experiment; the second one if it was run with more ranks than two.
LINK, LINK_TO_ALL = "stores to the peer, both directions, each", "stores to all peers at once, each"


def modelled(ranks, rows, cols, first, rate, sends):
    """Microseconds: those of one row, and the bytes that a rank sends of the others, at `rate` GB/s."""
    return first + sends(ranks) * (rows - 1) * cols * 2 / rate / 1e3


@registry.csv_table("header/all_reduce_model", file="all_reduce.csv")
def model_beside_times(path, page):
    """What the bytes of one shot and of two shots would take, by the measured link, beside the measured times."""
    shapes, gpu = read(path), path.parents[1].name
    stored = path.parents[2].glob(f"{gpu.rpartition('x')[0]}x*/tensor_parallel/link.csv")
    link_csv = min(stored, key=lambda one: (one.parents[1].name != gpu, one))  # of as many GPUs, if it is stored
    rates = {row["what"]: results.number(row, "gb_per_s") for row in results.read(link_csv, ["gb_per_s"])}
    rate = rates.get(LINK_TO_ALL) or rates[LINK]
    first = next(times for (_, rows, cols, _), times in shapes.items() if (rows, cols) == ("1", "4096"))
    forms = {"header_one_shot": lambda ranks: ranks - 1, "header_two_shot": lambda ranks: 2 * (ranks - 1) / ranks}
    body = []
    for (ranks, rows, cols, _), times in shapes.items():
        if cols != "4096" or not all(form in times for form in forms):
            continue
        cells = []
        for form, sends in forms.items():
            told = modelled(int(ranks), int(rows), int(cols), first[form], rate, sends)
            cells += [f"{told:.2f}" if rows != "1" else "", f"{times[form]:.2f}"]
        body.append([f"{rows} × {cols}", *cells])
    head = ["rows × cols", "one shot, model", "measured", "two shots, model", "measured"]
    caption = (
        f"Microseconds, {ranks} ranks, plain launches. From {link(results.shown(path), path, page)} and "
        f"{link(results.shown(link_csv), link_csv, page)}."
    )
    return table(head, body) + "\n\n" + caption


def printed(path):
    """The same for a terminal."""
    return "\n".join(aligned(*lines(read(path)), (0,)))
