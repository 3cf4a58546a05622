-- shop.m@1, a DNNClassifier, as a query over the columns amount, ci ty, day, is_new.
-- It computes in double precision; numbers that PREDICT computes in float32 differ by about 1e-6 of their size.
-- It was never run on MaxCompute.
CREATE VIEW shop.kinds AS
WITH given AS (
  SELECT
    `id` AS k0,
    `na me` AS k1,
    `amount` AS c0_amount,
    `is_new` AS c3_is_new,
    `ci ty` AS c1_ci_ty,
    `day` AS c2_day
  FROM shop.rows
),
numbers AS (
  SELECT
    k0,
    k1,
    c1_ci_ty,
    CASE
      WHEN CAST(c0_amount AS DOUBLE) BETWEEN -1.7976931348623157e+308 AND 1.7976931348623157e+308 THEN CAST(c0_amount AS DOUBLE)
    END AS n0_amount,
    CASE WHEN c3_is_new THEN 1e0 WHEN NOT c3_is_new THEN 0e0 END AS n3_is_new,
    CAST(WEEKDAY(c2_day) + 1 AS BIGINT) AS d2_day_weekday
  FROM given
),
ids AS (
  SELECT
    k0,
    k1,
    n0_amount,
    n3_is_new,
    CASE c1_ci_ty WHEN 'O\'slo' THEN 0 WHEN 'b\\' THEN 1 ELSE 2 END AS i0_ci_ty,
    CASE WHEN d2_day_weekday BETWEEN 1 AND 7 THEN d2_day_weekday - 1 ELSE 7 END AS i1_day
  FROM numbers
),
scaled AS (
  SELECT
    k0,
    k1,
    i0_ci_ty,
    i1_day,
    n3_is_new,
    CASE
      WHEN n0_amount IS NULL THEN 0e0
      WHEN n0_amount < -8.044684757965557e+154 THEN 0e0
      WHEN n0_amount > 8.044684757965557e+154 THEN 0e0
      ELSE (n0_amount - 10e0) / 2e0
    END AS z0_amount,
    CASE
      WHEN n0_amount IS NULL THEN -1e0
      WHEN n0_amount <= 0e0 THEN 0e0
      WHEN n0_amount < 1e0 THEN (n0_amount - 0e0) * 1e0
      WHEN n0_amount < 5e0 THEN (n0_amount - 1e0) * 0.25e0 + 1e0
      ELSE 2e0
    END AS p0_amount
  FROM ids
),
rounded AS (
  SELECT
    k0,
    k1,
    i0_ci_ty,
    i1_day,
    n3_is_new,
    z0_amount,
    p0_amount * 536870913e0 - (p0_amount * 536870913e0 - p0_amount) AS r0_amount
  FROM scaled
),
features AS (
  SELECT
    k0,
    k1,
    i0_ci_ty,
    i1_day,
    CASE
      WHEN ABS(z0_amount) < 1e-100 THEN z0_amount
      ELSE z0_amount / SQRT(1e0 + (z0_amount / 3e0) * (z0_amount / 3e0))
    END AS x0_amount,
    CASE WHEN n3_is_new IS NULL THEN 0.5e0 ELSE n3_is_new END AS x1_is_new,
    CASE WHEN r0_amount >= 0e0 THEN 1e0 WHEN r0_amount > -1e0 THEN r0_amount - -1e0 ELSE 0e0 END AS x2_amount,
    CASE WHEN r0_amount >= 1e0 THEN 1e0 WHEN r0_amount > 0e0 THEN r0_amount ELSE 0e0 END AS x3_amount,
    CASE WHEN r0_amount >= 2e0 THEN 1e0 WHEN r0_amount > 1e0 THEN r0_amount - 1e0 ELSE 0e0 END AS x4_amount
  FROM rounded
),
sums1 AS (
  SELECT
    k0,
    k1,
    0.125e0 + 0.125e0 * x0_amount + 0.25e0 * x1_is_new + 0.375e0 * x2_amount + 0.5e0 * x3_amount + 0.625e0 *
      x4_amount + CASE i0_ci_ty WHEN 0 THEN 0.75e0 WHEN 1 THEN 0.875e0 ELSE 1e0 END + CASE i1_day WHEN 0 THEN
      1.125e0 WHEN 1 THEN 1.25e0 WHEN 2 THEN 1.375e0 WHEN 3 THEN 1.5e0 WHEN 4 THEN 1.625e0 WHEN 5 THEN 1.75e0
      WHEN 6 THEN 1.875e0 ELSE 2e0 END AS s1_0,
    0.25e0 + 2.125e0 * x0_amount + 2.25e0 * x1_is_new + 2.375e0 * x2_amount + 2.5e0 * x3_amount + 2.625e0 *
      x4_amount + CASE i0_ci_ty WHEN 0 THEN 2.75e0 WHEN 1 THEN 2.875e0 ELSE 3e0 END + CASE i1_day WHEN 0 THEN
      3.125e0 WHEN 1 THEN 3.25e0 WHEN 2 THEN 3.375e0 WHEN 3 THEN 3.5e0 WHEN 4 THEN 3.625e0 WHEN 5 THEN 3.75e0
      WHEN 6 THEN 3.875e0 ELSE 4e0 END AS s1_1
  FROM features
),
layer1 AS (
  SELECT
    k0,
    k1,
    GREATEST(s1_0, 0e0) AS h1_0,
    GREATEST(s1_1, 0e0) AS h1_1
  FROM sums1
),
outputs AS (
  SELECT
    k0,
    k1,
    0.125e0 + 0.125e0 * h1_0 + 0.25e0 * h1_1 AS o0,
    0.25e0 + 0.375e0 * h1_0 + 0.5e0 * h1_1 AS o1,
    0.375e0 + 0.625e0 * h1_0 + 0.75e0 * h1_1 AS o2
  FROM layer1
),
tops AS (
  SELECT
    k0,
    k1,
    o0,
    o1,
    o2,
    GREATEST(o0, o1, o2) AS top
  FROM outputs
),
powers AS (
  SELECT
    k0,
    k1,
    EXP(GREATEST(o0 - top, -700e0)) AS e0,
    EXP(GREATEST(o1 - top, -700e0)) AS e1,
    EXP(GREATEST(o2 - top, -700e0)) AS e2
  FROM tops
),
totals AS (
  SELECT
    k0,
    k1,
    e0,
    e1,
    e2,
    e0 + e1 + e2 AS total
  FROM powers
),
probabilities AS (
  SELECT
    k0,
    k1,
    e0 / total AS p0,
    e1 / total AS p1,
    e2 / total AS p2
  FROM totals
),
chosen AS (
  SELECT
    k0,
    k1,
    p0,
    p1,
    p2,
    GREATEST(p0, p1, p2) AS top
  FROM probabilities
)
SELECT
  k0 AS `id`,
  k1 AS `na me`,
  CASE top WHEN p0 THEN 'x' WHEN p1 THEN 'y"' ELSE 'z' END AS `kind`,
  top AS `kind_confidence`,
  p0 AS `kind_prob_x`,
  p1 AS `kind_prob_y_`,
  p2 AS `kind_prob_z`
FROM chosen;
