-- How late will a flight arrive? From what is known before it departs: its schedule, its plane, and the weather at its
-- airport. Trained on the first ten months, measured on the last two.

CREATE VIEW IF NOT EXISTS departures AS
SELECT
    flights.carrier, flights.origin, flights.dest, flights.hour, flights.sched_arr_time, flights.distance,
    weather.temp, weather.dewp, weather.humid, weather.wind_speed, weather.precip, weather.visib, weather.pressure,
    planes.year AS built, planes.seats, planes.manufacturer,
    flights.arr_delay, flights.month
FROM flights
LEFT JOIN weather ON weather.origin = flights.origin AND weather.time_hour = flights.time_hour
LEFT JOIN planes ON planes.tailnum = flights.tailnum
WHERE flights.arr_delay IS NOT NULL;

SELECT carrier, origin, dest, hour, sched_arr_time, distance, temp, dewp, humid, wind_speed, precip, visib, pressure,
       built, seats, manufacturer, arr_delay
FROM departures WHERE month <= 10
TO TRAIN DNNRegressor
WITH model.framework = torch, model.hidden_units = [64, 32], model.dropout = 0.3,
     optimizer.learning_rate = 0.0005, train.epoch = 2
COLUMN VOCABULARIZE(hour), BUCKETIZE(precip, boundaries=[0.001, 0.01, 0.05, 0.2]), EMBEDDING(dest, 8)
LABEL arr_delay
INTO lateness;

SELECT * FROM departures WHERE month > 10
TO EVALUATE lateness
WITH validation.metrics = "rmse, mae, r2";
