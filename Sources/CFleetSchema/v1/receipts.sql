
-- ---------------------------------------------------------------------------------- receipts, commands, upkeep, search

-- Rows from the journal's receipts, in their order; rows with one seq in one call. Rows that were taken before are
-- skipped: exactly once. Returns the last seq that is here.
CREATE OR REPLACE FUNCTION v1_receipts(p_agent int, p_token bytea, p_session bigint, p_rows jsonb) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE last bigint; had bigint;
BEGIN
    PERFORM inlet._check_rows(p_rows, 1000);
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, true);
    SELECT receipts INTO had FROM inlet.beat WHERE agent = p_agent FOR UPDATE;
    -- The hourly upkeep was not run for a week.
    IF to_regclass('inlet.' || inlet._day(clock_timestamp())) IS NULL THEN PERFORM inlet._upkeep(); END IF;
    INSERT INTO inlet.receipt (agent, seq, destination, size, state, root, path, name, mtime, key, url, sha256, labels)
    SELECT p_agent, r.seq, r.destination, r.size, r.state, r.root, r.path, regexp_replace(r.path, '^.*/', ''), r.mtime,
        r.key, r.url, decode(r.sha256, 'hex'), (SELECT jsonb_object_agg(l.key, coalesce(l.value, ''))
            FROM jsonb_each_text(CASE jsonb_typeof(r.labels) WHEN 'object' THEN r.labels END) l)
    FROM jsonb_to_recordset(p_rows) r(seq bigint, destination int, size bigint, state text, root text, path text,
        mtime bigint, key text, url text, sha256 text, labels jsonb) WHERE r.seq > had ORDER BY r.seq;
    UPDATE inlet.beat SET receipts = greatest(receipts,
        (SELECT max(r.seq) FROM jsonb_to_recordset(p_rows) r(seq bigint)))
    WHERE agent = p_agent RETURNING receipts INTO last;
    RETURN last;
END $$;

