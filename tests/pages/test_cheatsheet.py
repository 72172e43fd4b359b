"""The cheat sheet's accesses take as many sectors and wavefronts as simt/analyze counts, and its shuffles add up."""

import csv
import io
import re

import pytest
from conftest import ROOT, run

PAGE = (ROOT / "CHEATSHEET.md").read_text(encoding="utf-8")
GLOBAL = re.findall(r"^\| `((?:in4?|half_in)\[[^`]+)` \| (\d+) \| (\d+) \| ([\d.]+) % \|$", PAGE, re.MULTILINE)
SHARED = re.findall(r"^\| `(tile\[[^`]+)` \| (\d+) \|", PAGE, re.MULTILINE)
TYPES = {"in": "float", "in4": "float4", "half_in": "half"}
PROGRAM = """\
#include <cuda_fp16.h>
#include <cuda_runtime.h>
__global__ void accesses(const float* in, float4* any) {
  __shared__ float tile[32 * 33];
  const int lane = threadIdx.x;
  const float4* in4 = reinterpret_cast<const float4*>(in);
  const half* half_in = reinterpret_cast<const half*>(in);
  for (int i = lane; i < 32 * 33; i += 32) tile[i] = 1.0f;
  __syncwarp();
%s}
int main() {
  float *in; float4* any;
  cudaMalloc(&in, 1 << 20); cudaMalloc(&any, 1 << 20);
  cudaMemset(in, 0, 1 << 20);
  accesses<<<1, 32>>>(in, any);
  return cudaDeviceSynchronize();
}
"""
CODE = re.search(r"^```cuda\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL).group(1)
SHUFFLES = """\
#include <cuda_runtime.h>
#include <cstdio>
%s
__global__ void all(float* out) {
  const int i = threadIdx.x;
  out[i] = sum_in_all_lanes(i);
  out[64 + i] = sum_in_lane_0(i);
  out[128 + i] = sum_up_to_here(i);
  out[192 + i] = of_lane_0(i);
  out[256 + i] = sum_of_block<64>(i);
}
int main() {
  float* out;
  cudaMallocManaged(&out, 320 * sizeof(float));
  all<<<1, 64>>>(out);
  if (cudaDeviceSynchronize()) return 1;
  for (int i = 0; i < 320; ++i) printf("%%g\\n", out[i]);
}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """{access: its row of the report}."""
    place = tmp_path_factory.mktemp("cheatsheet")
    lines, accesses = [], [access for access, *_ in GLOBAL + SHARED]
    for number, access in enumerate(accesses):
        kind = TYPES.get(access.partition("[")[0], "float")
        lines.append(f"  reinterpret_cast<{kind}*>(any)[{32 * number} + lane] = {access};\n")
    text = PROGRAM % "".join(lines)
    (place / "accesses.cu").write_text(text)
    report = run(ROOT / "simt/analyze", "accesses.cu", "--csv", "-", cwd=place, CCACHE_DISABLE="1")
    assert report.returncode == 0, report.stderr
    first = text.splitlines().index(lines[0].rstrip("\n")) + 1
    rows = [row for row in csv.DictReader(io.StringIO(report.stdout)) if row["line"] and "load" in row["what"]]
    return {access: next(row for row in rows if row["line"] == str(first + n)) for n, access in enumerate(accesses)}


def test_the_page_has_them():
    assert len(GLOBAL) == 10 and len(SHARED) == 6


@pytest.mark.parametrize("access, size, sectors, used", GLOBAL)
def test_sectors(counted, access, size, sectors, used):
    row = counted[access]
    assert row["what"] == "global load" or row["what"].startswith("load global"), row
    assert (row["bytes_per_lane"], row["requests"], row["sectors"]) == (size, "1", sectors)
    assert float(used) == 100 * int(row["bytes"]) / (32 * int(sectors))


@pytest.mark.parametrize("access, wavefronts", SHARED)
def test_wavefronts(counted, access, wavefronts):
    assert (counted[access]["requests"], counted[access]["wavefronts"]) == ("1", wavefronts)


def test_shuffles_add_up(tmp_path):
    (tmp_path / "shuffles.cu").write_text(SHUFFLES % CODE)
    report = run(ROOT / "simt/analyze", "shuffles.cu", cwd=tmp_path)
    assert report.returncode == 0 and "hazards: none" in report.stdout, report.stdout + report.stderr
    run(ROOT / "simt/simtcc", "shuffles.cu", "-o", "shuffles", cwd=tmp_path)
    values = list(map(float, run("./shuffles", cwd=tmp_path).stdout.split()))
    sums = [sum(range(32)), sum(range(32, 64))]
    assert values[:64] == [sums[i // 32] for i in range(64)]
    assert [values[64], values[96]] == sums
    assert values[128:192] == [sum(range(i // 32 * 32, i + 1)) for i in range(64)]
    assert values[192:256] == [i // 32 * 32 for i in range(64)]
    assert values[256:288] == [sum(sums)] * 32
