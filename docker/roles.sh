#!/bin/sh
# Runs once, when the database container makes its cluster: the database, its owner, the application's role, which is
# neither, and the worker's, which sees the queue of jobs alone. The passwords come from the environment and stay off command lines and out of the log.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
SET log_min_error_statement = panic;
\getenv owner_password MEMPLANE_OWNER_PASSWORD
\getenv app_password MEMPLANE_APP_PASSWORD
\getenv worker_password MEMPLANE_WORKER_PASSWORD
CREATE ROLE memplane_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE memplane_app LOGIN PASSWORD :'app_password';
CREATE ROLE memplane_worker LOGIN PASSWORD :'worker_password';
CREATE DATABASE memplane OWNER memplane_owner;
REVOKE ALL ON DATABASE memplane FROM PUBLIC;
GRANT CONNECT ON DATABASE memplane TO memplane_app, memplane_worker;
\connect memplane
CREATE EXTENSION vector;
ALTER SCHEMA public OWNER TO memplane_owner;
SQL
