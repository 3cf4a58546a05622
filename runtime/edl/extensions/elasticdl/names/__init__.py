"""Names that modules written for ElasticDL import, with their meaning here."""
