-- How late will a flight arrive? From what is known before it departs: its schedule, its plane, the weather at its
-- airport, and how late that plane was on its last flight from New York on the same day, once that has landed, with
-- the time there was for the way back. Trained on the first ten months, measured on the last two.

DROP VIEW IF EXISTS departures;

CREATE VIEW departures AS
SELECT
    legs.carrier, legs.origin, legs.dest, legs.weekday, legs.hour, legs.minute, legs.distance,
    (legs.sched_arr_time - legs.sched_arr_time % 100) * 0.6 + legs.sched_arr_time % 100 AS arrives,
    CASE WHEN legs.departs - legs.last_departs >= legs.last_flew + legs.last_late + 30
         THEN legs.last_late ELSE 0 END AS inbound_late,
    CASE WHEN legs.departs - legs.last_departs >= 60
         THEN legs.departs - legs.last_departs - 2 * legs.last_flew ELSE 400 END AS slack,
    weather.temp, weather.humid, weather.wind_speed, weather.precip, weather.visib, weather.pressure,
    planes.year AS built, planes.seats,
    legs.arr_delay, legs.month
FROM (
    SELECT
        flights.*, hour * 60 + minute AS departs,
        DENSE_RANK() OVER (ORDER BY month, day) % 7 AS weekday,
        LAG(hour * 60 + minute) OVER same_plane AS last_departs,
        LAG(air_time) OVER same_plane AS last_flew,
        LAG(arr_delay) OVER same_plane AS last_late
    FROM flights
    WINDOW same_plane AS (PARTITION BY tailnum, month, day ORDER BY hour, minute, flight)
) AS legs
LEFT JOIN weather ON weather.origin = legs.origin AND weather.time_hour = legs.time_hour
LEFT JOIN planes ON planes.tailnum = legs.tailnum
WHERE legs.arr_delay IS NOT NULL;

SELECT carrier, origin, dest, weekday, hour, minute, distance, arrives, inbound_late, slack,
       temp, humid, wind_speed, precip, visib, pressure, built, seats, arr_delay
FROM departures WHERE month <= 10
TO TRAIN DNNRegressor
WITH model.framework = torch, model.hidden_units = [128, 64], model.dropout = 0.2,
     optimizer.learning_rate = 0.001, train.epoch = 5
COLUMN VOCABULARIZE(weekday), VOCABULARIZE(hour),
       BUCKETIZE(precip, boundaries=[0.001, 0.01, 0.05, 0.2]), EMBEDDING(dest, 8)
LABEL arr_delay
INTO lateness;

SELECT * FROM departures WHERE month > 10
TO EVALUATE lateness
WITH validation.metrics = "rmse, mae, r2";
