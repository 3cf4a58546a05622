-- Benign or malignant? No COLUMN clause: each selected column becomes a feature by its type. In PyTorch.

CREATE OR REPLACE TABLE tumours AS SELECT * FROM 'samples/data/breast_cancer.csv';

SELECT * EXCLUDE (id) FROM tumours WHERE id % 4 > 0
TO TRAIN DNNClassifier
WITH model.framework = torch, model.hidden_units = [32, 16], model.dropout = 0.2
LABEL diagnosis
INTO tumour;

SELECT * FROM tumours WHERE id % 4 = 0
TO EVALUATE tumour
WITH validation.metrics = "auc, accuracy, recall"
INTO tumour_quality;

SELECT * FROM tumour_quality;

SELECT * FROM tumours WHERE id % 4 = 0
TO PREDICT tumour_guesses.guess
USING tumour;

SELECT id, diagnosis, guess, guess_prob
FROM tumour_guesses
WHERE diagnosis <> guess
ORDER BY id;
