"""What `_blocks` means to the compiler: the machine's vectors.

Numba has no way to say "these 64 comparisons as the bits of one number", to read eight bytes from any place, or to ask
for memory before it is needed; with them, finding and scoring words take half the time (measured). This is LLVM's
language, which the vectors of every machine are made from. Imported only where something is compiled.
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

BYTE, SMALL, NUMBER = ir.IntType(8), ir.IntType(32), ir.IntType(64)
FOUR = ir.VectorType(ir.DoubleType(), 4)
VECTOR = ir.VectorType(BYTE, BLOCK)


@functools.cache
def teach() -> None:
    """Tell the compiler what each function means, by its types and by how it is written."""
    array, integer, real = types.Array, types.Integer, types.Float
    _mean(_blocks.fold, types.int64, _fold, (array, integer, integer, array, integer))
    _mean(_blocks.lowest, types.int64, _lowest, (integer,))
    _mean(_blocks.eight, types.int64, _eight, (array, integer))
    _mean(_blocks.copy_eight, types.none, _copy_eight, (array, integer, array, integer))
    _mean(_blocks.fetch, types.none, _fetch, (array, integer))
    _mean(_blocks.add_rows, types.none, _add_rows, (array, integer, real, integer, real, array, integer))


def _mean(function: Callable[..., Any], result: Any, written: Callable[..., Any], kinds: tuple[Any, ...]) -> None:
    def typer(*given: Any) -> Any:
        flat = all(each.layout == "C" for each in given if isinstance(each, types.Array))
        return result if flat else None  # places are counted from the beginning of an array without gaps

    typer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # the compiler asks for names
    type_callable(function)(lambda _: typer)
    lower_builtin(function, *kinds)(written)


def _fold(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    block = builder.load(_place(context, builder, signature, args, 0, VECTOR), align=1)
    letter = _within(builder, builder.or_(block, _every(UPPER)), 0x61, 26)
    line = builder.icmp_unsigned("==", block, _every(0x5F))
    other = builder.icmp_unsigned(">=", block, _every(0x80))
    word = builder.or_(builder.or_(letter, _within(builder, block, 0x30, 10)), builder.or_(line, other))
    folded = builder.or_(block, builder.select(letter, _spread(builder, args[2], VECTOR), _every(0)))
    target = _place(context, builder, signature, args, 3, VECTOR)
    builder.store(builder.select(word, folded, _every(0)), target, align=1)
    return builder.bitcast(word, NUMBER)


def _lowest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    bits = context.cast(builder, args[0], signature.args[0], types.int64)
    return builder.cttz(bits, ir.Constant(ir.IntType(1), 0))


def _eight(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_place(context, builder, signature, args, 0, NUMBER), align=1)


def _copy_eight(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    value = _eight(context, builder, signature, args)
    builder.store(value, _place(context, builder, signature, args, 2, NUMBER), align=1)
    return context.get_dummy_value()


def _fetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), SMALL, SMALL, SMALL])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [BYTE.as_pointer()], kind)
    reading, often, data = (ir.Constant(SMALL, value) for value in (0, 3, 1))
    builder.call(prefetch, [_place(context, builder, signature, args, 0, BYTE), reading, often, data])
    return context.get_dummy_value()


def _add_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    table, one, a, two, b, *_ = args
    kinds = signature.args
    target = _place(context, builder, signature, args, 5, FOUR)
    sums = builder.load(target, align=8)
    for at, kind, weight in ((one, kinds[1], a), (two, kinds[3], b)):
        place = _place(context, builder, types.none(kinds[0], kind), (table, at), 0, FOUR)
        sums = builder.fadd(sums, builder.fmul(_spread(builder, weight, FOUR), builder.load(place, align=8)))
    builder.store(sums, target, align=8)
    return context.get_dummy_value()


def _spread(builder: Any, value: Any, width: Any) -> Any:
    """One value in every place of a vector."""
    unknown = ir.Constant(width, ir.Undefined)
    first = builder.insert_element(unknown, value, ir.Constant(SMALL, 0))
    return builder.shuffle_vector(first, unknown, ir.Constant(ir.VectorType(SMALL, width.count), [0] * width.count))


def _place(context: Any, builder: Any, signature: Any, args: Any, which: int, width: Any) -> Any:
    """Where something of a width is, given an array and the place in it."""
    array = context.make_array(signature.args[which])(context, builder, args[which])
    at = context.cast(builder, args[which + 1], signature.args[which + 1], types.int64)
    return builder.bitcast(builder.gep(array.data, [at]), width.as_pointer())


def _within(builder: Any, values: Any, first: int, count: int) -> Any:
    return builder.icmp_unsigned("<", builder.sub(values, _every(first)), _every(count))


def _every(value: int) -> Any:
    return ir.Constant(VECTOR, [value] * BLOCK)
