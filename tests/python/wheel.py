"""What an installed wheel must do, in any folder and without a GPU, with NumPy's arrays: one norm and one product. That for
GPUs is imported, and says why it takes no arrays in host memory."""

import numpy as np
import rms_norm
from rms_norm import q4

x = np.array([[3.0, 4.0], [30.0, -40.0]], np.float32)
block = np.frombuffer(np.float16(0.5).tobytes() + bytes([0x99] * 16), np.uint8)  # 32 weights of 0.5 · (9 - 8)


def norm():
    assert np.allclose(rms_norm.rms_norm(x), x / np.sqrt((x * x).mean(axis=-1, keepdims=True)), rtol=1e-5)


def product():
    y = q4.multiply(q4.repack(np.tile(block, (64, 1))), np.ones((1, 32), np.float32))
    assert y.shape == (1, 64) and np.allclose(y, 16, rtol=1e-3)


for call in (norm, product):
    try:
        call()
        refusal = ""
    except ValueError as refused:
        refusal = str(refused)
    sentence = "lies in host memory, and this build of rms_norm is for NVIDIA GPUs"
    assert (sentence in refusal) if rms_norm.BACKEND == "cuda" else not refusal, refusal
print("the wheel works:", rms_norm.__version__, rms_norm.BACKEND)
