"""Protocol of a family, first part: its settings, and the columns that it takes."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from likely.errors import UsageError
from likely.schema import NUMBER

if TYPE_CHECKING:
    from likely.families.family import Family

REGISTRY: dict[str, type[Family]] = {}


class FamilySettings:
    """What a family is called and takes; the fields of its frozen dataclass are its settings."""

    name: ClassVar[str] = ""
    column_kind: ClassVar[str | None] = NUMBER  # of the columns that it takes; None: any
    single: ClassVar[bool] = True  # one column per block: all blocks of equal families are counted in one pass
    strict: ClassVar[bool] = False  # whether every number is checked before it is counted, or only when a sum overflows
    shorthand: ClassVar[str] = ""  # the setting that "name:value" stands for
    reads_codes: ClassVar[bool] = False  # whether category codes can be counted without a copy
    reads_columns: ClassVar[bool] = False  # whether columns of numbers can be counted without a copy
    counts_moments: ClassVar[bool] = False  # whether its statistic is weight, mean and spread of the column
    counts_rates: ClassVar[bool] = False  # whether its statistic is rows and events, of which a rate has a gamma prior
    one_column_at_a_time: ClassVar[bool] = False  # whether each column is worth its own thread
    needs_whole_rows: ClassVar[bool] = False  # whether a row with a missing cell in the block adds nothing to it
    columns_have_roles: ClassVar[bool] = False  # whether the order of the block's columns matters
    chooses_smoothing: ClassVar[bool] = False  # whether its pseudocount is chosen by leave-one-out unless one is given
    sums_to_one: ClassVar[bool] = False  # whether its parameters are the probabilities of outcomes
    priors_by_class: ClassVar[bool] = False  # whether pseudocounts may differ by class
    a_vector_is_a_row: ClassVar[bool] = False  # whether `estimate` takes one vector as one row of several columns

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if vars(cls).get("name"):
            REGISTRY[cls.name] = cast("type[Family]", cls)

    def __init__(self) -> None:  # for type checkers: frozen dataclasses have their own
        pass

    def settings(self) -> dict[str, Any]:
        """Settings that make this family again, as plain data."""
        made: Any = self
        return {field.name: getattr(self, field.name) for field in fields(made)}

    def shown_settings(self) -> dict[str, Any]:
        """Settings shown in summaries."""
        return {name: value for name, value in self.settings().items() if value is not None}

    @classmethod
    def from_shorthand(cls, text: str) -> dict[str, Any]:
        """The settings that "name:text" stands for.

        Parameters
        ----------
        text : str
            What stands behind the colon.

        Returns
        -------
        dict
            Settings by name.
        """
        if not cls.shorthand:
            raise UsageError(f"the family {cls.name} has no settings: write {cls.name!r}, not {f'{cls.name}:{text}'!r}")
        return {cls.shorthand: int(text) if text.isdigit() else text}

    @classmethod
    def example(cls) -> Family:
        """An instance with ordinary settings, for the tests that run over all families."""
        return cast("Family", cls())

    def counting_settings(self) -> dict[str, Any]:
        """Settings that change the statistic; all others only change what is derived from it."""
        return {}

    def counts_like(self, other: Family) -> bool:
        """Whether the other family counts the same statistic, so that one can be derived from the other's counts.

        Parameters
        ----------
        other : Family
            The other family.

        Returns
        -------
        bool
            True if the statistics are the same.
        """
        return type(self) is type(other) and self.counting_settings() == other.counting_settings()

    @property
    def for_each_column(self) -> bool:
        """Whether naming the family for all columns means a block for each of them."""
        return self.single

    @classmethod
    def named_for_a_column(cls) -> bool:
        """Whether its name alone, without settings or other columns, is enough for one column."""
        try:
            return cls().for_each_column
        except TypeError:  # it has settings without a default
            return False

    def block_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """All columns of a block that was named by these.

        Parameters
        ----------
        names : tuple of str
            The columns that were named.

        Returns
        -------
        tuple of str
            All columns of the block.
        """
        return names

    def aliases(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names by which priors and settings may call a block of these columns, besides its full name.

        Parameters
        ----------
        names : tuple of str
            The columns of the block.

        Returns
        -------
        tuple of str
            The other names.
        """
        return names if len(names) == 1 else ()

    def joint_settings(self) -> dict[str, Any] | None:
        """Settings of a joint block, one of whose columns was given this family; None: it cannot be in one."""
        return None

    def cannot(self, what: str, column: str | None = None, remedy: str = "choose another family for the column") -> NoReturn:
        """Raise the one error for what a family does not offer; the column is named where it is known.

        Parameters
        ----------
        what : str
            What the family cannot do: the error is "the family ... cannot `what`".
        column : str or None, default=None
            The column or block.
        remedy : str, optional
            What to do instead.
        """
        settings = ", ".join(f"{name} {value}" for name, value in self.shown_settings().items()) if column is not None else ""
        of = f"column {column!r}: the family" if column is not None else "the family"
        shown = f"{self.name} ({settings})" if settings else self.name
        raise UsageError(f"{of} {shown} cannot {what}: {remedy}", column=column)
