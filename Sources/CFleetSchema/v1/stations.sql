
-- ----------------------------------------------------------------------------------------------- destinations and keys

CREATE OR REPLACE FUNCTION v1_destination(p_agent int, p_token bytea, p_session bigint, p_address bytea, p_type text,
    p_label text, p_creates boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE d int;
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._check(length(p_address) = 32 AND p_type IS NOT NULL AND p_label IS NOT NULL,
        'an address of 32 bytes, a type and a label');
    SELECT id INTO d FROM inlet.destination WHERE address = p_address;
    IF d IS NULL THEN
        INSERT INTO inlet.destination (address, type, label, creates)
        VALUES (p_address, left(p_type, 50), left(p_label, 200), coalesce(p_creates, false))
        ON CONFLICT (address) DO UPDATE SET label = excluded.label RETURNING id INTO d;
    ELSIF p_creates THEN
        UPDATE inlet.destination SET creates = true WHERE id = d AND NOT creates;
    END IF;
    RETURN d;
END $$;

-- For an agent, or for a place (p_owner < 0): which of the keys are its. Tags and own prefixes are of one agent's own
-- files, which never ask: a place gets none of them.
CREATE OR REPLACE FUNCTION _reserve(p_owner int, p_destination int, p_keys text[], p_refs bigint[]) RETURNS boolean[]
LANGUAGE plpgsql AS $$
DECLARE hashes uuid[]; barred boolean[]; owned boolean;
BEGIN
    -- Against v1_own_prefix, which takes it exclusively.
    PERFORM pg_advisory_xact_lock_shared(hashtext('inlet.prefix'), p_destination);
    owned := EXISTS (SELECT FROM inlet.prefix x WHERE x.destination = p_destination AND x.agent <> p_owner);
    SELECT array_agg(inlet._hash(w.key) ORDER BY w.n), array_agg(
        EXISTS (SELECT FROM inlet.agent a WHERE a.id <> p_owner
            AND a.tag = substring(w.key FROM '_([a-z2-7]{6})(?:_[0-9]+)?(?:\.[^./]*)?$'))
        OR owned AND EXISTS (SELECT FROM inlet.prefix x
            WHERE x.destination = p_destination AND x.agent <> p_owner AND starts_with(w.key, x.prefix))
        ORDER BY w.n)
    INTO hashes, barred FROM unnest(p_keys) WITH ORDINALITY w(key, n);
    -- In the order of their hashes, so that two agents never wait for each other.
    INSERT INTO inlet.key (ref, hash, destination, owner)
    SELECT w.ref, w.hash, p_destination, p_owner FROM unnest(hashes, p_refs, barred) w(hash, ref, barred)
    WHERE NOT w.barred ORDER BY w.hash, w.ref ON CONFLICT DO NOTHING;
    -- A statement of its own: it sees the keys that others committed while the first one waited. OFFSET 0: each key by
    -- its index, also before the first ANALYZE, when a join would read all keys of the destination.
    RETURN (SELECT coalesce(array_agg(k.hash IS NOT NULL ORDER BY w.n), '{}')
        FROM unnest(hashes, p_refs) WITH ORDINALITY w(hash, ref, n) LEFT JOIN LATERAL (
            SELECT x.hash FROM inlet.key x WHERE x.destination = p_destination AND x.hash = w.hash
                AND x.owner = p_owner AND x.ref = w.ref OFFSET 0) k ON true);
END $$;

-- Reserves keys, 1,000 at most. A repeated call gets the same answer. p_place: for files of a place that this agent
-- holds.
CREATE OR REPLACE FUNCTION v1_reserve(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_destination int,
    p_keys text[], p_refs bigint[], p_place int) RETURNS TABLE (mark bigint, granted boolean[]) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._check_keys(p_keys, p_refs);
    mark := inlet._enter(p_agent, p_token, p_session, p_seen, true, true);
    IF p_place IS NOT NULL THEN PERFORM inlet._holds(p_agent, p_session, p_place, NULL); END IF;
    granted := inlet._reserve(coalesce(-p_place, p_agent), p_destination, p_keys, p_refs);
    RETURN NEXT;
END $$;

-- Gives back keys under which nothing was ever sent.
CREATE OR REPLACE FUNCTION v1_unreserve(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_destination int,
    p_keys text[], p_refs bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE m bigint;
BEGIN
    PERFORM inlet._check_keys(p_keys, p_refs);
    m := inlet._enter(p_agent, p_token, p_session, p_seen, true, true);
    DELETE FROM inlet.key k
    WHERE k.destination = p_destination AND k.hash = ANY (ARRAY(SELECT inlet._hash(w) FROM unnest(p_keys) w))
        AND k.owner = p_agent AND (k.hash, k.ref) IN (
            SELECT inlet._hash(w.key), w.ref FROM unnest(p_keys, p_refs) w(key, ref));
    RETURN m;
END $$;

-- The agent, other than p_agent, that has a prefix, or a part of it, or a folder around it.
CREATE OR REPLACE FUNCTION _overlap(p_agent int, p_destination int, p_prefix text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._check(p_prefix LIKE '%_/' AND length(p_prefix) <= 1024, 'a prefix ends in a slash');
    RETURN (SELECT a.name FROM inlet.prefix x JOIN inlet.agent a ON a.id = x.agent
        WHERE x.destination = p_destination AND x.agent IS DISTINCT FROM p_agent
            AND (starts_with(p_prefix, x.prefix) OR starts_with(x.prefix, p_prefix)) ORDER BY x.prefix LIMIT 1);
END $$;

-- Asks for `inlet check` whether v1_own_prefix would refuse, also before the agent has joined: it needs no token. Who
-- names the address of a destination and a prefix learns one agent's name.
CREATE OR REPLACE FUNCTION v1_prefix_overlap(p_name text, p_address bytea, p_prefix text) RETURNS text
LANGUAGE sql AS $$
    SELECT inlet._overlap((SELECT a.id FROM inlet.agent a WHERE a.name = p_name), d.id, p_prefix)
    FROM inlet.destination d WHERE d.address = p_address
$$;

-- NULL: the prefix is this agent's. Otherwise the agent that has it, or a part of it, or a folder around it. Agents
-- that report after a loss claim theirs again with this, before nothing of it can be given to others.
CREATE OR REPLACE FUNCTION v1_own_prefix(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_destination int,
    p_prefix text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE other text;
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, p_seen, NOT EXISTS (
        SELECT FROM inlet.agent a, inlet.fleet f WHERE a.id = p_agent AND a.epoch < f.epoch), true);
    PERFORM pg_advisory_xact_lock(hashtext('inlet.prefix'), p_destination);
    other := inlet._overlap(p_agent, p_destination, p_prefix);
    IF other IS NULL THEN
        INSERT INTO inlet.prefix (destination, prefix, agent) VALUES (p_destination, p_prefix, p_agent)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN other;
END $$;

-- Contents: 'own' (send it, and say v1_content_there), 'there' (nothing to send), 'wait' (another sends it: look
-- again).
CREATE OR REPLACE FUNCTION v1_content(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_destination int,
    p_digest bytea, p_size bigint, p_purpose bigint, p_ref bigint)
RETURNS TABLE (mark bigint, standing text, by_agent text, key text, url text) LANGUAGE plpgsql AS $$
DECLARE m bigint; c inlet.content; ok boolean;
BEGIN
    PERFORM inlet._check(length(p_digest) = 32, 'a digest has 32 bytes');
    m := inlet._enter(p_agent, p_token, p_session, p_seen, true, true);
    INSERT INTO inlet.content (digest, destination, purpose, size, agent, session, ref)
    VALUES (p_digest, p_destination, p_purpose, p_size, p_agent, p_session, p_ref) ON CONFLICT DO NOTHING;
    SELECT * INTO c FROM inlet.content x
    WHERE x.destination = p_destination AND x.digest = p_digest AND x.purpose = p_purpose FOR UPDATE;
    ok := NOT c.there AND (c.agent = p_agent AND (c.ref = p_ref OR c.session <> p_session) OR c.at = '-infinity'
        OR c.agent <> p_agent AND inlet._lapsed(p_agent, c.agent, c.session));
    IF ok THEN
        UPDATE inlet.content x SET agent = p_agent, session = p_session, ref = p_ref, at = clock_timestamp()
        WHERE x.destination = p_destination AND x.digest = p_digest AND x.purpose = p_purpose;
    END IF;
    RETURN QUERY SELECT m, CASE WHEN c.there THEN 'there' WHEN ok THEN 'own' ELSE 'wait' END, a.name, c.key, c.url
    FROM (SELECT) one LEFT JOIN inlet.agent a ON a.id = c.agent;
END $$;

-- p_key NULL: it was not brought, or a person deleted it there; the next one may. Also tells contents again after a
-- loss.
CREATE OR REPLACE FUNCTION v1_content_there(p_agent int, p_token bytea, p_session bigint, p_seen bigint,
    p_destination int, p_digest bytea, p_size bigint, p_purpose bigint, p_ref bigint, p_key text, p_url text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE m bigint;
BEGIN
    PERFORM inlet._check(length(p_digest) = 32, 'a digest has 32 bytes');
    m := inlet._enter(p_agent, p_token, p_session, p_seen, false, true);
    IF p_key IS NULL THEN
        DELETE FROM inlet.content x WHERE x.destination = p_destination AND x.digest = p_digest
            AND x.purpose = p_purpose AND x.agent = p_agent AND x.ref = p_ref;
    ELSE
        INSERT INTO inlet.content AS x (digest, destination, purpose, size, agent, session, ref, there, key, url)
        VALUES (p_digest, p_destination, p_purpose, p_size, p_agent, p_session, p_ref, true, p_key, p_url)
        ON CONFLICT (destination, digest, purpose) DO UPDATE SET there = true, agent = p_agent, ref = p_ref,
            key = p_key, url = p_url, at = clock_timestamp() WHERE NOT x.there;
    END IF;
    RETURN m;
END $$;

-- -------------------------------------------------------------------------------------------------------------- limits

-- The fleet's limit of a destination from those that configurations name, unless a person set one.
CREATE OR REPLACE FUNCTION _apply_limit(p_destination int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE b bigint; s int;
BEGIN
    PERFORM FROM inlet.destination d WHERE d.id = p_destination FOR NO KEY UPDATE;
    SELECT l.bandwidth, l.slots INTO b, s FROM inlet.named_limit l JOIN inlet.agent a ON a.id = l.agent
    WHERE l.destination = p_destination AND a.state <> 'retired' ORDER BY l.at, l.agent LIMIT 1;
    UPDATE inlet.destination d SET bandwidth = b, slots = s WHERE d.id = p_destination AND NOT d.by_admin
        AND (d.bandwidth, d.slots) IS DISTINCT FROM (b, s);
END $$;

-- The limit that this agent's configuration names; NULL and NULL: none. Returns the agent that named another one
-- before, whose limit holds.
CREATE OR REPLACE FUNCTION v1_limit(p_agent int, p_token bytea, p_session bigint, p_destination int, p_bandwidth bigint,
    p_slots int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._check(coalesce(p_bandwidth >= 0, true) AND coalesce(p_slots >= 1, true),
        'a bandwidth of at least 0, at least one slot');
    PERFORM FROM inlet.destination d WHERE d.id = p_destination FOR NO KEY UPDATE;
    PERFORM inlet._check(FOUND, format('no destination %s', p_destination));
    IF p_bandwidth IS NULL AND p_slots IS NULL THEN
        DELETE FROM inlet.named_limit l WHERE l.destination = p_destination AND l.agent = p_agent;
    ELSE
        INSERT INTO inlet.named_limit AS l (destination, agent, bandwidth, slots)
        VALUES (p_destination, p_agent, p_bandwidth, p_slots)
        ON CONFLICT (destination, agent) DO UPDATE SET bandwidth = excluded.bandwidth, slots = excluded.slots
        WHERE (l.bandwidth, l.slots) IS DISTINCT FROM (excluded.bandwidth, excluded.slots);
    END IF;
    PERFORM inlet._apply_limit(p_destination);
    IF p_bandwidth IS NULL AND p_slots IS NULL THEN RETURN NULL; END IF;
    RETURN (SELECT v.limited_by FROM inlet.destinations v JOIN inlet.destination d USING (id)
        WHERE v.id = p_destination AND NOT d.by_admin
            AND (v.bandwidth, v.slots) IS DISTINCT FROM (p_bandwidth, p_slots));
END $$;

-- This agent's part of a destination's limit, until left_ms. Asked for every third of ttl while it sends there;
-- p_slots 0 and p_rate 0 give it back. A newcomer gets what is free; the others shrink to their fair part when they
-- ask next.
CREATE OR REPLACE FUNCTION v1_share(p_agent int, p_token bytea, p_session bigint, p_destination int, p_rate bigint,
    p_slots int, p_using int) RETURNS TABLE (rate bigint, slots int, left_ms int) LANGUAGE plpgsql AS $$
DECLARE d inlet.destination; n int; r bigint; s int; t timestamptz;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, true, false);
    PERFORM inlet._check(p_rate >= 0 AND p_slots >= 0 AND p_using >= 0, 'no negative rate, slots or using');
    SELECT * INTO d FROM inlet.destination x WHERE x.id = p_destination FOR NO KEY UPDATE;
    IF d.bandwidth IS NULL AND d.slots IS NULL THEN RETURN QUERY SELECT NULL::bigint, NULL::int, 60000; RETURN; END IF;
    DELETE FROM inlet.share x WHERE x.destination = p_destination
        AND (x.until < clock_timestamp() OR x.agent = p_agent);
    IF p_rate = 0 AND p_slots = 0 THEN RETURN; END IF;
    SELECT count(*) + 1, coalesce(sum(x.rate), 0), coalesce(sum(x.slots), 0) INTO n, r, s
    FROM inlet.share x WHERE x.destination = p_destination;
    -- NULL in `least` is no bound: the one that is not limited is given as asked for.
    r := greatest(0, least(p_rate, d.bandwidth / n, d.bandwidth - r));
    -- A slot in use is never taken away; one a newcomer needs comes from the next to ask.
    s := CASE WHEN d.slots IS NULL THEN p_slots
        ELSE greatest(0, least(p_slots, greatest(1, d.slots / n), d.slots - s), least(p_using, d.slots - s)) END;
    SELECT clock_timestamp() + f.ttl INTO t FROM inlet.fleet f;
    INSERT INTO inlet.share VALUES (p_destination, p_agent, CASE WHEN d.bandwidth IS NOT NULL THEN r END,
        CASE WHEN d.slots IS NOT NULL THEN s END, t);
    RETURN QUERY SELECT r, s, inlet._left(t);
END $$;
