"""From raw text to bags of words: UTF-8 bytes in, word numbers and counts out, exactly as Python's `re` sees words."""

from likely.tokens.bags import Bags, encode, encode_in_parts, encode_texts, encode_tokens, look_up
from likely.tokens.spans import utf8
from likely.tokens.vocabulary import Vocabulary

__all__ = ["Bags", "Vocabulary", "encode", "encode_in_parts", "encode_texts", "encode_tokens", "look_up", "utf8"]
