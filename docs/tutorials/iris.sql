-- The statements of docs/tutorial.md: a network for the species of flowers.

SELECT species, count(*) AS flowers, avg(petal_length) AS petal_length
FROM iris GROUP BY species ORDER BY species;

SELECT sepal_length, sepal_width, petal_length, petal_width, species FROM iris WHERE id % 3 <> 1
TO TRAIN DNNClassifier WITH model.hidden_units = [10, 20]
LABEL species INTO flowers;

SELECT * FROM iris WHERE id % 3 = 1 TO EVALUATE flowers;
SELECT * FROM iris WHERE id % 3 = 1 TO EVALUATE flowers WITH evaluate.report = confusion_matrix;
SELECT * FROM iris TO EXPLAIN flowers;

SELECT * FROM iris WHERE id % 3 = 1 TO PREDICT guesses.guess USING flowers;

SELECT species, guess, count(*) AS flowers FROM guesses GROUP BY species, guess ORDER BY species;

SELECT * FROM iris WHERE id % 3 <> 1 TO TRAIN LinearClassifier LABEL species INTO flowers;
SHOW MODELS;
