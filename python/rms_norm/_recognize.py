"""What a module computes, whatever its name is.

The forward of a norm is called with symbols in place of tensors, and the formula that comes back is compared with those
of the norms that the kernels compute. The forward of a decoder layer is compared with what _transformers.py puts in its
place, as source.
"""

import ast
import functools
import inspect
import re
import textwrap
import types
import weakref
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

import torch
from torch.nn import Module

TYPES = torch.float32, torch.float16, torch.bfloat16
EPS = torch.finfo(torch.float32).eps  # of torch.nn.RMSNorm, if it is given none


class Unknown(BaseException):
    """Why a module is not known. No forward that is tried catches it by `except Exception`."""


# --- Symbols --------------------------------------------------------------------------------------------------------


class Named(float):
    """A number that is an attribute of the module, by which it is known in a formula."""

    name = ""

    @classmethod
    def of(cls, name, value):
        named = cls(value)
        named.name = name
        return named


class Symbol:
    """A tensor that is not there. Its term is (operation, type of the result, whether gradients are on, operands...)."""

    __slots__ = "dtype", "term"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, operation, dtype, *operands):
        self.dtype = dtype
        self.term = operation, dtype, torch.is_grad_enabled(), *operands

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        name = getattr(function, "__name__", str(function))
        if name not in OPERATIONS:
            raise Unknown(f"its forward calls {name}()")
        return OPERATIONS[name](*arguments, **(named or {}))

    def __getattr__(self, name):
        if name not in OPERATIONS:
            raise Unknown(f"its forward asks a tensor for {name}")
        return functools.partial(OPERATIONS[name], self)

    def __bool__(self):
        raise Unknown("its forward branches on the value of a tensor")

    def __eq__(self, other):
        raise Unknown("its forward compares tensors")

    def __mul__(self, other):
        return _multiply(self, other)

    def __add__(self, other):
        return _add(self, other)

    def __pow__(self, exponent):
        return _power(self, exponent)

    def __truediv__(self, other):
        return _divide(self, other)

    def __rtruediv__(self, other):
        return _divide(other, self)

    __rmul__, __radd__ = __mul__, __add__


def _operand(value):
    """As it stands in a term: without conversions to float32, which lose nothing, since the term has a type itself."""
    if isinstance(value, Symbol):
        term = value.term
        while term[0] == "to" and term[1] == torch.float32:
            term = term[3]
        return term
    if isinstance(value, Named):
        return "attribute", value.name
    if type(value) in (int, float):
        return "number", float(value)
    raise Unknown(f"its forward uses a {type(value).__name__} that is neither its input nor its parameter")


def _both(operation, a, b):
    dtype = functools.reduce(torch.promote_types, [one.dtype for one in (a, b) if isinstance(one, Symbol)])
    return Symbol(operation, dtype, *sorted((_operand(a), _operand(b)), key=repr))


def _multiply(a, b):
    return _square(a) if isinstance(a, Symbol) and isinstance(b, Symbol) and a.term == b.term else _both("mul", a, b)


def _add(a, b):
    return _both("add", a, b)


def _divide(a, b):
    """By a root: by which else no norm divides."""
    if not isinstance(b, Symbol) or b.term[0] != "sqrt":
        raise Unknown("its forward divides by something else than a root")
    inverse = Symbol("rsqrt", b.dtype, b.term[3])
    return inverse if not isinstance(a, Symbol) and a == 1 else _multiply(a, inverse)


def _square(a):
    return Symbol("square", a.dtype, _operand(a))


def _root(a):
    return Symbol("sqrt", a.dtype, _operand(a))


def _inverse_root(a):
    return Symbol("rsqrt", a.dtype, _operand(a))


def _power(a, exponent):
    known = {2: _square, 0.5: _root, -0.5: _inverse_root}
    if not isinstance(a, Symbol) or type(exponent) not in (int, float) or exponent not in known:
        raise Unknown(f"its forward takes the power of {exponent!r}")
    return known[exponent](a)


