-- Whose wine is it? A linear model, with metrics of our choice, and a second version of the same model.

SELECT alcohol, malic_acid, magnesium, flavanoids, color_intensity, hue, proline, cultivar
FROM wine
TO TRAIN LinearClassifier
WITH validation.metrics = "accuracy, f1", train.seed = 1
COLUMN LOG(proline), LOG(magnesium)
LABEL cultivar
VALIDATE 0.3
INTO wines;

-- A model is a name; training again adds a version. Class names become columns of the prediction.
SELECT alcohol, malic_acid, magnesium, flavanoids, color_intensity, hue, proline, cultivar
FROM wine
TO TRAIN DNNClassifier
WITH validation.metrics = "accuracy, f1", train.seed = 1, train.epoch = 60, optimizer = rmsprop
COLUMN LOG(proline), LOG(magnesium), BUCKETIZE(hue, 4)
LABEL cultivar
VALIDATE 0.3
INTO wines;

SELECT * FROM wine WHERE id % 30 = 0
TO PREDICT USING wines;
