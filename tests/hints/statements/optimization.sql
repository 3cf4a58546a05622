-- site: sqlflow_edl.extensions.optimization.terms Terms._comparisons
-- hint: write {}=
-- take: write (<=)
SELECT id, x FROM t WHERE id < 10 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount «<» 3, amount >= 0 WITH variables = "amount(id)", var_type = "NonNegativeReals";

-- site: sqlflow_edl.extensions.optimization.terms Terms._check_name
-- hint: select its seconds: {}
-- take: select its seconds: (.+)
SELECT id, «day» FROM t WHERE id < 10 TO MAXIMIZE SUM(day * amount) CONSTRAINT amount <= 3 WITH variables = "amount(id)", var_type = "NonNegativeReals";

-- site: sqlflow_edl.extensions.optimization.terms Terms.objective
-- hint: write SUM({})
-- take: write (SUM\(.+\))
SELECT id, x, w FROM t WHERE id < 10 TO MAXIMIZE «x * amount» CONSTRAINT amount <= 3, amount >= 0 WITH variables = "amount(id)", var_type = "Reals";

-- site: sqlflow_edl.extensions.optimization.terms Terms._comparisons
-- hint: write {}=
-- take: write (<=|[<>]=)
SELECT id, x FROM t WHERE id < 10 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount «<» 3, amount >= 0 WITH variables = "amount(id)", var_type = "Reals";

-- site: sqlflow_edl.extensions.optimization.terms Terms._aggregate
-- hint: write COUNT(*)
-- take: write (COUNT\(\*\))
SELECT id, x FROM t WHERE id < 10 TO MAXIMIZE SUM(x * amount) CONSTRAINT SUM(amount) <= «COUNT(id)», amount >= 0 WITH variables = "amount(id)", var_type = "Reals";

-- site: sqlflow_edl.extensions.optimization.plan _find_missing
-- hint: write WITH {} = "{}"
-- take: write (WITH var_type = "\w+")
-- as: , var_type = "NonNegativeIntegers"
SELECT id, x FROM t WHERE id < 10 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount <= 3 WITH variables = "amount(id)"«»;

-- site: sqlflow_edl.extensions.optimization.plan _find_missing
-- hint: write WITH {} = "{}"
-- take: write WITH (variables = "amount)\(product\)"
-- as: \1(id)",
SELECT id, x FROM t WHERE id < 10 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount <= 3 WITH «»var_type = "NonNegativeIntegers";

-- site: sqlflow_edl.extensions.optimization.plan _attributes
-- hint: write SELECT … before TO
-- take: write SELECT … before TO
-- as: SELECT id, x FROM t WHERE id < 10
«» TO MAXIMIZE SUM(x * amount) CONSTRAINT amount <= 3 WITH variables = "amount(id)", var_type = "NonNegativeReals";

-- site: edl.extensions.optimization.solver solve
-- hint: raise solver.time_limit
-- take: raise (solver.time_limit)
-- as: \1 = 60
-- run
SELECT id, x FROM t TO MAXIMIZE SUM(x * amount) CONSTRAINT SUM((id * 7 + 3) * amount) = 20001 WITH «solver.time_limit = 0.001», variables = "amount(id)", var_type = "Binary";

-- site: sqlflow_edl.extensions.optimization.terms Terms._term
-- hint: compute it in the SELECT
-- take: compute it in the SELECT
-- as: 1 * w AS u
-- as: u
SELECT id, w, «x» FROM t WHERE id < 10 TO MAXIMIZE SUM(«x / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1 / 1» * amount) CONSTRAINT amount <= 3 WITH variables = "amount(id)", var_type = "NonNegativeReals";