def _mean(a, dim=None, keepdim=False):
    if dim not in (-1, [-1], (-1,)) or not keepdim:
        raise Unknown("its forward takes a mean over something else than the last dimension, or drops that")
    return Symbol("mean", a.dtype, _operand(a))


def _to(a, dtype):
    dtype = dtype.dtype if isinstance(dtype, Symbol) else dtype
    if dtype not in TYPES:
        raise Unknown(f"its forward converts a tensor to {dtype}")
    return a if a.dtype == dtype else Symbol("to", dtype, _operand(a))


def _rms_norm(x, shape, weight=None, eps=None):
    """torch.nn.functional.rms_norm, of tensors of one type."""
    if not isinstance(weight, Symbol) or weight.dtype != x.dtype or len(shape) != 1:
        raise Unknown("its forward calls rms_norm() without a weight, for several dimensions, or for several types")
    if eps is None:
        eps = Named.of("eps", EPS)
    return _rounded_once(x, weight, eps)


OPERATIONS: Dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("mul", "multiply"), _multiply),
    **dict.fromkeys(("div", "divide", "true_divide"), _divide),
    **dict.fromkeys(("to", "type", "type_as"), _to),
    **{"add": _add, "pow": _power, "square": _square, "sqrt": _root, "rsqrt": _inverse_root, "mean": _mean},
    **{"float": lambda a: _to(a, torch.float32), "half": lambda a: _to(a, torch.float16)},
    **{"bfloat16": lambda a: _to(a, torch.bfloat16), "rms_norm": _rms_norm},
}

# --- Norms ----------------------------------------------------------------------------------------------------------


def _normalized(x, eps):
    wide = x.float()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)


def _rounded_twice(x, weight, eps):
    return weight * _normalized(x, eps).to(x.dtype)


def _rounded_once(x, weight, eps):
    return (weight * _normalized(x, eps)).to(x.dtype)


def _of_one_and_weight(x, weight, eps):
    return ((1.0 + weight.float()) * _normalized(x, eps)).to(x.dtype)


def _without_a_weight(x, weight, eps):
    return _normalized(x, eps).to(x.dtype)


FORMULAS: Dict[Callable[..., Any], Dict[str, Any]] = {  # and the options by which the kernels compute them
    _rounded_twice: {"rounding": "llama"},
    _rounded_once: {},
    _of_one_and_weight: {"weight_offset": 1.0},
}


class Norm(NamedTuple):
    """An RMSNorm that the kernels compute."""

    weight: Optional[str]  # the name of the parameter
    eps: Optional[str]  # the name of the attribute; None for a number in the source:
    constant: float
    options: Dict[str, Any]
    types: FrozenSet[Tuple[torch.dtype, Optional[torch.dtype]]]  # of x and the weight, for which the result has x's


def norm_of(module: Module) -> Norm:
    """What the module computes. Unknown says why it is no norm of the kernels."""
    kind = type(module)
    if "forward" in vars(module):
        raise Unknown("its forward was replaced in the module itself")
    parameters = {name: value for name, value in module._parameters.items() if value is not None}
    if module._modules or len(parameters) > 1:
        names = ", ".join([*parameters, *module._modules])
        raise Unknown(f"it has more than a weight: {names}")
    if any(value.ndim != 1 for value in parameters.values()):
        raise Unknown("its weight has not one dimension")
    weight = next(iter(parameters), None)
    own = {name: value for name, value in vars(module).items() if name not in _OF_EVERY_MODULE}
    if not all(type(value) in (bool, int, float, str, tuple, type(None)) for value in own.values()):
        return _norm_of(kind, vars(module), weight)
    known = _known.setdefault(kind, {})
    key = kind.forward, weight, repr(own)
    if key not in known:
        try:
            known[key] = _norm_of(kind, vars(module), weight)
        except Unknown as unknown:
            known[key] = unknown
    if isinstance(known[key], Unknown):
        raise Unknown(*known[key].args)
    return known[key]


