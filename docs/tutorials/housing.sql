-- What is a house worth, and why? Boosted trees, their errors, and what each column adds to a price.

CREATE OR REPLACE TABLE houses AS
SELECT id, 45 + hash('area' || id) % 150 AS area, 1 + hash('rooms' || id) % 6 AS rooms, 1900 + hash('built' || id) % 125 AS built,
       ['Harbour', 'Old town', 'Station', 'Hills'][1 + (hash('district' || id) % 4)::INT] AS district,
       hash('agent' || id) % 8 AS agent
FROM range(4000) AS ids(id);

CREATE OR REPLACE TABLE sales AS
SELECT *, (area * CASE district WHEN 'Harbour' THEN 5200 WHEN 'Old town' THEN 4600 WHEN 'Hills' THEN 4000 ELSE 2900 END
           * CASE WHEN built < 1940 AND district = 'Old town' THEN 1.25 WHEN built > 2000 THEN 1.15 ELSE 1 END
           + 12000 * rooms + hash('noise' || id) % 60000)::INT AS price
FROM houses;

SELECT area, rooms, built, district, agent, price FROM sales WHERE id % 5 > 0
TO TRAIN BoostedTreesRegressor WITH validation.metrics = "mae, r2"
LABEL price
INTO prices;

SELECT * FROM sales WHERE id % 5 = 0 TO EVALUATE prices WITH validation.metrics = "mae, r2";

SELECT * FROM sales WHERE id % 5 = 0 TO EXPLAIN prices;

SELECT * FROM sales WHERE id % 5 = 0 TO EXPLAIN prices INTO reasons;

SELECT district, CASE WHEN built < 1940 THEN 'before 1940' WHEN built > 2000 THEN 'after 2000' ELSE 'between' END AS age,
       round(avg(built_shap))::INT AS due_to_age
FROM reasons WHERE district IN ('Old town', 'Hills') GROUP BY ALL ORDER BY ALL;

SELECT 90 AS area, 4 AS rooms, 1925 AS built, 'Old town' AS district, 3 AS agent
TO PREDICT USING prices WITH predict.interval = 0.8;
