"""Text of mails (subject, sender, body), and the mails of an mbox file.

Many mails are malformed: wrong charsets, truncated parts, invalid headers. Every mail gives a text nevertheless, if only
its bytes. The older policy of Python's parser is used on purpose: the newer one takes seven times as long for an ordinary
mail, and takes seconds and fails for a header of many brackets.
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

FIELD = re.compile(rb">?[!-9;-~]+:")  # header name by RFC 5322; some programs quote "From " lines here, too
ENVELOPE = b"From "
HIDDEN = ("script", "style")  # content of these tags is not visible
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark",
    "o:p", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr",
))  # fmt: skip  # tags that do not separate words
SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
MOST_DEPTH = 50  # of nested parts


@dataclass(frozen=True)
class DecodedText:
    """A text, and whether its decoding was a guess."""

    text: str
    guessed: bool = False


def mail_text(raw: bytes) -> DecodedText:
    """Subject, sender and body of a mail, one below the other; the bytes of a mail that cannot be parsed."""
    from email import message_from_bytes

    try:
        message = message_from_bytes(raw)
        parts = [_header(message, "subject"), _header(message, "from"), _body(message)]
    except Exception:  # the parser has bugs, and one bad mail must not stop a mailbox
        return DecodedText(decode(raw).text, guessed=True)
    text = "\n".join(part.text for part in parts if part.text)
    kept = without_surrogates(text)
    return DecodedText(kept, any(part.guessed for part in parts) or kept != text)


def _header(message: Message, name: str) -> DecodedText:
    """The first header of that name, unfolded and decoded; unchanged if it is malformed."""
    from email.errors import MessageError
    from email.header import decode_header, make_header

    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    try:
        if not raw.isascii():
            return decode(" ".join(raw.split()).encode("utf-8", "surrogateescape"))
        return DecodedText(" ".join(str(make_header(decode_header(raw))).split()))
    except (LookupError, ValueError, MessageError):  # an unknown charset, or invalid base64
        return DecodedText(" ".join(raw.split()), guessed=True)


def _body(message: Message) -> DecodedText:
    """All plain-text parts; without any, the text of the HTML parts. Attachments are skipped."""
    plain: list[DecodedText] = []
    marked: list[DecodedText] = []
    for part in _parts(message, 0):
        kind = part.get_content_type()
        if kind == "text/plain" or kind.startswith("multipart/"):  # one without a boundary has no parts
            plain.append(_content(part))
        elif kind == "text/html":
            marked.append(_content(part))
    if any(part.text.strip() for part in plain):
        return DecodedText("\n".join(part.text for part in plain), any(part.guessed for part in plain))
    return DecodedText("\n".join(without_tags(part.text) for part in marked), any(part.guessed for part in marked))


def _parts(message: Any, depth: int) -> Iterator[Message]:
    """Parts with content, in order."""
    if depth > MOST_DEPTH:
        raise ValueError("too deeply nested parts")
    if message.get_content_disposition() == "attachment":
        return
    if not message.is_multipart():
        yield message
        return
    for part in message.get_payload():
        yield from _parts(part, depth + 1)


def _content(part: Message) -> DecodedText:
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return DecodedText("")
    charset = part.get_content_charset()
    if charset:
        try:
            return DecodedText(raw.decode(charset))
        except (LookupError, ValueError):  # an unknown or wrong charset
            pass
    read = decode(raw)
    return DecodedText(read.text, read.guessed or bool(charset and not raw.isascii()))


def decode(raw: bytes) -> DecodedText:
    """Decode bytes as UTF-8, otherwise as Latin-1, in which every byte is a character."""
    try:
        return DecodedText(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return DecodedText(raw.decode("latin-1"), guessed=True)


def without_surrogates(text: str) -> str:
    """The text without lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


def without_tags(text: str) -> str:
    """Visible text of HTML, in linear time whatever the tags."""
    visible, place = [], 0
    lower = text.translate(SMALL)  # str.lower may change the length, and positions would differ
    while (opens := text.find("<", place)) >= 0:
        visible.append(text[place:opens])
        sign = text[opens + 1 : opens + 2]
        if text.startswith("<!--", opens):
            place = _after(text, "-->", opens + 4)
        elif sign.isalpha() or (sign and sign in "/!?"):
            place = _after(text, ">", opens + 1)
            name = re.split(r"[\s/>]", lower[opens + 1 : opens + 12].removeprefix("/"), maxsplit=1)[0]
            if name in HIDDEN and sign != "/":
                place = _after(lower, f"</{name}", place)
                place = _after(text, ">", place)
            visible.append("" if name in INLINE else " ")
        else:
            visible.append("<")
            place = opens + 1
    visible.append(text[place:])
    return html.unescape("".join(visible))


def _after(text: str, end: str, start: int) -> int:
    found = text.find(end, start)
    return len(text) if found < 0 else found + len(end)


def is_mbox(head: bytes) -> bool:
    """Whether a file starts as an mbox: an envelope line followed by a header."""
    lines = head.split(b"\n", 2)
    return len(lines) > 1 and lines[0].startswith(ENVELOPE) and FIELD.match(lines[1]) is not None


def mbox_mails(file: IO[bytes]) -> Iterator[bytes]:
    """The mails of an mbox file: each starts after a blank line with `From ` and a header line."""
    mail: list[bytes] = []
    envelope, blank = b"", True
    for line in file:
        if envelope:
            if FIELD.match(line):
                if mail:
                    yield b"".join(mail)
                mail = []
            else:
                mail.append(envelope)  # a sentence that begins with "From "
            envelope = b""
        if blank and line.startswith(ENVELOPE):
            envelope = line
        else:
            mail.append(line)
        blank = not line.strip()
    mail += [envelope] if envelope else []
    if any(line.strip() for line in mail):
        yield b"".join(mail)
