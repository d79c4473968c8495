"""What schemathesis asks of each answer to somebody who has no secret (run.py)."""

import os

import schemathesis

REFUSALS = {int(status) for status in os.environ["INLET_REFUSALS"].split(",")}


@schemathesis.check
def refused(ctx, response, case):
    """Nobody without a secret is given anything, whatever else is wrong with his question."""
    assert response.status_code in REFUSALS, f"{response.status_code}: {response.text[:500]}"
