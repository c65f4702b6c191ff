"""A mail as text: its subject, its sender and what it says; and the mails that lie end to end in an mbox file.

Mails come from anywhere, and many are broken: wrong charsets, cut-off parts, headers that no parser understands. Every
one of them has a text all the same, if only its bytes. Python's older policy is used on purpose: the newer one takes
seven times as long for an ordinary mail, and for a header of nothing but brackets it takes seconds and fails.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from email.message import Message

FIELD = re.compile(rb">?[!-9;-~]+:")  # a header's name, as RFC 5322 has it; some programs quote "From " lines here too
ENVELOPE = b"From "
HIDDEN = ("script", "style")  # what stands between these tags is not said to anybody
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark",
    "o:p", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr",
))  # fmt: skip  # a word goes on across them
SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
MOST_DEPTH = 50  # of parts within parts


@dataclass(frozen=True)
class Read:
    """A text, and whether some of it had to be guessed."""

    text: str
    guessed: bool = False


def mail_text(raw: bytes) -> Read:
    """Subject, sender and body of a mail, one below the other; a mail that cannot be parsed is its bytes."""
    from email import message_from_bytes

    try:
        message = message_from_bytes(raw)
        said = [_header(message, "subject"), _header(message, "from"), _body(message)]
    except Exception:  # the parser has faults of its own, and one bad mail must not stop a mailbox
        return Read(decode(raw).text, guessed=True)
    text = "\n".join(part.text for part in said if part.text)
    kept = whole(text)
    return Read(kept, any(part.guessed for part in said) or kept != text)


def _header(message: Message, name: str) -> Read:
    """The first header of that name, unfolded and decoded; one that breaks the rules is taken as it is written."""
    from email.errors import MessageError
    from email.header import decode_header, make_header

    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    try:
        if not raw.isascii():
            return decode(" ".join(raw.split()).encode("utf-8", "surrogateescape"))
        return Read(" ".join(str(make_header(decode_header(raw))).split()))
    except (LookupError, ValueError, MessageError):  # an unknown charset, or what is no base64
        return Read(" ".join(raw.split()), guessed=True)


def _body(message: Message) -> Read:
    """All plain parts; where there are none, what the HTML parts say. Attachments are no part of what is said."""
    plain: list[Read] = []
    marked: list[Read] = []
    for part in _parts(message, 0):
        kind = part.get_content_type()
        if kind == "text/plain" or kind.startswith("multipart/"):  # one without a boundary has no parts
            plain.append(_content(part))
        elif kind == "text/html":
            marked.append(_content(part))
    if any(part.text.strip() for part in plain):
        return Read("\n".join(part.text for part in plain), any(part.guessed for part in plain))
    return Read("\n".join(without_tags(part.text) for part in marked), any(part.guessed for part in marked))


def _parts(message: Any, depth: int) -> Iterator[Message]:
    """The parts that hold content, in order."""
    if depth > MOST_DEPTH:
        raise ValueError("parts within parts without end")
    if message.get_content_disposition() == "attachment":
        return
    if not message.is_multipart():
        yield message
        return
    for part in message.get_payload():
        yield from _parts(part, depth + 1)


def _content(part: Message) -> Read:
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return Read("")
    charset = part.get_content_charset()
    if charset:
        try:
            return Read(raw.decode(charset))
        except (LookupError, ValueError):  # an unknown charset, or not what it says
            pass
    read = decode(raw)
    return Read(read.text, read.guessed or bool(charset and not raw.isascii()))


def decode(raw: bytes) -> Read:
    """Bytes as UTF-8; what is not UTF-8 is read as Latin-1, in which every byte is a character."""
    try:
        return Read(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Read(raw.decode("latin-1"), guessed=True)


def whole(text: str) -> str:
    """The text without halves of characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def without_tags(text: str) -> str:
    """What a reader sees of HTML; in one go, whatever the tags are like, since every search that fails is the last."""
    said, place = [], 0
    lower = text.translate(SMALL)  # str.lower makes two letters of some, and places would no longer agree
    while (opens := text.find("<", place)) >= 0:
        said.append(text[place:opens])
        sign = text[opens + 1 : opens + 2]
        if text.startswith("<!--", opens):
            place = _after(text, "-->", opens + 4)
        elif sign.isalpha() or (sign and sign in "/!?"):
            place = _after(text, ">", opens + 1)
            name = re.split(r"[\s/>]", lower[opens + 1 : opens + 12].removeprefix("/"), maxsplit=1)[0]
            if name in HIDDEN and sign != "/":
                place = _after(lower, f"</{name}", place)
                place = _after(text, ">", place)
            said.append("" if name in INLINE else " ")
        else:
            said.append("<")
            place = opens + 1
    said.append(text[place:])
    return html.unescape("".join(said))


def _after(text: str, end: str, start: int) -> int:
    found = text.find(end, start)
    return len(text) if found < 0 else found + len(end)


def is_mbox(head: bytes) -> bool:
    """Whether a file begins as an mbox does: with an envelope line and a header."""
    lines = head.split(b"\n", 2)
    return len(lines) > 1 and lines[0].startswith(ENVELOPE) and FIELD.match(lines[1]) is not None


def mbox_mails(file: IO[bytes]) -> Iterator[bytes]:
    """The mails of an mbox file one by one: each begins after a blank line with `From ` and a line of headers."""
    mail: list[bytes] = []
    envelope, blank = b"", True
    for line in file:
        if envelope:
            if FIELD.match(line):
                if mail:
                    yield b"".join(mail)
                mail = []
            else:
                mail.append(envelope)  # a sentence that happens to begin with "From "
            envelope = b""
        if blank and line.startswith(ENVELOPE):
            envelope = line
        else:
            mail.append(line)
        blank = not line.strip()
    mail += [envelope] if envelope else []
    if any(line.strip() for line in mail):
        yield b"".join(mail)
