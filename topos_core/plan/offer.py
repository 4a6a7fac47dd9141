"""Gathers what a consumer answers to every match of a pool."""

from __future__ import annotations

from topos_core.kernels.kernel import Consumer, Decline, Envelope, Offer

__all__ = ["Consumer", "Decline", "Envelope", "Offer"]
