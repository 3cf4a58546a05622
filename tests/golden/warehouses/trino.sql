SELECT * FROM (
SELECT a FROM visits
) AS edl_query LIMIT 0;
SELECT '' AS home, table_name FROM information_schema.tables WHERE table_schema = current_schema ORDER BY table_name;
SELECT schema_name FROM information_schema.schemata ORDER BY schema_name;
SELECT t.table_type, c.comment FROM information_schema.tables t LEFT JOIN system.metadata.table_comments c ON c.catalog_name = current_catalog AND c.schema_name = t.table_schema AND c.table_name = t.table_name WHERE t.table_schema = 'shop' AND t.table_name = 'guesses';
SELECT t.table_type, c.comment FROM information_schema.tables t LEFT JOIN system.metadata.table_comments c ON c.catalog_name = current_catalog AND c.schema_name = t.table_schema AND c.table_name = t.table_name WHERE t.table_schema = current_schema AND t.table_name = 'guesses';
DROP TABLE IF EXISTS "shop"."new";
CREATE TABLE "shop"."new" ("whole" BIGINT, "small" INTEGER, "large" DECIMAL(20, 0), "x" DOUBLE, "near" REAL, "exact" DECIMAL(10, 2), "yes" BOOLEAN, "text" VARCHAR, "raw" VARBINARY, "day" DATE, "clock" TIME(6), "at" TIMESTAMP(6), "moment" TIMESTAMP(6) WITH TIME ZONE, "numbers" ARRAY(DOUBLE), "größe \ 'x'" VARCHAR) COMMENT 'made by sqlflow-edl, job it''s';
ALTER TABLE "shop"."new" RENAME TO "shop"."guesses";
ALTER TABLE "shop"."guesses" RENAME TO "shop"."old";
ALTER TABLE "shop"."new" RENAME TO "shop"."guesses";
ALTER TABLE "shop"."old" RENAME TO "shop"."guesses";
DROP TABLE IF EXISTS "shop"."old";
SELECT a FROM visits WHERE day > CAST('2024-01-02' AS DATE) AND text = 'it''s \' AND x < CAST('0.5' AS DOUBLE);
