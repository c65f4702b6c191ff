"""No command writes over what it reads, whatever the output is called; and no update is lost to another."""

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

import likely
from commands import run
from likely.errors import ConflictError
from likely.sources import atomic_write
from processes import COMMAND, TENNIS, environment

ROWS = Path(TENNIS).read_text(encoding="utf-8")
NUMBERS = "x,z\n" + "".join(f"{i % 7},{i % 3 + i / 10}\n" for i in range(40))


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model():
    likely.learn(TENNIS, "PlayTennis").save("m.likely")
    return "m.likely"


def spellings(path):
    """The same file under other names: relative, absolute, through links of both kinds and a linked folder."""
    folder = Path("folder")
    folder.symlink_to(".")
    Path("soft" + Path(path).suffix).symlink_to(path)
    os.link(path, "hard" + Path(path).suffix)
    names = [path, f"./{path}", os.path.abspath(path), f"folder/{path}"]
    return [*names, "soft" + Path(path).suffix, "hard" + Path(path).suffix]


def contents():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def assert_refused(*args):
    before = contents()
    reported = run(*args, expect=2).stderr
    assert contents() == before
    return reported


def test_learn_does_not_replace_its_data_under_any_name():
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    for name in spellings("d.csv"):
        reported = assert_refused("learn", "d.csv", "--target", "PlayTennis", "-o", name)
        assert "is a file that is read ('d.csv')" in reported
    reported = assert_refused("learn", "*.csv", "--target", "PlayTennis", "-o", "d.csv")
    assert "'*.csv'" in reported


def test_learn_does_not_replace_data_that_come_on_standard_input():
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    command = [*COMMAND, "learn", "-", "--target", "PlayTennis", "-o", "d.csv"]
    with open("d.csv", "rb") as data:
        done = subprocess.run(command, stdin=data, capture_output=True, env=environment(), timeout=120, check=False)
    assert done.returncode == 2
    assert b"standard input" in done.stderr
    assert Path("d.csv").read_text(encoding="utf-8") == ROWS


def test_learn_does_not_replace_a_text_of_its_folder_but_may_write_a_model_there_again():
    for label in ("a", "b"):
        Path("texts", label).mkdir(parents=True)
        for i in range(3):
            Path("texts", label, f"{i}.txt").write_text(f"word{label} number {i} again", encoding="utf-8")
    os.link("texts/a/0.txt", "elsewhere.txt")
    for name in ("texts/a/0.txt", "elsewhere.txt"):
        assert "is a file that is read" in assert_refused("learn", "texts", "--target", "label", "-o", name)
    for _ in range(2):
        run("learn", "texts", "--target", "label", "-o", "texts/m.likely")


def test_predict_does_not_replace_data_or_model(model):
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    os.link(model, "model.csv")
    for name in spellings("d.csv"):
        assert "is a file that is read" in assert_refused("predict", model, "d.csv", "-o", name)
    assert "('m.likely')" in assert_refused("predict", model, "d.csv", "-o", "model.csv")


