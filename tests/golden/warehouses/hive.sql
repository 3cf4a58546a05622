SELECT * FROM (
SELECT a FROM visits
) AS edl_query LIMIT 0;
SHOW TABLES;
SHOW DATABASES;
SHOW TABLES IN `shop` LIKE 'guesses';
SHOW TABLES LIKE 'guesses';
DROP TABLE IF EXISTS `shop`.`new`;
CREATE TABLE `shop`.`new` (`whole` BIGINT, `small` TINYINT, `large` DECIMAL(20, 0), `x` DOUBLE, `near` FLOAT, `exact` DECIMAL(10, 2), `yes` BOOLEAN, `text` STRING, `raw` BINARY, `day` DATE, `clock` STRING, `at` TIMESTAMP, `moment` TIMESTAMP, `numbers` ARRAY<DOUBLE>, `größe \ 'x'` STRING) STORED AS PARQUET TBLPROPERTIES ('sqlflow_edl' = 'made by sqlflow-edl, job it\'s');
ALTER TABLE `shop`.`new` RENAME TO `shop`.`guesses`;
ALTER TABLE `shop`.`guesses` RENAME TO `shop`.`old`;
ALTER TABLE `shop`.`new` RENAME TO `shop`.`guesses`;
ALTER TABLE `shop`.`old` RENAME TO `shop`.`guesses`;
DROP TABLE IF EXISTS `shop`.`old`;
SELECT a FROM visits WHERE day > CAST('2024-01-02' AS DATE) AND text = 'it\'s \\' AND x < CAST('0.5' AS DOUBLE);
