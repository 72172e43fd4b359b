"""Whether PyTorch wants to see operators, which a call of a kernel would hide from it."""

from torch import _C
from torch.autograd import forward_ad

_modes, _is_traced, _is_transformed = _C._len_torch_dispatch_stack, _C._is_tracing, _C._are_functorch_transforms_active


def is_watched():
    """Whether a tracer, a mode (as of fake tensors), a transform of torch.func or forward differentiation is on."""
    return _modes() or _is_traced() or _is_transformed() or forward_ad._current_level >= 0


def is_transformed():
    """Whether a transform of torch.func or forward differentiation is on."""
    return _is_transformed() or forward_ad._current_level >= 0
