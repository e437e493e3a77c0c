"""The table of routes against the Beacon API definition (Q1, Q13)."""

from string import Formatter

import pytest

from tests.conformance.openapi import SSZ, Operation, operations
from vc_fallback.node.routes import ROUTES, Route

_BY_OPERATION = {route.operation: route for route in ROUTES}
_DEFINED = [route for route in ROUTES if route.operation in operations()]
_REQUIRED = [operation for operation in operations().values() if operation.required]
_ABSENT_ALL_THE_SAME = {"getBlockHeaders", "producePayloadAttestationData"}
"""Nodes answer 404 there for a slot without a block, though the definition does not say so."""


def _name(route: Route) -> str:
    return route.operation


def test_an_operation_has_one_route_and_a_route_one_operation() -> None:
    assert len(_BY_OPERATION) == len(ROUTES)
    assert len({(route.method, route.template) for route in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize("operation", _REQUIRED, ids=lambda operation: str(operation.name))
def test_what_a_validator_client_cannot_do_without_has_a_route(operation: Operation) -> None:
    """Q1."""
    assert operation.name in _BY_OPERATION


@pytest.mark.parametrize("route", _DEFINED, ids=_name)
def test_a_route_is_as_the_definition_has_it(route: Route) -> None:
    defined = operations()[route.operation]
    assert (route.method, route.template) == (defined.method, defined.template)
    assert route.ssz == (SSZ in defined.media_types)
    assert not route.until


@pytest.mark.parametrize("route", _DEFINED, ids=_name)
def test_a_404_is_an_answer_where_the_definition_lists_one(route: Route) -> None:
    """Q13: elsewhere it says that the node does not have the endpoint."""
    listed = 404 in operations()[route.operation].answers
    assert route.absent == (listed or route.operation in _ABSENT_ALL_THE_SAME)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.operation not in operations()], ids=_name)
def test_a_route_that_the_definition_has_no_more_is_for_forks_before_electra(route: Route) -> None:
    """Nodes still in use have them (Q13)."""
    assert route.until == "deneb"


@pytest.mark.parametrize("route", ROUTES, ids=_name)
def test_names_in_a_template_are_names(route: Route) -> None:
    assert all(name is None or name.isidentifier() for _, name, _, _ in Formatter().parse(route.template))


def test_what_a_node_is_asked_while_it_is_quarantined_changes_nothing_on_it() -> None:
    """N7: only what says whether it may come back."""
    assert all(route.method == "GET" for route in ROUTES if route.inspects)
