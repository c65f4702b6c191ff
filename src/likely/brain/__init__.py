"""Brain images: Gaussian naive Bayes over voxels, cross-validated by runs, and searchlight accuracy maps.

Log-likelihoods of independent voxels add up, so the searchlight map needs no classifier per voxel: one tally of
(n, mean, spread) per run and class, the log-likelihoods of every voxel, and their sums over neighbourhoods.

It takes volumes that are already aligned, with a label and a run for each of them.

Never: registration, smoothing, haemodynamic models, learning loops of its own.
"""

from likely.brain._brain_page import BrainReport
from likely.brain._classification import Classification, classify
from likely.brain._cleaning import clean
from likely.brain._dataset import Dataset
from likely.brain._images import load, read_labels, save_map
from likely.brain._maps import evidence_maps, mean_maps, weight_maps
from likely.brain._neighbourhoods import Neighbourhoods
from likely.brain._permutations import PermutationTest
from likely.brain._reporting import report, save
from likely.brain._searchlight_map import SearchlightMap, searchlight, searchlight_pairs

__all__ = [
    "BrainReport",
    "Classification",
    "Dataset",
    "Neighbourhoods",
    "PermutationTest",
    "SearchlightMap",
    "classify",
    "clean",
    "evidence_maps",
    "load",
    "mean_maps",
    "read_labels",
    "report",
    "save",
    "save_map",
    "searchlight",
    "searchlight_pairs",
    "weight_maps",
]
