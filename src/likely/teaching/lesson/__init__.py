"""EM step by step, as one HTML page: the components over the rows at every iteration, with play, pause and a slider.

The page is self-contained: no library and no network. It shows the steps that the run of EM has kept.
"""

from likely.teaching.lesson._em_frames import EMFrame, Lesson, lesson
from likely.teaching.lesson._lesson_page import TITLE, fragment, page, write

__all__ = ["TITLE", "EMFrame", "Lesson", "fragment", "lesson", "page", "write"]