def norm_of_class(kind: type) -> Norm:
    """The same for a class, whose modules have `weight` and `variance_epsilon` or `eps`, and nothing else that counts."""
    state = {**vars(Module()), "variance_epsilon": 0.1, "eps": 0.2, "_parameters": {"weight": torch.empty(0)}}
    return _norm_of(kind, state, "weight")


_OF_EVERY_MODULE = {*vars(Module()), "_is_hf_initialized"}
_known: "weakref.WeakKeyDictionary[type, Dict[Any, Any]]" = weakref.WeakKeyDictionary()


def _norm_of(kind, state, weight):
    forward: Any = kind.forward
    if kind.__call__ is not Module.__call__ or kind._call_impl is not Module._call_impl:
        raise Unknown("its class overrides __call__()")
    if not isinstance(forward, types.FunctionType) or hasattr(forward, "__wrapped__"):
        raise Unknown("its forward is wrapped, or is no function of Python")
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    if [one.kind for one in parameters] != [inspect.Parameter.POSITIONAL_OR_KEYWORD]:
        raise Unknown("its forward takes other arguments than one tensor")
    terms = {}
    for x_type in TYPES:
        for weight_type in [None] if weight is None else TYPES:
            if {x_type, weight_type} == {torch.float16, torch.bfloat16}:
                continue
            try:
                terms[x_type, weight_type] = [_run(kind, state, x_type, weight_type, way) for way in _WAYS]
            except Unknown:
                if weight_type in (None, x_type):
                    raise
    eps, constant = _eps_of(terms[torch.float32, None if weight is None else torch.float32][0], state, forward)
    given = constant if eps is None else Named.of(eps, 0.0)
    found: Tuple[Any, Dict[str, Any], FrozenSet[Any]] = (None, {}, frozenset())
    kept = {pair: got for pair, got in terms.items() if got[0][1] == pair[0]}  # whose result has the type of x
    for formula, options in FORMULAS.items() if weight else [(_without_a_weight, {})]:
        same = frozenset(pair for pair, got in kept.items() if got == _terms_of(formula, *pair, given))
        found = max(found, (formula, options, same), key=lambda one: len(one[2]))
    formula, options, same = found
    if not {(one, None if weight is None else one) for one in TYPES} <= same:
        raise Unknown("it computes something else" + (", or rounds otherwise in 16 bits" if same else ""))
    norm = Norm(weight, eps, constant, options, same)
    _confirm(kind, state, norm, formula)
    return norm


_WAYS = [(training, with_gradients) for training in (False, True) for with_gradients in (False, True)]


def _twin(kind, state, training, parameters, buffers):
    """A module of the class, with other parameters."""
    twin = object.__new__(kind)
    vars(twin).update(state, training=training, _parameters=parameters, _buffers=buffers)
    return twin


def _run(kind, state, x_type, weight_type, way):
    """The term that the forward computes."""
    training, with_gradients = way
    named = {name: Named.of(name, value) for name, value in state.items() if isinstance(value, float)}
    try:
        with torch.set_grad_enabled(with_gradients):
            parameters, buffers = (
                {name: None if value is None else Symbol(what, dtype) for name, value in state[among].items()}
                for what, dtype, among in (
                    ("weight", weight_type, "_parameters"),
                    ("buffer", torch.float32, "_buffers"),
                )
            )
            twin = _twin(kind, {**state, **named}, training, parameters, buffers)
            before = [dict(one) for one in (vars(twin), parameters, buffers)]
            result = kind.forward(twin, Symbol("x", x_type))
    except Exception as error:
        raise Unknown(f"its forward cannot be followed: {type(error).__name__}: {error}") from None
    for one, then in zip((vars(twin), parameters, buffers), before):
        if one.keys() != then.keys() or any(one[name] is not value for name, value in then.items()):
            raise Unknown("its forward changes the module")
    if not isinstance(result, Symbol):
        raise Unknown(f"its forward returns a {type(result).__name__}")
    return result.term


