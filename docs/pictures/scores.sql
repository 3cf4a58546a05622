SELECT * FROM breast_cancer
TO PREDICT scores.diagnosis USING tumours;
