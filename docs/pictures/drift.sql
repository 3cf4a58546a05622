SELECT mean_radius * 1.3 AS mean_radius,
       mean_texture, mean_smoothness, mean_concavity, mean_symmetry
FROM breast_cancer WHERE id % 5 = 0
TO PREDICT USING tumours WITH predict.report = drift;
