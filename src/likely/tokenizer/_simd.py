"""Block operations for compiled loops in LLVM's vector instructions. Imported only where something is compiled.

Numba cannot express a comparison of 64 bytes that gives the bits of one number, a load of eight bytes from any position, or
a prefetch. With them, counting words takes less CPU time than with the plain loops of `_scalar`; `bench/tokens.py` prints
the ratio. Set `LIKELY_NO_SIMD=1` to use the plain loops.

Memory contract
---------------
None of these operations checks a bound, not even with `NUMBA_BOUNDSCHECK=1`. The caller guarantees, for arrays that are
C-contiguous (others are refused when the loop is compiled):

=============  =============================================  ===================================================
operation      bytes read and written                         what guarantees it
=============  =============================================  ===================================================
fold_block     reads source[at : at + 64],                    `BLOCK` = 64 more bytes follow the last document in
               writes text[to : to + 64]                      both: `spans.utf8` appends them, `spans.texts_of`
                                                              copies a buffer without them, and the arrays made
                                                              for `text` are that much longer
load_u64       reads text[at : at + 8]                        `PADDING` = 16 more bytes follow the text: a load
                                                              begins at most 7 bytes after the last byte of a word
copy_u64       reads 8 bytes, writes letters[to : to + 8]     `find_words` stops while fewer than 8 bytes are free
                                                              after the word it would write
prefetch       none: a hint, valid for any address            nothing needed
add_rows       reads 4 numbers at two positions of table,     the loop ends at the last multiple of four classes,
               reads and writes out[to : to + 4]              so all of them lie in one row
=============  =============================================  ===================================================

What is read beyond a text never changes a result: it is masked out. Loads and stores of bytes assume no alignment (1); those
of numbers assume that of a float64 (8), which NumPy's arrays have. Loads are little-endian: elsewhere registration fails, and
the plain loops are used. Positions count elements from the beginning of the array, and may not be negative.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from likely.tokenizer import _block_operations
from likely.tokenizer._block_operations import BLOCK, LOWERCASE_BIT

BYTE, INT32, INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
FOUR_DOUBLES = ir.VectorType(ir.DoubleType(), 4)
BLOCK_OF_BYTES = ir.VectorType(BYTE, BLOCK)


@functools.cache
def register_intrinsics() -> None:
    """Register the type and the code of each block operation with the compiler."""
    if sys.byteorder != "little":
        raise NotImplementedError("the vector instructions need a little-endian machine")
    array, integer, real = types.Array, types.Integer, types.Float
    operations = _block_operations
    _register(operations.fold_block, types.int64, _fold_block, (array, integer, integer, array, integer))
    _register(operations.trailing_zeros, types.int64, _trailing_zeros, (integer,))
    _register(operations.load_u64, types.int64, _load_u64, (array, integer))
    _register(operations.copy_u64, types.none, _copy_u64, (array, integer, array, integer))
    _register(operations.prefetch, types.none, _prefetch, (array, integer))
    _register(operations.add_rows, types.none, _add_rows, (array, integer, real, integer, real, array, integer))


def _register(function: Callable[..., Any], result: Any, lower: Callable[..., Any], kinds: tuple[Any, ...]) -> None:
    def typer(*given: Any) -> Any:
        flat = all(each.layout == "C" for each in given if isinstance(each, types.Array))
        return result if flat else None  # positions count from the beginning of an array without gaps

    typer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # Numba reads the argument names
    type_callable(function)(lambda _: typer)
    lower_builtin(function, *kinds)(lower)


def _fold_block(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    block = builder.load(_pointer(context, builder, signature, args, 0, BLOCK_OF_BYTES), align=1)
    letter = _in_range(builder, builder.or_(block, _constant(LOWERCASE_BIT)), 0x61, 26)
    underscore = builder.icmp_unsigned("==", block, _constant(0x5F))
    beyond_ascii = builder.icmp_unsigned(">=", block, _constant(0x80))
    digit = _in_range(builder, block, 0x30, 10)
    word = builder.or_(builder.or_(letter, digit), builder.or_(underscore, beyond_ascii))
    folded = builder.or_(block, builder.select(letter, _broadcast(builder, args[2], BLOCK_OF_BYTES), _constant(0)))
    target = _pointer(context, builder, signature, args, 3, BLOCK_OF_BYTES)
    builder.store(builder.select(word, folded, _constant(0)), target, align=1)
    return builder.bitcast(word, INT64)


def _trailing_zeros(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    bits = context.cast(builder, args[0], signature.args[0], types.int64)
    return builder.cttz(bits, ir.Constant(ir.IntType(1), 0))


def _load_u64(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_pointer(context, builder, signature, args, 0, INT64), align=1)


def _copy_u64(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    value = _load_u64(context, builder, signature, args)
    builder.store(value, _pointer(context, builder, signature, args, 2, INT64), align=1)
    return context.get_dummy_value()


def _prefetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT32, INT32, INT32])
    intrinsic = builder.module.declare_intrinsic("llvm.prefetch", [BYTE.as_pointer()], kind)
    read, high_locality, data_cache = (ir.Constant(INT32, value) for value in (0, 3, 1))
    builder.call(intrinsic, [_pointer(context, builder, signature, args, 0, BYTE), read, high_locality, data_cache])
    return context.get_dummy_value()


def _add_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    table, one, a, two, b, *_ = args
    kinds = signature.args
    target = _pointer(context, builder, signature, args, 5, FOUR_DOUBLES)
    sums = builder.load(target, align=8)
    for at, kind, weight in ((one, kinds[1], a), (two, kinds[3], b)):
        place = _pointer(context, builder, types.none(kinds[0], kind), (table, at), 0, FOUR_DOUBLES)
        product = builder.fmul(_broadcast(builder, weight, FOUR_DOUBLES), builder.load(place, align=8))
        sums = builder.fadd(sums, product)
    builder.store(sums, target, align=8)
    return context.get_dummy_value()


def _broadcast(builder: Any, value: Any, vector: Any) -> Any:
    """One value in every element of a vector."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, vector.count), [0] * vector.count))


def _pointer(context: Any, builder: Any, signature: Any, args: Any, which: int, kind: Any) -> Any:
    """The address of an element as a pointer to `kind`: argument `which` is the array, the next one the position."""
    array = context.make_array(signature.args[which])(context, builder, args[which])
    at = context.cast(builder, args[which + 1], signature.args[which + 1], types.int64)
    return builder.bitcast(builder.gep(array.data, [at]), kind.as_pointer())


def _in_range(builder: Any, values: Any, first: int, count: int) -> Any:
    return builder.icmp_unsigned("<", builder.sub(values, _constant(first)), _constant(count))


def _constant(value: int) -> Any:
    return ir.Constant(BLOCK_OF_BYTES, [value] * BLOCK)