def _terms_of(formula, x_type, weight_type, eps):
    terms = []
    for _, with_gradients in _WAYS:
        with torch.set_grad_enabled(with_gradients):
            weight = None if weight_type is None else Symbol("weight", weight_type)
            terms.append(formula(Symbol("x", x_type), weight, eps).term)
    return terms


def _eps_of(term, state, forward):
    """The attribute that is added under the root, and the number if it is none but stands in the source."""
    under = [part for part in _parts_of(term) if part[0] == "rsqrt"]
    added = [part for part in under[0][3][3:] if part[0] in ("attribute", "number")] if under else []
    if len(added) != 1:
        raise Unknown("it computes something else")
    ((what, value),) = added
    if what == "attribute" and value in state:
        return value, 0.0
    if value not in forward.__code__.co_consts:
        raise Unknown(f"its eps of {value} is neither an attribute nor a number in its forward")
    return None, value


def _parts_of(term: Any) -> List[Any]:
    return [term] + [part for operand in term[3:] if isinstance(operand, tuple) for part in _parts_of(operand)]


def _confirm(kind, state, norm, formula):
    """The formula's numbers must be those of the module, on a few rows: symbols are not everything that tensors are."""
    cols = 64
    for dtype in TYPES:
        x = torch.sin(torch.arange(6.0 * cols, device="cpu")).reshape(2, 3, cols).to(dtype)
        weight = torch.cos(torch.arange(float(cols), device="cpu")).to(dtype)
        parameters = dict.fromkeys(state["_parameters"])
        if norm.weight is not None:
            parameters[norm.weight] = weight
        twin = _twin(kind, state, False, parameters, {})
        if "normalized_shape" in state:  # of torch.nn.RMSNorm
            vars(twin)["normalized_shape"] = (cols,)
        eps = norm.constant if norm.eps is None else state[norm.eps]
        try:
            with torch.no_grad():
                got = kind.forward(twin, x)
                wanted = formula(x, weight, EPS if eps is None else eps)
            if got.dtype != dtype:
                raise Unknown("its result has another type than its input")
            torch.testing.assert_close(got, wanted, rtol=4 * torch.finfo(dtype).eps, atol=1e-6)
        except Exception as error:
            raise Unknown(f"its forward gives other numbers than its formula: {error}") from None


# --- Decoder layers -------------------------------------------------------------------------------------------------


class Layer(NamedTuple):
    """A decoder layer with a residual that is added right before its second norm: the names of its modules."""

    first: str
    attention: str
    after_attention: Optional[str]
    second: str
    mlp: str
    after_mlp: Optional[str]
    x: str  # what it calls the hidden states
    hidden_states: str  # what its attention calls them
    positional: Tuple[str, ...]  # its arguments after the hidden states
    defaults: Dict[str, Any]
    dropped: Tuple[str, ...]  # those that it does not hand to its attention


_LAYER = re.compile(
    r"""(?P<residual>\w+) = (?P<x>\w+)
(?P=x) = self\.(?P<first>\w+)\((?P=x)\)
(?P=x), (?P<other>\w+) = self\.(?P<attention>\w+)\((?P<given>.*)\)
(?:(?P=x) = self\.(?P<after_attention>\w+)\((?P=x)\)
)?(?P=x) = (?:(?P=residual) \+ (?P=x)|(?P=x) \+ (?P=residual))
(?P=residual) = (?P=x)
(?P=x) = self\.(?P<second>\w+)\((?P=x)\)
(?P=x) = self\.(?P<mlp>\w+)\((?P=x)\)
(?:(?P=x) = self\.(?P<after_mlp>\w+)\((?P=x)\)
)?(?P=x) = (?:(?P=residual) \+ (?P=x)|(?P=x) \+ (?P=residual))
return (?P=x)"""
)


def layer_of(kind: type) -> Layer:
    """Unknown says why the class is no such layer."""
    layer = _layer_of(kind.forward)  # type: ignore[attr-defined]
    if isinstance(layer, Unknown):
        raise Unknown(*layer.args)
    return layer


