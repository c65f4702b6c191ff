"""A folder is a class: texts, mails and mailboxes are learned, judged and predicted as they lie on the disk."""

import csv
import json
import mailbox
import os
import re
import tracemalloc
import warnings
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely.cli import main
from likely.errors import DataError, LikelyWarning, UsageError
from likely.sources import ReadOptions, open_source
from likely.sources import _text_folders as text_folders
from likely.sources._mail import mail_text, mbox_mails, without_tags

TEXTS = {
    "spam": ["win a free prize now", "free money, click now", "claim your free bonus prize"],
    "ham": ["the report is due on monday", "lunch on monday with the team", "please review the report"],
}


def run(*args: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == expect, (args, result.exit_code, result.stdout, result.stderr)
    return result


def rows(path: Any, **options: Any) -> list[dict[str, Any]]:
    """All that a source holds."""
    found = []
    for batch in open_source(path, ReadOptions(**options)).batches():
        columns = [batch.columns[name].to_pylist() for name in batch.names]
        found += [dict(zip(batch.names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    return found


def mail(subject: str, body: str, sender: str = "ann@example.org") -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"] = subject, sender
    made.set_content(body)
    return made


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def texts() -> str:
    for label, documents in TEXTS.items():
        Path("texts", label).mkdir(parents=True)
        for i, document in enumerate(documents):
            Path("texts", label, f"{i}.txt").write_text(document, encoding="utf-8")
    return "texts"


@pytest.fixture
def boxes() -> str:
    Path("boxes").mkdir()
    for label, documents in TEXTS.items():
        box = mailbox.mbox(f"boxes/{label}.mbox")
        for document in documents:
            box.add(mail(document.split()[0], f"{document}\n\nFrom here on nothing follows.\n"))
        box.close()
    return "boxes"


def the_same_table() -> dict[str, list[str]]:
    pairs = [(text, label) for label in sorted(TEXTS) for text in TEXTS[label]]
    return {"text": [text for text, _ in pairs], "label": [label for _, label in pairs]}


# ---------------------------------------------------------------- folders of texts


def test_a_folder_of_folders_equals_the_table_of_its_texts(texts: str) -> None:
    model = likely.learn(texts)
    table = likely.learn(the_same_table(), target="label", families={"text": likely.Text()})
    assert model.classes == ("ham", "spam")
    assert model.tally == table.tally
    assert model.schema.target.name == "label"


def test_the_name_of_a_file_is_no_evidence(texts: str) -> None:
    model = likely.learn(texts)
    assert [column.name for column in model.schema.columns] == ["text"]
    assert dict(model.schema.ignored) == {"file": "the name of the file"}
    every_column = likely.learn(texts, families=likely.Text("bernoulli"))
    assert [block.columns for block in every_column.blocks] == [("text",)]


def test_short_texts_are_texts_too(tmp_path: Path) -> None:
    for label in ("a", "b"):
        Path(label).mkdir()
        Path(label, "1.txt").write_text(label, encoding="utf-8")
    assert likely.learn(str(tmp_path)).schema.columns[0].kind == "text"


def test_texts_lie_as_deep_as_they_like_and_hidden_files_are_not_looked_at(texts: str) -> None:
    Path(texts, "ham", "2024", "may").mkdir(parents=True)
    Path(texts, "ham", "2024", "may", "letter").write_text("a deep letter", encoding="utf-8")
    Path(texts, "ham", ".DS_Store").write_bytes(b"\0\0\0\1")
    found = [row for row in rows(texts) if row["text"] == "a deep letter"]
    assert [(row["label"], row["file"]) for row in found] == [("ham", "texts/ham/2024/may/letter")]
    assert len(rows(texts)) == 7


def test_a_file_beside_the_folders_has_no_label(texts: str) -> None:
    Path(texts, "README").write_text("how these texts were gathered", encoding="utf-8")
    assert [row["label"] for row in rows(texts)].count(None) == 1
    with pytest.warns(LikelyWarning, match="1 of 7 rows have no 'label'"):
        assert likely.learn(texts).tally.rows == 6


def test_a_class_may_be_called_none(texts: str) -> None:
    os.rename(Path(texts, "ham"), Path(texts, "none"))
    assert likely.learn(texts).classes == ("none", "spam")


def test_folders_named_one_by_one_are_classes(texts: str) -> None:
    assert likely.learn(f"{texts}/*").tally == likely.learn(texts).tally


def test_update_and_forget_a_folder_come_back_to_the_same_tally(texts: str) -> None:
    model = likely.learn(texts)
    Path("more", "eggs").mkdir(parents=True)
    Path("more", "eggs", "1.txt").write_text("a dozen eggs", encoding="utf-8")
    larger = model.update("more")
    assert larger.classes == ("eggs", "ham", "spam")
    assert larger.forget("more").tally == model.tally


def test_memory_is_flat_however_many_texts_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_folders, "BATCH_CHARACTERS", 200_000)
    for label in ("a", "b"):
        Path("many", label).mkdir(parents=True)
        for i in range(60):
            Path("many", label, str(i)).write_text("word " * 20_000, encoding="utf-8")
    tracemalloc.start()
    sizes = [batch.rows for batch in open_source("many").batches()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(sizes) == 120
    assert len(sizes) > 10
    assert peak < 4_000_000  # of 12 million bytes in all


# ---------------------------------------------------------------- encodings, and what is no text


def test_text_that_is_not_utf_8_is_read_as_latin_1_and_counted(texts: str) -> None:
    Path(texts, "ham", "old").write_bytes("Grüße an alle".encode("latin-1"))
    with pytest.warns(LikelyWarning, match=r"1 of 7 texts are not UTF-8.*Latin-1.*'texts/ham/old'"):
        assert "Grüße an alle" in [row["text"] for row in rows(texts)]


def test_the_encoding_asked_for_is_used_and_what_does_not_fit_is_replaced(texts: str) -> None:
    Path(texts, "ham", "old").write_bytes("Grüße".encode("cp1252"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "Grüße" in [row["text"] for row in rows(texts, encoding="cp1252")]
    with pytest.warns(LikelyWarning, match="1 of 7 texts are not ascii: the bytes at fault were replaced"):
        assert "Gr\ufffd\ufffde" in [row["text"] for row in rows(texts, encoding="ascii")]


def test_a_byte_order_mark_sets_the_encoding(texts: str) -> None:
    Path(texts, "ham", "wide").write_bytes("Grüße".encode("utf-16"))
    assert "Grüße" in [row["text"] for row in rows(texts)]


def test_a_nul_anywhere_makes_a_file_no_text_unless_its_encoding_is_named(texts: str) -> None:
    Path(texts, "ham", "late").write_bytes(b"word " * 10_000 + b"\0 end")
    with pytest.warns(LikelyWarning, match="1 files were skipped: they are not text: 'texts/ham/late'"):
        assert likely.learn(texts).tally.rows == 6
    Path(texts, "ham", "late").write_bytes("Grüße".encode("utf-16-le"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        assert "Grüße" in [row["text"] for row in rows(texts, encoding="utf-16-le")]
    Path(texts, "ham", "late").write_bytes(b"half +2AA- a character")
    assert "half ? a character" in [row["text"] for row in rows(texts, encoding="utf-7")]


def test_pictures_and_tables_are_left_out_with_a_word(texts: str) -> None:
    Path(texts, "ham", "cat.png").write_bytes(b"\x89PNG\0\0")
    Path(texts, "ham", "index.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.warns(LikelyWarning) as reported:
        assert likely.learn(texts).tally.rows == 6
    assert sorted(str(each.message) for each in reported) == [
        "1 files were skipped: they are not text: 'texts/ham/cat.png'",
        "1 tables were skipped: a folder is read as texts: 'texts/ham/index.csv'",
    ]


def test_an_empty_folder_an_empty_class_and_a_folder_of_mixed_tables_are_refused_with_the_remedy(tmp_path: Path) -> None:
    Path("empty").mkdir()
    with pytest.raises(DataError, match="'empty' contains no texts: put the texts"):
        likely.learn("empty")
    Path("one", "spam").mkdir(parents=True)
    Path("one", "ham").mkdir()
    Path("one", "spam", "1").write_text("win", encoding="utf-8")
    with (
        pytest.warns(LikelyWarning, match="1 folders contain no texts: 'one/ham'"),
        pytest.raises(DataError, match="only one class, 'spam' in 'one'"),
    ):
        likely.learn("one")
    Path("tables").mkdir()
    Path("tables", "x.csv").write_text("a,y\n1,2\n", encoding="utf-8")
    Path("tables", "x.json").write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match=r"contains tables, not texts: name them by a glob such as 'tables/\*.csv'"):
        likely.learn("tables", target="y")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_cannot_be_read_is_named(texts: str) -> None:
    Path(texts, "ham", "0.txt").chmod(0)
    with pytest.raises(DataError, match=r"'texts/ham/0.txt' cannot be read"):
        likely.learn(texts)
    assert likely.learn(texts, on_bad_rows="skip").tally.rows == 5


def test_a_link_to_nowhere_is_named_or_skipped(texts: str) -> None:
    Path(texts, "ham", "gone").symlink_to("nowhere")
    with pytest.raises(DataError, match=r"'texts/ham/gone' cannot be read.*on_bad_rows"):
        likely.learn(texts)
    with pytest.warns(LikelyWarning, match="1 bad rows were skipped"):
        assert likely.learn(texts, on_bad_rows="skip").tally.rows == 6


# ---------------------------------------------------------------- mails


def test_a_mailbox_is_a_class_called_like_its_file(boxes: str) -> None:
    found = rows(boxes)
    assert [row["label"] for row in found] == ["ham"] * 3 + ["spam"] * 3
    assert found[0]["file"] == "boxes/ham.mbox#1"
    assert found[0]["text"].startswith("the\nann@example.org\nthe report is due on monday")
    assert likely.learn(boxes).classes == ("ham", "spam")
    assert likely.learn(f"{boxes}/*.mbox").tally == likely.learn(boxes).tally


def test_a_mailbox_without_an_ending_is_known_by_its_first_line(boxes: str) -> None:
    Path("mails", "spam").mkdir(parents=True)
    Path("mails", "ham").mkdir()
    os.rename("boxes/spam.mbox", "mails/spam/Inbox")
    os.rename("boxes/ham.mbox", "mails/ham/Inbox")
    assert likely.learn("mails").tally.rows == 6


def test_folders_of_eml_files_are_classes(texts: str) -> None:
    for label, documents in TEXTS.items():
        Path("mails", label).mkdir(parents=True)
        for i, document in enumerate(documents):
            Path("mails", label, f"{i}.eml").write_bytes(bytes(mail("a word", document)))
    model = likely.learn("mails/")
    assert model.classes == ("ham", "spam")
    assert list(model.predict("mails/spam/0.eml")) == ["spam"]
    assert likely.learn("mails/*/*.eml").tally == model.tally


def test_a_line_that_begins_with_from_parts_no_mail(tmp_path: Path) -> None:
    raw = b"From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\nhello\n\nFrom now on we wait.\nyes\n\n"
    raw += b"From c@d Fri Jan  2 00:00:00 1970\nSubject: y\n\nbye\n"
    Path("x.mbox").write_bytes(raw)
    with open("x.mbox", "rb") as file:
        found = list(mbox_mails(file))
    assert [mail_text(one).text.split() for one in found] == [
        ["x", "hello", "From", "now", "on", "we", "wait.", "yes"],
        ["y", "bye"],
    ]


def test_html_is_read_where_there_is_no_plain_part_and_attachments_are_not() -> None:
    made = mail("Grüße", "plain words")
    made.add_alternative("<p>marked words</p>", subtype="html")
    made.add_attachment(b"attached words", maintype="text", subtype="plain", filename="a.txt")
    assert mail_text(bytes(made)).text.split() == ["Grüße", "ann@example.org", "plain", "words"]
    only = EmailMessage()
    only["Subject"] = "s"
    only.set_content("<style>p{}</style><p>mark<b>ed</b> &amp; <i>words</i></p><script>x()</script>", subtype="html")
    assert mail_text(bytes(only)).text.split() == ["s", "marked", "&", "words"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", []),
        (b"no header at all", ["no", "header", "at", "all"]),
        (b"Subject: caf\xe9\n\nbody", ["café", "body"]),
        ("Subject: café\n\nbody".encode(), ["café", "body"]),
        (b"Subject: =?no-such?q?x?=\n\nbody", ["=?no-such?q?x?=", "body"]),
        (b"Subject: =?utf-8?b?a?=\n\nbody", ["=?utf-8?b?a?=", "body"]),
        (b"Content-Type: text/plain; charset=no-such\n\ncaf\xc3\xa9", ["café"]),
        (b"Content-Type: text/plain; charset=ascii\n\ncaf\xe9", ["café"]),
        (b"Content-Type: multipart/mixed\n\nno boundary", ["no", "boundary"]),
        (b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\ncut off", ["cut", "off"]),
        (b"Content-Transfer-Encoding: base64\n\naGVsbG8", ["hello"]),
    ],
)
def test_a_broken_mail_is_still_a_text(raw: bytes, words: list[str]) -> None:
    assert mail_text(raw).text.split() == words


@given(st.binary(max_size=400))
def test_no_bytes_break_a_mail(raw: bytes) -> None:
    for start in (b"", b"Subject: ", b"Content-Type: ", b"Content-Type: multipart/mixed; boundary=x\n\n--x\n"):
        mail_text(start + raw).text.encode()


@given(st.text(alphabet="<>/!-sa =\"'&;\u0130x", max_size=60))
def test_no_text_breaks_the_reading_of_html(text: str) -> None:
    assert "<script" not in without_tags(text)
    assert without_tags(f"a{text.replace('<', '')}b").startswith("a")


def test_hostile_mails_take_little_time() -> None:
    n = 100_000
    for raw in (
        b"Content-Type: text/html\n\n" + b"<!--" * n,
        b"Content-Type: text/html\n\n" + b"<script>" * n,
        b"From: " + b"(" * n + b"\nSubject: " + b"=?utf-8?q?" * n + b"\n\nx",
        b"Content-Type: multipart/mixed; boundary=x\n" * 300 + b"\n" + b"--x\n" * 300,
    ):
        mail_text(raw).text.encode()
    nested = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(300))
    assert "deep inside" in mail_text(nested + b"Content-Type: text/plain\n\ndeep inside\n").text


# ---------------------------------------------------------------- the doors


def test_without_a_target_a_table_names_its_columns() -> None:
    with pytest.raises(UsageError, match=r"target= .* is missing: .* has \['a', 'b'\]"):
        likely.learn({"a": ["x", "y"], "b": ["u", "v"]})
    Path("x.csv").write_text("a,b\nx,u\ny,v\n", encoding="utf-8")
    assert "['a', 'b']" in run("learn", "x.csv", expect=2).stderr


def test_the_shell_learns_judges_predicts_and_explains_a_folder(texts: str) -> None:
    reported = json.loads(run("learn", f"{texts}/", "--folds", "2", "--json").stdout)
    assert reported["model"] == "texts.likely"
    assert [c["class"] if isinstance(c, dict) else c for c in reported["classes"]] == ["ham", "spam"]
    answers = list(csv.DictReader(run("predict", "texts.likely", f"{texts}/").stdout.splitlines()))
    assert [row["file"] for row in answers] == [f"texts/{label}/{i}.txt" for label in ("ham", "spam") for i in range(3)]
    assert [row["label"] for row in answers] == ["ham"] * 3 + ["spam"] * 3
    assert list(answers[0]) == ["file", "label"]
    assert run("evaluate", "texts.likely", texts).stdout
    assert "spam" in run("explain", "texts.likely", texts, "--row", "4").stdout
    assert "the name of the file" in run("inspect", texts).stdout


@pytest.mark.usefixtures("own_folder")
def test_the_account_of_a_text_is_a_page_with_its_words_shaded() -> None:
    likely.learn(
        {"text": ["cheap <b>pills</b> now", "lunch at noon"] * 10, "y": ["spam", "good"] * 10},
        "y",
        families={"text": likely.Text()},
    ).save("m.likely")
    Path("one.csv").write_text("text\nlunch & <i>pills</i>\n", encoding="utf-8")
    told = run("explain", "m.likely", "one.csv", "--row", "1", "--page", "one.html").stdout
    page = Path("one.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert f"<h1>{told.splitlines()[0]}</h1>" in page
    for word, label in (("lunch", "good"), ("pills", "spam")):
        assert re.search(rf'<span class="w[0-9]+" title="{label} [0-9.]+">{word}</span>', page)
    assert " &amp; &lt;i&gt;" in page
    assert "<i>" not in page
    assert "use the extension .html" in run("explain", "m.likely", "one.csv", "--page", "one.txt", expect=2).stderr
