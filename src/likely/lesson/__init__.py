"""EM step by step, as one small page: the components over the rows at every step, played, paused and walked by hand.

The page is whole in itself: no library and nothing from the network. It only shows what the run of EM has kept.
"""

from likely.lesson.frames import Frame, Lesson, lesson
from likely.lesson.page import TITLE, fragment, page, write

__all__ = ["TITLE", "Frame", "Lesson", "fragment", "lesson", "page", "write"]
