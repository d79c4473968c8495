
-- ---------------------------------------------------------------------------------------------------------- membership

-- Joins, or joins again with the same journal: its name, number and tag stay, its hellos are counted anew. The agent
-- makes token, journal and tag; a taken tag or name is IN011: make another.
CREATE OR REPLACE FUNCTION v1_join(p_secret bytea, p_name text, p_tag text, p_journal uuid, p_token bytea,
    p_seen bigint, p_about jsonb)
RETURNS TABLE (agent int, fleet uuid, fleet_name text, epoch int, tag text) LANGUAGE plpgsql AS $$
DECLARE me int; old inlet.agent;
BEGIN
    PERFORM inlet._check(length(p_token) BETWEEN 32 AND 1024, 'a token has at least 32 bytes');
    PERFORM inlet._check(p_name ~ '^[^[:cntrl:]]{1,128}$', 'a name has 1 to 128 plain characters');
    PERFORM inlet._check(p_tag ~ '^[a-z2-7]{6}$', 'a tag has six of a-z and 2-7');
    PERFORM inlet._check(octet_length(p_about::text) <= 16384 AND p_journal IS NOT NULL, 'about has at most 16 KiB');
    PERFORM FROM inlet.fleet f WHERE f.join_hash = sha256(p_secret) FOR UPDATE;
    IF NOT FOUND THEN RAISE EXCEPTION 'wrong or closed join secret' USING ERRCODE = 'IN002'; END IF;
    SELECT * INTO old FROM inlet.agent a WHERE a.name = p_name FOR UPDATE;
    IF FOUND THEN
        PERFORM inlet._check(old.journal = p_journal AND old.state <> 'retired',
            format('the name %s is taken', p_name));
        me := old.id;
        UPDATE inlet.agent a SET token_hash = sha256(p_token), about = p_about,
            state = CASE a.state WHEN 'missing' THEN 'active' ELSE a.state END WHERE a.id = me;
        UPDATE inlet.beat b SET hello = 0, instance = NULL WHERE b.agent = me;
    ELSE
        PERFORM inlet._check(NOT EXISTS (SELECT FROM inlet.agent a WHERE a.tag = p_tag),
            format('the tag %s is taken', p_tag));
        INSERT INTO inlet.agent AS a (name, tag, journal, token_hash, about, epoch)
        SELECT p_name, p_tag, p_journal, sha256(p_token), p_about, CASE WHEN p_seen > 0 THEN 0 ELSE f.epoch END
        FROM inlet.fleet f RETURNING a.id INTO me;
    END IF;
    INSERT INTO inlet.beat (agent) VALUES (me) ON CONFLICT DO NOTHING;
    -- An agent that was in this fleet before, and is not known to it, was lost with the commits that are missing.
    IF p_seen > 0 AND old.id IS NULL THEN
        PERFORM inlet._recover(me, format('agent %s was here before and is not known', p_name));
    END IF;
    RETURN QUERY SELECT me, f.id, f.name, f.epoch, a.tag FROM inlet.fleet f, inlet.agent a WHERE a.id = me;
END $$;

-- A new session; the earlier one of this agent is over. `p_hello` is counted up in the journal before each process
-- start, `p_instance` is random for each process, `p_seat` says which lock file this process holds (boot id, device,
-- inode).
CREATE OR REPLACE FUNCTION v1_hello(p_agent int, p_token bytea, p_hello bigint, p_instance uuid, p_seat bytea,
    p_seen bigint, p_version text, p_about jsonb)
RETURNS TABLE (session bigint, ttl_ms int, mark bigint, epoch int, my_epoch int, state text, wait_ms int,
    receipts bigint) LANGUAGE plpgsql AS $$