def test_predict_does_not_append_to_its_own_data(model):
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    with open("d.csv", "ab") as out:
        done = subprocess.run(
            [*COMMAND, "predict", model, "d.csv"],
            stdout=out, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"standard output is a file that is read ('d.csv')" in done.stderr
    assert Path("d.csv").read_text(encoding="utf-8") == ROWS


@pytest.mark.parametrize("verb", ["update", "forget"])
def test_update_and_forget_replace_the_model_alone(model, verb):
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    os.link(model, "hard.likely")
    assert "('d.csv')" in assert_refused(verb, model, "d.csv", "-o", "./d.csv")
    assert "('m.likely')" in assert_refused(verb, model, "d.csv", "-o", "hard.likely")


def test_merge_may_replace_one_of_its_models_by_its_own_name_alone(model):
    likely.learn(TENNIS, "PlayTennis").save("n.likely")
    os.link(model, "hard.likely")
    assert "('m.likely')" in assert_refused("merge", model, "n.likely", "-o", "hard.likely")
    run("merge", model, "n.likely", "-o", "./m.likely")
    assert likely.load(model).tally.rows == 28


def test_pages_pictures_and_tables_do_not_replace_what_is_read(model):
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    Path("n.csv").write_text(NUMBERS, encoding="utf-8")
    for name in ("page.html", "picture.svg"):
        os.link("d.csv", name)
    for name in ("steps.html", "clusters.svg", "c.likely"):
        os.link("n.csv", name)
    target = ["--target", "PlayTennis"]
    for args in (
        ["explain", model, "d.csv", "--page", "page.html"],
        ["curve", "d.csv", *target, "-o", "picture.svg"],
        ["compare", "d.csv", *target, "-o", "picture.svg"],
        ["cluster", "n.csv", "-o", "c.likely"],
        ["cluster", "n.csv", "--labels", "n.csv"],
        ["cluster", "n.csv", "--picture", "clusters.svg"],
        ["cluster", "n.csv", "--steps", "steps.html"],
        ["sequences", "n.csv", "-o", "./n.csv"],
    ):
        assert "is a file that is read" in assert_refused(*args), args


def test_two_outputs_of_one_command_are_two_files():
    Path("n.csv").write_text(NUMBERS, encoding="utf-8")
    reported = assert_refused("cluster", "n.csv", "--picture", "out.html", "--steps", "./out.html")
    assert "--picture and --steps name the same file" in reported


@pytest.mark.parametrize("kept", ["notes.txt", "other.csv"])
def test_a_model_does_not_replace_a_file_that_is_no_model(model, kept):
    Path(kept).write_text("not a model\n", encoding="utf-8")
    for args in (
        ["learn", TENNIS, "--target", "PlayTennis", "-o", kept],
        ["update", model, TENNIS, "-o", kept],
        ["merge", model, model, "-o", kept],
        ["cluster", TENNIS, "-o", kept],
    ):
        assert "is a file other than a Likely model" in assert_refused(*args)


def test_a_model_replaces_a_model_and_an_empty_file(model):
    Path("empty").touch()
    for name in (model, "empty"):
        run("learn", TENNIS, "--target", "PlayTennis", "-o", name)
        assert likely.load(name).tally.rows == 14


def test_a_device_is_refused_before_the_work():
    assert "not a regular file" in assert_refused("learn", TENNIS, "--target", "PlayTennis", "-o", "/dev/null")


# ---------------------------------------------------------------- several writers of one file


def test_of_eleven_updates_at_a_time_none_is_lost_whatever_the_file_is_called(model):
    Path("folder").symlink_to(".")
    Path("soft.likely").symlink_to(model)
    outputs = [[], ["-o", model], ["-o", "./m.likely"], ["-o", os.path.abspath(model)], ["-o", "soft.likely"]]
    names = [[model, TENNIS, *output] for output in outputs]
    links = ("soft.likely", "folder/m.likely")
    names += [[name, TENNIS, "-o", other] for name in links for other in ("m.likely", "folder/m.likely")]
    names += [["soft.likely", TENNIS], ["folder/soft.likely", TENNIS]]
    processes = [
        subprocess.Popen(
            [*COMMAND, "update", *args], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for args in names
    ]
    reported = [process.communicate(timeout=300)[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert codes == [0] * 11, reported
    assert likely.load(model).tally.rows == 14 * (1 + codes.count(0))
    assert sorted(os.listdir()) == ["folder", "m.likely", "soft.likely"]


def test_merges_into_one_model_at_a_time_are_all_counted(model):
    likely.learn(TENNIS, "PlayTennis").save("n.likely")
    command = [*COMMAND, "merge", model, "n.likely", "-o", "./m.likely"]
    processes = [subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    assert likely.load(model).tally.rows == 14 * 5


def test_a_foreign_lock_on_the_folder_or_the_file_holds_nobody_up(model):
    for path in (".", model):
        held = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            run("update", model, TENNIS)
        finally:
            os.close(held)
    assert likely.load(model).tally.rows == 42


def test_a_lock_that_is_never_released_is_an_error_after_a_while_and_nothing_is_written(model, monkeypatch):
    monkeypatch.setattr(atomic_write, "LOCK_TIMEOUT", 0.2)
    known, before = likely.load(model), Path(model).read_bytes()
    held = os.open(".m.likely.lock", os.O_RDONLY | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConflictError, match="locked by another process"):
            known.save(model)
    finally:
        os.close(held)
    assert Path(model).read_bytes() == before
    known.save(model)
    assert os.listdir() == ["m.likely"], "a lock that nobody holds is taken over and removed"


def test_files_whose_names_begin_alike_do_not_remove_each_others_temporary_files(model):
    known = likely.load(model)
    long = "n" * 250
    with atomic_write.whole_file("m.likely.x") as temporary:
        known.save(model)
        assert Path(temporary).exists()
        Path(temporary).write_bytes(b"x")
    assert Path("m.likely.x").read_bytes() == b"x"
    for name in (long, "é" * 125):
        known.save(name)
        assert likely.load(name).tally == known.tally
