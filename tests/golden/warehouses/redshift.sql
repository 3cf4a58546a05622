SELECT * FROM (
SELECT a FROM visits
) AS edl_query LIMIT 0;
SELECT CASE WHEN nspname = current_schema() THEN '' ELSE nspname END AS home, relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE relkind IN ('r', 'v') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'pg_internal', 'catalog_history') ORDER BY 1, 2;
SELECT datname FROM pg_database WHERE datname NOT LIKE 'template%' ORDER BY datname;
SELECT CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind, obj_description(c.oid, 'pg_class') AS mark FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE relkind IN ('r', 'v') AND nspname = 'shop' AND relname = 'guesses';
SELECT CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind, obj_description(c.oid, 'pg_class') AS mark FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE relkind IN ('r', 'v') AND nspname = current_schema() AND relname = 'guesses';
DROP TABLE IF EXISTS "shop"."new";
CREATE TABLE "shop"."new" ("whole" BIGINT, "small" SMALLINT, "large" DECIMAL(20, 0), "x" DOUBLE PRECISION, "near" REAL, "exact" DECIMAL(10, 2), "yes" BOOLEAN, "text" VARCHAR(65535), "raw" VARBYTE, "day" DATE, "clock" TIME, "at" TIMESTAMP, "moment" TIMESTAMP WITH TIME ZONE, "numbers" SUPER, "größe \ 'x'" VARCHAR(65535));
COMMENT ON TABLE "shop"."new" IS 'made by sqlflow-edl, job it\'s';
BEGIN;
ALTER TABLE "shop"."new" RENAME TO "guesses";
COMMIT;
BEGIN;
ALTER TABLE "shop"."guesses" RENAME TO "old";
ALTER TABLE "shop"."new" RENAME TO "guesses";
COMMIT;
ALTER TABLE "shop"."old" RENAME TO "guesses";
DROP TABLE IF EXISTS "shop"."old";
SELECT a FROM visits WHERE day > CAST('2024-01-02' AS DATE) AND text = 'it\'s \\' AND x < CAST('0.5' AS DOUBLE PRECISION);
