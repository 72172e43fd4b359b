"""What an installed wheel for the CPU device must do, in any folder: one norm and one product with NumPy's arrays."""

import numpy as np
import rms_norm
from rms_norm import q4

x = np.array([[3.0, 4.0], [30.0, -40.0]], np.float32)
assert np.allclose(rms_norm.rms_norm(x), x / np.sqrt((x * x).mean(axis=-1, keepdims=True)), rtol=1e-5)

block = np.frombuffer(np.float16(0.5).tobytes() + bytes([0x99] * 16), np.uint8)  # 32 weights of 0.5 · (9 - 8)
y = q4.multiply(q4.repack(np.tile(block, (64, 1))), np.ones((1, 32), np.float32))
assert y.shape == (1, 64) and np.allclose(y, 16, rtol=1e-3)
print("the wheel works:", rms_norm.__version__, rms_norm.BACKEND)
