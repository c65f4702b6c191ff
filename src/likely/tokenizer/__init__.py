"""Raw text to bags of words: compiled, exact over all of Unicode.

Never: models.
"""

from likely.tokenizer._bags import Bags, encode, encode_in_parts, encode_texts, encode_tokens, look_up, word_order
from likely.tokenizer._vocabulary import Vocabulary
from likely.tokenizer.spans import text_hashes, utf8

__all__ = [
    "Bags", "Vocabulary", "encode", "encode_in_parts", "encode_texts", "encode_tokens", "look_up", "text_hashes", "utf8",
    "word_order",
]  # fmt: skip
