"""Schemes by name."""

from __future__ import annotations

from explorer.errors import InputError
from explorer.fusion.brr import Brr
from explorer.fusion.lbdf import Lbdf
from explorer.fusion.network import KB, FusionNetwork
from explorer.fusion.scheme import Scheme

SCHEMES = ("lbdf", "brr")


def make_scheme(name: str, network: FusionNetwork, buffer_kb: float) -> Scheme:
    """A scheme by name, for a buffer of so many KB (1024 bytes).

    Raises:
        InputError: an unknown name, a buffer that holds nothing, or a network the scheme is not for.
    """
    capacity = int(buffer_kb * KB)
    if name == "lbdf":
        return Lbdf(network, capacity)
    if name == "brr":
        return Brr(network, capacity)
    raise InputError(f"There is no fusion scheme '{name}'; choose one of {', '.join(SCHEMES)}.")
