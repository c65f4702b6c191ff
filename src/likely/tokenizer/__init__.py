"""Raw text to bags of words: compiled, exact over all of Unicode.

Never: models.
"""

from likely.tokenizer.bags import Bags, encode, encode_in_parts, encode_texts, encode_tokens, look_up, word_order
from likely.tokenizer.spans import utf8
from likely.tokenizer.vocabulary import Vocabulary

__all__ = ["Bags", "Vocabulary", "encode", "encode_in_parts", "encode_texts", "encode_tokens", "look_up", "utf8", "word_order"]
