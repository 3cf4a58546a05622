SELECT * FROM (
SELECT a FROM visits
) AS edl_query LIMIT 0;
SELECT CASE WHEN table_schema = CURRENT_SCHEMA() THEN '' ELSE table_schema END AS home, table_name FROM information_schema.tables WHERE table_schema <> 'INFORMATION_SCHEMA' ORDER BY 1, 2;
SELECT database_name FROM information_schema.databases ORDER BY 1;
SELECT table_type, comment FROM information_schema.tables WHERE table_schema = 'SHOP' AND table_name = 'GUESSES';
SELECT table_type, comment FROM information_schema.tables WHERE table_schema = CURRENT_SCHEMA() AND table_name = 'GUESSES';
DROP TABLE IF EXISTS "SHOP"."NEW";
CREATE TABLE "SHOP"."NEW" ("WHOLE" BIGINT, "SMALL" TINYINT, "LARGE" DECIMAL(20, 0), "X" DOUBLE, "NEAR" FLOAT, "EXACT" DECIMAL(10, 2), "YES" BOOLEAN, "TEXT" VARCHAR, "RAW" BINARY, "DAY" DATE, "CLOCK" TIME, "AT" TIMESTAMP_NTZ, "MOMENT" TIMESTAMP_TZ, "NUMBERS" ARRAY, "Größe \ 'x'" VARCHAR) COMMENT = 'made by sqlflow-edl, job it\'s';
ALTER TABLE "SHOP"."NEW" RENAME TO "SHOP"."GUESSES";
ALTER TABLE "SHOP"."GUESSES" SWAP WITH "SHOP"."NEW";
ALTER TABLE "SHOP"."OLD" RENAME TO "SHOP"."GUESSES";
DROP TABLE IF EXISTS "SHOP"."OLD";
SELECT a FROM visits WHERE day > CAST('2024-01-02' AS DATE) AND text = 'it\'s \\' AND x < CAST('0.5' AS DOUBLE);
