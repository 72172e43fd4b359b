"""The options of a norm as one object, which is checked when it is made and then passed on."""

import functools
from dataclasses import dataclass, field
from math import inf
from numbers import Real
from typing import Any, Callable, Dict, Literal, Tuple, get_args

Rounding = Literal["gemma", "llama"]
Cache = Literal["tuned", "normal", "evict_first"]


@dataclass(frozen=True)
class Options:
    """rms_norm() explains them. ValueError or TypeError says what is wrong with one."""

    eps: float = 1e-6
    weight_offset: float = 0.0
    rounding: Rounding = "gemma"
    dependent_launch: bool = False
    cache: Cache = "tuned"
    batch_invariant: bool = False
    numbers: Tuple[float, float, bool, bool, int, bool] = field(
        init=False, repr=False, compare=False
    )  # for the binding
    unusual: Dict[str, Any] = field(
        init=False, repr=False, compare=False
    )  # which differ from the defaults; without eps

    @property
    def of_rope(self) -> Tuple[float, float, bool, bool, bool]:
        """Those of qk_norm_rope(), for the binding."""
        return (*self.numbers[:4], self.batch_invariant)

    def __post_init__(self) -> None:
        for name in ("eps", "weight_offset"):
            value = getattr(self, name)
            if not isinstance(value, Real):
                raise TypeError(f"{name} is {value!r}, which is not a number")
            try:
                float(value)
            except OverflowError:
                raise ValueError(f"{name} is a whole number that is too large for a float") from None
        if not 0 <= self.eps < inf:
            raise ValueError(f"eps is {self.eps}; it must be finite and not negative")
        if 0 < self.eps <= 2**-150:
            raise ValueError(f"eps is {self.eps}, which is 0 in float32; give 0, or 1e-38 and more")
        if not -inf < self.weight_offset < inf:
            raise ValueError(f"weight_offset is {self.weight_offset}; it must be finite")
        if self.rounding not in get_args(Rounding):
            raise ValueError(f"rounding is {self.rounding!r}; 'gemma' and 'llama' are known")
        for name in ("dependent_launch", "batch_invariant"):
            if not isinstance(getattr(self, name), int):
                raise TypeError(f"{name} is {getattr(self, name)!r}, which is not a bool")
        if self.cache not in get_args(Cache):
            raise ValueError(f"cache is {self.cache!r}; 'tuned', 'normal' and 'evict_first' are known")
        llama, cache = self.rounding == "llama", get_args(Cache).index(self.cache)
        flags = llama, bool(self.dependent_launch), cache, bool(self.batch_invariant)
        numbers = (float(self.eps), float(self.weight_offset), *flags)
        names = ("weight_offset", "rounding", "dependent_launch", "cache", "batch_invariant")
        unusual = {name: getattr(self, name) for name in names if getattr(self, name) != getattr(Options, name)}
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "unusual", unusual)


remembered = functools.lru_cache(maxsize=1024)(Options)  # finds those that were made before, which takes less time


def _never() -> bool:
    return False


# Whether torch.compile traces this call. _operators.py puts PyTorch's function here, which stays if this module is
# loaded again.
is_compiling: Callable[[], bool] = globals().get("is_compiling", _never)


def options_of(*given: Any) -> Options:
    if is_compiling():  # it sees through Options(), but not through what finds those that were made before
        return Options(*given)
    try:
        return remembered(*given)
    except TypeError:  # perhaps that something has no hash: Options() has a better sentence
        return Options(*given)
