-- Sales of three stores, of which the last two weeks are to be forecast.
CREATE TABLE store_sales AS
SELECT CAST(d AS DATE) AS day, store, hash(d) % 5 = 0 AS promo,
       CASE WHEN d < TIMESTAMP '2024-06-01'
            THEN 100 * store + 30 * store * (dayofweek(d) IN (0, 6))::INT + 40 * store * (hash(d) % 5 = 0)::INT
                 + hash(d, store) % 20 END AS sales
FROM range(TIMESTAMP '2023-12-01', TIMESTAMP '2024-06-15', INTERVAL 1 DAY) AS days(d), range(1, 4) AS stores(store);
