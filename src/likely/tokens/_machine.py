"""What `_blocks` means to the compiler: the machine's vectors.

Numba has no way to say "these 64 comparisons as the bits of one number", nor to read eight bytes from any place; with
them, finding words takes half the time (measured). This is LLVM's language, which every machine's vectors are made from.
Imported only where something is compiled.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from likely.tokens import _blocks
from likely.tokens._blocks import BLOCK, UPPER

NUMBER = ir.IntType(64)
VECTOR = ir.VectorType(ir.IntType(8), BLOCK)
UNKNOWN = ir.Constant(VECTOR, ir.Undefined)
FIRST = ir.Constant(ir.IntType(32), 0)
SPREAD = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)


@functools.cache
def teach() -> None:
    """Tell the compiler what each function means, by its types and by how it is written."""
    array, integer = types.Array, types.Integer
    _mean(_blocks.fold, types.int64, _fold, (array, integer, integer, array, integer))
    _mean(_blocks.lowest, types.int64, _lowest, (integer,))
    _mean(_blocks.eight, types.int64, _eight, (array, integer))
    _mean(_blocks.copy_eight, types.none, _copy_eight, (array, integer, array, integer))


def _mean(function: Callable[..., Any], result: Any, written: Callable[..., Any], kinds: tuple[Any, ...]) -> None:
    def typer(*_: Any) -> Any:
        return result

    typer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # the compiler asks for names
    type_callable(function)(lambda _: typer)
    lower_builtin(function, *kinds)(written)


def _fold(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    block = builder.load(_place(context, builder, signature, args, 0, VECTOR), align=1)
    letter = _within(builder, builder.or_(block, _every(UPPER)), 0x61, 26)
    line = builder.icmp_unsigned("==", block, _every(0x5F))
    other = builder.icmp_unsigned(">=", block, _every(0x80))
    word = builder.or_(builder.or_(letter, _within(builder, block, 0x30, 10)), builder.or_(line, other))
    small = builder.shuffle_vector(builder.insert_element(UNKNOWN, args[2], FIRST), UNKNOWN, SPREAD)
    folded = builder.or_(block, builder.select(letter, small, _every(0)))
    target = _place(context, builder, signature, args, 3, VECTOR)
    builder.store(builder.select(word, folded, _every(0)), target, align=1)
    return builder.bitcast(word, NUMBER)


def _lowest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    bits = context.cast(builder, args[0], signature.args[0], types.int64)
    return builder.cttz(bits, ir.Constant(ir.IntType(1), 1))


def _eight(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_place(context, builder, signature, args, 0, NUMBER), align=1)


def _copy_eight(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    value = _eight(context, builder, signature, args)
    builder.store(value, _place(context, builder, signature, args, 2, NUMBER), align=1)
    return context.get_dummy_value()


def _place(context: Any, builder: Any, signature: Any, args: Any, which: int, width: Any) -> Any:
    """Where something of a width is, given an array of bytes and the place in it."""
    array = context.make_array(signature.args[which])(context, builder, args[which])
    at = context.cast(builder, args[which + 1], signature.args[which + 1], types.int64)
    return builder.bitcast(builder.gep(array.data, [at]), width.as_pointer())


def _within(builder: Any, values: Any, first: int, count: int) -> Any:
    return builder.icmp_unsigned("<", builder.sub(values, _every(first)), _every(count))


def _every(value: int) -> Any:
    return ir.Constant(VECTOR, [value] * BLOCK)
