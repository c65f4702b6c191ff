"""Damaged Arrow, Feather and Parquet data is refused as data: no crash, no traceback, whatever bit is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import likely
from likely.errors import DataError
from likely.sources import ReadOptions, files, open_source
from likely.sources import _memory_limit as memory_limit
from likely.sources._arrow_sizes import unpacked_sizes
from processes import environment, refused
from tables import learn

FLIPPED = Path(__file__).with_name("flipped.py")


def _table(rows=60):
    rng = np.random.default_rng(5)
    colours, words = np.array(["red", "green", "blue", "größe"]), np.array(["cheap", "lunch", "prize", "noon"])
    x = [None if i % 7 == 0 else round(float(v), 3) for i, v in enumerate(rng.normal(size=rows))]
    return pa.table({
        "c": pa.array(rng.choice(colours, rows)).dictionary_encode(),
        "t": pa.array([" ".join(rng.choice(words, 4)) + f" {i}" for i in range(rows)]),
        "b": pa.array(rng.random(rows) < 0.5),
        "x": pa.array(x, pa.float64()),
        "n": pa.array(rng.integers(0, 9, rows)),
        "y": pa.array(rng.choice(["p", "q"], rows)).dictionary_encode(),
    })  # fmt: skip


def _write(kind, path):
    table = _table()
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=40)
    elif kind.startswith("feather"):
        pa.feather.write_feather(table, str(path), compression=kind.partition("-")[2], chunksize=40)
    else:
        make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=40)


@pytest.mark.parametrize(
    ("kind", "flips"),
    [("arrow", 80), ("stream", 40), ("feather-uncompressed", 40), ("feather-lz4", 40), ("parquet", 120)],
)
def test_one_flipped_bit_never_ends_the_process_nor_in_a_traceback(kind, flips, tmp_path):
    path = tmp_path / f"table.{kind.partition('-')[0].replace('stream', 'arrow')}"
    _write(kind, path)
    step = 8 * path.stat().st_size // flips + 1  # all over the file, and all bits of a byte in turn
    command = [sys.executable, "-X", "faulthandler", str(FLIPPED), str(path), "y", "0", str(flips), str(step)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False)
    last = (done.stdout.splitlines() or [""])[-1]
    assert done.returncode == 0, (
        f"{kind}: flip {last} of step {step} ended with {done.returncode}: {done.stderr[-2000:]}"
    )
    reported = [line.split()[1] for line in done.stdout.splitlines()]
    assert len(reported) == flips
    assert {"read", "refused"} == set(reported)


def test_the_command_reports_a_damaged_file_as_bad_data(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(_table(), path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[data.index("größe".encode()) + 2] ^= 0x40  # in the middle of a character
    path.write_bytes(data)
    reported = refused("learn", str(path), "--target", "y", "-o", str(tmp_path / "m.likely"), code=3)
    assert "table.parquet" in reported
    assert "column 'c'" in reported


# ------------------------------------------------------------------ dictionaries of which an index is wrong

GOOD = ["p", "q", "p", "q"]


def _coded(indices, kind="int32"):
    return pa.DictionaryArray.from_arrays(pa.array(indices, kind), pa.array(["u", "v"]), safe=False)


@pytest.mark.parametrize("index", [2, 7, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("target", ["y", "c"])
def test_a_dictionary_index_out_of_range_is_refused_with_its_row(index, target):
    table = {"c": _coded([0, 1, index, 1]), "y": GOOD}
    table = table if target == "y" else {"y": table["c"], "c": GOOD}
    error = rf"column '{'c' if target == 'y' else 'y'}' has dictionary index {index}, but its dictionary has 2 values in row 3"
    for data in (table, pa.table(table)):
        with pytest.raises(DataError, match=error):
            learn(data)
    with pytest.raises(DataError, match="dictionary index"):
        likely.NaiveBayes().fit(pa.table({"c": _coded([0, 1, index, 1])}), GOOD)
    with pytest.raises(DataError, match="dictionary index"):
        likely.TextNaiveBayes().fit(pa.chunked_array([_coded([0, 1]), _coded([index, 1])]), GOOD)
    with pytest.raises(DataError, match="in row 3"):
        learn({"c": ["u", "v", "u", "v"], "y": GOOD}).predict(pa.table({"c": _coded([0, 1, index])}))


def test_a_null_cell_may_have_any_index_below_it():
    masked = pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()),
        4,
        [pa.py_buffer(bytes([0b1011])), pa.py_buffer(np.array([0, 1, 99, 1], np.int32))],
        pa.array(["u", "v"]),
    )
    model = learn({"c": masked, "y": GOOD}, plain=True)
    assert [row["count"] for row in model.parameters["c"]] == [1, 0, 0, 2]


def test_unsigned_indices_beyond_all_codes_are_refused():
    with pytest.raises(DataError, match=f"dictionary index {2**63}"):
        learn({"c": _coded([0, 1, 2**63, 1], "uint64"), "y": GOOD})


@pytest.mark.parametrize("index", [2, 7, -5])
def test_a_code_of_no_category_in_pandas_is_refused(index):
    codes = pd.Series(pd.Categorical.from_codes(np.array([0, 1, index, 1], np.int8), ["u", "v"], validate=False))
    for data in (pd.DataFrame({"c": codes, "y": GOOD}), {"c": codes, "y": GOOD}):
        with pytest.raises(DataError, match=r"column 'c' .* in row 3"):
            learn(data)
    if index > 0:
        with pytest.raises(DataError, match="y has a code that is none of its categories"):
            likely.NaiveBayes().fit(pd.DataFrame({"c": GOOD}), codes)


def _text(offsets, content):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


@pytest.mark.parametrize(
    ("column", "reported"),
    [
        (_text([0, 1, 2, 3, 4], b"ab\xffd"), "Invalid UTF8"),
        (_text([0, 1, 200_000_000, 3, 4], b"abcd"), "out of bounds"),
        (_text([0, 3, 1, 3, 4], b"abcd"), "non-monotonic|[Oo]ffset"),
    ],
)
def test_text_that_points_nowhere_or_is_no_text_is_refused(column, reported):
    for fit in (
        lambda: learn({"c": column, "y": GOOD}),
        lambda: learn(pa.table({"y": column, "c": GOOD})),
        lambda: likely.TextNaiveBayes().fit(column, GOOD),
    ):
        with pytest.raises(DataError, match=reported):
            fit()


# ------------------------------------------------------------------ files that change, and files that grow when read


def test_an_arrow_file_cut_short_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "table.arrow"
    table = pa.table({"x": np.arange(300_000.0), "y": np.arange(300_000) % 2})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50_000)
    batches = open_source(str(path)).batches()
    first = next(batches)
    os.truncate(path, 1_000)
    assert first.numbers(["x"], 0, 50_000)[-1, 0] == 49_999.0
    with pytest.raises(DataError, match=r"table.arrow' is not a complete Arrow file"):
        list(batches)


def test_a_large_arrow_file_is_mapped_and_counted_alike(tmp_path, monkeypatch):
    path = tmp_path / "table.arrow"
    _write("arrow", path)
    small = learn(str(path))
    monkeypatch.setattr(files, "LARGEST_READ", 0)
    assert learn(str(path)).tally == small.tally


def test_a_parquet_file_of_few_bytes_and_many_rows_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "many.parquet"
    some = pa.table(
        {"c": pa.array(["u"] * 1_000_000).dictionary_encode(), "n": np.zeros(1_000_000), "y": ["p", "q"] * 500_000}
    )
    with pq.ParquetWriter(path, some.schema) as writer:
        for _ in range(8):
            writer.write_table(some, row_group_size=1_000_000)
    assert path.stat().st_size < 10_000_000
    code = (
        "import likely, sys, warnings; warnings.simplefilter('ignore')\n"
        "m = likely.learn(sys.argv[1], 'y', plain=True, families={'n': 'gaussian'})\n"
        # The kernel's own high-water mark: getrusage would count what this process held when it forked.
        "peak = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "print(m.tally.rows, *peak)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
        timeout=300,
    )
    rows, peak = map(int, done.stdout.split())
    assert rows == 8_000_000
    assert peak < 600_000  # kB


def test_wide_or_long_rows_of_parquet_come_in_smaller_batches(tmp_path, monkeypatch):
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"t": ["x" * 1_000 + str(i) for i in range(2_000)], "y": ["p", "q"] * 1_000}), path)
    monkeypatch.setattr(memory_limit, "BATCH_BYTES", 100_000)
    sizes = [batch.rows for batch in open_source(str(path)).batches()]
    assert sum(sizes) == 2_000
    assert max(sizes) <= 200  # a batch of Parquet may take twice the bytes of other files


# ------------------------------------------------------------------ any source may yield several chunks


def test_texts_of_numpy_that_arrow_holds_in_several_chunks_are_one_column():
    texts = np.array([f"v{i % 5}".rjust(300) for i in range(60_000)])  # 72 MB
    model = learn({"c": texts, "y": np.array(["p", "q"] * 30_000)}, plain=True)
    assert model.schema.by_name["c"].values == tuple(f"v{i}".rjust(300) for i in range(5))
    labels = {"x": np.arange(60_000) % 3, "y": texts}
    assert len(learn(labels, plain=True).classes) == 5


# ------------------------------------------------------------------ row 25: JSON


@pytest.mark.parametrize("kind", ["json", "jsonl"])
@pytest.mark.parametrize(
    ("cell", "reported"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("9" * 5_000, "is not JSON .*digits"),
        ('1, "a": 2', "names the column 'a' twice"),
        ('"a\\u0000b"', r"the character NUL \(\\u0000\): remove it"),
        ('"a\0b"', "has a NUL byte: .*encoding='utf-16-[lb]e'"),
        ("\udcff", "is not utf-8"),
        ("1e999", "not a finite number"),
        ("-Infinity", "not a finite number"),
    ],
)
def test_json_that_no_table_can_mean_is_bad_data(kind, cell, reported, tmp_path):
    rows = [f'{{"a": {value}, "y": "{label}"}}' for value, label in ((1, "p"), (cell, "q"), (3, "p"), (4, "q"))]
    text = "\n".join(rows) if kind == "jsonl" else f"[{','.join(rows)}]"
    path = tmp_path / f"table.{kind}"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=reported):
        learn(str(path), families={"a": "gaussian"})


def test_the_text_backslash_u0000_is_no_nul(tmp_path):
    path = tmp_path / "table.json"
    rows = [{"a": "\\u0000", "y": "p"}, {"a": "b", "y": "q"}]
    path.write_text(json.dumps(rows), encoding="utf-8")
    assert learn(str(path)).schema.by_name["a"].values == ("\\u0000", "b")


@pytest.mark.parametrize("value", [10**400, -(10**4_000)])
def test_a_whole_number_beyond_all_floats_is_bad_data(value, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(
        json.dumps([{"a": v, "y": y} for v, y in zip([1, value, 3, 4], "pqpq", strict=True)]), encoding="utf-8"
    )
    with pytest.raises(DataError, match=r"column 'a' .* in row 2, which is not a number"):
        learn(str(path))


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("kind", ["file", "stream", "dictionary"])
def test_a_compressed_arrow_batch_that_unpacks_to_very_much_is_refused_before_it_is_unpacked(
    tmp_path, kind, compression
):
    rows = 1 << 21
    x = pa.array(np.zeros(rows))
    if kind == "dictionary":
        x = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(np.arange(rows) // (1 << 20)))
    table = pa.table({"x": x, "y": pa.array(["a", "b"] * (len(x) // 2)).dictionary_encode()})
    path, new = tmp_path / "d.arrow", pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as file, new(
        file, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table, max_chunksize=rows)
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match="unpacks to more than 1,000,000 bytes") as refused:
        list(open_source(str(path), ReadOptions(max_unpacked=1_000_000)).batches())
    assert "--max-unpacked" in str(refused.value.remedy)
    assert pa.total_allocated_bytes() - before < 8_000_000
    sizes = list(unpacked_sizes(str(path)))
    assert max(sizes) >= 8 * rows
    assert sum(batch.rows for batch in open_source(str(path), ReadOptions(max_unpacked=1 << 30)).batches()) == len(x)
