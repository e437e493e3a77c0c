"""Endpoints of the Beacon API by what they are for, each module a part of `BeaconNode` (they import caller, values)."""
