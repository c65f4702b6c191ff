"""Text files without a header, and in other encodings than UTF-8."""

import pytest

import likely
from commands import TENNIS, document, run
from likely.errors import DataError, LikelyWarning


class TestNoHeader:
    BARE = "".join(f"{'Ulm' if i % 3 else 'Bonn'},{i / 4},{i % 5},{'yn'[i % 2]}\n" for i in range(60))

    @pytest.mark.parametrize("odd", [False, True])
    def test_columns_are_numbered_and_no_row_is_lost(self, file, tmp_path, odd):
        content = self.BARE + ('Ulm,5" wide,1,y\n' if odd else "")  # a stray quote is read by Python's parser
        path, model = file(content), str(tmp_path / "m.likely")
        learned = likely.learn(path, "c4", header=False)
        assert learned.tally.rows == 60 + odd
        assert {"c1", "c3"} <= {c.name for c in learned.schema.columns} <= {"c1", "c2", "c3"}
        assert len(learned.predict(path, header=False)) == 60 + odd
        assert document("learn", path, "--target", "c4", "--no-header", "-o", model)["rows"] == 60 + odd
        assert run("predict", model, path, "--no-header").stdout.startswith("c1,c2,c3,c4,label\n")
        assert "--no-header" in run("predict", model, path, expect=3).stderr

    def test_a_ragged_row_is_measured_by_the_first_line(self, file):
        with pytest.raises(DataError, match="line 2 has 1 cell where the first line has 2"):
            likely.learn(file("1,no\n2\n3,yes\n"), "c2", header=False)

    def test_names_that_look_like_cells_are_pointed_out(self, file):
        with pytest.warns(LikelyWarning, match=r"looks like a row \('5.1', '3.5', 'no'\): pass header=False"):
            likely.learn(file("5.1,3.5,no\n4.9,3.0,no\n4.7,3.2,yes\n5,3,yes\n"), "no")
        with pytest.raises(DataError, match=r"column '5.1' occurs twice.*--no-header"):
            likely.learn(file("5.1,5.1,no\n4.9,3.0,no\n"), "no")

    def test_ordinary_names_are_not(self, file, recwarn):
        likely.inspect(file("0,1,2,y\n3,4,5,a\n6,7,8,b\n"))
        likely.inspect(file("2019,2020,2021,y\n3,4,5,a\n6,7,8,b\n"))
        likely.inspect(TENNIS)
        assert not [w for w in recwarn if "looks like" in str(w.message)]


class TestEncodings:
    def test_latin_1_is_refused_with_what_it_would_read(self, file):
        content = "town,y\nUlm,a\nKöln,b\n"
        with pytest.raises(DataError, match=r"not UTF-8 in line 3: pass encoding='latin-1' .* if 'Köln' is right"):
            likely.learn(file(content.encode("latin-1")), "y")
        with pytest.raises(DataError, match=r"encoding='cp1252' .* if '5€' is right"):
            likely.learn(file("price,y\n3,a\n5€,b\n".encode("cp1252")), "y")
        assert likely.learn(file(content.encode("latin-1")), "y", encoding="latin-1").tally.rows == 2

    def test_utf_16_is_noted_or_named(self, file):
        content = "town,y\nUlm,a\nKöln,b\n"
        with pytest.warns(LikelyWarning, match=r"is read as UTF-16 by its byte order mark; .*--encoding"):
            assert likely.learn(file(content.encode("utf-16")), "y").tally.rows == 2
        for name in ("utf-16-le", "utf-16-be"):
            with pytest.raises(DataError, match=f"--encoding {name}"):
                likely.learn(file(content.encode(name)), "y")
            assert likely.learn(file(content.encode(name)), "y", encoding=name).tally.rows == 2
