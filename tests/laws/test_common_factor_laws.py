"""One factor for all terms of the calibration: penalties hold a table without noise back, and leave-one-out shows it."""

import numpy as np
import pytest

import likely
from likely.calibration import _fit as calibration_fit
from likely.calibration._temperature import common_factor
from likely.tally.row_sample import Reservoir
from strategies import quietly

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def ended_games():
    """All boards at the end of a game of noughts and crosses, and whether x has won: a rule without exceptions."""
    found = set()

    def has_won(board, player):
        return any(all(board[i] == player for i in line) for line in LINES)

    def play(board, player):
        if has_won(board, "x") or has_won(board, "o") or "b" not in board:
            found.add(tuple(board))
            return
        for i in range(9):
            if board[i] == "b":
                play([*board[:i], player, *board[i + 1 :]], "o" if player == "x" else "x")

    play(["b"] * 9, "x")
    boards = sorted(found)
    return boards, ["won" if has_won(board, "x") else "not" for board in boards]


def as_table(boards, labels):
    return {f"field {i}": [board[i] for board in boards] for i in range(9)} | {"y": labels}


def sample_of(labels):
    rows = len(labels)
    return Reservoir(np.arange(rows), labels, np.ones(rows), {})


def drawn(scores, seed):
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return (p.cumsum(1) > np.random.default_rng(seed).random((len(p), 1))).argmax(1)


def test_a_rule_without_exceptions_is_answered_surely_and_games_not_seen_are_too(monkeypatch):
    boards, labels = ended_games()
    assert len(boards) == 958
    order = np.random.default_rng(0).permutation(958)
    old, new = ([boards[i] for i in part] for part in (order[:760], order[760:]))
    known, truth = ([labels[i] for i in part] for part in (order[:760], order[760:]))

    def loss():
        model = quietly(likely.learn, as_table(old, known), "y")
        p = model.posterior({name: cells for name, cells in as_table(new, truth).items() if name != "y"}).probabilities
        return float(-np.log(p[np.arange(len(new)), [model.classes.index(label) for label in truth]]).mean())

    found = loss()
    monkeypatch.setattr(calibration_fit.tempered, "common_factor", lambda *_: 1.0)
    assert found < 0.9 * loss()


def test_scores_that_are_too_flat_or_too_steep_get_the_factor_that_made_the_labels():
    base, evidence = np.zeros((4000, 3), np.float32), np.random.default_rng(0).normal(0, 2, (4000, 3))
    labels = drawn(evidence, 1)
    for factor in (0.5, 2.0):
        found = common_factor(base, evidence / factor, sample_of(labels), 4.0)
        assert found == pytest.approx(factor, rel=0.1)


def test_calibrated_scores_and_few_rows_are_left_as_they_are():
    evidence = np.random.default_rng(0).normal(0, 2, (4000, 3))
    labels = drawn(evidence, 2)
    base = np.zeros((4000, 3), np.float32)
    assert common_factor(base, evidence, sample_of(labels), 4.0) == 1.0
    assert common_factor(base[:12], evidence[:12] / 2, sample_of(labels[:12]), 4.0) == 1.0


def test_a_factor_changes_evidence_and_not_the_class_frequencies():
    rng = np.random.default_rng(3)
    base = np.log(np.tile([0.9, 0.1], (3000, 1)))
    evidence = rng.normal(0, 2, (3000, 2))
    labels = drawn(base + evidence, 4)
    found = common_factor(base.astype(np.float32), base + evidence / 2, sample_of(labels), 4.0)
    assert found == pytest.approx(2.0, rel=0.15)
