DESCRIBE TABLE (
SELECT a FROM visits
);
SELECT * FROM (
SELECT CAST("a", 'DateTime64(0)') AS "a" FROM (
SELECT a FROM visits
)
) AS edl_query LIMIT 0;
SELECT if(database = currentDatabase(), '', database), name FROM system.tables WHERE lower(database) NOT IN ('system', 'information_schema') AND NOT is_temporary ORDER BY 1, 2;
SELECT name FROM system.databases WHERE lower(name) NOT IN ('system', 'information_schema') ORDER BY 1;
SELECT engine, comment FROM system.tables WHERE database = 'shop' AND name = 'guesses';
SELECT engine, comment FROM system.tables WHERE database = currentDatabase() AND name = 'guesses';
DROP TABLE IF EXISTS "shop"."new";
CREATE TABLE "shop"."new" ("whole" Nullable(Int64), "small" Nullable(Int8), "large" Nullable(UInt64), "x" Nullable(Float64), "near" Nullable(Float32), "exact" Nullable(Decimal(10, 2)), "yes" Nullable(Bool), "text" Nullable(String), "raw" Nullable(String), "day" Nullable(Date32), "clock" Nullable(Time64(6)), "at" Nullable(DateTime64(6, 'UTC')), "moment" Nullable(DateTime64(6, 'UTC')), "numbers" Array(Nullable(Float64)), "Größe \\ 'x'" Nullable(String)) ENGINE = MergeTree ORDER BY tuple() COMMENT 'made by sqlflow-edl, job it\'s';
RENAME TABLE "shop"."new" TO "shop"."guesses";
EXCHANGE TABLES "shop"."new" AND "shop"."guesses";
RENAME TABLE "shop"."old" TO "shop"."guesses";
DROP TABLE IF EXISTS "shop"."old";
SELECT a FROM visits WHERE day > CAST('2024-01-02' AS Nullable(Date32)) AND text = 'it\'s \\' AND x < CAST('0.5' AS Nullable(Float64));