DECLARE b inlet.beat; f inlet.fleet; a inlet.agent; s bigint;
BEGIN
    IF pg_is_in_recovery() THEN RAISE EXCEPTION 'this server is a standby' USING ERRCODE = '25006'; END IF;
    PERFORM inlet._check(p_hello IS NOT NULL AND p_instance IS NOT NULL AND p_seat IS NOT NULL
        AND octet_length(p_about::text) <= 16384, 'hello, instance, seat, and at most 16 KiB about');
    SELECT * INTO a FROM inlet.agent x
    WHERE x.id = p_agent AND x.token_hash = sha256(p_token) AND x.state IN ('active', 'draining');
    IF NOT FOUND THEN RAISE EXCEPTION 'unknown agent, retired, or wrong token' USING ERRCODE = 'IN002'; END IF;
    SELECT * INTO b FROM inlet.beat x WHERE x.agent = p_agent FOR UPDATE;
    IF p_hello < b.hello OR p_hello = b.hello AND b.instance <> p_instance THEN
        RAISE EXCEPTION 'this identity was used by another journal, or the journal went back' USING ERRCODE = 'IN005',
            DETAIL = jsonb_build_object('hello', b.hello, 'given', p_hello, 'at', b.at, 'about', a.about)::text;
    END IF;
    IF b.until > clock_timestamp() AND b.instance <> p_instance AND b.seat <> p_seat THEN
        RAISE EXCEPTION 'another process of this agent is alive'
            USING ERRCODE = 'IN004', DETAIL = inlet._left(b.until)::text;
    END IF;
    SELECT * INTO f FROM inlet.fleet;
    IF f.started <> pg_postmaster_start_time() OR p_seen > b.mark AND a.epoch >= f.epoch THEN
        PERFORM inlet._look_at_server(a, b.mark, p_seen);
        SELECT * INTO f FROM inlet.fleet;
    END IF;
    PERFORM inlet._require_standbys(f.synchronous_at);
    s := (f.epoch::bigint << 40) | nextval('inlet.session_seq');
    UPDATE inlet.beat x SET session = s, since = clock_timestamp(), until = clock_timestamp() + f.ttl,
        at = clock_timestamp(), hello = p_hello, instance = p_instance, seat = p_seat, started = f.started,
        mark = x.mark + (a.epoch >= f.epoch)::int
    WHERE x.agent = p_agent RETURNING x.mark INTO b.mark;
    IF a.about <> p_about OR a.version IS DISTINCT FROM p_version THEN
        UPDATE inlet.agent x SET about = p_about, version = left(p_version, 100) WHERE x.id = p_agent;
    END IF;
    -- All are back: nobody is left who could believe in a session from before the restart.
    IF f.state = 'confirming' AND NOT EXISTS (
        SELECT FROM inlet.agent x JOIN inlet.beat y ON y.agent = x.id
        WHERE x.state <> 'retired' AND y.started IS DISTINCT FROM f.started) THEN
        PERFORM inlet._confirmed(false);
        SELECT * INTO f FROM inlet.fleet;
    END IF;
    RETURN QUERY SELECT s, (extract(epoch FROM f.ttl) * 1000)::int, b.mark, f.epoch, a.epoch, f.state,
        CASE f.state WHEN 'confirming' THEN inlet._left(f.confirm_until) ELSE 0 END, b.receipts;
END $$;

