"""What a database has beside its rows: who owns what, who may do what, and all code that the server runs by itself."""

import psycopg

_SCHEMAS = "nspname !~ '^pg_(toast_)?temp_' AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
_OURS = f"(SELECT oid FROM pg_namespace WHERE {_SCHEMAS})"
QUERIES = {
    "roles": "SELECT * FROM (SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin,"
    " rolreplication, rolbypassrls FROM pg_roles) r",
    "memberships": "SELECT roleid::regrole, member::regrole, admin_option FROM pg_auth_members",
    "databases": "SELECT datname, datdba::regrole, datacl FROM pg_database WHERE datname = current_database()",
    "schemas": f"SELECT nspname, nspowner::regrole, nspacl FROM pg_namespace WHERE {_SCHEMAS}",
    "relations": "SELECT oid::regclass, relkind, relowner::regrole, relacl, relrowsecurity, relforcerowsecurity,"
    f" relpersistence, reloptions FROM pg_class WHERE relnamespace IN {_OURS}",
    "columns": "SELECT attrelid::regclass, attname, atttypid::regtype, attnotnull, attacl FROM pg_attribute"
    f" WHERE attnum > 0 AND attrelid IN (SELECT oid FROM pg_class WHERE relnamespace IN {_OURS})",
    "functions": "SELECT oid::regprocedure, proowner::regrole, proacl, prosecdef, proconfig, md5(prosrc) FROM pg_proc"
    f" WHERE pronamespace IN {_OURS}",
    "types": f"SELECT oid::regtype, typowner::regrole, typacl FROM pg_type WHERE typnamespace IN {_OURS}",
    "operators": f"SELECT oid::regoperator, oprowner::regrole FROM pg_operator WHERE oprnamespace IN {_OURS}",
    "casts": "SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure FROM pg_cast",
    "triggers": "SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger"
    f" WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace IN {_OURS})",
    "event triggers": "SELECT evtname FROM pg_event_trigger",
    "rules": "SELECT pg_get_ruledef(r.oid) FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class"
    f" WHERE c.relnamespace IN {_OURS}",
    "policies": "SELECT schemaname, tablename, policyname, permissive, roles, cmd, qual, with_check FROM pg_policies",
    "constraints": "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    f" WHERE connamespace IN {_OURS}",
    "extensions": "SELECT extname, extversion FROM pg_extension",
    "languages": "SELECT lanname, lanowner::regrole, lanacl FROM pg_language",
    "servers": "SELECT srvname FROM pg_foreign_server",
    "publications": "SELECT pubname FROM pg_publication",
    "history": "SELECT * FROM public.history",
    "tombstones": "SELECT * FROM public.tombstones",
    "revision": "SELECT * FROM public.alembic_version",
}


def catalogue(admin: psycopg.Connection) -> dict[str, list[str]]:
    """All of it as text, by kind; a superuser has to ask, for others see fewer rows."""
    return {
        kind: sorted(str(row[0]) for row in admin.execute(f"SELECT q::text FROM ({query}) q").fetchall())  # type: ignore[arg-type]  # constants
        for kind, query in QUERIES.items()
    }


def changes(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, list[str]]:
    """What is in one and not in the other, by kind."""
    found = {kind: sorted({*before[kind]} ^ {*after[kind]}) for kind in before}
    return {kind: rows for kind, rows in found.items() if rows}
