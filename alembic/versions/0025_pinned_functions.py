"""Functions that cannot be shadowed: each one's search path is fixed, and names the tables' schema.

A function that runs as the owner looked for its tables in the caller's temporary schema first: the application's role
could put a table of its own there, with a trigger, whose code then ran as the owner.
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

PATH = "pg_catalog, public, pg_temp"
_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_WORDLESS = "old_ref = NULL, new_ref = NULL, meta = '{}', salt = NULL"
PURGED = f"""
CREATE OR REPLACE FUNCTION public.history_purged(purges uuid[]) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = {PATH}
AS $$
WITH gone AS (
SELECT p.tenant_id, p.id, p.memory_id, p.of_user FROM public.history p
 WHERE p.tenant_id = {_TENANT} AND p.id = ANY(purges) AND p.event = 'PURGE'
   AND NOT EXISTS (SELECT 1 FROM public.memories m WHERE m.tenant_id = p.tenant_id AND m.id = p.memory_id)),
own AS (
UPDATE public.history h SET {_WORDLESS}, erased_by = gone.id FROM gone
 WHERE h.tenant_id = gone.tenant_id AND h.memory_id = gone.memory_id AND h.id <> gone.id AND h.erased_by IS NULL
RETURNING 1),
quoting AS (
UPDATE public.history h SET {_WORDLESS}, erased_by = gone.id FROM gone
 WHERE h.tenant_id = gone.tenant_id AND h.of_user = gone.of_user AND h.event = 'SUPERSEDE'
   AND h.meta ->> 'superseded_by' = gone.memory_id::text AND h.memory_id <> gone.memory_id AND h.erased_by IS NULL
RETURNING 1)
SELECT (SELECT count(*) FROM own) + (SELECT count(*) FROM quoting) $$"""  # noqa: S608 - our own names
ERASED = f"""
CREATE OR REPLACE FUNCTION public.history_erased(receipt uuid, memory_ids uuid[], most integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = {PATH}
AS $$
WITH running AS (
SELECT e.tenant_id, e.id, e.of_user FROM public.erasures e
 WHERE e.tenant_id = {_TENANT} AND e.id = receipt AND e.finished_at IS NULL AND e.of_user IS NOT NULL),
wanted AS (
(SELECT h.id FROM public.history h JOIN running r ON h.tenant_id = r.tenant_id AND h.of_user = r.of_user LIMIT most)
 UNION
SELECT h.id FROM public.history h JOIN running r ON h.tenant_id = r.tenant_id
  JOIN public.memories m ON m.tenant_id = h.tenant_id AND m.id = h.memory_id AND m.user_id = r.of_user
 WHERE h.memory_id = ANY(memory_ids)),
done AS (
UPDATE public.history h SET {_WORDLESS}, of_user = NULL, erased_by = coalesce(h.erased_by, r.id),
       actor = CASE WHEN position(r.of_user IN h.actor) > 0 THEN 'erased' ELSE h.actor END
  FROM running r, wanted w WHERE h.tenant_id = r.tenant_id AND h.id = w.id AND h.id <> r.id
RETURNING 1)
SELECT count(*) FROM done $$"""  # noqa: S608 - our own names
SEALED = f"""
CREATE OR REPLACE FUNCTION public.history_sealed(
  ids uuid[], salts bytea[], hashes bytea[], links bytea[], first bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = {PATH}
AS $$
WITH done AS (
UPDATE public.history h SET salt = s.salt, payload_hash = s.hash, link = s.link, position = first + s.place - 1
  FROM unnest(ids, salts, hashes, links) WITH ORDINALITY AS s (id, salt, hash, link, place)
 WHERE h.tenant_id = {_TENANT} AND h.id = s.id AND h.position IS NULL
RETURNING 1)
SELECT count(*) FROM done $$"""  # noqa: S608 - our own names
NOTED = f"""
CREATE OR REPLACE FUNCTION public.sources_noted() RETURNS trigger LANGUAGE plpgsql SET search_path = {PATH}
AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM public.memory_sources s WHERE s.tenant_id = NEW.tenant_id AND s.memory_id = NEW.id
       AND s.source_id <> ALL (NEW.source_ids);
  END IF;
  INSERT INTO public.memory_sources (tenant_id, source_id, memory_id)
  SELECT DISTINCT NEW.tenant_id, s, NEW.id FROM unnest(NEW.source_ids) s ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$"""  # noqa: S608 - our own names
REMOVED = f"""
CREATE OR REPLACE FUNCTION public.units_removed() RETURNS trigger LANGUAGE plpgsql SET search_path = {PATH}
AS $$
BEGIN
  INSERT INTO public.unit_removals (tenant_id, user_id, removed_in)
  SELECT DISTINCT tenant_id, user_id, pg_current_xact_id()::text::bigint FROM removed ORDER BY tenant_id, user_id
      ON CONFLICT (tenant_id, user_id) DO UPDATE SET removed_in = excluded.removed_in;
  RETURN NULL;
END $$"""  # noqa: S608 - our own names
DEFINERS = (
    "history_purged(uuid[])",
    "history_erased(uuid, uuid[], integer)",
    "history_sealed(uuid[], bytea[], bytea[], bytea[], bigint)",
)
TRIGGERS = ("sources_noted()", "units_removed()", "unit_changed()")


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for body in (PURGED, ERASED, SEALED, NOTED, REMOVED):
            op.execute(body)
        op.execute(f"ALTER FUNCTION public.unit_changed() SET search_path = {PATH}")


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":  # the bodies mean the same tables as before
        for function in DEFINERS:
            op.execute(f"ALTER FUNCTION public.{function} SET search_path FROM CURRENT")
        for function in TRIGGERS:
            op.execute(f"ALTER FUNCTION public.{function} RESET search_path")
