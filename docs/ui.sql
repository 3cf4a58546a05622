-- What the pictures of docs/ui.md show.
SELECT mean_radius, mean_texture, mean_smoothness, mean_concavity, mean_symmetry, diagnosis FROM breast_cancer
TO TRAIN BoostedTreesClassifier WITH validation.metrics = "auc, accuracy, f1" VALIDATE 0.3 LABEL diagnosis INTO tumours;