-- A restart makes the fleet confirm. Another server, and a mark that was seen and is not there, make it recover: once
-- an epoch, not once an agent. A standby that has all commits counts as a restart: it followed until it was promoted
-- (a restored backup did not), and a moment before beats saw commits wait for it.
CREATE OR REPLACE FUNCTION _look_at_server(p_agent inlet.agent, p_mark bigint, p_seen bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE f inlet.fleet; line text; sys bigint; is_other boolean; is_promoted boolean;
BEGIN
    SELECT * INTO f FROM inlet.fleet FOR UPDATE;
    SELECT system_identifier INTO sys FROM pg_control_system();
    line := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
    is_other := f.system_id <> sys OR f.timeline <> line;
    is_promoted := coalesce(f.system_id = sys AND ('x' || line)::bit(32)::int = ('x' || f.timeline)::bit(32)::int + 1
        AND pg_last_wal_receive_lsn() IS NOT NULL AND f.synchronous_at
            BETWEEN clock_timestamp() - interval '2 min' AND clock_timestamp() + interval '1 min', false);
    IF is_other AND NOT is_promoted THEN
        PERFORM inlet._recover(p_agent.id, 'this is another server, or it was promoted or restored');
    ELSIF p_seen > p_mark AND p_agent.epoch >= f.epoch THEN
        PERFORM inlet._recover(p_agent.id,
            format('agent %s has seen mark %s, the database has %s', p_agent.name, p_seen, p_mark));
    ELSIF f.started <> pg_postmaster_start_time() AND f.state <> 'recovering' THEN
        UPDATE inlet.fleet SET state = 'confirming', since = clock_timestamp(),
            why = CASE WHEN is_promoted THEN 'a standby that has all commits was promoted'
                ELSE 'the server was restarted' END, confirm_until = clock_timestamp() + f.ttl;
        IF is_promoted THEN INSERT INTO inlet.event (agent, name) VALUES (p_agent.id, 'fleet.promoted'); END IF;
    END IF;
    -- A server for which no standby is named waits for nobody: those of the former one do not follow it.
    UPDATE inlet.fleet SET started = pg_postmaster_start_time(), system_id = sys, timeline = line,
        synchronous_at = CASE WHEN is_other AND synchronous_at IS NOT NULL AND NOT inlet._is_synchronous()
            THEN '-infinity' ELSE synchronous_at END;
END $$;

CREATE OR REPLACE FUNCTION _confirmed(p_by_time boolean) RETURNS void LANGUAGE sql AS $$
    UPDATE inlet.fleet SET state = 'open', why = NULL, since = clock_timestamp()
    WHERE state = 'confirming' AND (NOT p_by_time OR confirm_until <= clock_timestamp())
$$;

-- Every third of ttl. Not durable (asynchronous commit) unless asked for: once a minute is enough to notice lost
-- commits.
CREATE OR REPLACE FUNCTION v1_beat(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_durable boolean)
RETURNS TABLE (left_ms int, mark bigint, epoch int, state text, agent_state text, commands boolean)
LANGUAGE plpgsql AS $$
DECLARE m bigint; s boolean;
BEGIN
    s := inlet._is_synchronous();
    IF p_durable IS NOT TRUE THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
    m := inlet._enter(p_agent, p_token, p_session, p_seen, false, p_durable);
    UPDATE inlet.beat b SET until = clock_timestamp() + f.ttl, at = clock_timestamp()
    FROM inlet.fleet f WHERE b.agent = p_agent AND b.session = p_session;
    IF NOT FOUND THEN RAISE EXCEPTION 'the session is over: say hello' USING ERRCODE = 'IN003'; END IF;
    PERFORM inlet._confirmed(true);
    UPDATE inlet.fleet f SET synchronous_at = clock_timestamp() WHERE s AND p_durable IS NOT TRUE AND f.synchronous_at
        NOT BETWEEN clock_timestamp() - interval '10 s' AND clock_timestamp();
    RETURN QUERY SELECT (extract(epoch FROM f.ttl) * 1000)::int, m, f.epoch, f.state, a.state,
        EXISTS (SELECT FROM inlet.command c WHERE c.agent = p_agent AND c.state = 'open')
    FROM inlet.fleet f, inlet.agent a WHERE a.id = p_agent;
END $$;

-- All that it held is free at once.
CREATE OR REPLACE FUNCTION _free(p_agent int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- As a call of its other connection that has a mark.
    PERFORM FROM inlet.beat b WHERE b.agent = p_agent FOR UPDATE;
    UPDATE inlet.place SET holder = NULL WHERE holder = p_agent;
    -- In the order of v1_settle_many, which may run on the agent's other connection.
    PERFORM FROM inlet.work w WHERE w.agent = p_agent AND w.state = 'c' ORDER BY w.id FOR UPDATE;
    UPDATE inlet.work SET state = 'r', agent = NULL, session = NULL, next_at = clock_timestamp()
    WHERE agent = p_agent AND state = 'c';
    UPDATE inlet.content SET at = '-infinity' WHERE agent = p_agent AND NOT there;
    DELETE FROM inlet.share WHERE agent = p_agent;
    UPDATE inlet.beat SET until = least(until, clock_timestamp()) WHERE agent = p_agent;
END $$;

-- A clean end.
CREATE OR REPLACE FUNCTION v1_bye(p_agent int, p_token bytea, p_session bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._free(p_agent);
END $$;

-- An agent that is never seen again: its token is dead, its keys and own prefixes stay taken.
CREATE OR REPLACE FUNCTION _retire(p_agent int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE d int;
BEGIN
    UPDATE inlet.agent SET state = 'retired', token_hash = NULL WHERE id = p_agent;
    PERFORM inlet._free(p_agent);
    UPDATE inlet.beat SET until = '-infinity', session = 0 WHERE agent = p_agent;
    FOR d IN DELETE FROM inlet.named_limit WHERE agent = p_agent RETURNING destination LOOP
        PERFORM inlet._apply_limit(d);
    END LOOP;
    PERFORM inlet._open_if_complete();
END $$;

-- Retires itself. Needs no session: it may be the last call of an agent that has ended.
CREATE OR REPLACE FUNCTION v1_leave(p_agent int, p_token bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM inlet.agent a WHERE a.id = p_agent AND a.token_hash = sha256(p_token) FOR UPDATE;
    IF NOT FOUND THEN RAISE EXCEPTION 'unknown agent, retired, or wrong token' USING ERRCODE = 'IN002'; END IF;
    PERFORM inlet._retire(p_agent);
END $$;

CREATE OR REPLACE FUNCTION v1_report(p_agent int, p_token bytea, p_session bigint, p_body jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._check(octet_length(p_body::text) <= 65536, 'a report has at most 64 KiB');
    INSERT INTO inlet.report VALUES (p_agent, clock_timestamp(), p_body)
    ON CONFLICT (agent) DO UPDATE SET at = excluded.at, body = excluded.body;
END $$;

-- -------------------------------------------------------------------------------------------------------- after a loss

-- What this agent was given since the mark that the database still has. Clashes are returned: those keys are another's.
CREATE OR REPLACE FUNCTION v1_again_keys(p_agent int, p_token bytea, p_session bigint, p_destination int, p_keys text[],
    p_refs bigint[], p_place int) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE me int := coalesce(-p_place, p_agent); clashes int[];
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._check_keys(p_keys, p_refs);
    IF p_place IS NOT NULL THEN PERFORM inlet._member(p_agent, p_place); END IF;
    INSERT INTO inlet.key (ref, hash, destination, owner)
    SELECT w.ref, inlet._hash(w.key), p_destination, me FROM unnest(p_keys, p_refs) w(key, ref) ORDER BY 2
    ON CONFLICT DO NOTHING;
    -- OFFSET 0: as in _reserve. A database that was just restored has no statistics.
    SELECT array_agg(w.n::int ORDER BY w.n) INTO clashes FROM unnest(p_keys, p_refs) WITH ORDINALITY w(key, ref, n)
    CROSS JOIN LATERAL (
        SELECT x.owner, x.ref FROM inlet.key x
        WHERE x.destination = p_destination AND x.hash = inlet._hash(w.key) OFFSET 0) k
    WHERE (k.owner, k.ref) <> (me, w.ref);
    INSERT INTO inlet.event (agent, name, body)
    SELECT p_agent, 'fleet.key_clash',
        jsonb_build_object('key', left(p_keys[c], 1024), 'destination', p_destination, 'owner', k.owner)
    FROM unnest(clashes) c JOIN inlet.key k ON k.destination = p_destination AND k.hash = inlet._hash(p_keys[c]);
    RETURN QUERY SELECT unnest(clashes);
END $$;

-- All is reported: this agent is of the new epoch, and when the last one is, the fleet is open.
CREATE OR REPLACE FUNCTION v1_again_done(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_roster jsonb)
RETURNS TABLE (mark bigint, state text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._check_rows(coalesce(p_roster, '[]'), 10000);
    -- Agents that others know and this database does not: nothing is given away before they came back, or were waived.
    INSERT INTO inlet.agent (name, tag, journal, state)
    SELECT x.name, x.tag, x.journal, 'missing'
    FROM jsonb_to_recordset(coalesce(p_roster, '[]')) x(name text, tag text, journal uuid)
    WHERE length(x.name) BETWEEN 1 AND 128 AND x.tag ~ '^[a-z2-7]{6}$' AND x.journal IS NOT NULL ORDER BY 1
    ON CONFLICT DO NOTHING;
    UPDATE inlet.agent a SET epoch = f.epoch FROM inlet.fleet f WHERE a.id = p_agent;
    UPDATE inlet.beat b SET mark = greatest(b.mark, p_seen) + 1 WHERE b.agent = p_agent AND b.session = p_session;
    PERFORM inlet._open_if_complete();
    RETURN QUERY SELECT b.mark, f.state FROM inlet.fleet f, inlet.beat b WHERE b.agent = p_agent;
END $$;
