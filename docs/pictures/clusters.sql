SELECT sepal_length, sepal_width, petal_length, petal_width FROM iris
TO TRAIN KMeans WITH model.n_clusters = 3 INTO flower_groups;
SELECT * FROM iris TO PREDICT grouped_flowers.cluster USING flower_groups;
SELECT cluster, species, COUNT(*) AS flowers FROM grouped_flowers
GROUP BY cluster, species ORDER BY cluster, species;
