"""A model as an ONNX graph: one input for each column, the label and the probabilities of the classes.

Numbers are double tensors of shape (rows, 1) with NaN where missing; categories are string tensors, or double tensors where
all categories are numbers or truth values. The metadata `likely.inputs` says what each input holds, and what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from likely.errors import UsageError, import_optional
from likely.export._input_meanings import are_numbers, check_literals, meaning
from likely.export._onnx_joint import averaged, cell_gaussians, joint
from likely.export._term_forms import (
    IMPOSSIBLE,
    RULED_OUT,
    AveragedTerm,
    CellGaussianTerm,
    CellTerm,
    Code,
    ExportedModel,
    GaussianPattern,
    JointTerm,
    LinearTerms,
    RelativeGaussian,
    SquareTerm,
    TableTerm,
    TextTerm,
    category_columns,
    number_columns,
)
from likely.export.exported_terms import exported
from likely.families.base_measures import LARGEST_COUNT
from likely.families.likelihoods import FARTHEST
from likely.schema import Column
from likely.sources.cell_values import missing_numbers

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8


def write_onnx(model: Any) -> Any:
    """The graph; see `Model.onnx`."""
    scored = exported(model)
    texts = scored.of(TextTerm)
    if texts:
        raise UsageError(
            f"column {texts[0].column!r} is text, which is not exported to ONNX",
            column=texts[0].column,
            remedy="leave it out with ignore=[...], or export the model as SQL",
        )
    return OnnxGraph(scored).model()


class OnnxGraph:
    """The nodes of a graph, and the constants that they use."""

    def __init__(self, scored: ExportedModel) -> None:
        self.scored = scored
        self.onnx = import_optional("onnx", "writing ONNX")
        self.helper = self.onnx.helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.cells: dict[str, str] = {}  # columns as they are read
        self.codes: dict[Code, str] = {}

    def constant(self, value: Any) -> str:
        """Name of a constant."""
        name = f"likely__k{len(self.constants)}"
        array = np.asarray(value)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *inputs: str, domain: str = "", output: str | None = None, **attributes: Any) -> str:
        """Name of the output of a new node."""
        made = output or f"likely__n{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [made], domain=domain, **attributes))
        return made

    def model(self) -> Any:
        """The finished model."""
        helper, types = self.helper, self.onnx.TensorProto
        self._read()
        score = self._scores()
        outputs = self._outputs(score)
        label = helper.make_tensor_value_info("label", self._label_type(), ["rows"])
        shares = helper.make_tensor_value_info("probabilities", types.DOUBLE, ["rows", len(self.scored.classes)])
        assert outputs == ("label", "probabilities")
        graph = helper.make_graph(self.nodes, "likely", self.inputs, [label, shares], self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        made = helper.make_model(graph, opset_imports=opsets, producer_name="likely", ir_version=IR_VERSION)
        described = [json.loads(each.doc_string) for each in self.inputs]
        helper.set_model_props(made, {"likely.inputs": json.dumps(described, ensure_ascii=False)})
        self.onnx.checker.check_model(made)
        return made

    def _read(self) -> None:
        """Inputs, and what is missing in them as NaN or the code of a missing cell."""
        numbers = {*number_columns(self.scored)}
        used = {*category_columns(self.scored)} | numbers
        for column in self.scored.columns:
            if column.name not in used:
                continue
            check_literals(column, "ONNX")
            kind = self.onnx.TensorProto.DOUBLE if _as_number(column, numbers) else self.onnx.TensorProto.STRING
            described = json.dumps(self._described(column, numbers), ensure_ascii=False)
            self.inputs.append(self.helper.make_tensor_value_info(column.name, kind, ["rows", 1], described))
            cell = column.name
            if _as_number(column, numbers):
                for number in missing_numbers(self.scored.missing):
                    same = self.node("Equal", cell, self.constant(float(number)))
                    cell = self.node("Where", same, self.constant(np.nan), cell)
            self.cells[column.name] = cell
        self.infinite = [self.node("IsInf", cell) for name, cell in self.cells.items() if name in numbers]

    def _described(self, column: Column, numbers: set[str]) -> dict[str, Any]:
        """What an input holds, and what stands for a missing cell."""
        missing = "NaN" if _as_number(column, numbers) else missing_text(column)
        held = {"holds": meaning(column)} if meaning(column) else {}
        return {"name": column.name, "kind": column.kind, "missing": missing, **held}

    def _flat(self, x: str) -> str:
        return self.node("Squeeze", x, self.constant(np.array([1])))

    def code(self, code: Code) -> str:
        """Row index (from 0) for the cell of a column in each row."""
        if code not in self.codes:
            make = {"category": self._category, "bins": self._bins, "yes": self._yes}[code.kind]
            self.codes[code] = make(code)
        return self.codes[code]

    def _missing_or(self, code: Code, found: str) -> str:
        gone = self._flat(self.node("IsNaN", self.cells[code.column]))
        return self.node("Where", gone, self.constant(np.int64(code.size - 1)), found)

    def _bins(self, code: Code) -> str:
        above = self.node("GreaterOrEqual", self.cells[code.column], self.constant(np.array([code.edges], float)))
        counted = self.node("Cast", above, to=self.onnx.TensorProto.INT64)
        found = self.node("ReduceSum", counted, self.constant(np.array([1])), keepdims=0)
        return self._missing_or(code, found)

    def _yes(self, code: Code) -> str:
        yes = self._flat(self.node("Greater", self.cells[code.column], self.constant(0.0)))
        return self._missing_or(code, self.node("Cast", yes, to=self.onnx.TensorProto.INT64))

    def _category(self, code: Code) -> str:
        column = self.scored.by_name[code.column]
        if _as_number(column, set()):
            values = np.array([[float(value) for value in column.values]])
            same = self.node("Cast", self.node("Equal", self.cells[column.name], self.constant(values)), to=6)
            place = self.node("ArgMax", same, axis=1, keepdims=0)
            some = self.node("ReduceMax", same, axes=[1], keepdims=0)
            known = self.node("Cast", some, to=self.onnx.TensorProto.BOOL)
            return self._missing_or(code, self.node("Where", known, place, self.constant(np.int64(code.size - 2))))
        keys: dict[str, int] = {}
        for i, value in enumerate(column.values):
            for text in _spelled(value):
                keys.setdefault(text, i)
        for token in (missing_text(column), *self.scored.missing):
            keys.setdefault(token, code.size - 1)
        lines = self.node(
            "LabelEncoder", self.cells[column.name], domain="ai.onnx.ml",
            keys_strings=list(keys), values_int64s=list(keys.values()), default_int64=code.size - 2,
        )  # fmt: skip
        return self._flat(lines)

    def _scores(self) -> str:
        """Scores of all classes, rows × classes."""
        parts = [EXPORTED[type(term)](self, term) for term in self.scored.terms]
        total = self.constant(self.scored.constant[None])
        if not parts:
            raise UsageError("the model uses no column: there is nothing to export")
        for part in parts:
            total = self.node("Add", total, part)
        return total

    def table(self, term: TableTerm) -> str:
        """Line of a table."""
        return self.node("Gather", self.constant(term.table), self.line(term.codes))

    def line(self, codes: tuple[Code, ...]) -> str:
        """Common index of the codes of several columns, the last one counting fastest."""
        line = self.code(codes[0])
        for code in codes[1:]:
            line = self.node("Mul", line, self.constant(np.int64(code.size)))
            line = self.node("Add", line, self.code(code))
        return line

    def cell(self, term: CellTerm) -> str:
        """Cell of an interaction; 0 where it is unknown."""
        offsets = [self.node("Gather", self.constant(m), self.code(c)) for c, m in zip(term.codes, term.maps, strict=True)]
        line = offsets[0]
        for more in offsets[1:]:
            line = self.node("Add", line, more)
        known = self.node("GreaterOrEqual", line, self.constant(np.int64(0)))
        found = self.node("Gather", self.constant(term.table), self.node("Where", known, line, self.constant(np.int64(0))))
        column = self.node("Unsqueeze", known, self.constant(np.array([1])))
        return self.node("Where", column, found, self.constant(0.0))

    def or_nothing(self, term: str, missing: str) -> str:
        """A term; 0 where the number is missing."""
        return self.node("Where", missing, self.constant(0.0), term)

    def square(self, term: SquareTerm) -> str:
        """Gaussian log density of one number; 0 where it is missing."""
        x = self.cells[term.column]
        return self.or_nothing(self.gaussian(x, term), self.node("IsNaN", x))

    def gaussian(self, x: str, term: SquareTerm) -> str:
        """Gaussian log density of one number by class."""
        away = self.node("Sub", x, self.constant(term.mean[None]))
        square = self.node("Mul", self.constant(-term.curve[None]), self.node("Mul", away, away))
        twice = self.node("Mul", self.constant(2.0), self.node("Log", self.node("Abs", away)))
        size = self.node("Add", twice, self.constant(np.log(-term.curve)[None] + 1.0 - np.log(FARTHEST)))
        far = self.node("Mul", self.constant(FARTHEST), size)
        square = self.node("Where", self.node("Greater", square, self.constant(FARTHEST)), far, square)
        return self.node("Sub", self.constant(term.peak[None]), square)

    def linear(self, term: LinearTerms) -> str:
        """Terms that are linear in counts."""
        x = [self.cells[name] for name in term.columns]
        if term.trials is not None:
            trials = self.cells[term.trials] if isinstance(term.trials, str) else self.constant(float(term.trials))
            left = self.node("Sub", trials, x[0])
            gone = self.node("IsNaN", left)
            x = [self.node("Where", gone, self.constant(np.nan), each) for each in (x[0], left)]
        parts = [self._count(each, term, j) for j, each in enumerate(x)]
        found = parts[0]
        for more in parts[1:]:
            found = self.node("Add", found, more)
        return found

    def _count(self, x: str, term: LinearTerms, j: int) -> str:
        slope = term.slope[j]
        zero = self.node("Equal", x, self.constant(0.0))
        grown = self.node("Mul", x, self.constant(np.where(slope > IMPOSSIBLE, slope, 0.0)[None]))
        ruled_out = self.constant(np.where(slope > IMPOSSIBLE, 0.0, IMPOSSIBLE)[None])
        grown = self.node("Where", zero, self.constant(0.0), self.node("Add", grown, ruled_out))
        found = self.node("Add", grown, self.constant(term.level[j][None]))
        outside = self.node("Or", self.node("Less", x, self.constant(0.0)),
                            self.node("Greater", x, self.constant(LARGEST_COUNT)))  # fmt: skip
        found = self.node("Where", outside, self.constant(IMPOSSIBLE), found)
        return self.or_nothing(found, self.node("IsNaN", x))

    def log_density(self, x: str, pattern: GaussianPattern) -> str:
        """constant - |root (x - mean)|² / 2 of all classes; x is rows × numbers."""
        classes, width = pattern.mean.shape
        root = pattern.root.reshape(classes * width, width)
        moved = np.einsum("kij,kj->ki", pattern.root, pattern.mean).reshape(1, -1)
        z = self.node("Sub", self.node("MatMul", x, self.constant(np.ascontiguousarray(root.T))), self.constant(moved))
        squares = self.node("Reshape", self.node("Mul", z, z), self.constant(np.array([-1, classes, width])))
        total = self.node("ReduceSum", squares, self.constant(np.array([2])), keepdims=0)
        half = self.node("Mul", self.constant(0.5), total)
        return self.node("Sub", self.constant(pattern.constant[None]), half)

    def relative(self, term: RelativeGaussian) -> str:
        """Joint Gaussian relative to the best class."""
        column = self.constant(np.array([1]))
        numbers = [
            self.node("Unsqueeze", self.node("Gather", self.constant(centres), self.code(code)), column)
            for code, centres in zip(term.codes, term.centres, strict=True)
        ]
        density = self._by_class(self.log_density(self.node("Concat", *numbers, axis=1), term.pattern), term)
        below = self.node("Sub", density, self.node("ReduceMax", density, axes=[1], keepdims=1))
        return self.node("Mul", self.constant(term.weight), self.node("Max", below, self.constant(term.lowest)))

    def _by_class(self, density: str, term: RelativeGaussian) -> str:
        """Log of the sum of the densities of each class."""
        if len(term.owner) == len(self.scored.classes):
            return density
        parts = [self.node("Gather", density, self.constant(np.array(term.of_class(c))), axis=1) for c in
                 range(len(self.scored.classes))]  # fmt: skip
        return self.node("Concat", *(self.node("ReduceLogSumExp", part, axes=[1], keepdims=1) for part in parts), axis=1)

    def _outputs(self, score: str) -> tuple[str, str]:
        """Label and probabilities; a row that every class rules out has those of the prior, an infinite number has NaN."""
        best = self.node("ReduceMax", score, axes=[1], keepdims=1)
        impossible = self.node("Less", best, self.constant(RULED_OUT))
        score = self.node("Where", impossible, self.constant(self.scored.log_prior[None]), score)
        best = self.node("ReduceMax", score, axes=[1], keepdims=1)
        power = self.node("Exp", self.node("Sub", score, best))
        total = self.node("ReduceSum", power, self.constant(np.array([1])), keepdims=1)
        shares = self.node("Div", power, total)
        for infinite in self.infinite:
            shares = self.node("Where", infinite, self.constant(np.nan), shares)
        names = self.node("Identity", shares, output="probabilities")
        place = self.node("ArgMax", score, axis=1, keepdims=0)
        return self.node("Gather", self._classes(), place, output="label"), names

    def _label_type(self) -> int:
        types = self.onnx.TensorProto
        kinds = {type(label) for label in self.scored.classes}
        known = {int: types.INT64, float: types.DOUBLE, bool: types.BOOL}
        return int(known.get(next(iter(kinds)), types.STRING) if len(kinds) == 1 else types.STRING)

    def _classes(self) -> str:
        kind = self._label_type()
        name = "likely__classes"
        labels = list(self.scored.classes)
        if kind == self.onnx.TensorProto.STRING:
            labels = [str(label).encode() for label in labels]
        self.constants.append(self.helper.make_tensor(name, kind, [len(labels)], labels))
        return name


def _as_number(column: Column, numbers: set[str]) -> bool:
    """Whether a column is a tensor of numbers: a number, or a category all of whose values are numbers or truth values."""
    return column.name in numbers or are_numbers(column)


def missing_text(column: Column) -> str:
    """The text that stands for a missing cell: the empty one, unless that is a category."""
    text = ""
    while text in column.values:
        text = f"<{text or 'missing'}>"
    return text


def _spelled(value: Any) -> list[str]:
    """Texts that a category has as a cell."""
    if isinstance(value, str):
        return [value]
    whole = not isinstance(value, bool) and float(value).is_integer()
    return [str(int(value)), f"{int(value)}.0"] if whole else [str(value)]


EXPORTED: dict[type, Callable[..., str]] = {
    TableTerm: OnnxGraph.table,
    CellTerm: OnnxGraph.cell,
    SquareTerm: OnnxGraph.square,
    LinearTerms: OnnxGraph.linear,
    JointTerm: joint,
    CellGaussianTerm: cell_gaussians,
    AveragedTerm: averaged,
    RelativeGaussian: OnnxGraph.relative,
}