CREATE OR REPLACE FUNCTION v1_commands(p_agent int, p_token bytea, p_session bigint)
RETURNS TABLE (id uuid, verb text, args jsonb, asked_by text, at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    UPDATE inlet.command c SET state = 'expired', ended_at = now()
    WHERE c.agent = p_agent AND c.state = 'open' AND c.expires_at < now();
    RETURN QUERY SELECT c.id, c.verb, c.args, c.asked_by, c.at FROM inlet.command c
    WHERE c.agent = p_agent AND c.state = 'open' ORDER BY c.at LIMIT 100;
END $$;

CREATE OR REPLACE FUNCTION v1_command_ended(p_agent int, p_token bytea, p_session bigint, p_id uuid, p_done boolean,
    p_result jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    PERFORM inlet._check(coalesce(octet_length(p_result::text), 0) <= 65536, 'a result has at most 64 KiB');
    UPDATE inlet.command
    SET state = CASE WHEN p_done THEN 'done' ELSE 'refused' END, ended_at = now(), result = p_result
    WHERE id = p_id AND agent = p_agent AND state = 'open';
END $$;

-- Partitions for the days ahead, old ones away, old events too. Any agent, once an hour; concurrent calls do nothing.
CREATE OR REPLACE FUNCTION v1_upkeep(p_agent int, p_token bytea, p_session bigint) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    RETURN inlet._upkeep();
END $$;

-- The partition of a time. Days are UTC's, whatever the session's zone.
CREATE OR REPLACE FUNCTION _day(p_at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT 'receipt_' || to_char(p_at AT TIME ZONE 'UTC', 'YYYYMMDD') $$;

CREATE OR REPLACE FUNCTION _upkeep() RETURNS int LANGUAGE plpgsql SET timezone = 'UTC' AS $$
DECLARE t timestamptz; r record; n int := 0; days int;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('inlet.upkeep')) THEN RETURN 0; END IF;
    PERFORM set_config('lock_timeout', '2s', true);
    FOR t IN SELECT generate_series(current_date - 1, current_date + 7, '1 day') LOOP
        CONTINUE WHEN to_regclass('inlet.' || inlet._day(t)) IS NOT NULL;
        -- Attached, not made as a partition: that would wait for all readers and writers.
        EXECUTE format('CREATE TABLE inlet.%I (LIKE inlet.receipt INCLUDING DEFAULTS)', inlet._day(t));
        EXECUTE format('ALTER TABLE inlet.receipt ATTACH PARTITION inlet.%I FOR VALUES FROM (%L) TO (%L)',
            inlet._day(t), t, t + interval '1 day');
        n := n + 1;
    END LOOP;
    SELECT receipts_days INTO days FROM inlet.fleet;
    FOR r IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'inlet.receipt'::regclass AND c.relname ~ '^receipt_\d{8}$'
            AND c.relname < inlet._day(current_date - days * interval '1 day') ORDER BY 1 LIMIT 5
    LOOP
        BEGIN
            EXECUTE format('DROP TABLE inlet.%I', r.relname);
            n := n + 1;
        EXCEPTION WHEN lock_not_available THEN EXIT;      -- Somebody reads it. The new days stay.
        END;
    END LOOP;
    DELETE FROM inlet.event WHERE at < now() - days * interval '1 day';
    DELETE FROM inlet.command WHERE state <> 'open' AND ended_at < now() - days * interval '1 day';
    RETURN n;
END $$;

-- A SHA-256 in hex, the beginning of a file's name in any case, or the beginning of a key. The newest first, day by
-- day, so that a short word reads no more days than it needs.
CREATE OR REPLACE FUNCTION _search(p_text text, p_limit int)
RETURNS TABLE (at timestamptz, agent text, destination text, state text, root text, path text, name text, size bigint,
    mtime bigint, key text, url text, sha256 text, labels jsonb) LANGUAGE plpgsql SET timezone = 'UTC' AS $$
DECLARE d timestamptz; n int := 0; m int; hash bytea; word text;
BEGIN
    PERFORM inlet._check(length(p_text) BETWEEN 1 AND 1024 AND p_limit BETWEEN 1 AND 1000,
        'a text of 1 to 1,024 characters, a limit of 1 to 1,000');
    IF p_text ~ '^[0-9A-Fa-f]{64}$' THEN hash := decode(p_text, 'hex'); END IF;
    word := regexp_replace(left(p_text, 250), '([\\%_])', '\\\1', 'g') || '%';
    FOR d IN SELECT to_date(right(c.relname, 8), 'YYYYMMDD') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'inlet.receipt'::regclass AND c.relname ~ '^receipt_\d{8}$' ORDER BY 1 DESC
    LOOP
        -- Planned with its values: that is how the indexes serve a pattern.
        RETURN QUERY EXECUTE format($q$
            SELECT r.at, a.name, d.label, r.state, r.root, r.path, r.name, r.size, r.mtime, r.key, r.url,
                encode(r.sha256, 'hex'), r.labels
            FROM inlet.%I r JOIN inlet.agent a ON a.id = r.agent LEFT JOIN inlet.destination d ON d.id = r.destination
            WHERE r.sha256 = $1 OR left(lower(r.name), 250) LIKE $2 OR r.key IS NOT NULL AND left(r.key, 250) LIKE $3
            ORDER BY r.at DESC, r.seq DESC LIMIT $4 $q$, inlet._day(d))
        USING hash, lower(word), word, p_limit - n;
        GET DIAGNOSTICS m = ROW_COUNT;
        n := n + m;
        EXIT WHEN n >= p_limit;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION v1_search(p_agent int, p_token bytea, p_session bigint, p_text text, p_limit int)
RETURNS TABLE (at timestamptz, agent text, destination text, state text, root text, path text, name text, size bigint,
    mtime bigint, key text, url text, sha256 text, labels jsonb) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    RETURN QUERY SELECT * FROM inlet._search(p_text, p_limit);
END $$;

-- The same for people: the role inlet_reader may call it.
CREATE OR REPLACE FUNCTION v1_reader_search(p_text text, p_limit int)
RETURNS TABLE (at timestamptz, agent text, destination text, state text, root text, path text, name text, size bigint,
    mtime bigint, key text, url text, sha256 text, labels jsonb) LANGUAGE sql AS
$$ SELECT * FROM inlet._search(p_text, p_limit) $$;

-- The fleet's page, with an agent's own rights: {status, agents, places}.
CREATE OR REPLACE FUNCTION v1_overview(p_agent int, p_token bytea, p_session bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM inlet._enter(p_agent, p_token, p_session, 0, false, false);
    RETURN (SELECT jsonb_build_object('status', to_jsonb(s),
        -- With what an agent needs to name the others after a loss of commits.
        'agents', (SELECT coalesce(
                jsonb_agg(to_jsonb(a) || jsonb_build_object('journal', x.journal) ORDER BY a.name), '[]')
            FROM inlet.agents a JOIN inlet.agent x ON x.id = a.id),
        'places', (SELECT coalesce(jsonb_agg(to_jsonb(p) ORDER BY p.name), '[]') FROM inlet.places p))
    FROM inlet.status s);
END $$;
