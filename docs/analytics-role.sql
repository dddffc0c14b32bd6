-- A role that reads the analytics views and nothing else. Run it as a role that may create roles:
--   psql "$DATABASE_URL" -v role=analyst -v password="'choose one'" -f docs/analytics-role.sql
CREATE ROLE :"role" LOGIN PASSWORD :password NOSUPERUSER NOCREATEDB NOCREATEROLE CONNECTION LIMIT 10;
ALTER ROLE :"role" SET default_transaction_read_only = on;
ALTER ROLE :"role" SET statement_timeout = '60s';
GRANT USAGE ON SCHEMA public TO :"role";
GRANT SELECT ON analytics_turn, analytics_session, analytics_fork_rate_hourly, analytics_redundancy TO :"role";
