
-- -------------------------------------------------------------------------------------------------------------- rights

SELECT _upkeep();
DO $$ DECLARE r record; BEGIN
    FOR r IN SELECT p.oid::regprocedure AS f, p.proname AS name FROM pg_proc p
        WHERE p.pronamespace = 'inlet'::regnamespace
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', r.f);
        CONTINUE WHEN r.name NOT LIKE 'v1\_%';
        -- They act with the owner's rights, and find names in no schema that others may write to.
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', r.f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', r.f,
            CASE WHEN r.name LIKE 'v1\_admin\_%' THEN 'inlet_admin'
            WHEN r.name LIKE 'v1\_reader\_%' THEN 'inlet_reader' ELSE 'inlet_agent' END);
    END LOOP;
END $$;
REVOKE ALL ON ALL TABLES IN SCHEMA inlet FROM PUBLIC;
GRANT USAGE ON SCHEMA inlet TO inlet_agent, inlet_reader, inlet_admin;
GRANT SELECT ON agents, places, destinations, receipts, status, migration, event TO inlet_reader;
INSERT INTO migration (version) VALUES (1) ON CONFLICT DO NOTHING;
COMMIT;
