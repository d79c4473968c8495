"""What schemathesis asks of each answer to somebody who has no secret (run.py)."""

import schemathesis

# What a stranger may be told.
REFUSALS = {401, 403, 404, 405, 413, 421, 429}


@schemathesis.check
def refused(ctx, response, case):
    """Nobody without a secret is given anything, whatever else is wrong with his question."""
    assert response.status_code in REFUSALS, f"{response.status_code}: {response.text[:500]}"
