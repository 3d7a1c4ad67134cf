"""Tests of ``claimctl.reservation.kinds``."""
