"""Tests of the promises under random faults and perturbations, judged by the witness."""