@functools.cache
def _layer_of(forward):
    try:
        return _read_layer(forward)
    except Unknown as unknown:
        return unknown


def _is_of_checkpointing(forward):
    """Whether it is what transformers wraps each layer's forward with. It does so with that of a derived class, too."""
    known = "transformers.modeling_layers", "forward_with_checkpointing"
    return (getattr(forward, "__globals__", {}).get("__name__"), forward.__code__.co_name) == known


def _source_of(forward):
    """Its definition as a tree, and the statements without the docstring."""
    while hasattr(forward, "__wrapped__") and _is_of_checkpointing(forward):
        forward = forward.__wrapped__
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(forward))).body[0]
    except (OSError, TypeError, SyntaxError):
        raise Unknown("the source of its forward is not there") from None
    if not isinstance(source, ast.FunctionDef) or source.decorator_list or hasattr(forward, "__wrapped__"):
        raise Unknown("its forward is wrapped by a decorator")
    return source, source.body[1:] if ast.get_docstring(source) is not None else source.body


def _read_layer(forward):
    _, body = _source_of(forward)
    match = _LAYER.fullmatch("\n".join(map(ast.unparse, body)))
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    if match is None or not parameters or parameters[0].name != match["x"] or match["other"] in (match["x"], match[1]):
        raise Unknown("its forward is not one that adds a residual right before its second norm, and nothing else")
    call = ast.parse(f"f({match['given']})", mode="eval").body
    assert isinstance(call, ast.Call)
    given = {one.arg: one.value.id if isinstance(one.value, ast.Name) else None for one in call.keywords}
    hidden_states = [name for name, value in given.items() if name and value == match["x"]]
    rest = [one.name for one in parameters if one.kind is one.VAR_KEYWORD]
    handed = {name: value for name, value in given.items() if name not in (None, *hidden_states)}
    if call.args or len(hidden_states) != 1 or any(name != value for name, value in handed.items()):
        raise Unknown("its forward hands other things to its attention than its arguments")
    named = [one for one in parameters[1:] if one.kind is one.POSITIONAL_OR_KEYWORD]
    if not handed.keys() <= {one.name for one in named}:
        raise Unknown("its forward hands other things to its attention than its arguments")
    if ([given[None]] if None in given else []) != rest or len(named) + 1 + len(rest) != len(parameters):
        raise Unknown("its forward does not hand on all the keyword arguments that it takes")
    modules: Dict[str, Any] = {name: match[name] for name in Layer._fields[:7]}
    return Layer(
        **modules,
        hidden_states=hidden_states[0],
        positional=tuple(one.name for one in named),
        defaults={one.name: one.default for one in named if one.default is not one.empty and one.name in handed},
        dropped=tuple(one.name for one in named if one.name not in handed),
    )


def last_of(kind: type) -> str:
    """The name of the module that a forward calls last, once, and whose result it returns, alone or first in a tuple."""
    source, body = _source_of(kind.forward)  # type: ignore[attr-defined]
    end, before = body[-1], body[-2] if len(body) > 1 else None
    value, others = (end.value if isinstance(end, ast.Return) else None), []
    if isinstance(value, ast.Tuple) and value.elts:
        value, *others = value.elts
    read = [one.id if isinstance(one, ast.Name) else None for one in others if not isinstance(one, ast.Constant)]
    if isinstance(value, ast.Name) and isinstance(before, ast.Assign) and value.id not in read:
        value = before.value if [ast.unparse(one) for one in before.targets] == [value.id] else None
    function = value.func if isinstance(value, ast.Call) and None not in read else None
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        uses = [one for one in ast.walk(source) if isinstance(one, ast.Attribute) and one.attr == function.attr]
        returns = [one for one in ast.walk(source) if isinstance(one, (ast.Return, ast.Yield))]
        if len(uses) == len(returns) == 1 and function.value.id == source.args.args[0].arg:
            return function.attr
    raise Unknown("its forward is not one that ends with the result of one of its modules")
