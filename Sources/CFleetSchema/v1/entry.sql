
-- ------------------------------------------------------------------------------------------------------------- helpers

CREATE OR REPLACE FUNCTION _hash(p_text text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT encode(substring(sha256(convert_to(p_text, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid $$;

CREATE OR REPLACE FUNCTION _left(p_until timestamptz) RETURNS int LANGUAGE sql VOLATILE AS
$$ SELECT CASE WHEN isfinite(p_until)
    THEN greatest(0, least(86400000, extract(epoch FROM p_until - clock_timestamp()) * 1000))::int ELSE 0 END $$;

-- Bounds of an argument. NULL counts as broken.
CREATE OR REPLACE FUNCTION _check(p_holds boolean, p_rule text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_holds IS NOT TRUE THEN RAISE EXCEPTION '%', p_rule USING ERRCODE = 'IN011'; END IF;
END $$;

CREATE OR REPLACE FUNCTION _check_keys(p_keys text[], p_refs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._check(cardinality(p_keys) <= 1000 AND cardinality(p_keys) = cardinality(p_refs)
        AND array_position(p_keys, NULL) IS NULL AND array_position(p_refs, NULL) IS NULL,
        'at most 1,000 keys, one ref each');
END $$;

CREATE OR REPLACE FUNCTION _check_rows(p_rows jsonb, p_most int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- CASE: the length of what is no array is an error.
    PERFORM inlet._check(CASE jsonb_typeof(p_rows) WHEN 'array' THEN jsonb_array_length(p_rows) <= p_most END,
        format('an array of at most %s rows', p_most));
END $$;

-- Whether commits of this session wait until all standbys that are named have them on disk. Where only some must, or
-- '*' names any, another one may be promoted. With remote_write a standby's machine may fail before it has written.
CREATE OR REPLACE FUNCTION _is_synchronous(p_names text DEFAULT current_setting('synchronous_standby_names'),
    p_commit text DEFAULT current_setting('synchronous_commit')) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE m text[] := regexp_match(p_names, '^\s*(?:FIRST|ANY)?\s*(\d+)\s*\((.*)\)\s*$', 'i');
BEGIN
    RETURN p_names <> '' AND strpos(p_names, '*') = 0 AND p_commit IN ('on', 'remote_apply')
        AND coalesce(m[1]::int, 1) >= cardinality(string_to_array(coalesce(m[2], p_names), ','));
END $$;

-- A standby is trusted for 2 minutes after a beat saw commits wait for it (_look_at_server). For as long, and a minute
-- more for clocks that differ, nothing is confirmed to agents that it may miss.
CREATE OR REPLACE FUNCTION _require_standbys(p_synchronous_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_synchronous_at > clock_timestamp() - interval '3 min' AND NOT inlet._is_synchronous() THEN
        RAISE EXCEPTION 'commits do not wait for the standbys: nothing is written until 3 minutes after they last did'
            USING ERRCODE = '25006';
    END IF;
END $$;

-- Every call begins here. p_grants: something is given away. p_mark: the call is durable and counted.
CREATE OR REPLACE FUNCTION _enter(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_grants boolean,
    p_mark boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r record; m bigint;
BEGIN
    SELECT a.state, a.epoch, b.session, b.until, b.mark, b.started, f.epoch AS fleet_epoch, f.state AS fleet_state,
        f.confirm_until, f.synchronous_at
    INTO r FROM inlet.agent a JOIN inlet.beat b ON b.agent = a.id CROSS JOIN inlet.fleet f
    WHERE a.id = p_agent AND a.token_hash = sha256(p_token) AND a.state IN ('active', 'draining');
    IF NOT FOUND THEN RAISE EXCEPTION 'unknown agent, retired, or wrong token' USING ERRCODE = 'IN002'; END IF;
    IF r.mark < p_seen AND r.epoch >= r.fleet_epoch THEN
        RAISE EXCEPTION 'the database went back' USING ERRCODE = 'IN007';
    END IF;
    -- A restart ends all sessions: beats of the last seconds before it may be lost.
    IF r.started IS DISTINCT FROM pg_postmaster_start_time() OR r.session IS DISTINCT FROM p_session
        OR r.until < clock_timestamp() THEN
        RAISE EXCEPTION 'the session is over: say hello' USING ERRCODE = 'IN003';
    END IF;
    IF p_grants THEN
        IF r.epoch < r.fleet_epoch THEN RAISE EXCEPTION 'report again first' USING ERRCODE = 'IN006'; END IF;
        IF r.fleet_state = 'recovering' OR r.fleet_state = 'confirming' AND r.confirm_until > clock_timestamp() THEN
            RAISE EXCEPTION 'nothing is granted: the fleet is %', r.fleet_state
                USING ERRCODE = 'IN008', DETAIL = inlet._left(r.confirm_until)::text;
        END IF;
    END IF;
    IF p_mark AND r.synchronous_at IS NOT NULL THEN PERFORM inlet._require_standbys(r.synchronous_at); END IF;
    -- Until it has reported again, its mark stays the one that this database still had: there the report begins.
    IF p_mark AND r.epoch >= r.fleet_epoch THEN
        UPDATE inlet.beat SET mark = mark + 1 WHERE agent = p_agent AND session = p_session RETURNING mark INTO m;
        IF NOT FOUND THEN RAISE EXCEPTION 'the session is over: say hello' USING ERRCODE = 'IN003'; END IF;
        RETURN m;
    END IF;
    RETURN r.mark;
END $$;

-- Commits are lost, or may be: everybody reports again before anything is given away.
CREATE OR REPLACE FUNCTION _recover(p_agent int, p_why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE inlet.fleet SET epoch = epoch + 1, state = 'recovering', why = p_why, since = clock_timestamp();
    INSERT INTO inlet.event (agent, name, body)
    VALUES (p_agent, 'fleet.recovering', jsonb_build_object('why', p_why));
    PERFORM inlet._open_if_complete();
END $$;

CREATE OR REPLACE FUNCTION _open_if_complete() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM inlet.fleet FOR UPDATE;
    IF EXISTS (SELECT FROM inlet.agent a, inlet.fleet f WHERE a.state <> 'retired' AND a.epoch < f.epoch) THEN
        RETURN;
    END IF;
    UPDATE inlet.fleet SET state = 'open', why = NULL, since = clock_timestamp() WHERE state = 'recovering';
    IF FOUND THEN INSERT INTO inlet.event (name) VALUES ('fleet.open'); END IF;
END $$;

-- Whether the holder of something has it no more: dead, or back for long under another session without asking for it
-- again. Only an agent that was here for a whole ttl may say so: after an outage of the database everybody has lapsed,
-- and gets the time to come back.
CREATE OR REPLACE FUNCTION _lapsed(p_me int, p_holder int, p_session bigint) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (
        SELECT FROM inlet.fleet f, inlet.beat me LEFT JOIN inlet.beat b ON b.agent = p_holder
        WHERE me.agent = p_me AND me.since <= clock_timestamp() - f.ttl
            AND (b.agent IS NULL OR b.until < clock_timestamp()
                OR b.session <> p_session AND b.since < clock_timestamp() - f.ttl))
$$;
