CREATE TABLE toys AS
SELECT 'soldier' AS product, 27 AS price, 24 AS cost, 2 AS finishing, 1 AS carpentry, 40 AS most
UNION ALL SELECT 'train', 21, 19, 1, 1, 10000;

SELECT * FROM toys
TO MAXIMIZE SUM((price - cost) * amount)
CONSTRAINT SUM(finishing * amount) <= 100, SUM(carpentry * amount) <= 80, amount <= most
WITH variables = "amount(product)", var_type = "NonNegativeIntegers"
INTO plan_of_toys;

SELECT * FROM plan_of_toys;
