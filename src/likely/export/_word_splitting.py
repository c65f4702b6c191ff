"""SQL that splits texts into words, with their places in each text: one select for each dialect."""

from __future__ import annotations

from typing import Any

from likely.export._dialects import Dialect, Expression
from likely.export._expressions import ExpressionWriter
from likely.export._letters import GROWING, letter_runs, word_edges

INSIDE = "likely__inside"  # stands in a select for whether a code point is part of a word, which is long to parse
BLOCK = 500  # characters: SQLite counts those of a text from its beginning to find one of them

# Words, two or more letters, digits or underscores, with their places in each text; PostgreSQL's locale says what letters are.
WORDS = {
    "duckdb": "SELECT {text}, UNNEST(likely__list) AS likely__word, UNNEST(RANGE(LEN(likely__list))) AS likely__place FROM "
    "(SELECT {text}, REGEXP_EXTRACT_ALL({shown}, '[\\p{{L}}\\p{{N}}_]{{2,}}') AS likely__list FROM {distinct}) "
    "AS likely__lists",
    "postgres": "SELECT {text}, likely__match[1] AS likely__word, likely__place FROM {distinct} CROSS JOIN LATERAL "
    "REGEXP_MATCHES({shown}, '([[:alnum:]_]{{2,}})', 'g') WITH ORDINALITY AS likely__found(likely__match, likely__place)",
    "bigquery": "SELECT {text}, likely__word, likely__place FROM {distinct} CROSS JOIN "
    "UNNEST(REGEXP_EXTRACT_ALL({shown}, '[\\\\p{{L}}\\\\p{{N}}_]{{2,}}')) AS likely__word WITH OFFSET AS likely__place",
    "spark": "SELECT {text}, POSEXPLODE(REGEXP_EXTRACT_ALL({shown}, '[\\\\p{{L}}\\\\p{{N}}_]{{2,}}', 0)) "
    "AS (likely__place, likely__word) FROM {distinct}",
    # Word characters need no escapes in JSON: what is between words becomes the border of two elements of a list.
    "mysql": "SELECT {text}, likely__found.likely__word COLLATE utf8mb4_bin AS likely__word, likely__place FROM {distinct} "
    "CROSS JOIN JSON_TABLE(CONCAT('[\"', REGEXP_REPLACE({shown}, '[^\\\\p{{L}}\\\\p{{N}}_]+', '\",\"'), '\"]'), '$[*]' COLUMNS("
    "likely__place FOR ORDINALITY, likely__word LONGTEXT PATH '$')) AS likely__found "
    "WHERE CHAR_LENGTH(likely__found.likely__word) >= 2",
    "snowflake": "SELECT {text}, LISTAGG(likely__one, '') WITHIN GROUP (ORDER BY likely__place) AS likely__word, "
    "MIN(likely__place) AS likely__place FROM (SELECT {text}, likely__one, likely__place, likely__place - ROW_NUMBER() OVER "
    "(PARTITION BY {text} ORDER BY likely__place) AS likely__run FROM (SELECT {text}, likely__one, likely__place, "
    "UNICODE(likely__one) AS likely__code FROM (SELECT {text}, CAST(likely__found.VALUE AS VARCHAR) AS likely__one, "
    "likely__found.INDEX AS likely__place FROM {distinct}, LATERAL FLATTEN(INPUT => REGEXP_SUBSTR_ALL({shown}, '.', 1, 1, "
    "'s')) AS likely__found) AS likely__ones) AS likely__codes WHERE likely__inside = 1) AS likely__runs "
    "GROUP BY {text}, likely__run HAVING COUNT(*) >= 2",
    # The characters that occur are listed; each that is no part of a word becomes a space, each capital its small letter.
    "sqlite": "SELECT likely__id, likely__each.value AS likely__word, likely__each.key AS likely__place FROM (WITH RECURSIVE "
    "likely__blocks(likely__block, likely__rest) AS (SELECT SUBSTR({shown}, 1, {block}), SUBSTR({shown}, {block} + 1) "
    "FROM {distinct} UNION ALL SELECT SUBSTR(likely__rest, 1, {block}), SUBSTR(likely__rest, {block} + 1) "
    "FROM likely__blocks WHERE likely__rest <> ''), "
    "likely__counted(likely__k) AS (SELECT 1 UNION ALL SELECT likely__k + 1 FROM likely__counted WHERE likely__k < {block}), "
    "likely__codes AS MATERIALIZED (SELECT DISTINCT UNICODE(SUBSTR(likely__block, likely__k, 1)) AS likely__code "
    "FROM likely__blocks JOIN likely__counted ON likely__k <= LENGTH(likely__block)), "
    "likely__known(likely__low, likely__high, likely__shift, likely__step) AS (VALUES {known}), "
    "likely__letters AS MATERIALIZED (SELECT likely__code, likely__code + likely__shift + likely__step * "
    "(likely__code % 2) AS likely__letter FROM likely__codes LEFT JOIN likely__known "
    "ON likely__code BETWEEN likely__low AND likely__high), "
    "likely__changes AS MATERIALIZED (SELECT ROW_NUMBER() OVER (ORDER BY likely__code) AS likely__k, "
    "CHAR(likely__code) AS likely__from, CASE WHEN likely__letter IS NULL THEN ' ' ELSE CHAR(likely__letter) END "
    "AS likely__to FROM likely__letters "
    "WHERE COALESCE(likely__letter, 32) <> likely__code AND likely__code <> {sigma}), "
    "likely__clean(likely__id, likely__k, likely__text) AS (SELECT likely__id, 0, {shown} || ' ' FROM {distinct} UNION ALL "
    "SELECT likely__id, likely__clean.likely__k + 1, REPLACE(likely__text, likely__from, likely__to) FROM likely__clean "
    "JOIN likely__changes ON likely__changes.likely__k = likely__clean.likely__k + 1), "
    "likely__done AS MATERIALIZED (SELECT likely__id, {ended} AS likely__text FROM likely__clean "
    "WHERE likely__k = (SELECT COUNT(*) FROM likely__changes)) "
    "SELECT likely__id, likely__text FROM likely__done) AS likely__cleaned "
    "CROSS JOIN JSON_EACH('[\"' || REPLACE(likely__text, ' ', '\",\"') || '\"]') AS likely__each "
    "WHERE LENGTH(likely__each.value) >= 2",
}
SIGMA = 931
# In lower case a sigma at the end of a word is another letter.
ENDED = "REPLACE(REPLACE(likely__text, 'Σ ', 'ς '), 'Σ', 'σ')"


