"""The CPU device answers right and wrong uses of the API with the codes of a real GPU.

error_codes/probe.cu prints them; error_codes/h200.txt is what it printed on an NVIDIA H200. The few calls that are
answered otherwise on purpose are listed here with the reason.
"""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SIMTCC = HERE.parent / "simtcc"

STRICTER = "a direction that does not fit its pointers is refused; a GPU with unified addressing lets it pass"
ON_PURPOSE = {
    "cudaMemcpy(d, d2, 64, cudaMemcpyHostToDevice)": STRICTER,
    "cudaMemcpy(d, d2, 64, cudaMemcpyDeviceToHost)": STRICTER,
    "cudaMemcpy(d, d2, 64, cudaMemcpyHostToHost)": STRICTER,
    "k<<<1, 1>>>((int*)1024)": "a launch ends with its kernel, so its fault is known at once",
    "cudaDeviceReset()": "a reset makes the device usable again; on a GPU the process is lost",
    "cudaMalloc(&d, 4)": "after that reset",
    "k<<<1, 1>>>(d)": "after that reset",
    "lb<<<1, 256>>>(d)": "__launch_bounds__ binds the compiler, and there is none to bind",
    "cudaLaunchKernel((void*)main, dim3(1), dim3(1), args, 0, 0)": "an address that is no kernel: the documented code",
}


def answers(text):
    """[(call, answer)] in order."""
    return [tuple(line.rsplit(": ", 1)) for line in text.splitlines() if ": " in line]


def test_error_codes_are_those_of_a_gpu(tmp_path):
    program = tmp_path / "probe"
    subprocess.run([SIMTCC, HERE / "error_codes/probe.cu", "-o", program], check=True)
    said = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    here, there = answers(said), answers((HERE / "error_codes/h200.txt").read_text())
    assert [call for call, _ in here] == [call for call, _ in there], "probe.cu changed: run it on the GPU again"
    wrong = [
        f"{call}: {mine}; on the GPU {gpus}"
        for (call, mine), (_, gpus) in zip(here, there)
        if mine != gpus and call not in ON_PURPOSE
    ]
    assert not wrong, "\n".join(wrong)
