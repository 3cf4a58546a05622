-- Which iris is it? Train on 100 flowers, measure on the other 50, name the species of each.
--
--     sqlflow run samples/iris.sql --source duckdb:///demo/demo.duckdb --create

CREATE SCHEMA IF NOT EXISTS iris;
CREATE OR REPLACE TABLE iris.train AS SELECT * FROM 'samples/data/iris.csv' WHERE id % 3 <> 1;
CREATE OR REPLACE TABLE iris.test AS SELECT * FROM 'samples/data/iris.csv' WHERE id % 3 = 1;

SELECT * EXCLUDE (id) FROM iris.train
TO TRAIN DNNClassifier
WITH model.n_classes = 3, model.hidden_units = [10, 20]
COLUMN sepal_length, sepal_width, petal_length, petal_width
LABEL species
INTO sqlflow_models.my_dnn_model;

SELECT * FROM iris.test
TO EVALUATE sqlflow_models.my_dnn_model
LABEL species;

SELECT * FROM iris.test
TO PREDICT iris.predict.species_guess
USING sqlflow_models.my_dnn_model;

SELECT species, species_guess, count(*) AS flowers, avg(species_guess_prob) AS mean_probability
FROM iris.predict
GROUP BY ALL
ORDER BY ALL;
