"""Chooses a header's kernels for this machine's GPU and writes them into include/<header>/policies/<gpu>.cuh.

    make tune                  include/rms_norm: builds bench/tune/rms_norm, stores profiling_results/<gpu>/header/tune.csv
    make tune S=backward       the gradients: builds bench/tune/backward, stores
                               profiling_results/<gpu>/header/tune_backward.csv
    make tune S=q4_gemm        include/q4_gemm: builds bench/tune/q4_gemm, stores profiling_results/<gpu>/q4_gemm/tune.csv

The program measures every candidate; an environment file is stored beside the CSV. The policy, a file of its own, is
made from this CSV; the modules policy.py of rms_norm, backward and q4_gemm say how it is chosen.
"""

import pathlib
import re
import subprocess

from ladder.core import ladders, machine, results
from ladder.core.ladders import Unusable

from bench.tune import policies
from bench.tune.backward import policy as backward
from bench.tune.q4_gemm import policy as q4_gemm
from bench.tune.rms_norm import policy as rms_norm

HEADERS = {"rms_norm": rms_norm, "backward": backward, "q4_gemm": q4_gemm}
LINE = re.compile(r"^      \{", re.MULTILINE)  # of a table


def policy_of(header, path):
    return header.policy(header.read(path), path)


def write_policy(header, path):
    new = policy_of(header, path)
    name, struct = policies.names(policies.gpu_of(path), header.POLICIES)
    target = ladders.ROOT / name
    is_new = not target.exists()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        results.replace(target, lambda partial: partial.write_text(new, encoding="utf-8"))
    except OSError as error:
        raise Unusable(f"{name} cannot be written: {error.strerror}; the results are stored")
    print(f"tune: {name} is the policy of {results.shown(path)}, with {len(LINE.findall(new))} lines")
    if is_new:
        print(
            f"It is new. To use it, #include <{name.removeprefix('include/')}> and call "
            f"{header.CALL.format(struct)},\n"
            f"or make it {header.DEFAULT}."
        )


def policy_text(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{results.shown(path)} cannot be read: {getattr(error, 'strerror', None) or error}")


def check(header, gpu):
    """Compares policies with the CSVs that they are from: that of the GPU asked for, or else all. A policy that names
    no CSV was written by hand, and is compared with nothing."""
    found = {gpu} if gpu else set(results.stored_gpus(header.CSV))
    if not gpu:
        for path in sorted((ladders.ROOT / header.POLICIES).glob("*.cuh")):
            said = rf"// Measured by {header.JOB}: .*?profiling_results/([\w-]+)/"
            named = re.search(said, policy_text(path), re.DOTALL)
            found |= {named.group(1)} if named else set()
    if not found:
        where = header.POLICIES
        print(f"tune: no measurement is stored, so there is nothing to compare {where} with; {header.JOB} measures")
    for one in sorted(found):
        path, (name, _) = results.store() / one / header.CSV, policies.names(one, header.POLICIES)
        if policy_of(header, path) != policy_text(ladders.ROOT / name):
            said = f"{name} is not what {results.shown(path)} gives"
            raise Unusable(f"{said}; {header.JOB} GPU={one} writes it anew, and needs no GPU")
        print(f"tune: {name} is what {results.shown(path)} gives")


def measure(header):
    """Builds and starts the program; the folder where its results are stored."""
    work, out = machine.workplace("tune")
    csv, leaf = out / header.CSV, pathlib.Path(header.LEAF)
    csv.parent.mkdir()
    machine.build(f"{leaf}/program")
    before, program = machine.clocks(), ladders.ROOT / "build/cuda" / leaf / "tune"
    try:
        done = machine.run(program, "--csv", csv, stdout=None, stderr=None, timeout=900)
    except OSError as error:
        raise Unusable(f"{results.shown(program)} cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        raise Unusable("the program was not done after 900 seconds; nothing was stored")
    if done.returncode != 0:
        raise Unusable(f"the program ended with exit code {done.returncode}, see above; nothing was stored")
    about = header.read(csv)[0]
    said = machine.environment(about["device"], results.version(about["runtime"]), before, machine.clocks())
    environment = csv.with_name(f"{csv.stem}_environment.txt")
    environment.write_text(said, encoding="utf-8")
    target = results.target("", about["device"])
    results.publish(out, target)
    print(f"tune: {csv.name} and {environment.name} are in {results.shown((target / header.CSV).parent)}")
    return target


def arguments(parser):
    parser.add_argument("header", nargs="?", default="", help=", ".join(HEADERS) + "; by default rms_norm")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a policy is stale")
    parser.add_argument("--gpu", default="", help="write it from the stored results of this GPU, for example h200")


def run(given):
    if given.header and given.header not in HEADERS:
        raise ladders.BadCommand(f"{given.header} has no policies; say {', '.join(HEADERS)}")
    header = HEADERS[given.header or "rms_norm"]
    stored = results.stored_gpus(header.CSV)
    if given.gpu and given.gpu not in stored:
        there = ", ".join(stored) or "none"
        raise ladders.BadCommand(
            f"GPU={given.gpu}: no {header.CSV} of that name in profiling_results; there is: {there}"
        )
    if given.check:
        for one in [header] if given.header or given.gpu else HEADERS.values():
            check(one, given.gpu)
    elif given.gpu:
        write_policy(header, results.store() / given.gpu / header.CSV)
    elif not machine.gpu():
        said = "writes the policy from stored results, where there are any, and needs no GPU."
        machine.no_gpu("tune", f"{header.JOB} GPU=h200 {said}")
    else:
        write_policy(header, measure(header) / header.CSV)
