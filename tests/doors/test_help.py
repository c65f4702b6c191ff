"""Help, names that are nearly right, completion, and where output may go."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import likely
from commands import TENNIS, document, run
from likely.cli import main

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(main.commands)


@pytest.fixture(scope="module")
def tennis(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("models") / "tennis.likely")
    likely.learn(TENNIS, "PlayTennis").save(path)
    return path


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_h_is_help(self, command):
        assert run(command, "-h").stdout == run(command, "--help").stdout
        assert run("-h").stdout == run("--help").stdout

    @pytest.mark.parametrize("command", COMMANDS)
    def test_no_word_is_broken_in_80_columns(self, command, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        reported = run(command, "--help").stdout
        assert max(map(len, reported.splitlines())) <= 80
        assert not [line for line in reported.splitlines() if re.search(r"\w-$", line)]

    def test_every_command_that_is_named_exists(self):
        texts = [run(command, "--help").stdout for command in COMMANDS]
        texts += [path.read_text() for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md"]]
        named = {word for text in texts for word in re.findall(r"(?:^|`|\$ )likely ([a-z]+(?:-[a-z]+)*)\b", text, re.MULTILINE)}
        assert named <= set(COMMANDS)
        assert "sql" not in run("cluster", "--help").stdout

    def test_the_help_of_update_explains_what_becomes_of_the_calibration(self):
        reported = " ".join(run("update", "--help").stdout.split())
        assert "The calibration is unchanged unless there is a new class" in reported
        assert "equals a model learned from all rows" not in reported


class TestNearlyRight:
    @pytest.mark.parametrize(
        "options",
        [
            ["--target", "playtenis"],
            ["--target", "PlayTennis", "--ignore", "outlok"],
            ["--target", "PlayTennis", "--weights", "Wnd"],
            ["--target", "PlayTennis", "--family", "Humdity=categorical"],
            ["--target", "PlayTennis", "--joint", "Outlook,Wint"],
        ],
    )
    def test_a_column_that_may_have_been_meant(self, options, tmp_path):
        reported = run("learn", TENNIS, *options, "-o", str(tmp_path / "m.likely"), expect=3).stderr
        assert re.search(r"did you mean '(PlayTennis|Outlook|Wind|Humidity)'\?", reported)

    def test_in_every_other_place(self, tennis):
        for words, code in [
            (["explain", tennis, "--set", "Outlok=Sunny"], 2),
            (["inspect", tennis, "--column", "Outlok"], 2),
            (["inspect", TENNIS, "--target", "PlayTenis"], 2),
            (["update", tennis, TENNIS, "--weights", "Wid"], 3),
            (["cluster", TENNIS, "--ignore", "PlayTenis"], 3),
            (["sequences", TENNIS, "--by", "Widn"], 3),
            (["curve", TENNIS, "--target", "PlayTenis"], 3),
        ]:
            assert "did you mean" in run(*words, expect=code).stderr, words
        assert "Did you mean" in run("learn", TENNIS, "--taget", "x", expect=2).stderr

    def test_nothing_is_guessed_where_nothing_is_near(self):
        assert "did you mean" not in run("learn", TENNIS, "--target", "zzz", expect=3).stderr


class TestIgnore:
    def test_a_list_and_again_and_again(self, tmp_path):
        model = str(tmp_path / "m.likely")
        for given in (["--ignore", "Wind,Outlook"], ["--ignore", "Wind", "--ignore", "Outlook"], ["--ignore", "Wind, Outlook"]):
            reported = document("learn", TENNIS, "--target", "PlayTennis", *given, "-o", model)
            assert [c["column"] for c in reported["columns"]] == ["Temperature", "Humidity"]

    def test_a_name_with_a_comma_stands_in_quotes(self, tmp_path):
        data = tmp_path / "d.csv"
        data.write_text('"a,b",c,y\n1,2,n\n2,1,j\n1,1,n\n3,1,j\n')
        reported = document("learn", str(data), "--target", "y", "--ignore", '"a,b"', "-o", str(tmp_path / "m.likely"))
        assert [c["column"] for c in reported["columns"]] == ["c"]


class TestOutput:
    @pytest.mark.parametrize("ending", [".csv", ".json", ".svg", ".html", ".parquet"])
    def test_a_model_has_no_ending_of_something_else(self, ending, tennis, tmp_path):
        out = str(tmp_path / f"out{ending}")
        for words in (
            ["learn", TENNIS, "--target", "PlayTennis"],
            ["update", tennis, TENNIS],
            ["merge", tennis, tennis],
            ["cluster", TENNIS, "--ignore", "PlayTennis"],
        ):
            assert "use the extension .likely" in run(*words, "-o", out, expect=2).stderr
        assert not os.path.exists(out)

    def test_an_answer_has_no_ending_of_a_model(self, tennis, tmp_path):
        for words in (["predict", tennis, TENNIS], ["curve", TENNIS, "--target", "PlayTennis"], ["compare", TENNIS]):
            run(*words, "-o", str(tmp_path / "out.likely"), expect=2)


class TestLongReports:
    def test_many_columns_and_classes_are_cut_with_a_count(self, tmp_path):
        data, model = tmp_path / "wide.csv", str(tmp_path / "m.likely")
        names = [f"f{i}" for i in range(300)]
        lines = [",".join([*(str((i * j) % 3) for j in range(300)), f"k{i % 30}"]) for i in range(60)]
        data.write_text("\n".join([",".join([*names, "y"]), *lines]) + "\n")
        reported = run("learn", str(data), "--target", "y", "--plain", "-o", model).stdout
        assert "… and 2" in reported
        assert reported.count("\n") < 250
        judged = run("evaluate", model, str(data)).stdout
        assert "… and 10 more classes (--json has all)" in judged
        assert len(document("evaluate", model, str(data))["confusion"]) == 30

    def test_no_word_of_a_table_is_broken_on_a_terminal_of_80_columns(self, tmp_path):
        from likely.cli._terminal import _rich_table

        class Screen:
            def __init__(self):
                self.text = ""

            def write(self, text):
                self.text += text

            def flush(self):
                pass

            def isatty(self):
                return True

        screen = Screen()
        os.environ["COLUMNS"] = "80"
        try:
            why = "chosen from the data because every one of the different values occurs often enough to be counted"
            _rich_table(screen, ["column", "kind", "family", "why"], [["Temperature", "category", "categorical", why]] * 3, [])
        finally:
            del os.environ["COLUMNS"]
        words = set(re.sub(r"\x1b\[[0-9;]*m", "", screen.text).split())
        assert {"Temperature", "category", "categorical", *why.split()} <= words


class TestCompletion:
    def complete(self, *words, shell="bash"):
        line = ["likely", *words]
        env = os.environ | {"_LIKELY_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
        code = "import sys; sys.argv[0] = 'likely'; from likely.cli import main; main(prog_name='likely')"
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False)
        return [item.split(",", 1)[1] for item in done.stdout.split()]

    def test_columns_of_data_and_models(self, tennis):
        assert self.complete("learn", TENNIS, "--target", "O") == ["Outlook"]
        assert self.complete("learn", TENNIS, "--ignore", "Wind,te") == ["Wind,Temperature"]
        assert self.complete("explain", tennis, "--set", "Hu") == ["Humidity="]
        assert "loan_id" not in self.complete("learn", TENNIS, "--target", "l")
        assert self.complete("learn", "/no/such/file.csv", "--target", "O") == []

    def test_of_other_formats(self, tmp_path):
        import pyarrow.csv
        import pyarrow.parquet

        path = str(tmp_path / "t.parquet")
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(TENNIS), path)
        assert self.complete("learn", path, "--target", "PlayT") == ["PlayTennis"]
