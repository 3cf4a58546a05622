SELECT * EXCLUDE (id) FROM iris
TO TRAIN BoostedTreesClassifier WITH model.num_leaves = CANDIDATES(4, 16)
LABEL species
INTO tuned;

SHOW TRIALS tuned;
