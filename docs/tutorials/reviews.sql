-- Was the customer content? Short texts, by runs of characters and by words.

CREATE OR REPLACE TABLE reviews AS
SELECT id, content,
       concat_ws(' ', ['I', 'We', 'My son', 'My neighbour'][1 + (hash('who' || id) % 4)::INT],
                 CASE WHEN content THEN ['love', 'recommend', 'would buy again', 'bought', 'use']
                      ELSE ['regret', 'cannot recommend', 'sent back', 'bought', 'use'] END[1 + (hash('verb' || id) % 5)::INT],
                 'this', ['kettle', 'lamp', 'radio', 'chair', 'jacket', 'tent'][1 + (hash('thing' || id) % 6)::INT],
                 ['because it is', 'as it is', 'which is', 'and it is'][1 + (hash('why' || id) % 4)::INT],
                 CASE WHEN content = (hash('irony' || id) % 10 > 0) THEN ['sturdy', 'quiet', 'comfortable', 'cheap', 'pretty']
                      ELSE ['broken', 'noisy', 'ugly', 'too small', 'expensive'] END[1 + (hash('how' || id) % 5)::INT]) AS review
FROM (SELECT id, hash('content' || id) % 2 = 0 AS content FROM range(6000) AS ids(id));

SELECT review, content FROM reviews WHERE id % 5 > 0
TO TRAIN LinearClassifier WITH model.framework = torch, train.epoch = 5, validation.metrics = accuracy
COLUMN NGRAMS(review, 3, 4096)
LABEL content
INTO moods;

SELECT string_split(lower(review), ' ') AS words, content FROM reviews WHERE id % 5 > 0
TO TRAIN DNNClassifier
WITH model.framework = torch, train.epoch = 5, model.members = 1, model.hidden_units = [32], validation.metrics = accuracy
COLUMN EMBEDDING(VOCABULARIZE(words), 8, mean)
LABEL content
INTO word_moods;

SELECT review, string_split(lower(review), ' ') AS words, content FROM reviews WHERE id % 5 = 0
TO EVALUATE moods WITH validation.metrics = accuracy;

SELECT string_split(lower(review), ' ') AS words, content FROM reviews WHERE id % 5 = 0
TO EVALUATE word_moods WITH validation.metrics = accuracy;

SELECT string_split('i cannot recommend this tent', ' ') AS words
UNION ALL SELECT string_split('a pretty lamp which we enjoy', ' ')
TO PREDICT USING word_moods;
