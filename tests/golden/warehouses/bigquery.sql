DROP TABLE IF EXISTS `shop`.`new`;
CREATE TABLE `shop`.`new` (`whole` INT64, `small` INT64, `large` NUMERIC, `x` FLOAT64, `near` FLOAT64, `exact` NUMERIC(10, 2), `yes` BOOL, `text` STRING, `raw` BYTES, `day` DATE, `clock` TIME, `at` DATETIME, `moment` TIMESTAMP, `numbers` ARRAY<FLOAT64>, `Größe \\ 'x'` STRING) OPTIONS (description = 'made by sqlflow-edl, job it\'s');
ALTER TABLE `shop`.`new` RENAME TO `guesses`;
CREATE OR REPLACE TABLE `shop`.`guesses` COPY `shop`.`new`;
ALTER TABLE `shop`.`old` RENAME TO `guesses`;
DROP TABLE IF EXISTS `shop`.`old`;
SELECT a FROM visits WHERE day > CAST('2024-01-02' AS DATE) AND text = 'it\'s \\' AND x < CAST('0.5' AS FLOAT64);
