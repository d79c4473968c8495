
-- ------------------------------------------------------------------------------------------------------ administration

-- NULL closes the fleet for newcomers.
CREATE OR REPLACE FUNCTION v1_admin_secret(p_secret bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._check(coalesce(length(p_secret) >= 16, true), 'a secret has at least 16 bytes');
    UPDATE inlet.fleet SET join_hash = sha256(p_secret);
END $$;

-- NULL leaves what it is.
CREATE OR REPLACE FUNCTION v1_admin_settings(p_name text, p_ttl interval, p_days int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._check(coalesce(p_ttl BETWEEN '1 s' AND '10 min', true) AND coalesce(p_days BETWEEN 1 AND 3650, true)
        AND coalesce(p_name ~ '^[^[:cntrl:]]{1,128}$', true),
        'a name of 1 to 128 characters, a ttl of 1 s to 10 min, 1 to 3,650 days');
    UPDATE inlet.fleet
    SET name = coalesce(p_name, name), ttl = coalesce(p_ttl, ttl), receipts_days = coalesce(p_days, receipts_days);
END $$;

-- Holds instead of what the agents' configurations name; NULL and NULL: theirs hold again.
CREATE OR REPLACE FUNCTION v1_admin_limit(p_destination int, p_bandwidth bigint, p_slots int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._check(coalesce(p_bandwidth >= 0, true) AND coalesce(p_slots >= 1, true),
        'a bandwidth of at least 0, at least one slot');
    UPDATE inlet.destination SET bandwidth = p_bandwidth, slots = p_slots,
        by_admin = p_bandwidth IS NOT NULL OR p_slots IS NOT NULL WHERE id = p_destination;
    PERFORM inlet._check(FOUND, format('no destination %s', p_destination));
    PERFORM inlet._apply_limit(p_destination);
END $$;

CREATE OR REPLACE FUNCTION v1_admin_restored(p_why text) RETURNS void LANGUAGE sql AS
$$ SELECT inlet._recover(NULL, left(coalesce(p_why, 'said by ' || session_user), 500)) $$;

-- Promises that only standbys in synchronous_standby_names are promoted, or takes that back: they must hear of it too.
CREATE OR REPLACE FUNCTION v1_admin_failover(p_lossless boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._check(NOT p_lossless OR inlet._is_synchronous(),
        'commits must wait for each standby: set synchronous_standby_names and synchronous_commit first');
    -- A standby is trusted for 2 minutes after a beat, and beats come each third of ttl.
    PERFORM inlet._check(NOT p_lossless OR f.ttl <= '5 min', 'a ttl of at most 5 min'),
        inlet._require_standbys(f.synchronous_at) FROM inlet.fleet f;
    UPDATE inlet.fleet SET synchronous_at = CASE WHEN p_lossless THEN clock_timestamp() END;
END $$;

-- Goes on without what an agent may have done and cannot report: its keys may be given again, its files of places sent
-- again.
CREATE OR REPLACE FUNCTION v1_admin_waive(p_name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE inlet.agent a SET epoch = f.epoch FROM inlet.fleet f WHERE a.name = p_name;
    PERFORM inlet._check(FOUND, format('no agent %s', p_name));
    INSERT INTO inlet.event (name, body)
    VALUES ('fleet.waived', jsonb_build_object('agent', p_name, 'by', session_user));
    PERFORM inlet._open_if_complete();
    RETURN (SELECT f.state FROM inlet.fleet f);
END $$;

-- active, draining or retired. A retired agent stays so: its token is gone.
CREATE OR REPLACE FUNCTION v1_admin_agent(p_name text, p_state text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE a inlet.agent;
BEGIN
    PERFORM inlet._check(p_state IN ('active', 'draining', 'retired'), 'active, draining or retired');
    SELECT * INTO a FROM inlet.agent x WHERE x.name = p_name FOR UPDATE;
    PERFORM inlet._check(FOUND, format('no agent %s', p_name));
    PERFORM inlet._check(p_state = 'retired' OR a.state IN ('active', 'draining'),
        format('the agent %s is %s', p_name, a.state));
    IF p_state = 'retired' THEN
        PERFORM inlet._retire(a.id);
        INSERT INTO inlet.event (agent, name, body)
        VALUES (a.id, 'fleet.retired', jsonb_build_object('agent', p_name, 'by', session_user));
    ELSE
        UPDATE inlet.agent x SET state = p_state WHERE x.id = a.id;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION v1_admin_order(p_name text, p_verb text, p_args jsonb, p_for interval) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE made uuid;
BEGIN
    PERFORM inlet._check(p_verb IN ('retry', 'pause', 'resume', 'rescan', 'cancel', 'limit')
        AND p_for BETWEEN '1 s' AND '30 days' AND octet_length(coalesce(p_args, '{}')::text) <= 65536,
        'a known verb, at most 64 KiB of arguments, 1 s to 30 days');
    INSERT INTO inlet.command (agent, verb, args, asked_by, expires_at)
    SELECT a.id, p_verb, coalesce(p_args, '{}'), session_user, now() + p_for FROM inlet.agent a
    WHERE a.name = p_name AND a.state IN ('active', 'draining') RETURNING id INTO made;
    PERFORM inlet._check(made IS NOT NULL, format('no agent %s', p_name));
    RETURN made;
END $$;