def split(syntax: Dialect, text: str, distinct: str, *, lowercase: bool) -> str:
    """The select of all words of the texts in a column; INSIDE stands in it for what `finished` writes.

    In SQLite the texts of `distinct` are numbered by a column `likely__id`, which the words have instead of the text.
    """
    lowered, known, ended, sigma = f"LOWER({text})", "", "likely__text", -1
    if syntax.name == "sqlite":  # whose function knows the letters of ASCII alone
        lowered = f"REPLACE(LOWER({text}), '{GROWING}', '{GROWING.lower()}')"
        known = ", ".join(map(str, letter_runs(lowercase)))
        ended, sigma = (ENDED, SIGMA) if lowercase else (ended, sigma)
    shown = lowered if lowercase else text
    named = {"known": known, "ended": ended, "sigma": sigma, "block": BLOCK}
    return WORDS[syntax.name].format(text=text, shown=shown, distinct=distinct, **named)


def joined_words(syntax: Dialect, words: list[str]) -> str:
    """Words with spaces between them, null if one of them is."""
    if syntax.name == "mysql":
        return "CONCAT(" + ", ' ', ".join(words) + ")"
    return " || ' ' || ".join(words)


def finished(syntax: Dialect, write: ExpressionWriter, parsed: Any) -> Expression:
    """The parsed select; in Snowflake, which folds names to capitals, with exact names."""
    if syntax.name != "snowflake":
        return parsed
    edges = word_edges()
    inside = write.binary_search("likely__code", [*map(str, edges)], [str(i % 2) for i in range(len(edges) + 1)])
    for column in [*parsed.find_all(write.e.Column)]:
        if column.name == INSIDE:
            column.replace(inside)
    for name in parsed.find_all(write.e.Identifier):
        name.set("quoted", True)
    return parsed
