
-- -------------------------------------------------------------------------------------------------------------- places

CREATE OR REPLACE FUNCTION _member(p_agent int, p_place int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM inlet.member m WHERE m.place = p_place AND m.agent = p_agent;
    IF NOT FOUND THEN RAISE EXCEPTION 'no member of this place' USING ERRCODE = 'IN010'; END IF;
END $$;

-- Until the transaction ends, the place stays this agent's. p_fence NULL: whichever it has.
CREATE OR REPLACE FUNCTION _holds(p_agent int, p_session bigint, p_place int, p_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM inlet.place p WHERE p.id = p_place AND p.holder = p_agent AND p.session = p_session
        AND p.fence = coalesce(p_fence, p.fence) FOR SHARE;
    IF NOT FOUND THEN RAISE EXCEPTION 'the place is another''s' USING ERRCODE = 'IN009'; END IF;
END $$;

-- Makes a place known, and this agent its member. The marker that stands in the share decides: another one is another
-- share.
CREATE OR REPLACE FUNCTION v1_place(p_agent int, p_token bytea, p_session bigint, p_name text, p_marker uuid)
RETURNS TABLE (place int, marker uuid, is_new boolean) LANGUAGE plpgsql AS $$
DECLARE p inlet.place; fresh boolean := false; other text;
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._check(p_name ~ '^[^[:cntrl:]]{1,128}$' AND p_marker IS NOT NULL,
        'a name of 1 to 128 plain characters, and a marker');
    SELECT * INTO p FROM inlet.place x WHERE x.name = p_name;
    IF p.id IS NULL THEN
        INSERT INTO inlet.place AS x (name, marker) VALUES (p_name, p_marker)
        ON CONFLICT DO NOTHING RETURNING * INTO p;
        fresh := p.id IS NOT NULL;
        IF p.id IS NULL THEN SELECT * INTO p FROM inlet.place x WHERE x.name = p_name; END IF;
        IF p.id IS NULL THEN
            SELECT x.name INTO other FROM inlet.place x WHERE x.marker = p_marker;
            PERFORM inlet._check(false, format('this share is the place %s: give it that name', other));
        END IF;
    END IF;
    IF p.marker = p_marker THEN INSERT INTO inlet.member VALUES (p.id, p_agent) ON CONFLICT DO NOTHING; END IF;
    RETURN QUERY SELECT p.id, p.marker, fresh;
END $$;

-- Asks for places, every third of ttl. Returns those that are this agent's now; `taken`: it has just become so. An
-- agent that is draining gives them up.
CREATE OR REPLACE FUNCTION v1_hold(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_places int[])
RETURNS TABLE (place int, fence bigint, taken boolean, left_ms int) LANGUAGE plpgsql AS $$
DECLARE p inlet.place;
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, p_seen, true, false);
    IF EXISTS (SELECT FROM inlet.agent a WHERE a.id = p_agent AND a.state = 'draining') THEN
        UPDATE inlet.place x SET holder = NULL WHERE x.id = ANY (p_places) AND x.holder = p_agent;
        RETURN;
    END IF;
    -- What it has needs no lock: one that another has for a moment must not look like a loss.
    FOR place IN SELECT x.id FROM inlet.place x JOIN inlet.member m ON m.place = x.id AND m.agent = p_agent
        WHERE x.id = ANY (p_places) ORDER BY x.id
    LOOP
        SELECT * INTO p FROM inlet.place x WHERE x.id = place;
        taken := (p.holder = p_agent AND p.session = p_session) IS NOT TRUE;
        fence := p.fence;
        IF taken THEN
            CONTINUE WHEN NOT inlet._is_free(p_agent, p);
            SELECT * INTO p FROM inlet.place x WHERE x.id = place FOR NO KEY UPDATE SKIP LOCKED;
            CONTINUE WHEN NOT FOUND OR NOT inlet._is_free(p_agent, p);
            UPDATE inlet.place x
            SET holder = p_agent, session = p_session, fence = x.fence + 1, held_since = clock_timestamp()
            WHERE x.id = place RETURNING x.fence INTO fence;
            IF p.holder <> p_agent THEN
                INSERT INTO inlet.event (agent, name, body) VALUES (p_agent, 'fleet.place_taken',
                    jsonb_build_object('place', p.name, 'from', p.holder, 'fence', fence));
            END IF;
        END IF;
        left_ms := (SELECT inlet._left(b.until) FROM inlet.beat b WHERE b.agent = p_agent);
        RETURN NEXT;
    END LOOP;
END $$;

-- Whether the agent may take the place, which is not its in this session.
CREATE OR REPLACE FUNCTION _is_free(p_agent int, p_place inlet.place) RETURNS boolean LANGUAGE sql AS $$
    SELECT p_place.holder IS NULL OR p_place.holder = p_agent
        OR inlet._lapsed(p_agent, p_place.holder, p_place.session)
$$;

CREATE OR REPLACE FUNCTION v1_release(p_agent int, p_token bytea, p_session bigint, p_places int[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    UPDATE inlet.place SET holder = NULL WHERE id = ANY (p_places) AND holder = p_agent AND session = p_session;
END $$;

-- Which of these versions were admitted before. For the listing of a new holder, whose journal does not know them.
CREATE OR REPLACE FUNCTION v1_known(p_agent int, p_token bytea, p_session bigint, p_place int, p_paths uuid[],
    p_versions uuid[]) RETURNS boolean[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._member(p_agent, p_place);
    PERFORM inlet._check(cardinality(p_paths) <= 1000 AND cardinality(p_paths) = cardinality(p_versions),
        'at most 1,000 paths, one version each');
    -- OFFSET 0: as in _reserve.
    RETURN (SELECT coalesce(array_agg(f.path IS NOT NULL ORDER BY w.n), '{}')
        FROM unnest(p_paths, p_versions) WITH ORDINALITY w(p, v, n)
        LEFT JOIN LATERAL (
            SELECT x.path FROM inlet.file x WHERE x.place = p_place AND x.path = w.p AND x.version = w.v
            OFFSET 0) f ON true);
END $$;

-- Versions that an agent knows from before the folder was a place: it has sent them, or will, and nobody admits them.
-- `own`: no other agent has work of it, or had it fail. p_is false: the agent has sent nothing of them and will not, so
-- that they may be admitted, once this is true for all agents that had them. A repeated call gets the same answer.
CREATE OR REPLACE FUNCTION v1_own_versions(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_place int,
    p_paths uuid[], p_versions uuid[], p_is boolean) RETURNS TABLE (mark bigint, own boolean[]) LANGUAGE plpgsql AS $$
BEGIN
    -- While others have yet to report, nobody knows what they admitted.
    mark := inlet._enter(p_agent, p_token, p_session, p_seen, true, true);
    PERFORM inlet._member(p_agent, p_place);
    PERFORM inlet._check(cardinality(p_paths) <= 1000 AND cardinality(p_paths) = cardinality(p_versions)
        AND p_is IS NOT NULL, 'at most 1,000 paths, one version each');
    IF p_is THEN
        -- A row of an earlier state of this schema does not say whose it is, and stays.
        INSERT INTO inlet.file AS f (path, version, place, remaining, state, own)
        SELECT DISTINCT w.p, w.v, p_place, 0, 'f'::"char", ARRAY[p_agent] FROM unnest(p_paths, p_versions) w(p, v)
        ORDER BY 1, 2
        ON CONFLICT (place, path, version) DO UPDATE SET own = f.own || p_agent WHERE p_agent <> ALL (f.own);
    ELSE
        UPDATE inlet.file f SET own = array_remove(f.own, p_agent) FROM unnest(p_paths, p_versions) w(p, v)
        WHERE f.place = p_place AND f.path = w.p AND f.version = w.v AND p_agent = ANY (f.own);
        DELETE FROM inlet.file f USING unnest(p_paths, p_versions) w(p, v)
        WHERE f.place = p_place AND f.path = w.p AND f.version = w.v AND f.own = '{}' AND f.state = 'f' AND NOT f.sent;
    END IF;
    own := (SELECT coalesce(array_agg(coalesce(f.state = 'f', false) ORDER BY w.n), '{}')
        FROM unnest(p_paths, p_versions) WITH ORDINALITY w(p, v, n)
        LEFT JOIN inlet.file f ON f.place = p_place AND f.path = w.p AND f.version = w.v);
    RETURN NEXT;
END $$;

-- Admits versions with their deliveries: durable point 1 of a place. A version that is known is left as it is. p_rows:
-- [{path, version, name (base64), size, priority, destination, ref, key, plan}], one for each delivery. For each row:
-- whether it is admitted with this key, now or by an earlier call.
CREATE OR REPLACE FUNCTION v1_admit(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_place int,
    p_fence bigint, p_rows jsonb) RETURNS TABLE (mark bigint, admitted boolean[]) LANGUAGE plpgsql AS $$
DECLARE m bigint;
BEGIN
    PERFORM inlet._check_rows(p_rows, 1000);
    m := inlet._enter(p_agent, p_token, p_session, p_seen, true, true);
    PERFORM inlet._check(p_fence IS NOT NULL, 'a fence');
    PERFORM inlet._holds(p_agent, p_session, p_place, p_fence);
    WITH rows AS (
        SELECT * FROM jsonb_to_recordset(p_rows) r(path uuid, version uuid, name text, size bigint, priority smallint,
            destination int, ref bigint, key text, plan jsonb)
    ), fresh AS (
        INSERT INTO inlet.file (path, version, place, remaining)
        SELECT path, version, p_place, count(*) FROM rows GROUP BY path, version ORDER BY path, version
        ON CONFLICT DO NOTHING RETURNING path, version
    )
    INSERT INTO inlet.work (place, path, version, priority, destination, ref, key, name, size, plan)
    SELECT p_place, r.path, r.version, coalesce(r.priority, 1::smallint), r.destination, r.ref, r.key,
        decode(r.name, 'base64'), r.size, coalesce(r.plan, '{}') FROM rows r JOIN fresh USING (path, version);
    RETURN QUERY SELECT m, coalesce(array_agg(EXISTS (
        SELECT FROM inlet.work w WHERE w.place = p_place AND w.path = r.path AND w.version = r.version
            AND w.kind = 'd' AND w.ref = r.ref AND w.key = r.key) ORDER BY n), '{}')
    FROM ROWS FROM (jsonb_to_recordset(p_rows) AS (path uuid, version uuid, ref bigint, key text))
        WITH ORDINALITY r(path, version, ref, key, n);
END $$;

-- Claims deliveries of places that this agent is a member of: first its own from before its session, then ready ones,
-- then those of lapsed agents. Each claim has a higher fence, which all further calls about it must name. An agent that
-- is draining gets its own alone, to end them or to give them back. Settings: a plan that was made while the queue was
-- short would read all of it when it is long.
CREATE OR REPLACE FUNCTION v1_claim(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_places int[],
    p_count int)
RETURNS TABLE (work bigint, fence bigint, place int, kind "char", path uuid, version uuid, attempts smallint,
    destination int, ref bigint, key text, name bytea, size bigint, plan jsonb, notes jsonb, taken_from int, code text)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE t timestamptz := clock_timestamp(); may boolean;
BEGIN
    PERFORM inlet._check(p_count BETWEEN 0 AND 1000, 'at most 1,000 at once');
    PERFORM inlet._enter(p_agent, p_token, p_session, p_seen, true, false);
    may := NOT EXISTS (SELECT FROM inlet.agent a WHERE a.id = p_agent AND a.state = 'draining');
    RETURN QUERY
    WITH mine AS (
        SELECT w.id FROM inlet.work w
        WHERE w.state = 'c' AND w.agent = p_agent AND w.session <> p_session AND w.place = ANY (p_places)
        LIMIT p_count FOR UPDATE SKIP LOCKED
    ), ready AS (
        -- By place and priority, so that the index answers each: due rows are found at once however many wait. No place
        -- waits for the end of another one's queue.
        SELECT x.id FROM (
            SELECT m.place, q.priority::smallint FROM inlet.member m, generate_series(0, 2) q(priority)
            WHERE may AND m.agent = p_agent AND m.place = ANY (p_places) ORDER BY 2, random()) s
        CROSS JOIN LATERAL (
            SELECT w.id FROM inlet.work w
            WHERE w.place = s.place AND w.priority = s.priority AND w.state = 'r' AND w.next_at <= t
            ORDER BY w.next_at, w.id LIMIT p_count FOR UPDATE SKIP LOCKED) x
        LIMIT greatest(0, p_count - (SELECT count(*) FROM mine))
    ), dead AS (
        -- Taken over: the rule of _lapsed, by agent instead of by row.
        SELECT w.id, w.agent FROM inlet.fleet f, inlet.beat me, inlet.beat b
        JOIN inlet.work w ON w.agent = b.agent AND w.state = 'c' AND w.place = ANY (p_places)
        JOIN inlet.member m ON m.place = w.place AND m.agent = p_agent
        WHERE may AND me.agent = p_agent AND me.since <= t - f.ttl AND b.agent <> p_agent
            AND (b.until < t OR b.session <> w.session AND b.since < t - f.ttl)
        LIMIT greatest(0, p_count - (SELECT count(*) FROM mine) - (SELECT count(*) FROM ready))
        FOR UPDATE OF w SKIP LOCKED
    )
    -- By ids alone, as in settle.sql.
    UPDATE inlet.work w SET state = 'c', agent = p_agent, session = p_session, fence = w.fence + 1,
        attempts = least(w.attempts + (w.kind = 'd')::int, 32000)
    WHERE w.id = ANY (ARRAY(SELECT id FROM mine UNION ALL SELECT id FROM ready UNION ALL SELECT id FROM dead))
    RETURNING w.id, w.fence, w.place, w.kind, w.path, w.version, w.attempts, w.destination, w.ref, w.key, w.name,
        w.size, w.plan, w.notes, (SELECT d.agent FROM dead d WHERE d.id = w.id), w.code;
END $$;

-- After a loss: admissions and claims of places that this agent's journal has, with the keys that were frozen then,
-- in the rows of v1_admit. What was delivered of it is found at the destination under its key, and not sent again.
CREATE OR REPLACE FUNCTION v1_again_admitted(p_agent int, p_token bytea, p_session bigint, p_place int, p_rows jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._member(p_agent, p_place);
    PERFORM inlet._check_rows(p_rows, 1000);
    -- One agent knows some deliveries of a version, another others: each adds what is missing.
    PERFORM pg_advisory_xact_lock(hashtext('inlet.again'), p_place);
    INSERT INTO inlet.file (path, version, place, remaining, whole, told)
    SELECT r.path, r.version, p_place, 0, max(coalesce((r.plan ->> 'deliveries')::smallint, 1::smallint)), '{}'::int[]
    FROM jsonb_to_recordset(p_rows) r(path uuid, version uuid, plan jsonb)
    GROUP BY 1, 2 ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    -- Where the fleet was opened without this agent, others may be at the end of these versions.
    PERFORM FROM inlet.file f WHERE f.place = p_place AND (f.path, f.version) IN (
        SELECT r.path, r.version FROM jsonb_to_recordset(p_rows) r(path uuid, version uuid))
    ORDER BY f.path, f.version FOR UPDATE;
    WITH added AS (
        INSERT INTO inlet.work (place, path, version, priority, destination, ref, key, name, size, plan)
        SELECT p_place, r.path, r.version, coalesce(r.priority, 1::smallint), r.destination, r.ref, r.key,
            decode(r.name, 'base64'), r.size, coalesce(r.plan, '{}')
        FROM jsonb_to_recordset(p_rows) r(path uuid, version uuid, name text, size bigint, priority smallint,
            destination int, ref bigint, key text, plan jsonb)
        JOIN inlet.file f ON f.place = p_place AND f.path = r.path AND f.version = r.version AND f.state = 'o'
        WHERE NOT EXISTS (SELECT FROM inlet.work w WHERE w.place = p_place AND w.path = r.path
            AND w.version = r.version AND w.kind = 'd' AND w.destination = r.destination) RETURNING path, version
    )
    UPDATE inlet.file f SET remaining = f.remaining + a.n
    FROM (SELECT path, version, count(*) AS n FROM added GROUP BY 1, 2) a
    WHERE f.place = p_place AND f.path = a.path AND f.version = a.version;
    -- A version with deliveries that only an absent agent knows ends as failed: nobody can say that they arrived.
    UPDATE inlet.file f SET told = ARRAY(SELECT DISTINCT d FROM unnest(f.told || r.destinations) d)
    FROM (SELECT path, version, array_agg(destination) AS destinations
        FROM jsonb_to_recordset(p_rows) x(path uuid, version uuid, destination int) GROUP BY 1, 2) r
    WHERE f.place = p_place AND f.path = r.path AND f.version = r.version AND f.whole > cardinality(f.told);
END $$;

-- After a loss: versions in places that this agent finished. Their sources are disposed of.
CREATE OR REPLACE FUNCTION v1_again_finished(p_agent int, p_token bytea, p_session bigint, p_place int, p_paths uuid[],
    p_versions uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._member(p_agent, p_place);
    PERFORM inlet._check(cardinality(p_paths) <= 1000 AND cardinality(p_paths) = cardinality(p_versions),
        'at most 1,000 paths, one version each');
    INSERT INTO inlet.file (path, version, place, remaining, state, sent)
    SELECT DISTINCT w.p, w.v, p_place, 0, 'f'::"char", true FROM unnest(p_paths, p_versions) w(p, v) ORDER BY 1, 2
    ON CONFLICT (place, path, version) DO UPDATE SET remaining = 0, state = 'f', sent = true;
    -- The work of finishing it, where there is one, finds nothing to do.
    DELETE FROM inlet.work k USING unnest(p_paths, p_versions) w(p, v)
    WHERE k.place = p_place AND k.path = w.p AND k.version = w.v AND k.kind = 'd';
END $$;
