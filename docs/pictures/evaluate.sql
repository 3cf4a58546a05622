SELECT * FROM breast_cancer WHERE id % 5 = 0 TO EVALUATE tumours;
SELECT * FROM breast_cancer WHERE id % 5 = 0 TO EVALUATE tumours
WITH evaluate.report = confusion_matrix;
