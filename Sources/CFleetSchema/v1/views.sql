
-- --------------------------------------------------------------------------------------------------------------- views

CREATE OR REPLACE VIEW agents AS
SELECT a.id, a.name, a.tag, a.state, a.version, a.about, nullif(b.at, '-infinity') AS last_seen,
    coalesce(b.until > clock_timestamp(), false) AS alive, a.epoch >= f.epoch AS reported, r.at AS report_at,
    r.body AS report
FROM agent a LEFT JOIN beat b ON b.agent = a.id LEFT JOIN report r ON r.agent = a.id CROSS JOIN fleet f;

CREATE OR REPLACE VIEW places AS
SELECT p.id, p.name, p.fence, p.held_since, h.name AS holder,
    coalesce(b.until > clock_timestamp() AND b.session = p.session, false) AS held,
    ARRAY(SELECT a.name FROM member m JOIN agent a ON a.id = m.agent WHERE m.place = p.id ORDER BY a.name) AS members,
    -- For people: no more than 100,000 are counted.
    (SELECT count(*) FROM (SELECT FROM work w WHERE w.place = p.id AND w.state = 'r' LIMIT 100000) x)::int AS waiting,
    (SELECT count(*) FROM (SELECT FROM work w WHERE w.place = p.id AND w.state = 'c' LIMIT 100000) x)::int AS claimed
FROM place p LEFT JOIN agent h ON h.id = p.holder LEFT JOIN beat b ON b.agent = p.holder;

CREATE OR REPLACE VIEW destinations AS
SELECT d.id, d.type, d.label, d.creates, d.bandwidth, d.slots,
    CASE WHEN d.by_admin THEN 'an administrator' ELSE (
        SELECT a.name FROM named_limit l JOIN agent a ON a.id = l.agent
        WHERE l.destination = d.id AND a.state <> 'retired' ORDER BY l.at, l.agent LIMIT 1) END AS limited_by
FROM destination d;

CREATE OR REPLACE VIEW receipts AS
SELECT r.at, a.name AS agent, d.label AS destination, r.state, r.root, r.path, r.name, r.size, r.mtime, r.key, r.url,
    encode(r.sha256, 'hex') AS sha256, r.labels
FROM receipt r JOIN agent a ON a.id = r.agent LEFT JOIN destination d ON d.id = r.destination;

CREATE OR REPLACE VIEW status AS
SELECT f.id, f.name, f.state, f.why, f.since, f.epoch,
    (extract(epoch FROM f.ttl) * 1000)::int AS ttl_ms, f.receipts_days, f.join_hash IS NOT NULL AS joinable,
    (SELECT max(version) FROM migration) AS version,
    CASE WHEN f.state = 'recovering' THEN ARRAY(
        SELECT a.name FROM agent a WHERE a.state <> 'retired' AND a.epoch < f.epoch ORDER BY a.name)
    ELSE '{}' END AS waiting_for,
    CASE WHEN f.synchronous_at IS NULL THEN 'reports'
        WHEN f.synchronous_at > clock_timestamp() - interval '2 min' THEN 'lossless' ELSE 'doubtful' END AS failover
FROM fleet f;
