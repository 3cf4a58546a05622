-- Benign or malignant? There is no COLUMN clause: each selected column becomes a feature by its type. In PyTorch.

DROP VIEW IF EXISTS tumours;

CREATE VIEW tumours AS
SELECT
    mean_radius, mean_texture, mean_smoothness, mean_concavity, mean_symmetry,
    worst_radius, worst_texture, worst_smoothness, worst_concavity, worst_symmetry,
    diagnosis, id
FROM breast_cancer;

SELECT mean_radius, mean_texture, mean_smoothness, mean_concavity, mean_symmetry,
       worst_radius, worst_texture, worst_smoothness, worst_concavity, worst_symmetry, diagnosis
FROM tumours WHERE id % 4 > 0
TO TRAIN DNNClassifier
WITH model.framework = torch, model.hidden_units = [32, 16], model.dropout = 0.2
LABEL diagnosis
INTO tumour;

SELECT * FROM tumours WHERE id % 4 = 0
TO EVALUATE tumour
WITH validation.metrics = "auc, accuracy, recall"
INTO tumour_quality;

SELECT * FROM tumour_quality;

-- Those that it gets wrong.
SELECT * FROM tumours WHERE id % 4 = 0
TO PREDICT tumour_guesses.guess
USING tumour;

SELECT id, diagnosis, guess, guess_confidence
FROM tumour_guesses
WHERE diagnosis <> guess
ORDER BY id;
