-- trees@2, a BoostedTreesClassifier, as a query over the columns amount, ci ty.
-- It computes in double precision; numbers that PREDICT computes in float32 differ by about 1e-6 of their size.
WITH given AS MATERIALIZED (
  SELECT
    "amount" AS c0_amount,
    "ci ty" AS c1_ci_ty
  FROM rows
),
numbers AS MATERIALIZED (
  SELECT
    c1_ci_ty,
    CASE
      WHEN CAST(c0_amount AS DOUBLE PRECISION) BETWEEN -1.7976931348623157e+308 AND 1.7976931348623157e+308 THEN CAST(c0_amount AS DOUBLE PRECISION)
    END AS n0_amount
  FROM given
),
ids AS MATERIALIZED (
  SELECT
    n0_amount,
    CASE c1_ci_ty WHEN 'O''slo' THEN 0 WHEN 'b\' THEN 1 ELSE 2 END AS i0_ci_ty
  FROM numbers
),
trees AS MATERIALIZED (
  SELECT
    CAST(
      CASE
        WHEN n0_amount <= 0.09999999776482582e0 OR n0_amount IS NULL THEN
          CASE
            WHEN i0_ci_ty IN (1) THEN -0.5e0
            ELSE 1e0
          END
        ELSE 0.25e0
      END
      AS DOUBLE PRECISION) AS t0,
    0.125e0 AS t1
  FROM ids
),
outputs AS MATERIALIZED (
  SELECT
    CAST(0.5e0 + t0 + t1 AS DOUBLE PRECISION) AS o0
  FROM trees
),
sigmoids AS MATERIALIZED (
  SELECT
    1e0 / (1e0 + EXP(-(CASE WHEN o0 > 700e0 THEN 700e0 WHEN o0 < -700e0 THEN -700e0 ELSE o0 END))) AS q1
  FROM outputs
),
probabilities AS MATERIALIZED (
  SELECT
    1e0 - q1 AS p0,
    q1 AS p1
  FROM sigmoids
),
chosen AS MATERIALIZED (
  SELECT
    p0,
    p1,
    GREATEST(p0, p1) AS top
  FROM probabilities
)
SELECT
  CASE top WHEN p0 THEN FALSE ELSE TRUE END AS "is_large",
  top AS "is_large_confidence",
  p0 AS "is_large_prob_false",
  p1 AS "is_large_prob_true"
FROM chosen;
