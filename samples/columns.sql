-- What a column can become: the COLUMN language on the planes of New York's airports. How many seats has a plane?

SELECT manufacturer, model, engine, engines, type, year, seats
FROM planes WHERE year IS NOT NULL
TO TRAIN DNNRegressor
WITH train.epoch = 10, model.framework = torch
COLUMN
    engines,                                        -- a number, standardised
    BUCKETIZE(year, 6) AS era,                      -- its sixth of all years
    EMBEDDING(VOCABULARIZE(model, min_count=2), 8), -- a vector for each model that occurs twice
    INDICATOR(engine),                              -- a 1 at the engine's place in the vocabulary
    CATEGORY_HASH(manufacturer, 50),                -- one of 50 buckets
    EMBEDDING(CROSS([type, engine], 20), 4)         -- a vector for each pair, by hash
LABEL seats
INTO plane_seats;

SELECT tailnum, manufacturer, model, engine, engines, type, year, seats
FROM planes WHERE tailnum IN ('N10156', 'N102UW', 'N999DN')
TO PREDICT USING plane_seats;
