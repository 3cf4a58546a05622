"""The document of a model: its header, its fields and the model of the trees."""

from __future__ import annotations

from collections.abc import Callable

from edl.data.arrow_types import schema_of
from edl.errors import SemanticError
from edl.frameworks.trees.forest import Forest
from edl.frameworks.trees.objectives import LIGHTGBM, XGBOOST
from edl.installation import VERSION
from edl.models.archive import Archive
from edl.spec import TREES
from sqlflow_edl.analysis.inference.prediction import prediction_in_memory
from sqlflow_edl.codegen.trees import objective
from sqlflow_edl.extensions.pmml.columns import PmmlFields
from sqlflow_edl.extensions.pmml.trees import TreeModel, data_type
from sqlflow_edl.extensions.pmml.xml import Xml

_NAMESPACE = "http://www.dmg.org/PMML-4_4"


def encode_pmml(archive: Archive, reference: str, read_forest: Callable[[], Forest]) -> str:
    """Return the text of the document. read_forest: returns the trees of the model.

    Raises SemanticError for a model or a column that has no form, with the nearest way out.
    """
    spec = prediction_in_memory(archive, reference)
    if spec.framework not in TREES:
        raise SemanticError(
            f"{reference} is a {spec.model.name}, and PMML is written for trees of LightGBM and XGBoost",
            hint="export it as ONNX (-o m.onnx)",
        )
    link = (LIGHTGBM if spec.framework == "lightgbm" else XGBOOST)[objective(spec)["objective"]].link
    read = frozenset(spec.columns)
    columns = PmmlFields(schema_of(field for field in spec.query.schema if field.name in read), spec.features)
    xml, body, label = Xml(), Xml(), spec.label
    body.lines.clear()
    model = TreeModel(body, spec, read_forest(), link, columns)
    with xml.element("PMML", xmlns=_NAMESPACE, version="4.4"):
        with xml.element("Header", description=f"{reference}, a {spec.model.name} of {spec.framework}"):
            xml.leaf("Application", name="sqlflow-edl", version=VERSION)
        with xml.element("DataDictionary"):
            for name, (kind, operations) in columns.fields().items():
                xml.leaf("DataField", name=name, optype=operations, dataType=kind)
            if not label.has_classes:
                xml.leaf("DataField", name=label.column, optype="continuous", dataType="double")
            else:
                with xml.element(
                    "DataField", name=label.column, optype="categorical", dataType=data_type(label.classes)
                ):
                    for value in label.classes:
                        xml.leaf("Value", value=value)
        if columns.derived_lines:
            with xml.element("TransformationDictionary"):
                xml.add_lines(columns.derived_lines)
        model.write()
        xml.add_lines(body.lines)
    return xml.text
