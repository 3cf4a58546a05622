SELECT day, store, promo, sales FROM store_sales WHERE sales IS NOT NULL
TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 14,
     validation.metrics = mase
LABEL sales INTO sales_model;

SELECT day, store, promo, sales FROM store_sales
TO PREDICT next_sales.forecast USING sales_model;

SELECT store, SUM(forecast) FROM next_sales GROUP BY store ORDER BY store;
