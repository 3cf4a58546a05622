-- Which iris is it? Train on 100 flowers, measure on the other 50, and name the species of each.
--
--     sqlflow samples --source duckdb:///demo.duckdb      makes the tables
--     sqlflow run samples/iris.sql --source duckdb:///demo.duckdb

SELECT sepal_length, sepal_width, petal_length, petal_width, species
FROM iris
WHERE id % 3 <> 1
TO TRAIN DNNClassifier
WITH model.n_classes = 3, model.hidden_units = [10, 20]
COLUMN sepal_length, sepal_width, petal_length, petal_width
LABEL species
INTO sqlflow_models.my_dnn_model;

SELECT * FROM iris WHERE id % 3 = 1
TO EVALUATE sqlflow_models.my_dnn_model
LABEL species;

-- The result keeps all columns, and adds the guess and its probabilities.
SELECT * FROM iris WHERE id % 3 = 1
TO PREDICT iris_guesses.guess
USING sqlflow_models.my_dnn_model;

SELECT species, guess, count(*) AS flowers, avg(guess_confidence) AS mean_probability
FROM iris_guesses
GROUP BY species, guess
ORDER BY species, guess;

-- Which columns does the model go by?
SELECT * FROM iris
TO EXPLAIN sqlflow_models.my_dnn_model;
