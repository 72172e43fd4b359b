"""The code that a lecture's page shows is the code of its files, apart from the indentation and what `...` leaves out."""

import re

import pytest
from conftest import ROOT

LECTURES = {
    "W1L1_first_kernel": 8,
    "W2L1_reduction": 8,
    "W2L2_latency": 4,
    "W2L3_transpose": 8,
    "W4L1_hopper": 4,
}  # and how many pieces, at least
OLD_CODE = "volatile float* vdata"  # W2L1 shows how reduction4 was written once


def lines(text):
    return "\n" + "\n".join(line.strip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("lecture", LECTURES)
def test_code_on_the_page_is_code_of_the_files(lecture):
    folder = ROOT / "lectures" / lecture
    files = [lines(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.cu*"))]
    shown = re.findall(r"^```cuda\n(.*?)^```$", (folder / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert len(shown) >= LECTURES[lecture]
    for block in shown:
        for piece in re.split(r"^ *\.\.\.\n", block, flags=re.M):
            assert OLD_CODE in piece or any(lines(piece) in file for file in files), piece
