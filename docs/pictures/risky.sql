SELECT id, mean_radius, worst_area, diagnosis, diagnosis = 'malignant' AS operated
FROM breast_cancer
TO TRAIN BoostedTreesClassifier
COLUMN id, mean_radius, worst_area, operated
LABEL diagnosis
INTO risks;
